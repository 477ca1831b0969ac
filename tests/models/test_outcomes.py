"""Models by outcomes: what is listed is checked, and drawn with its probability."""

import numpy as np
import pytest

import pacplan
from pacplan import BrokenPromiseError


def planned(outcomes, **settings):
    settings = {"actions": 1, "reward_range": (0, 1)} | settings
    return pacplan.ValueIteration(gamma=0.5).plan(pacplan.Outcomes(outcomes, **settings), 0)


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ([(0.5, 1, 0.0, False)], r"probabilities of outcomes\(0, 0\) add up to 0.5"),
        ([], "add up to 0"),
        ([(1.5, 1, 0.0, False), (-0.5, 0, 0.0, False)], r"probability must lie in \[0, 1\], got 1.5"),
        ([(float("nan"), 1, 0.0, False)], "probability must lie"),
        ([(1.0, 1, 2.0, False)], r"reward 2.0 lies outside reward_range=\(0.0, 1.0\)"),
        ([(1.0, 1, float("nan"), False)], "reward nan lies outside"),
        ([(1.0, [1], 0.0, False)], "hashable"),
        ([(1.0, 1, 0.0)], "must be .probability, next_state, reward, terminated."),
        ([None], "must be .probability, next_state"),
    ],
)
def test_what_is_listed_is_checked(listed, words):
    with pytest.raises(BrokenPromiseError, match=words):
        planned(lambda state, action: listed)


def test_ends_that_were_ruled_out():
    with pytest.raises(BrokenPromiseError, match="may_end=False"):
        planned(lambda state, action: [(1.0, 0, 0.0, True)], may_end=False)


def test_what_the_function_raises_comes_through():
    with pytest.raises(KeyError) as raised:
        planned(lambda state, action: {}[state])
    assert "raised by outcomes(0, 0)" in str(raised.value.__notes__)


def test_outcomes_listed_twice_add_up():
    plan = planned(lambda s, a: [(0.25, 0, 1.0, True), (0.5, 0, 0.0, True), (0.25, 0, 1.0, True)])
    np.testing.assert_allclose(plan.upper, 0.5)


def test_planners_that_sample_draw_from_the_list():
    model = pacplan.Outcomes(
        lambda s, a: [(0.2, 1, 1.0, True), (0.5, 2, 0.5, False), (0.3, 3, 0.0, False)],
        actions=2,
        reward_range=(0, 1),
    )
    rng = np.random.default_rng(0)
    drawn = [model.step(0, 0, rng) for _ in range(20_000)]
    for p, outcome in ((0.2, (1, 1.0, True)), (0.5, (2, 0.5, False)), (0.3, (3, 0.0, False))):
        assert abs(np.mean([d == outcome for d in drawn]) - p) < 6 * (p * (1 - p) / 20_000) ** 0.5
    plan = pacplan.UCT(gamma=0.5, horizon=3).plan(model, 0, seed=0, budget=300)
    assert plan.samples == 300
