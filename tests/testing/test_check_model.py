"""Models that keep their promises, and models that break one each."""

import itertools

import numba
import pytest

import pacplan
from pacplan.testing import ConformanceError, check_model


def walk(state, action, rng):
    """Up or down; ends at 5."""
    state += 1 if rng.random() < 0.5 + 0.4 * action else -1
    return max(state, 0), 1.0 if state == 5 else 0.0, state == 5


def model(step, **promises):
    return pacplan.Simulator(step, **({"actions": 2, "successors": 2} | promises))


@pytest.mark.parametrize(
    "good", [model(walk), model(numba.njit(walk)), pacplan.envs.game_tree([[0.1, 0.9], [0.5, 0.4]])]
)
def test_models_that_keep_their_promises(good):
    seen = check_model(good, 0)
    assert seen.successors == 2 or good.two_player
    assert seen.rewards == (0.0, 1.0)
    assert seen.problems == ()
    assert check_model(good, 0) == seen


def test_what_is_good_to_know():
    seen = check_model(pacplan.envs.garnet(seed=0), episodes=10, steps=20)
    assert seen.draws == 200
    wide = check_model(model(lambda s, a, rng: (s, 0.5, False), successors=7), 0)
    assert wide.successors == 1
    assert "may_end=False" in str(wide) and "successors=7" in str(wide)


class Place:
    """Equal to itself only."""

    number = 0


def moved(state, action, rng):
    state.number += 1
    return state, 0.0, False


def failing(state, action, rng):
    if state == 3:
        raise LookupError("of my own")
    return state + 1, 0.0, False


ticks = itertools.count()
BROKEN = {
    "ends": (model(walk, may_end=False), 4, ["state 4", "may_end=False"]),
    "seeds": (
        model(lambda s, a, rng: (next(ticks), 0.0, False), successors=None),
        0,
        ["same seed", "from rng"],
    ),
    "identity": (model(lambda s, a, rng: (Place(), 0.0, False)), Place(), ["__eq__ and __hash__"]),
    "changed": (model(moved), Place(), ["must not change states"]),
    "reward": (model(lambda s, a, rng: (s, 2.0, False)), 7, ["state 7", "reward_range"]),
    "successors": (model(lambda s, a, rng: (rng.integers(9).item(), 0.0, False)), 0, ["successors="]),
    "unhashable": (model(lambda s, a, rng: ([s], 0.0, False)), 0, ["step(0, ", "hashable"]),
    "actions": (
        model(lambda s, a, rng: (s, 0.0, False), actions=lambda s: 1 + next(ticks) % 3),
        0,
        ["actions(0) returned", "always return"],
    ),
    "raises": (model(failing), 0, ["LookupError: of my own", "state 3, action"]),
    "endless": (model(lambda s, a, rng: (s, 0.0, False), two_player=True), 0, ["not over", "steps="]),
    "jitted": (model(numba.njit(lambda s, a, rng: (s, 2.0, False))), 7, ["state 7", "reward_range"]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_models_that_break_a_promise(name):
    broken, state, words = BROKEN[name]
    with pytest.raises(ConformanceError) as caught:
        check_model(broken, state)
    for word in words:
        assert word in str(caught.value)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="model must be"):
        check_model("model")
    with pytest.raises(ValueError, match="episodes"):
        check_model(model(walk), 0, episodes=0)
    with pytest.raises(ValueError, match="name a state"):
        check_model(model(walk))
