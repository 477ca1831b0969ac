"""Bernoulli confidence sets against independent solvers: accurate, and never too narrow."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacplan.bounds import bernoulli
from pacplan.bounds.intervals import kl_lower, kl_upper
from pacplan.compiled.interpreted import interpreted
from references import (
    ACCURACY,
    PROPERTY,
    assert_outer_and_tight,
    means,
    radii,
    random_mean,
    random_radius,
)

kl_upper_from = interpreted(bernoulli.kl_upper_from)
warm_start = interpreted(bernoulli.warm_start)
share_upper = interpreted(bernoulli.share_upper)


def test_kl_interval_errs_outwards_in_exact_arithmetic():
    rng = np.random.default_rng(2)
    for _ in range(5000):
        p, c = random_mean(rng), random_radius(rng, 1e-18)
        assert_outer_and_tight(p, c, kl_upper(p, c), kl_lower(p, c))


@pytest.mark.parametrize("c", [0.0, 1e-18, 1e-12, 1e-5, 0.01, 0.5, 1.0, 10.0, 50.0, 1e3])
@pytest.mark.parametrize("p", [0.0, 1e-17, 1e-9, 0.01, 0.3, 0.5, 0.99, 1 - 1e-9, 1 - 1e-16, 1.0])
def test_kl_interval_at_the_corners(p, c):
    assert_outer_and_tight(p, c, kl_upper(p, c), kl_lower(p, c))


@PROPERTY
@given(means, radii)
def test_kl_interval_reaches_the_radius(p, c):
    assert_outer_and_tight(p, c, kl_upper(p, c), kl_lower(p, c))


@settings(PROPERTY, max_examples=1000)
@given(
    means,
    radii,
    st.one_of(
        st.floats(0, 1),
        st.floats(allow_nan=True, allow_infinity=True),
        st.floats(-300, 0).map(lambda x: 10.0**x),
        st.floats(-16, 0).map(lambda x: 1.0 - 10.0**x),
    ),
)
def test_upper_end_does_not_depend_on_the_guess(p, c, guess):
    upper = kl_upper_from(p, c, guess)
    assert upper == pytest.approx(kl_upper(p, c), rel=0, abs=ACCURACY)
    assert_outer_and_tight(p, c, upper)


def test_upper_end_from_the_guesses_of_a_run():
    # Each solution is the guess of the next one, as in a search.
    rng = np.random.default_rng(5)
    for truth in (0.01, 0.3, 0.9, 0.999):
        total, last, before, radius_before = 0.0, 0.0, 0.0, 1.0
        for n in range(1, 800):
            total += rng.random() < truth
            p, c = total / n, (3.0 + math.log(n)) / n
            bend = 1.0 / (p * (1 - p)) if 0 < p < 1 else 0.0
            guess = warm_start(p, last, p - before, math.sqrt(c / radius_before), bend)
            last, before, radius_before = kl_upper_from(p, c, guess), p, c
            assert_outer_and_tight(p, c, last)


def test_shares_are_those_of_the_solver_at_first_and_again():
    shares = bernoulli.no_shares()
    for _ in range(2):
        for n in (2, 3, 17, bernoulli.MOST_KEPT):
            for k in range(1, n):
                assert share_upper(shares, k, n, 3.0 / n) == kl_upper(k / n, 3.0 / n)
