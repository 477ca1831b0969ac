"""What a look sees of a model, and what it costs."""

import numba
import numpy as np
import pytest

import pacplan
from pacplan.look import MOST_CALLS, look
from pacplan.models.protocol import BrokenPromiseError

SEED = np.random.SeedSequence(0)


def walk(state, action, rng):
    move = 1 if (rng.random() < 0.8) == (action == 1) else -1
    return state + move, 0.5, False


def drift(state, action, rng):
    return state + action + rng.normal(), 0.5, False


@pytest.mark.parametrize("step", [walk, numba.njit(walk)], ids=["python", "jitted"])
def test_what_is_seen(step):
    seen = look(pacplan.Simulator(step, actions=2), 5, 8, SEED)
    assert seen.calls == 88 and seen.reached == 64 and 8 <= seen.states <= 17
    # After the first call each pair that is met again leads to one of two places.
    assert seen.recurred >= seen.again - 17 and 0 < seen.varied < seen.again
    assert seen.successors_recur and seen.states_recur
    seen = look(pacplan.Simulator(drift, actions=3), 0.0, 8, SEED)
    # The 12 calls of each of three actions, and the first steps of 8 episodes.
    assert seen.calls == 36 + 64 and seen.again == 33 + 8 == seen.varied
    assert seen.recurred == 0 and seen.states == seen.reached == 64
    assert not (seen.successors_recur or seen.states_recur)


@pytest.mark.parametrize(("actions", "horizon"), [(1, 1), (2, 3), (9, 1000)])
def test_its_calls_are_bounded(actions, horizon):
    seen = look(pacplan.Simulator(drift, actions=actions), 0.0, horizon, SEED)
    assert seen.calls == 12 * min(actions, 4) + 8 * min(horizon, 8) <= MOST_CALLS


def test_promises_of_the_user_are_checked():
    def pays(state, action, rng):
        return state, rng.random(), False

    for model, state, declared, words in (
        (pacplan.Simulator(drift, actions=2), 0.0, {"deterministic": True}, "but a second successor"),
        (pacplan.Simulator(drift, actions=2, successors=2), 0.0, {}, "more than the promised 2"),
        (pacplan.Simulator(pays, actions=2), 0, {"same_rewards": True}, r"this pair paid 0\.\d+ after"),
    ):
        with pytest.raises(BrokenPromiseError, match=words):
            look(model, state, 8, SEED, **declared)
    fixed = pacplan.Simulator(lambda s, a, rng: (s + a, 0.5, False), actions=2)
    look(fixed, 0, 8, SEED, deterministic=True, same_rewards=True)
