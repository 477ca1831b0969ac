"""Anytime: it plays well on problems that defeat others, and its values converge."""

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact


def chain(length=13):
    """Going on costs; only after the last step it pays."""
    to = np.zeros((length, 2), np.int64)
    to[:-1, 1] = np.arange(1, length)
    rewards = np.zeros((length, 2))
    rewards[:, 1] = -0.1
    rewards[-1, 1] = 10.0
    return pacplan.TabularMDP(
        np.ones((length, 2, 1)), rewards, successors=to[:, :, None], reward_range=(-0.1, 10)
    )


def loss_of_play(model, gamma, start, steps, seed, **limits):
    """What an agent loses against optimal play, in parts of what random play loses."""
    q = exact.discounted(model, gamma=gamma)
    losses = []
    for agent in (pacplan.Agent(None, model, gamma=gamma, seed=seed, **limits), None):
        rng, state, loss = np.random.default_rng(seed), start, 0.0
        for t in range(steps):
            action = rng.choice(model.actions(state)) if agent is None else agent.act(state)
            loss += gamma**t * (q[state].max() - q[state, action])
            state, _, ended = model.step(state, action, rng)
            if ended:
                break
        losses.append(loss)
    return losses[0] / losses[1]


@pytest.mark.parametrize(
    ("model", "gamma", "start"),
    [
        (chain(), 0.95, 0),
        (pacplan.envs.riverswim(), 0.95, 1),
        (pacplan.envs.riverswim(12), 0.98, 1),
        (pacplan.envs.sailing(5), 0.95, 25),
        (pacplan.envs.garnet(seed=2), 0.99, 0),
    ],
    ids=["chain", "riverswim", "long river", "sailing", "garnet"],
)
def test_it_plays_nearly_optimally_with_2000_calls_a_decision(model, gamma, start):
    lost = [loss_of_play(model, gamma, start, 50, seed, budget=2000) for seed in range(3)]
    assert np.mean(lost) < 0.05


@pytest.mark.parametrize("horizon", [None, 4])
def test_values_converge(horizon):
    rng = np.random.default_rng(3)
    for seed in range(10):
        model = random_small(rng)
        if horizon is None:
            q = exact.discounted(model, gamma=0.8)[0]
        else:
            q = exact.finite_horizon(model, gamma=0.8, horizon=horizon)[0, 0]
        plan = pacplan.Anytime(gamma=0.8, horizon=horizon).plan(model, 0, seed=seed, budget=100_000)
        q, taken = q[list(plan.actions)], plan.actions.index(plan.action)
        assert q.max() - q[taken] < 0.02
        assert plan.values[taken] == pytest.approx(q.max(), abs=0.05)
        assert plan.gap is None and not plan.certified


def test_models_that_change_from_step_to_step():
    rewards = np.zeros((3, 1, 2))
    rewards[2, 0, 1] = rewards[0, 0, 0] = 1.0
    model = pacplan.TabularMDP(np.ones((3, 1, 2, 1)), rewards)
    plan = pacplan.Anytime(gamma=0.5).plan(model, 0, seed=0, budget=2000)
    assert plan.horizon == 3
    assert plan.values == pytest.approx([1.25, 0.25], abs=0.01)
    with pytest.raises(ValueError, match="3 steps"):
        pacplan.Anytime(gamma=0.5, horizon=4).plan(model, 0, budget=100)


def test_one_lucky_return_recommends_nothing():
    """Lottery tickets pay 1 once in twenty times, the safe action .3."""

    def step(state, action, rng):
        return 0, 0.3 if action == 0 else float(rng.random() < 0.05), True

    model = pacplan.Simulator(step, actions=30)
    planner = pacplan.Anytime(gamma=0.9)
    plans = [planner.plan(model, 0, seed=seed, budget=150) for seed in range(100)]
    lucky = [(plan.values[1:] > 0.3).any() for plan in plans]
    assert any(lucky), "some plans have seen little of a ticket but that it won"
    assert all(plan.action == 0 for plan in plans)


def test_noise_that_never_repeats_is_searched_below_the_first_step():
    """Only the second step tells the actions apart, so the outcomes of the first must be seen again."""

    def step(state, action, rng):
        level, first = state
        if level == 0:
            return (1, rng.normal() + 0.3 * action), 0.0, False
        return (2, 0.0), float(action == (first > 0.0)), True

    model = pacplan.Simulator(step, actions=2)
    plan = pacplan.Anytime(gamma=1.0, horizon=2).plan(model, (0, 0.0), seed=0, budget=4000)
    assert plan.values == pytest.approx([1.0, 1.0], abs=0.1), "random play would earn a half"


def test_the_chart_is_kept():
    model = pacplan.envs.riverswim()
    agent = pacplan.Agent(None, model, gamma=0.95, budget=500, seed=0)
    again = pacplan.Agent(None, model, gamma=0.95, budget=500, seed=0)
    for state in (1, 2, 1, 1, 0):
        assert agent.act(state) == again.act(state)
    assert [decision.reused_samples for decision in agent.history] == [0, 500, 1000, 1500, 2000]
    assert [d.plan.origin.reused for d in agent.history] == [False, True, True, True, True]
    assert all(decision.plan.samples == 500 for decision in agent.history)
    agent.reset()
    assert agent.act(1) == 1 and agent.history[0].reused_samples == 2500


def test_a_state_that_was_never_met_begins_a_new_chart():
    def step(state, action, rng):
        return state + 10 * (1 + action), float(action), False

    agent = pacplan.Agent(None, pacplan.Simulator(step, actions=2), gamma=0.5, budget=100, seed=0)
    assert [agent.act(state) for state in (0, 20, 5)] == [1, 1, 1]
    assert [decision.reused_samples > 0 for decision in agent.history] == [False, True, False]


def test_after_an_error_nothing_is_kept():
    broken = []

    def step(state, action, rng):
        if broken:
            raise RuntimeError("out of order")
        return state + 1, float(action), False

    agent = pacplan.Agent(None, pacplan.Simulator(step, actions=2), gamma=0.5, budget=50, seed=0)
    agent.act(0)
    broken.append(True)
    with pytest.raises(RuntimeError, match="out of order"):
        agent.act(1)
    broken.clear()
    assert agent.act(1) == 1 and agent.history[-1].reused_samples == 0
