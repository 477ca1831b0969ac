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
    float_upper,
    means,
    radii,
    random_mean,
    random_radius,
)

kl_upper_from = interpreted(bernoulli.kl_upper_from)
warm_start = interpreted(bernoulli.warm_start)


def test_kl_interval_agrees_with_a_root_finder():
    rng = np.random.default_rng(1)
    for _ in range(5000):
        p, c = random_mean(rng), random_radius(rng, 1e-12)
        assert kl_upper(p, c) == pytest.approx(float_upper(p, c), rel=0, abs=ACCURACY)
        assert kl_lower(p, c) == pytest.approx(1 - float_upper(1 - p, c), rel=0, abs=ACCURACY)


def test_kl_interval_errs_outwards_in_exact_arithmetic():
    rng = np.random.default_rng(2)
    for _ in range(5000):
        p, c = random_mean(rng), random_radius(rng, 1e-18)
        assert_outer_and_tight(p, c, kl_upper(p, c), kl_lower(p, c))


@pytest.mark.parametrize("c", [0.0, 1e-18, 1e-12, 1e-5, 0.01, 0.5, 1.0, 10.0, 50.0, 1e3])
@pytest.mark.parametrize("p", [0.0, 1e-17, 1e-9, 0.01, 0.3, 0.5, 0.99, 1 - 1e-9, 1 - 1e-16, 1.0])
def test_kl_interval_at_the_corners(p, c):
    assert_outer_and_tight(p, c, kl_upper(p, c), kl_lower(p, c))


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.25, 0.5, 1 - 1e-9, 1.0])
def test_kl_interval_of_radius_zero_is_the_mean(p):
    assert kl_upper(p, 0.0) == p
    assert p - 2e-16 <= kl_lower(p, 0.0) <= p  # 1 - p is rounded.


@pytest.mark.parametrize("c", [1e-12, 1e-3, 0.7, 5.0, 50.0])
def test_kl_interval_of_a_sure_mean_is_closed(c):
    # kl(0, q) = -log(1 - q).
    assert kl_upper(0.0, c) == pytest.approx(-math.expm1(-c), rel=0, abs=1e-14)
    assert kl_lower(0.0, c) == 0.0
    assert kl_upper(1.0, c) == 1.0
    assert kl_lower(1.0, c) == pytest.approx(math.exp(-c), rel=0, abs=1e-14)


def test_kl_interval_of_a_huge_radius_is_the_unit_interval():
    for p in (0.001, 0.3, 0.5, 0.999):
        assert 1 - ACCURACY <= kl_upper(p, 50.0) <= 1.0
        assert 0.0 <= kl_lower(p, 5e4) <= ACCURACY


@PROPERTY
@given(means, radii)
def test_kl_interval_contains_the_mean_and_stays_in_the_unit_interval(p, c):
    assert 0.0 <= kl_lower(p, c) <= p <= kl_upper(p, c) <= 1.0


@PROPERTY
@given(means, radii)
def test_kl_interval_reaches_the_radius(p, c):
    assert_outer_and_tight(p, c, kl_upper(p, c), kl_lower(p, c))


@PROPERTY
@given(means, radii, radii)
def test_kl_interval_grows_with_the_radius(p, one, other):
    small, large = sorted((one, other))
    assert kl_upper(p, small) <= kl_upper(p, large) + ACCURACY
    assert kl_lower(p, small) >= kl_lower(p, large) - ACCURACY


@PROPERTY
@given(means, means, radii)
def test_kl_interval_moves_with_the_mean(one, other, c):
    small, large = sorted((one, other))
    assert kl_upper(small, c) <= kl_upper(large, c) + ACCURACY
    assert kl_lower(small, c) <= kl_lower(large, c) + ACCURACY


@PROPERTY
@given(st.integers(0, 2**20), radii)
def test_kl_interval_is_symmetric(k, c):
    p = k / 2**20  # 1 - p is then exact.
    assert kl_lower(p, c) == pytest.approx(1 - kl_upper(1 - p, c), rel=0, abs=ACCURACY)


@PROPERTY
@given(means, st.floats(0.1, 50), st.integers(0, 17))
def test_kl_interval_shrinks_to_the_mean_as_fast_as_pinsker_says(p, beta, digits):
    c = beta / 10.0**digits
    width = math.sqrt(c / 2) + ACCURACY
    assert kl_upper(p, c) - p <= width
    assert p - kl_lower(p, c) <= width


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


def test_upper_end_from_guesses_close_to_the_mean_the_root_and_one():
    rng = np.random.default_rng(4)
    for _ in range(4000):
        p, c = random_mean(rng), random_radius(rng, 1e-18)
        root = kl_upper(p, c)
        near = 10 ** -rng.uniform(0, 17)
        guesses = (p + (1 - p) * near, root * (1 + near), root * (1 - near), 1 - (1 - p) * near, root)
        assert_outer_and_tight(p, c, kl_upper_from(p, c, float(rng.choice(guesses))))


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
