"""Product bets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from pacplan.bounds import product
from pacplan.compiled.interpreted import interpreted

penalised_max = interpreted(product.penalised_max)


@interpreted
def sum_of_logarithms(a, numbers):
    total = 0.0
    for z in numbers:
        total += product.log_stake(a, z)
    return total


def penalised(y, z, stakes, cash, penalty):
    """y - penalty log M(y), by definition."""
    bets = np.log((stakes - np.array(z)[:, np.newaxis]) / (stakes - y)).sum(0)
    return y - penalty * np.logaddexp(np.log(cash), np.log((1 - cash) / len(stakes)) + logsumexp(bets))


def solve(z, stakes, cash, penalty, guess=1.0, tolerance=1e-6):
    sums = np.array([sum_of_logarithms(a, z) for a in stakes])
    work = np.zeros(len(stakes))
    return penalised_max(sums, stakes, len(z), cash, penalty, guess, tolerance, work)[0]


@settings(max_examples=60, deadline=None)
@given(
    z=st.lists(st.floats(-30.0, 0.999), min_size=1, max_size=30),
    span=st.floats(1.0, 30.0),
    cash=st.floats(0.5, 0.999999),
    penalty=st.floats(1e-4, 100.0),
    guess=st.floats(-40.0, 1.0),
)
def test_penalised_max_is_the_maximum_and_never_less(z, span, cash, penalty, guess):
    stakes = 1.0 + span * product.scales(4.0)
    result = solve(z, stakes, cash, penalty, guess)
    # The slope is positive up to 1 - penalty n, and the function concave.
    low, high = -penalty * len(z), 1.0
    for _ in range(120):
        third = (high - low) / 3.0
        left, right = low + third, high - third
        if penalised(left, z, stakes, cash, penalty) < penalised(right, z, stakes, cash, penalty):
            low = left
        else:
            high = right
    best = penalised(0.5 * (low + high), z, stakes, cash, penalty)
    rounding = 1e-12 * max(1.0, penalty * len(z))
    assert best - rounding <= result <= best + 1e-6 + rounding


def test_penalised_max_where_a_stake_is_lost():
    stakes = 1.0 + product.scales(4.0)
    # All ones: the first stake is lost, and nothing contradicts y = 1.
    result = solve([1.0] * 50, stakes, 0.5, 0.01)
    assert result >= penalised(1.0, [1.0] * 50, stakes[1:], 1 - 0.5 * 4 / 5, 0.01) - 1e-12
    assert 1.0 <= result <= 1.0 + 0.01 * np.log(2.0) + 1e-6


@pytest.mark.parametrize("n", [1, 1000, 2_000_000_000])
@pytest.mark.parametrize("penalty", [1e-6, 1e-2, 10.0])
def test_penalised_max_for_any_number_of_draws(n, penalty):
    """Draws that are all alike: the sums are exact for any n."""
    stakes = 1.0 + 2.0 * product.scales(4.0)
    value = -3.0
    sums = n * np.log1p(-value / stakes)
    result, y = penalised_max(sums, stakes, n, 0.5, penalty, 1.0, 1e-6, np.zeros(len(stakes)))
    assert np.isfinite(y)
    # At y = value every M_j is 1, so M = 1.
    assert value - 1e-9 <= result <= 1.0 + penalty * np.log(2.0)
    if n > 1000:
        assert result == pytest.approx(value, abs=1e-5 + 21.0 * penalty)


def test_scales_reach_what_is_asked():
    np.testing.assert_array_equal(product.scales(4.0), [0.0, 0.07, 0.3, 1.0, 4.0])
    assert product.scales(4.1)[-1] == 16.0 and len(product.scales(4.1)) == 6
    assert product.scales(1e4)[-1] >= 1e4
    for largest in (1.0, 50.0, 1e6):
        assert np.exp(product.opening(product.scales(largest))).mean() == pytest.approx(1.0)
