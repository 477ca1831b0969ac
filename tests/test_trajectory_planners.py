"""UCT, BRUE, OLOP and KL-OLOP: what defines each, and how well each does."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import pacplan
from pacplan import exact


def bandit(*means):
    k = len(means)
    return pacplan.TabularMDP(
        np.ones((1, k, 1)), [list(means)], successors=np.zeros((1, k, 1), int), noise="none"
    )


def pairs_of_root(plan):
    return {int(plan.tree.pairs[i]["action"]): plan.tree.pairs[i] for i in plan.tree.tried(0)}


# UCT.


def test_uct_visits_on_a_bandit_follow_ucb1():
    # Replayed by hand: both arms once in either order, then the larger UCB1 index.
    means = (0.2, 0.8)
    planner = pacplan.UCT(gamma=0.5, horizon=1, exploration=0.5)
    for budget in range(2, 40):
        plan = planner.plan(bandit(*means), 0, seed=1, budget=budget)
        n = [1, 1]
        for t in range(2, budget):
            index = [means[a] + 0.5 * math.sqrt(math.log(t) / n[a]) for a in (0, 1)]
            n[int(np.argmax(index))] += 1
        assert {a: int(pair["n"]) for a, pair in pairs_of_root(plan).items()} == dict(enumerate(n))
        np.testing.assert_allclose(plan.values, means)


def test_ucts_constant():
    assert pacplan.UCT(gamma=0.5, exploration="ucb1").exploration == math.sqrt(2)
    assert repr(pacplan.UCT(gamma=0.5, exploration=0.25)) == "UCT(gamma=0.5, exploration=0.25)"
    with pytest.raises(ValueError, match="'ucb1'; got 'ucb2'"):
        pacplan.UCT(gamma=0.5, exploration="ucb2")


def test_uct_backs_up_discounted_returns():
    # One action, rewards 1 from the second step on: the return is gamma + gamma^2.
    def step(state, action, rng):
        return state + 1, float(state > 0), False

    plan = pacplan.UCT(gamma=0.5, horizon=3).plan(
        pacplan.Simulator(step, actions=1, successors=1), 0, seed=0, budget=30
    )
    assert plan.value == pytest.approx(0.75)
    assert plan.episodes == 10


def test_uct_rollouts_grow_the_tree_by_one_node_an_episode():
    model = pacplan.envs.garnet(states=50, seed=0)
    plan = pacplan.UCT(gamma=0.7, horizon=10, rollout="random").plan(model, 0, seed=0, budget=5000)
    assert plan.episodes == 500
    assert plan.samples == 5000
    # The root, then one node an episode, but for those that ended on the last step in the tree.
    assert 400 <= len(plan.tree) <= 501
    full = pacplan.UCT(gamma=0.7, horizon=10).plan(model, 0, seed=0, budget=5000)
    assert len(full.tree) > 1500


def test_uct_recommends_by_value_or_by_visits():
    model = pacplan.envs.garnet(states=50, seed=3)
    by_visits = pacplan.UCT(gamma=0.7, horizon=5, recommend="visits")
    plan = by_visits.plan(model, 0, seed=0, budget=2000)
    counts = {a: int(pair["n"]) for a, pair in pairs_of_root(plan).items()}
    assert counts[plan.action] == max(counts.values())
    plan = pacplan.UCT(gamma=0.7, horizon=5).plan(model, 0, seed=0, budget=2000)
    assert plan.values[plan.action] == plan.values.max()


# BRUE.


def test_brue_estimates_of_the_root_use_only_iterations_that_switch_at_step_1():
    model = pacplan.envs.garnet(states=50, seed=0)
    for episodes in (1, 4, 5, 6, 10, 37, 500):
        plan = pacplan.BRUE(gamma=0.7, horizon=5).plan(model, 0, seed=0, budget=5 * episodes)
        assert plan.episodes == episodes
        # Iteration i switches at 5 - ((i - 1) mod 5): at step 1 for i = 5, 10, ...
        counted = sum(int(pair["n"]) for pair in pairs_of_root(plan).values())
        assert counted == episodes // 5
        # And every iteration counts in exactly one pair.
        assert plan.tree.pairs["n"].sum() == episodes


def test_brue_explores_uniformly():
    model = pacplan.envs.garnet(states=50, seed=0)
    plan = pacplan.BRUE(gamma=0.7, horizon=5).plan(model, 0, seed=0, budget=100_000)
    expected = plan.episodes / 5
    # 20 000 uniform draws among 5: a count differs from its mean by 6 standard deviations at most.
    assert np.abs(plan.calls / 5 - expected).max() < 6 * math.sqrt(expected * 0.8)


def test_brue_converges_to_the_exact_values():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(2), size=(3, 2))
    to = rng.permuted(np.broadcast_to(np.arange(3), (3, 2, 3)), axis=-1)[..., :2]
    model = pacplan.TabularMDP(p, rng.random((3, 2)), successors=to)
    truth = exact.finite_horizon(model, gamma=0.8, horizon=3)[0, 0]
    plan = pacplan.BRUE(gamma=0.8, horizon=3).plan(model, 0, seed=0, budget=300_000)
    np.testing.assert_allclose(plan.values, truth, atol=0.02)


# OLOP and KL-OLOP.


def b_values(rewards, counts, gamma, upper):
    """B-values of all full sequences, straight from the definition, by enumeration."""
    depth = max(len(sequence) for sequence in counts)
    actions = sorted({sequence[0] for sequence in counts})
    result = {}

    def visit(sequence):
        if len(sequence) == depth:
            total, best = 0.0, math.inf
            for h in range(1, depth + 1):
                prefix = sequence[:h]
                n = counts.get(prefix, 0)
                if n == 0:
                    break  # An unplayed prefix has an infinite bound, and so has what follows it.
                total += gamma ** (h - 1) * upper(rewards[prefix] / n, n)
                best = min(best, total + gamma**h / (1 - gamma))
            result[sequence] = best
            return
        for action in actions:
            visit((*sequence, action))

    visit(())
    return result


@pytest.mark.parametrize("planner", ["olop", "kl-olop"])
def test_b_values_are_those_of_the_definition(planner):
    model = pacplan.envs.garnet(states=20, actions=2, seed=5, noise="bernoulli")
    gamma, horizon, budget = 0.6, 3, 90
    made = pacplan.planners[planner](gamma=gamma, horizon=horizon)
    plan = made.plan(model, 0, seed=2, budget=budget)
    m = budget // horizon
    if planner == "olop":

        def upper(mean, n):
            return mean + math.sqrt(2 * math.log(m) / n)
    else:
        level = 2 * math.log(m) + 2 * math.log(math.log(m))

        def upper(mean, n):
            def excess(q):
                first = mean * math.log(mean / q) if mean > 0 else 0.0
                second = (1 - mean) * math.log((1 - mean) / (1 - q)) if mean < 1 else 0.0
                return first + second - level / n

            return 1.0 if mean >= 1 else brentq(excess, max(mean, 1e-12), 1 - 1e-15)

    rewards, counts = {}, {}

    def read(node, prefix):
        for i in plan.tree.tried(node):
            pair = plan.tree.pairs[i]
            sequence = (*prefix, int(pair["action"]))
            rewards[sequence], counts[sequence] = float(pair["reward"]), int(pair["n"])
            if pair["child"] >= 0:
                read(int(pair["child"]), sequence)

    read(0, ())
    assert sum(n for sequence, n in counts.items() if len(sequence) == 1) == m
    defined = b_values(rewards, counts, gamma, upper)
    for action, pair in pairs_of_root(plan).items():
        best = max(b for sequence, b in defined.items() if sequence[0] == action)
        assert pair["bound"] == pytest.approx(best, abs=1e-8)
    most = max(pairs_of_root(plan).values(), key=lambda pair: int(pair["n"]))
    assert plan.action == most["action"]
    assert plan.sequence[0] == plan.action
    assert len(plan.sequence) == horizon


def test_open_loop_planners_cannot_use_what_they_observe():
    # The second action must match a coin seen on the way: worth 1 closed-loop, 1/2 open-loop.
    def step(state, action, rng):
        if state == "start":
            if action == 0:
                return "safe", 0.3, False
            return ("heads" if rng.random() < 0.5 else "tails"), 0.0, False
        return "end", float(state == ("heads", "tails")[action]), True

    model = pacplan.Simulator(step, actions=2, successors=2)
    closed = pacplan.UCT(gamma=0.9, horizon=2).plan(model, "start", seed=0, budget=20_000)
    opened = pacplan.KLOLOP(gamma=0.9, horizon=2).plan(model, "start", seed=0, budget=20_000)
    assert closed.values[1] == pytest.approx(0.9, abs=0.05)
    assert opened.values[1] == pytest.approx(0.45, abs=0.05)
    assert closed.action == opened.action == 1


def test_the_default_split_of_a_budget():
    model = pacplan.envs.garnet(seed=0)
    plan = pacplan.KLOLOP(gamma=0.7).plan(model, 0, seed=0, budget=1000)
    # The largest M with M L <= 1000, L = ceil(log M / (2 log 1/.7)), is 142 with L = 7.
    assert plan.horizon == 7
    assert plan.episodes in (142, 143)


# How well they do: the paper's MDPs, against its published curves (mean regret over 200 MDPs).


@pytest.mark.parametrize(
    ("planner", "budget", "published"),
    [
        (pacplan.UCT(gamma=0.7), 1000, 1.61e-2),
        (pacplan.UCT(gamma=0.7), 10_000, 1.20e-2),
        (pacplan.BRUE(gamma=0.7), 1000, 2.47e-2),
        (pacplan.BRUE(gamma=0.7), 10_000, 1.34e-2),
        (pacplan.KLOLOP(gamma=0.7, threshold="log"), 10, 1.00e-1),
        (pacplan.KLOLOP(gamma=0.7, threshold="log"), 1000, 1.63e-2),
        (pacplan.KLOLOP(gamma=0.7, threshold="log"), 10_000, 7.92e-3),
        # Below the best of the four at that budget.
        (pacplan.MDPGapE(epsilon=0, delta=0.1, gamma=0.7, thresholds="sharp"), 31, 3.96e-2),
        (pacplan.MDPGapE(epsilon=0, delta=0.1, gamma=0.7, thresholds="sharp"), 1000, 1.61e-2),
        (pacplan.MDPGapE(epsilon=0, delta=0.1, gamma=0.7, thresholds="sharp"), 10_000, 3.09e-3),
    ],
    ids=str,
)
def test_regret_is_no_worse_than_published(planner, budget, published):
    regrets = []
    for seed in range(200):
        model = pacplan.envs.garnet(seed=seed)
        values = exact.discounted(model, gamma=0.7)[0]
        plan = planner.plan(model, 0, seed=seed, budget=budget)
        regrets.append(values.max() - values[plan.action])
    error = np.std(regrets) / math.sqrt(len(regrets))
    assert np.mean(regrets) <= published + 1.96 * error
