"""Agents: what is kept, what plans cost in delta, whole episodes, Gymnasium's loop."""

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact

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
    agent = pacplan.Agent(None, model, gamma=0.95, budget=200, seed=0)
    for number in range(3):
        action = agent.act(env)
        assert action in (0, 1) and (agent.history[-1].reused_samples > 0) == (number > 0)
        env.step(action)
    # Nothing has to be kept; and the model's own environment is the default.
    plain = pacplan.Agent(None, model, gamma=0.95, reuse=False, budget=100, seed=0)
    assert plain.act(env) == plain.history[0].action
    assert plain.act() in (0, 1)


# Episodes that are recorded.


def test_episodes_of_a_model_are_recorded(tmp_path):
    model = pacplan.envs.gridworld()
    played = pacplan.Agent(None, model, gamma=0.95, budget=300, seed=0).play(
        episodes=3, steps=40, seed=1
    )
    again = pacplan.Agent(None, model, gamma=0.95, budget=300, seed=0).play(
        episodes=3, steps=40, seed=1
    )
    assert (played.returns == again.returns).all() and played.returns.min() > 0.0
    for episode in played.episodes:
        assert episode.terminated and len(episode.decisions) == len(episode.rewards) <= 40
        assert episode.decisions[0].state == model.initial_state()
        assert episode.total == sum(episode.rewards)
    assert f"{played.returns.mean():.3f}"[:4] in str(played) and "3 episodes" in str(played)
    page = played.episodes[0].to_html(tmp_path / "episode.html").read_text("utf-8")
    assert page.count("<section") == len(played.episodes[0].decisions)
    assert "http" not in page.replace("http-equiv", "")


def test_episodes_side_by_side():
    model = pacplan.envs.gridworld()
    agent = pacplan.Agent(None, model, gamma=0.95, budget=300, seed=0)
    played = agent.play(episodes=4, steps=3, seed=1, workers=2)
    assert [len(episode.decisions) for episode in played.episodes] == [3, 3, 3, 3]
    assert not any(episode.terminated for episode in played.episodes)
    worlds = {tuple(d.state for d in episode.decisions) for episode in played.episodes}
    assert len(worlds) > 1, "each episode has random numbers of its own"


def test_episodes_of_an_environment_are_recorded():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    model = pacplan.from_gymnasium(env, reward_range=(0, 1))
    played = pacplan.Agent(None, model, gamma=0.95, budget=200, seed=0).play(env, 2, steps=30, seed=5)
    assert played.returns.tolist() == [30.0, 30.0]
    with pytest.raises(ValueError, match="remove the environment"):
        pacplan.Agent(None, model, gamma=0.95, budget=200).play(env, workers=2)


# What cannot be.


def test_planners_that_cannot_reuse_are_refused():
    for planner in (PLANNER, pacplan.UCT(gamma=0.7)):
        with pytest.raises(ValueError, match=f"{type(planner).__name__} starts every plan anew"):
            pacplan.Agent(planner, GARNET, reuse=True)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"planner": pacplan.MDPGapE}, TypeError, "planner must be"),
        ({"planner": None}, TypeError, "needs gamma"),
        ({"gamma": 0.9}, TypeError, "remove gamma="),
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
