"""What a user knows of returns: used above and below, and checked."""

import numpy as np
import pytest

import pacplan
from hard_problems import GAMMA, Kind, most
from pacplan import BrokenPromiseError, exact

SETTINGS = {"epsilon": 0.2, "delta": 0.1, "gamma": 1.0, "horizon": 6}


def climb(state, action, rng):
    """Steps up or down a hill; the last one pays 1 or -1, and ends the episode."""
    height, left = state
    height += 1 if rng.random() < (0.7, 0.4)[action] else -1
    if left == 1:
        return None, 1.0 if height > 0 else -1.0, True
    return (height, left - 1), 0.0, False


MODEL = pacplan.Simulator(climb, actions=2, reward_range=(-1, 1), initial=(0, 6))


def test_bounds_hold():
    kind, runs, delta = Kind(3, 2, 2, reward_range=(-1.0, 1.0)), 150, 0.5
    rng = np.random.default_rng(5)
    above = below = 0
    for run in range(runs):
        model = kind.draw(rng)
        # Rewards are -1 or 1, so nothing less than this is sure.
        reach = sum(GAMMA**h for h in range(3))
        planner = pacplan.Bracket(
            epsilon=0.02,
            delta=delta,
            gamma=GAMMA,
            horizon=3,
            value_range=(-reach, reach if run % 2 else 2 * reach),
        )
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=3)[0, 0]
        plan = planner.plan(model, 0, seed=run, budget=1500)
        above += plan.upper[q.argmax()] < q.max() - 1e-9
        below += (plan.lower > q + 1e-9).any()
    assert above <= most(runs, delta / 2) and below <= most(runs, delta / 2)


def test_it_saves_calls():
    settings = SETTINGS | {"epsilon": 0.5, "horizon": 12}
    plans = [
        pacplan.Bracket(**settings, **told).plan(MODEL, (0, 12), seed=1, budget=20_000)
        for told in ({}, {"value_range": (-1, 1)}, {"value_bounds": (-1, np.float64(1.0))})
    ]
    assert [plan.certified for plan in plans] == [False, True, True]
    assert plans[1].action == 0 and plans[1].lower.min() >= -1.0
    assert plans[1].upper.max() <= 1.0 and plans[2].upper.max() <= 1.0
    assert "returns lie in [-1, 1]" in plans[1].assumptions


def test_a_range_that_cannot_be():
    for wrong, words in (((10, 12), "contradicts the model's"), ((6, 7), "share more than one number")):
        with pytest.raises(ValueError, match=words):
            pacplan.Bracket(**SETTINGS, value_range=wrong).plan(MODEL, seed=1, budget=100)
    for wrong, error in (((1, -1), ValueError), (3, TypeError), (("a", 1), TypeError)):
        with pytest.raises(error, match=r"value_range|lowest return"):
            pacplan.Bracket(**SETTINGS, value_range=wrong)
    with pytest.raises(TypeError, match="each of value_bounds must be a number"):
        pacplan.Bracket(**SETTINGS, value_bounds=("a", 1))


@pytest.mark.parametrize("kind", [pacplan.Bracket, pacplan.Canopy])
def test_a_return_outside_it_is_found(kind):
    planner = kind(**SETTINGS, value_range=(-0.5, 1))
    with pytest.raises(BrokenPromiseError, match=r"a return of -1.*value_range=\(-0.5, 1.0\)"):
        planner.plan(MODEL, seed=1, budget=20_000)


def test_trees_prove_bounds_below_the_range():
    def even(state, action, rng):
        x = float(rng.normal())
        return x, (1.0 if x > 0.5 * action else -1.0), True

    model = pacplan.Simulator(even, actions=2, reward_range=(-2, 2), initial=0.0)
    planner = pacplan.Canopy(epsilon=0.5, delta=0.1, gamma=0.9, horizon=2, value_range=(-1, 1))
    plan = planner.plan(model, seed=1, budget=20_000)
    # The actions are worth 0 and -0.38.
    assert plan.certified and plan.action == 0 and plan.upper[1] < 0.6


def test_a_range_is_held_against_the_returns_of_one_step():
    """Also where gamma = 0 leaves a later step no weight."""
    arms = pacplan.Simulator(
        lambda state, action, rng: (0, float(rng.random() < 0.3 + 0.4 * action), True), actions=2
    )
    with pytest.raises(pacplan.BrokenPromiseError, match="value_range"):
        pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.0, value_range=(0.2, 0.7)).plan(arms, 0, seed=0)


def test_a_return_whose_last_reward_was_known_is_checked():
    # Once the last reward is known, it is not called for; and the first call of it may be part of a
    # return that is in the range.
    successors = np.array([[[1, 2]] * 2] * 3)
    rewards = np.array([[0.0, 0.6], [1.0, 1.0], [1.0, 1.0]])
    model = pacplan.TabularMDP(np.full(successors.shape, 0.5), rewards, successors=successors)
    settings = {"epsilon": 0.05, "delta": 0.1, "gamma": 1.0, "horizon": 2}
    for seed in range(10):
        planner = pacplan.Bracket(**settings, rewards="deterministic", value_range=(0.0, 1.3))
        with pytest.raises(BrokenPromiseError, match=r"1\.6"):
            planner.plan(model, 0, seed=seed, budget=400)
