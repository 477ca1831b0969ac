"""Agents: trees that are kept, what they cost in delta, whole episodes, Gymnasium's loop."""

import math
from itertools import pairwise

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact
from pacplan.algorithms.common.running import Task
from pacplan.bounds import expectation_interval, mean_interval
from pacplan.engine.driver import Limits
from pacplan.engine.query import Reuse
from pacplan.engine.tree import SearchTree

GARNET = pacplan.envs.garnet(states=50, actions=3, seed=1, noise="bernoulli")
PLANNER = pacplan.MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7, horizon=4)


def episode(agent, world, decisions, seed=0, state=None):
    """Let an agent act in a world that is as the model says."""
    rng = np.random.default_rng([7, seed])
    state = world.initial_state() if state is None else state
    for _ in range(decisions):
        state, _, over = world.step(state, agent.act(state), rng)
        if over:
            break
    return agent.history


def grown(model, state, planner=PLANNER, *, reuse=None, budget=2000, seed=0):
    """A plan whose tree can be kept."""
    root = np.random.SeedSequence(seed)
    return planner.run(Task(model, state, root, Limits(budget), reuse=reuse or Reuse()))


def told(tree, node=0):
    """All that a tree holds below a node, by a plain recursion."""
    return {
        int(tree.pairs[i]["action"]): (
            int(tree.pairs[i]["n"]),
            {o.state: (o.ended, o.count, told(tree, o.node)) for o in tree.outcomes(i)},
        )
        for i in tree.tried(node)
    }


# Cutting trees.


def test_a_tree_below_a_node_holds_what_was_below_it():
    tree = grown(GARNET, 0).tree
    for node in range(1, len(tree), 7):
        cut = tree.below(node)
        assert told(cut) == told(tree, node)
        assert cut.state(0) == tree.state(node)
        assert cut.nodes[0]["count"] == tree.nodes[node]["count"]
        for at in range(len(cut)):
            for pair in cut.tried(at):
                assert all(outcome.node > at for outcome in cut.outcomes(pair))


def test_a_tree_is_told_in_the_states_of_the_next_session():
    def step(state, action, rng):
        row, column = state
        column += 1 if rng.random() < 0.7 else -1
        return (row + action, column), rng.random(), row > 4

    model = pacplan.Simulator(step, actions=2, successors=3)
    tree = grown(model, (0, 0)).tree
    node = tree.successor(1, (1, 1))
    assert tree.state(node) == (1, 1)
    assert tree.successor(0, (1, 1)) is None
    cut = tree.below(node)
    plan = grown(model, (1, 1), reuse=Reuse(cut, 0.5), budget=1)
    # One more call adds one visit to one pair.
    before, after = told(cut), told(plan.tree)
    assert sum(n for n, _ in after.values()) == sum(n for n, _ in before.values()) + 1
    for action, (_, outcomes) in before.items():
        assert outcomes.keys() <= after[action][1].keys()
        for state, (ended, count, below) in outcomes.items():
            assert after[action][1][state][0] == ended
            assert after[action][1][state][1] >= count
            assert after[action][1][state][2] == below


# The bounds of a tree that was kept.


def reference(tree, model, planner, delta, node=0, h=0, price=0.0):
    """U and L of the pairs of a node by the formulas of the paper's section 3, from counts alone."""
    low, high = model.reward_range
    gamma, steps = planner.gamma, planner.horizon - h
    b, k = model.successors, model.max_actions

    def most(steps):
        return high * sum(gamma**i for i in range(steps))

    level = math.log(3.0 / delta)
    if not tree.nodes[node]["actions"]:
        return {}
    if k is None:
        price += math.log(tree.nodes[node]["actions"] * (b if h else 1))
        level += math.log(planner.horizon) + price
    else:
        level += planner.horizon * math.log(b * k)
    assert low == 0.0
    bounds = {}
    for i in tree.tried(node):
        pair = tree.pairs[i]
        n = int(pair["n"])
        lower, upper = mean_interval(min(pair["reward"] / n, 1.0), (level + 1 + math.log(1 + n)) / n)
        lower, upper = high * lower, high * upper
        outcomes = list(tree.outcomes(i))
        if steps > 1:
            values = []
            for outcome in outcomes:
                value = (0.0, most(steps - 1))
                below = reference(tree, model, planner, delta, outcome.node, h + 1, price)
                if outcome.ended:
                    value = (0.0, 0.0)
                elif len(below) == tree.nodes[outcome.node]["actions"]:
                    value = tuple(max(side) for side in zip(*below.values(), strict=True))
                elif below:
                    value = (max(bounds[0] for bounds in below.values()), most(steps - 1))
                values.append(value)
            p = [outcome.count / n for outcome in outcomes]
            radius = (level + (b - 1) * (1 + math.log(1 + n / (b - 1)))) / n
            unseen = (0.0, most(steps - 1)) if len(p) < b else None
            lower += gamma * expectation_interval(p, [v[0] for v in values], radius, unseen)[0]
            upper += gamma * expectation_interval(p, [v[1] for v in values], radius, unseen)[1]
        bounds[int(pair["action"])] = (max(lower, 0.0), min(upper, most(steps)))
    return bounds


