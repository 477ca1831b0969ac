"""UCT, BRUE, OLOP and KL-OLOP: what defines each, and how well each does."""

import math
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq

import pacplan
from pacplan import exact
from pacplan.algorithms.common.horizons import allocation


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


def kl_upper(mean, level):
    """max{ q : kl(mean, q) <= level }, by bisection."""

    def excess(q):
        first = mean * math.log(mean / q) if mean > 0 else 0.0
        second = (1 - mean) * math.log((1 - mean) / (1 - q)) if mean < 1 else 0.0
        return first + second - level

    if mean >= 1:
        return 1.0
    if level == 0.0:
        return mean
    if excess(1 - 1e-15) <= 0.0:
        return 1.0
    return brentq(excess, max(mean, 1e-12), 1 - 1e-15, xtol=1e-14)


def olop_upper(episodes):
    return lambda mean, n: mean + math.sqrt(2 * math.log(episodes) / n)


def kl_olop_upper(episodes):
    level = 2 * math.log(episodes) + 2 * math.log(max(math.log(episodes), 1.0))
    return lambda mean, n: kl_upper(mean, level / n)


UPPER = {"olop": olop_upper, "kl-olop": kl_olop_upper}


class Sequences:
    """OLOP from its definition: B-values of all sequences of L actions out of K, by enumeration.

    The bound of a sequence to a depth to which it was never played is infinite.
    """

    def __init__(self, actions, depth, gamma, upper):
        self.all = list(product(range(actions), repeat=depth))
        self.gamma, self.upper = gamma, upper
        self.n, self.rewards = defaultdict(int), defaultdict(float)

    def b_value(self, sequence):
        total, best = 0.0, math.inf
        for h in range(1, len(sequence) + 1):
            n = self.n[sequence[:h]]
            if n == 0:
                break
            total += self.gamma ** (h - 1) * self.upper(self.rewards[sequence[:h]] / n, n)
            best = min(best, total + self.gamma**h / (1 - self.gamma))
        return best

    def learn(self, sequence, rewards):
        for h, reward in enumerate(rewards, 1):
            self.n[sequence[:h]] += 1
            self.rewards[sequence[:h]] += reward


def recorded(table, actions):
    """A simulator over a table, and the actions and rewards of all its calls."""
    calls = []

    def step(state, action, rng):
        successor, reward, ended = table.step(state, action, rng)
        calls.append((action, reward))
        return successor, reward, ended

    return pacplan.Simulator(step, actions=actions, successors=table.successors), calls


@pytest.mark.parametrize("planner", ["olop", "kl-olop"])
@pytest.mark.parametrize("noise", ["bernoulli", "none"])
@pytest.mark.parametrize("gamma", [0.6, 0.95])
def test_every_sequence_played_has_the_largest_b_value(planner, noise, gamma):
    # Sequences and first actions never played included.
    actions, depth, episodes = 3, 3, 40
    table = pacplan.envs.garnet(states=20, actions=actions, seed=5, noise=noise)
    made = pacplan.planners[planner](gamma=gamma, horizon=depth)
    for seed in range(4):
        model, calls = recorded(table, actions)
        plan = made.plan(model, 0, seed=seed, budget=depth * episodes)
        defined = Sequences(actions, depth, gamma, UPPER[planner](episodes))
        for start in range(0, depth * episodes, depth):
            played, rewards = zip(*calls[start : start + depth], strict=True)
            largest = max(map(defined.b_value, defined.all))
            own = defined.b_value(played)
            assert own == largest or own == pytest.approx(largest, abs=1e-8)
            defined.learn(played, rewards)
        counts = {action: defined.n[(action,)] for action in range(actions)}
        assert counts == {action: int(pair["n"]) for action, pair in pairs_of_root(plan).items()}
        assert counts[plan.action] == max(counts.values())
        for action, pair in pairs_of_root(plan).items():
            best = max(defined.b_value(s) for s in defined.all if s[0] == action)
            assert pair["bound"] == pytest.approx(best, abs=1e-8)
        assert plan.sequence[0] == plan.action
        assert len(plan.sequence) == depth
        # The most played sequence, step by step.
        for h in range(1, depth):
            among = [defined.n[(*plan.sequence[:h], action)] for action in range(actions)]
            assert defined.n[plan.sequence[: h + 1]] == max(among)


