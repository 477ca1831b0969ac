"""The nearest law with another mean: by hand, and against the definition."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pacplan.theory.divergence import bernoulli, divergence, nearest_below

PROPERTY = settings(derandomize=True, deadline=None, max_examples=300)


def test_coins_by_hand():
    # 0.5 log(0.5/0.2) + 0.5 log(0.5/0.8) = 0.4581454 - 0.2350018
    assert bernoulli(0.5, 0.2) == pytest.approx(0.2231436, abs=1e-7)
    assert bernoulli(0.0, 0.2) == pytest.approx(math.log(1 / 0.8))
    assert bernoulli(1.0, 0.2) == pytest.approx(math.log(5.0))
    assert divergence([0.5, 0.5], [0.2, 0.8]) == pytest.approx(0.2231436, abs=1e-7)
    assert divergence([0.5, 0.5], [1.0, 0.0]) == math.inf


@pytest.mark.parametrize("target", [0.69, 0.5, 0.1, 1e-6])
def test_a_coin_has_one_law_for_each_mean(target):
    slope, law = nearest_below([0.3, 0.7], [0.0, 1.0], target)
    assert law == pytest.approx([1.0 - target, target], rel=1e-9)
    # The derivative of kl(0.7, t) by -t.
    assert slope == pytest.approx((0.7 - target) / (target * (1 - target)), rel=1e-6)


def test_what_was_never_given_may_be():
    """A reward of 0.6 for certain: the nearest law with mean 0.3 mixes it with 0."""
    slope, law = nearest_below([0.0, 1.0, 0.0], [0.0, 0.6, 1.0], 0.3)
    assert law == pytest.approx([0.5, 0.5, 0.0])
    assert slope == pytest.approx(1 / 0.3)  # log(0.6 / t)


def test_a_law_that_is_low_enough_stays():
    assert nearest_below([0.5, 0.5], [0.0, 1.0], 0.5) == (0.0, [0.5, 0.5])


def test_targets_out_of_reach():
    with pytest.raises(ValueError, match="lowest score is 0"):
        nearest_below([0.5, 0.5], [0.0, 1.0], 0.0)


OUTCOMES = st.tuples(st.just(0.0) | st.floats(1e-9, 1), st.floats(-2, 2))


@PROPERTY
@given(st.lists(OUTCOMES, min_size=2, max_size=6), st.floats(0, 1))
def test_nothing_is_nearer(outcomes, place):
    weights, scores = np.array(outcomes).T
    assume(weights.sum() > 0.1 and np.ptp(scores) > 0.1)
    chances = weights / weights.sum()
    low, mean = scores.min(), chances @ scores
    assume(mean > low + 1e-3)
    target = float(low + (0.01 + 0.98 * place) * (mean - low))
    slope, law = nearest_below(chances.tolist(), scores.tolist(), target)
    assert min(law) >= 0.0 and sum(law) == pytest.approx(1.0)
    assert np.dot(law, scores) == pytest.approx(target, abs=1e-8)
    # By the dual form no law with this mean is nearer than this, for any slope.
    given_ = chances > 0.0
    dual = float(chances[given_] @ np.log1p(slope * (scores[given_] - target)))
    assert divergence(chances.tolist(), law) == pytest.approx(dual, abs=1e-8)
