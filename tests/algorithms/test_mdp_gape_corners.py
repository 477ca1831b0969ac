"""MDP-GapE in corners: few actions, extreme discounts, episodes that end, actions that vary."""

import numpy as np
import pytest

import pacplan
from bandits import bandit
from conftest import random_small
from pacplan import exact

MDPGapE = pacplan.MDPGapE


def test_one_action_leaves_nothing_to_decide():
    plan = MDPGapE(epsilon=0.1, delta=0.1, gamma=0.9).plan(bandit(0.3), 0, seed=0)
    assert (plan.action, plan.samples, plan.gap) == (0, 0, 0.0)
    assert plan.certified


def test_one_action_still_has_a_value():
    planner = MDPGapE(epsilon=0.2, delta=0.1, gamma=0.5, horizon=4, goal="value")
    plan = planner.plan(bandit(0.3, noise="bernoulli"), 0, seed=0)
    assert plan.certified
    assert abs(plan.value - 0.3 * 1.875) <= 0.2
    assert plan.samples > 0


def by_step(noise):
    """A model that is another at every step."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(2), size=(3, 4, 2))
    to = rng.permuted(np.broadcast_to(np.arange(4), (3, 4, 2, 4)), axis=-1)[..., :2]
    return pacplan.TabularMDP(p, rng.random((3, 4, 2)), successors=to, noise=noise)


CORNERS = {
    "gamma = 0": (pacplan.envs.garnet(states=10, actions=3, seed=2), 0.05, 0.0, 1),
    "gamma = 1": (random_small(np.random.default_rng(0)), 0.8, 1.0, 3),
    "many successors": (random_small(np.random.default_rng(1), states=6, successors=5), 0.8, 0.6, 3),
    "absorbing": (
        pacplan.TabularMDP(
            np.ones((2, 2, 1)),
            [[0.3, 1.0], [0.0, 0.0]],
            successors=np.array([[[0], [1]], [[1], [1]]]),
            noise="bernoulli",
        ),
        0.3,
        0.9,
        8,
    ),
    "actions by state": (
        pacplan.TabularMDP(
            np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 3)),
            np.random.default_rng(1).random((3, 3)),
            available=[[True, False, True], [False, True, False], [True, True, True]],
        ),
        0.5,
        0.5,
        3,
    ),
    "by step": (by_step("none"), 0.5, 0.9, 3),
    "by step, noisy": (by_step("bernoulli"), 0.5, 0.9, 3),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_certified_answers_are_right(corner):
    model, epsilon, gamma, horizon = CORNERS[corner]
    planner = MDPGapE(epsilon=epsilon, delta=0.1, gamma=gamma, horizon=horizon)
    plan = planner.plan(model, 0, seed=0)
    truth = exact.finite_horizon(model, gamma=gamma, horizon=horizon)[0, 0]
    assert plan.certified
    assert truth[list(plan.actions)].max() - truth[plan.action] <= epsilon
    truth = truth[list(plan.actions)]
    assert (plan.lower <= truth).all()
    assert (truth <= plan.upper).all()


def pay_and_end():
    """Paying .5 once and ending beats paying .1 for ten steps."""

    def step(state, action, rng):
        return (state, -0.5, True) if action == 0 else (state, -0.1, False)

    return step


@pytest.mark.parametrize("rewards", ["unknown", "deterministic"])
def test_the_end_of_an_episode_earns_nothing_more(rewards):
    model = pacplan.Simulator(pay_and_end(), actions=2, successors=1, reward_range=(-1.0, 0.0))
    planner = MDPGapE(epsilon=0.3, delta=0.1, gamma=1.0, horizon=10, rewards=rewards)
    # Ending at once is worth -.5; waiting first costs .1 a step, and never ending costs 1.
    plan = planner.plan(model, "here", seed=0, budget=300_000)
    assert plan.lower[0] <= -0.5 <= plan.upper[0]
    assert plan.lower[1] <= -0.6 <= plan.upper[1]
    assert plan.values[0] == pytest.approx(-0.5)
    if rewards == "deterministic":
        exactly = MDPGapE(epsilon=0.05, delta=0.1, gamma=1.0, horizon=10, rewards=rewards)
        plan = exactly.plan(model, "here", seed=0)
        assert plan.certified
        assert plan.action == 0
        np.testing.assert_allclose([plan.upper[0], plan.lower[0]], -0.5, atol=1e-9)


def test_rewards_that_exclude_zero_with_and_without_an_end():
    def step(state, action, rng):
        return state, 0.6 if action else 0.4, False

    for may_end, least in ((True, 0.2), (False, 0.2 * 1.75)):
        model = pacplan.Simulator(
            step, actions=2, successors=1, reward_range=(0.2, 1.0), may_end=may_end
        )
        seen = []
        planner = MDPGapE(epsilon=0.4, delta=0.1, gamma=0.5, horizon=3)
        plan = planner.plan(model, 0, seed=0, callback=lambda s, seen=seen: seen.append(s))
        assert plan.certified
        assert plan.action == 1
        # Before anything is seen the value is at least the lowest reward, once or at every step.
        assert seen[0].lower.min() == pytest.approx(least)
        assert seen[0].upper.max() == pytest.approx(1.75)


def test_states_with_different_actions():
    def actions(state):
        return {"start": ["left", "right"], "one": ["only"], "three": ["a", "b", "c"]}[state]

    def step(state, action, rng):
        if state == "start":
            return ("one" if action == "left" else "three"), 0.0, False
        assert action in actions(state)
        return "start", {"only": 0.3, "a": 0.2, "b": 0.9, "c": 0.1}[action], False

    planner = MDPGapE(epsilon=0.3, delta=0.1, gamma=0.8, horizon=2)
    with pytest.raises(ValueError, match="max_actions="):
        planner.plan(pacplan.Simulator(step, actions=actions, successors=1), "start")
    model = pacplan.Simulator(step, actions=actions, successors=1, max_actions=3)
    plan = planner.plan(model, "start", seed=0)
    assert plan.certified and plan.actions == ("left", "right") and plan.action == "right"
    assert (plan.lower <= [0.24, 0.72]).all() and (plan.upper >= [0.24, 0.72]).all()