def line(state, action, rng):
    place = min(max(state + (1 if rng.random() < 0.8 else -1) * (action - 1), 0), 6)
    return place, 2.0 * rng.random() * (place > 3), place == 6 and rng.random() < 0.5


@pytest.mark.parametrize(
    "model",
    [
        GARNET,
        random_small(np.random.default_rng(3), successors=3),
        pacplan.Simulator(line, actions=3, successors=3, reward_range=(0, 2), initial=4),
        pacplan.Simulator(
            line, actions=lambda s: 2 + s % 2, successors=3, reward_range=(0, 2), initial=4
        ),
    ],
    ids=["two successors", "three successors", "python", "actions not declared"],
)
def test_bounds_of_a_tree_that_was_kept(model):
    start = 4 if isinstance(model, pacplan.Simulator) else 0
    tree, share = grown(model, start, budget=4000).tree, 1.0
    for age in range(3):
        outcomes = [o for i in tree.tried(0) for o in tree.outcomes(i) if not o.ended]
        kept = max(outcomes, key=lambda outcome: outcome.count)
        share /= int(tree.nodes[0]["actions"])
        cut = tree.below(kept.node)
        visits = int(cut.pairs["n"].sum())
        plan = grown(model, kept.state, reuse=Reuse(cut, share), budget=300 if age else 1, seed=age)
        tree = plan.tree
        assert int(tree.pairs["n"].sum()) == visits + plan.samples
        bounds = reference(tree, model, PLANNER, PLANNER.delta * share)
        for action, (lower, upper) in bounds.items():
            at = plan.actions.index(action)
            assert plan.lower[at] == pytest.approx(lower, abs=1e-7)
            assert plan.upper[at] == pytest.approx(upper, abs=1e-7)
        assert any(f"delta divided by {1 / share:g}" in stated for stated in plan.assumptions)


@pytest.mark.parametrize(
    ("rewards", "transitions"),
    [("known", "known"), ("known", "unknown"), ("deterministic", "known"), ("deterministic",) * 2],
)
def test_what_is_known_stays_known(rewards, transitions):
    model = pacplan.envs.garnet(
        states=50, actions=3, seed=1, successors=1 if transitions == "deterministic" else 2
    )
    planner = pacplan.MDPGapE(
        epsilon=0.3, delta=0.1, gamma=0.7, horizon=5, rewards=rewards, transitions=transitions
    )
    q = exact.finite_horizon(model, gamma=0.7, horizon=5)[0]
    history = episode(pacplan.Agent(planner, model, reuse=True, seed=0), model, 6)
    assert any(decision.age for decision in history)
    for decision in history:
        plan = decision.plan
        assert plan.certified
        assert (plan.lower <= q[decision.state] + 1e-9).all()
        assert (plan.upper >= q[decision.state] - 1e-9).all()
        # Where no guarantee rests on draws, there is nothing to pay.
        assert len(plan.assumptions) == 4 + (transitions == "unknown" and decision.age > 0) - (
            transitions == "unknown"
        )


# Whole episodes.


def failing_episodes(models, **settings):
    """In how many episodes some interval of some plan misses the exact value; and kept trees."""
    planner = pacplan.MDPGapE(epsilon=0.6, delta=0.05, gamma=0.9, horizon=3)
    failed = kept = 0
    for seed, model in enumerate(models):
        q = exact.finite_horizon(model, gamma=0.9, horizon=3)[0]
        agent = pacplan.Agent(planner, model, reuse=True, seed=seed, **settings)
        history = episode(agent, model, 5, seed, state=0)
        kept += sum(decision.age > 0 for decision in history)
        failed += any(
            (d.plan.lower > q[d.state] + 1e-9).any() or (d.plan.upper < q[d.state] - 1e-9).any()
            for d in history
        )
    return failed, kept


