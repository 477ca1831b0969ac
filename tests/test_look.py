"""What a look sees of a model, and what it costs."""

import numba
import numpy as np
import pytest

import pacplan
from pacplan.look import MOST_CALLS, look
from pacplan.models.protocol import BrokenPromiseError


def seed(number=0):
    return np.random.SeedSequence(number)


@numba.njit
def jitted_walk(state, action, rng):
    move = 1 if (rng.random() < 0.8) == (action == 1) else -1
    return state + move, 0.5, False


def walk(state, action, rng):
    move = 1 if (rng.random() < 0.8) == (action == 1) else -1
    return state + move, 0.5, False


def drift(state, action, rng):
    return state + action + rng.normal(), 0.5, False


def count(state, action, rng):
    return state + action, 0.5, False


# What is seen -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [walk, jitted_walk], ids=["python", "jitted"])
def test_a_simulator(step):
    seen = look(pacplan.Simulator(step, actions=2), 5, 8, seed())
    assert seen.calls == 88 and seen.reached == 64
    # After the first call each pair that is met again leads to one of two places.
    assert seen.recurred >= seen.again - 17
    assert 0 < seen.varied < seen.again
    assert 8 <= seen.states <= 17
    assert seen.successors_recur and seen.states_recur


def test_continuous_noise():
    seen = look(pacplan.Simulator(drift, actions=3), 0.0, 8, seed())
    # The 12 calls of each of three actions, and the first steps of 8 episodes.
    assert seen.calls == 36 + 64
    assert seen.again == 33 + 8 == seen.varied
    assert seen.recurred == 0
    assert seen.states == seen.reached == 64
    assert not (seen.successors_recur or seen.states_recur)


# What it costs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("actions", "horizon"), [(1, 1), (2, 3), (9, 1000)])
def test_its_calls_are_bounded(actions, horizon):
    seen = look(pacplan.Simulator(drift, actions=actions), 0.0, horizon, seed())
    assert seen.calls == 12 * min(actions, 4) + 8 * min(horizon, 8) <= MOST_CALLS


# What ends it -----------------------------------------------------------------------------------------


def test_promises_of_the_user_are_checked():
    with pytest.raises(BrokenPromiseError, match="='deterministic', but a second successor"):
        look(pacplan.Simulator(drift, actions=2), 0.0, 8, seed(), deterministic=True)
    with pytest.raises(BrokenPromiseError, match="more than the promised 2 successors"):
        look(pacplan.Simulator(drift, actions=2, successors=2), 0.0, 8, seed())

    def step(state, action, rng):
        return state, rng.random(), False

    with pytest.raises(BrokenPromiseError, match=r"this pair paid 0\.\d+ after"):
        look(pacplan.Simulator(step, actions=2), 0, 8, seed(), same_rewards=True)
    look(pacplan.Simulator(count, actions=2), 0, 8, seed(), deterministic=True, same_rewards=True)