@pytest.mark.parametrize("planner", ["olop", "kl-olop"])
def test_equal_b_values_are_tied_at_random(planner):
    # Everything pays 1, so that all sequences have the same B-value under KL bounds, played or not.
    model = pacplan.TabularMDP(
        np.ones((1, 3, 1)), [[1.0] * 3], successors=np.zeros((1, 3, 1), int), reward_range=(0, 1)
    )
    made = pacplan.planners[planner](gamma=0.8, horizon=2)
    firsts, repeats = set(), 0
    for seed in range(60):
        plan = made.plan(model, 0, seed=seed, budget=8)
        pairs = pairs_of_root(plan)
        assert len(pairs) == 3  # Four episodes: every first action, and one of them again.
        (again,) = (action for action, pair in pairs.items() if pair["n"] == 2)
        firsts.add(again)
        # Its second action is then any of the three, among them the one played before.
        below = [plan.tree.pairs[i]["n"] for i in plan.tree.tried(int(pairs[again]["child"]))]
        repeats += 2 in below
    assert firsts == {0, 1, 2}
    # A third of 60, or none if what was never played came first: 6 standard deviations are 22.
    assert 0 < repeats < 42


@pytest.mark.parametrize("planner", ["olop", "kl-olop"])
@pytest.mark.parametrize("gamma", [0.7, 0.9])
def test_the_best_of_five_is_found(planner, gamma):
    model = bandit(0.7, 0.75, 0.8, 0.9, 1.0)
    made = pacplan.planners[planner](gamma=gamma)
    assert all(made.plan(model, 0, seed=seed, budget=1000).action == 4 for seed in range(100))


def olop_by_definition(model, gamma, budget, rng):
    """The first action that plain OLOP recommends: arrays over all sequences, no tree."""
    episodes, horizon = allocation(budget, gamma)
    k = len(model.actions(0))
    counts = [np.zeros((k,) * h) for h in range(1, horizon + 1)]
    sums = [np.zeros((k,) * h) for h in range(1, horizon + 1)]
    for _ in range(episodes):
        b_values = np.full((k,) * horizon, np.inf)
        total = np.zeros(())
        for h in range(1, horizon + 1):
            n, reward = counts[h - 1], sums[h - 1]
            with np.errstate(divide="ignore", invalid="ignore"):
                upper = np.where(n > 0, reward / n + np.sqrt(2 * math.log(episodes) / n), np.inf)
            total = total[..., np.newaxis] + gamma ** (h - 1) * upper
            bound = total + gamma**h / (1 - gamma)
            b_values = np.minimum(b_values, bound.reshape(bound.shape + (1,) * (horizon - h)))
        best = np.argwhere(b_values >= b_values.max() - 1e-9 if counts[0].all() else np.isinf(b_values))
        sequence = tuple(best[rng.integers(len(best))])
        state = 0
        for h, action in enumerate(sequence, 1):
            state, reward, _ = model.step(state, int(action), rng)
            counts[h - 1][sequence[:h]] += 1
            sums[h - 1][sequence[:h]] += reward
    ties = np.flatnonzero(counts[0] == counts[0].max())
    earned = [sums[0][action] / counts[0][action] for action in ties]
    return int(ties[int(np.argmax(earned))])


def test_regret_is_that_of_the_definition():
    planner, gamma, budget = pacplan.OLOP(gamma=0.7), 0.7, 100
    regrets = []
    for seed in range(200):
        model = pacplan.envs.garnet(seed=seed)
        values = exact.discounted(model, gamma=gamma)[0]
        ours = planner.plan(model, 0, seed=seed, budget=budget).action
        plain = olop_by_definition(model, gamma, budget, np.random.default_rng(seed))
        regrets.append(values.max() - values[[ours, plain]])
    regrets = np.array(regrets)
    difference = regrets[:, 0] - regrets[:, 1]
    # Five standard errors; without its first plays of every action the difference was 0.18.
    assert difference.mean() < 5 * difference.std() / math.sqrt(len(difference))
    assert regrets[:, 0].mean() < 0.08


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