def test_all_plans_of_an_episode_hold_together(monkeypatch):
    rng = np.random.default_rng(5)
    models = [random_small(rng) for _ in range(100)]
    failed, kept = failing_episodes(models, spread="union")
    assert kept > 50
    # 5 are allowed on average; more than 20 would happen with probability 2e-8.
    assert failed <= 20
    # The check sees a tree whose samples are not fair.
    below = SearchTree.below

    def embellished(tree, node):
        cut = below(tree, node)
        cut.pairs["reward"] = cut.pairs["n"]
        return cut

    monkeypatch.setattr(SearchTree, "below", embellished)
    assert failing_episodes(models, spread="union")[0] > 20


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("steps", [None, 6])
def test_the_parts_of_delta_sum_to_it(reuse, steps):
    agent = pacplan.Agent(PLANNER, GARNET, reuse=reuse, spread="union", steps=steps, seed=1)
    history = episode(agent, GARNET, 6)
    # The parts of all plans that there could be: any number of trees, any number of plans on each.
    trees = steps or 2000
    ages = 60 if reuse else 1
    total = sum(agent._part(tree, age) for tree in range(1, trees + 1) for age in range(ages))
    assert total == pytest.approx(1.0, abs=1e-3)
    assert total <= 1.0 + 1e-12
    tree = 0
    for decision in history:
        tree += decision.age == 0
        assert decision.delta == pytest.approx(0.1 * agent._part(tree, decision.age))
        assert f"delta={decision.delta!r}" in decision.plan.planner
    assert (max(d.age for d in history) > 0) == reuse
    if steps is not None:
        with pytest.raises(ValueError, match="has used its 6 decisions"):
            agent.act(0)
    assert PLANNER.delta == 0.1


def test_without_reuse_each_decision_is_the_planners_own():
    agent = pacplan.Agent(PLANNER, GARNET, seed=np.random.SeedSequence(3), budget=500)
    history = episode(agent, GARNET, 3)
    seeds = np.random.SeedSequence(3).spawn(3)
    for decision, seed in zip(history, seeds, strict=True):
        plan = PLANNER.plan(GARNET, decision.state, seed=seed, budget=500)
        assert decision.action == plan.action == decision.plan.action
        assert decision.plan.samples == plan.samples
        assert (decision.plan.lower == plan.lower).all()
        assert (decision.delta, decision.age) == (0.1, 0)
        assert decision.reused_nodes == decision.reused_samples == 0
        assert decision.plan.tree is None


def test_history_tells_what_was_reused():
    agent = pacplan.Agent(PLANNER, GARNET, reuse=True, seed=0)
    history = episode(agent, GARNET, 6)
    assert history[0].age == 0
    kept = [decision for decision in history if decision.age]
    assert kept
    for before, decision in pairwise(history):
        if decision.age:
            assert decision.age == before.age + 1
            assert 1 < decision.reused_nodes < decision.reused_samples
            assert decision.reused_samples < before.reused_samples + before.plan.samples
        else:
            assert decision.reused_nodes == decision.reused_samples == 0
    agent.reset()
    assert agent.history == []
    again = episode(agent, GARNET, 1)
    assert again[0].age == 0
    assert again[0].plan.samples != history[0].plan.samples  # The seeds went on.


def test_reuse_saves_calls():
    def calls(reuse):
        agents = [pacplan.Agent(PLANNER, GARNET, reuse=reuse, seed=seed) for seed in range(10)]
        return sum(
            decision.plan.samples
            for seed, agent in enumerate(agents)
            for decision in episode(agent, GARNET, 8, seed)
        )

    assert calls(True) < 0.97 * calls(False)


def test_a_plan_that_raises_changes_nothing():
    agent = pacplan.Agent(PLANNER, GARNET, reuse=True, spread="union", seed=0)
    first = episode(agent, GARNET, 1)[0]
    with pytest.raises(ValueError, match="state"):
        agent.act(1000)
    assert agent.history == [first]
    tree = agent._tree
    (taken,) = (i for i in tree.tried(0) if tree.pairs[i]["action"] == first.action)
    outcomes = list(tree.outcomes(taken))
    agent.act(max(outcomes, key=lambda outcome: outcome.count).state)
    assert agent.history[1].age == 1
    assert agent.history[1].delta == pytest.approx(first.delta / 2)


