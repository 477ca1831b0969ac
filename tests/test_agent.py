"""Agents: trees that are kept, what they cost in delta, whole episodes, Gymnasium's loop."""

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact
from pacplan.algorithms.common.running import Task
from pacplan.engine.driver import Limits

GARNET = pacplan.envs.garnet(states=50, actions=3, seed=1, noise="bernoulli")
PLANNER = pacplan.MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7, horizon=4)
UCT = pacplan.UCT(gamma=0.7, horizon=4)


def episode(agent, world, decisions, seed=0, state=None):
    """Let an agent act in a world that is as the model says."""
    rng = np.random.default_rng([7, seed])
    state = world.initial_state() if state is None else state
    for _ in range(decisions):
        state, _, over = world.step(state, agent.act(state), rng)
        if over:
            break
    return agent.history


def grown(model, state, tree=None, budget=2000):
    """A plan whose tree can be kept."""
    return UCT.run(Task(model, state, np.random.SeedSequence(0), Limits(budget), tree=tree))


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


# Whole episodes.


def test_all_plans_of_an_episode_hold_together():
    rng = np.random.default_rng(5)
    planner = pacplan.MDPGapE(epsilon=0.6, delta=0.05, gamma=0.9, horizon=3)
    failed = 0
    for seed in range(100):
        model = random_small(rng)
        q = exact.finite_horizon(model, gamma=0.9, horizon=3)[0]
        agent = pacplan.Agent(planner, model, seed=seed, spread="union")
        failed += any(
            (d.plan.lower > q[d.state] + 1e-9).any() or (d.plan.upper < q[d.state] - 1e-9).any()
            for d in episode(agent, model, 5, seed, state=0)
        )
    # 5 are allowed on average; more than 20 would happen with probability 2e-8.
    assert failed <= 20


def test_the_parts_of_delta_sum_to_it():
    agent = pacplan.Agent(PLANNER, GARNET, spread="union", seed=1)
    for number, decision in enumerate(episode(agent, GARNET, 6), 1):
        assert decision.delta == pytest.approx(0.1 * 6 / (np.pi * number) ** 2)
        assert f"delta={decision.delta!r}" in decision.plan.planner
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
        assert (decision.delta, decision.reused_samples) == (0.1, 0)
        assert decision.plan.tree is None


# Gymnasium.


def test_the_loop_of_gymnasium():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    planner = pacplan.ValueIteration(gamma=0.9)
    agent = pacplan.Agent(planner, pacplan.from_gymnasium(env), seed=0)
    env.reset(seed=0)
    over, total = False, 0.0
    while not over:
        _, reward, terminated, truncated, _ = env.step(agent.act(env))
        over, total = terminated or truncated, total + reward
    assert total == 1.0
    assert len(agent.history) == 6


def test_environments_behind_snapshots():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
    planner = pacplan.UCT(gamma=0.95, horizon=10)
    agent = pacplan.Agent(planner, model, budget=200, reuse=True, seed=0)
    for number in range(3):
        action = agent.act(env)
        assert action in (0, 1) and (agent.history[-1].reused_samples > 0) == (number > 0)
        env.step(action)
    # Without reuse nothing has to be recognised; and the model's own environment is the default.
    plain = pacplan.Agent(planner, model, budget=100, seed=0)
    assert plain.act(env) == plain.history[0].action
    assert plain.act() in (0, 1)


# What cannot be.


def test_planners_and_models_that_cannot_reuse_are_refused():
    with pytest.raises(ValueError, match="BRUE starts every plan anew"):
        pacplan.Agent(pacplan.BRUE(gamma=0.7), GARNET, reuse=True)
    varying = pacplan.TabularMDP(np.full((5, 2, 2, 2), 0.5), np.full((5, 2, 2), 0.5))
    with pytest.raises(ValueError, match="MDPGapE starts every plan anew"):
        pacplan.Agent(PLANNER, GARNET, reuse=True)
    pacplan.Agent(UCT, varying)
    clocked = pacplan.Simulator(
        lambda s, a, rng, h: (s, 0.0, False), actions=2, successors=1, stationary=False
    )
    for model in (varying, clocked):
        with pytest.raises(ValueError, match="not stationary"):
            pacplan.Agent(UCT, model, reuse=True)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"planner": pacplan.MDPGapE}, TypeError, "planner must be"),
        ({"model": 3}, TypeError, "model must be"),
        ({"reuse": 1}, TypeError, "reuse must be"),
        ({"spread": "even"}, ValueError, "spread must be one of"),
        ({"planner": pacplan.UCT(gamma=0.7), "spread": "union"}, ValueError, "has none"),
        ({"seed": -1}, ValueError, "seed must be"),
    ],
)
def test_bad_arguments(arguments, error, words):
    with pytest.raises(error, match=words):
        pacplan.Agent(**({"planner": PLANNER, "model": GARNET} | arguments))