def test_uct_keeps_its_counts():
    agent = pacplan.Agent(pacplan.UCT(gamma=0.7, horizon=5), GARNET, 1000, reuse=True, seed=0)
    history = episode(agent, GARNET, 5)
    assert [decision.age for decision in history] == list(range(5))
    assert all(decision.delta is None for decision in history)
    last = history[-1]
    assert last.plan.samples == 1000
    arrivals = sum(int(agent._tree.pairs[i]["n"]) for i in agent._tree.tried(0))
    assert arrivals == agent._tree.nodes[0]["count"] > last.plan.episodes


# Gymnasium.


def test_the_loop_of_gymnasium():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    planner = pacplan.MDPGapE(
        epsilon=0.01, delta=0.1, gamma=0.9, horizon=7, rewards="known", transitions="known"
    )
    agent = pacplan.Agent(planner, pacplan.from_gymnasium(env), reuse=True, seed=0)
    (observation, _), over, total = env.reset(seed=0), False, 0.0
    while not over:
        observation, reward, terminated, truncated, _ = env.step(agent.act(env, observation))
        over, total = terminated or truncated, total + reward
    assert total == 1.0
    assert len(agent.history) == 6
    # What was planned before is still there: from the second decision on, hardly a call is needed.
    assert agent.history[-1].age > 0


def test_environments_behind_snapshots():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=0)
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
    planner = pacplan.UCT(gamma=0.95, horizon=10)
    keyed = pacplan.from_gymnasium(env, key="observation", successors=1, reward_range=(0, 1))
    agents = [pacplan.Agent(planner, known, budget=200, reuse=True, seed=0) for known in (model, keyed)]
    with pytest.raises(ValueError, match=r"act\(env, observation\)"):
        agents[1].act(env)
    for age in range(3):
        action = agents[0].act(env)
        assert action in (0, 1) and action == agents[1].act(env, observation)
        assert all(agent.history[-1].age == age for agent in agents)
        observation, _, _, _, _ = env.step(action)
    # Without reuse nothing has to be recognised; and the model's own environment is the default.
    plain = pacplan.Agent(planner, model, budget=100, seed=0)
    assert plain.act(env) == plain.history[0].action
    assert plain.act() in (0, 1)


# What cannot be.


def test_planners_and_models_that_cannot_reuse_are_refused():
    with pytest.raises(ValueError, match="BRUE starts every plan anew"):
        pacplan.Agent(pacplan.BRUE(gamma=0.7), GARNET, reuse=True)
    varying = pacplan.TabularMDP(np.full((5, 2, 2, 2), 0.5), np.full((5, 2, 2), 0.5))
    for planner in (PLANNER, pacplan.UCT(gamma=0.7)):
        with pytest.raises(ValueError, match="not stationary"):
            pacplan.Agent(planner, varying, reuse=True)
        pacplan.Agent(planner, varying)
    clocked = pacplan.Simulator(
        lambda s, a, rng, h: (s, 0.0, False), actions=2, successors=1, stationary=False
    )
    with pytest.raises(ValueError, match="not stationary"):
        pacplan.Agent(PLANNER, clocked, reuse=True)
    own = pacplan.bounds.Thresholds(np.log1p, np.log1p, proven=True, name="mine")
    proven = pacplan.MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7, thresholds=own)
    with pytest.raises(ValueError, match="'mine' are for one delta"):
        pacplan.Agent(proven, GARNET, reuse=True)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"planner": pacplan.MDPGapE}, TypeError, "planner must be"),
        ({"model": 3}, TypeError, "model must be"),
        ({"reuse": 1}, TypeError, "reuse must be"),
        ({"spread": "even"}, ValueError, "spread must be one of"),
        ({"steps": 0, "spread": "union"}, ValueError, "steps must be at least 1"),
        ({"steps": 5}, ValueError, "steps= needs spread='union'"),
        ({"planner": pacplan.UCT(gamma=0.7), "spread": "union"}, ValueError, "has none"),
        ({"seed": -1}, ValueError, "seed must be"),
    ],
)
def test_bad_arguments(arguments, error, words):
    with pytest.raises(error, match=words):
        pacplan.Agent(**({"planner": PLANNER, "model": GARNET} | arguments))


def test_an_environment_needs_a_model_of_one():
    gymnasium = pytest.importorskip("gymnasium")
    with pytest.raises(TypeError, match="from_gymnasium"):
        pacplan.Agent(PLANNER, GARNET).act(gymnasium.make("FrozenLake-v1"))
