"""Clopper-Pearson intervals: what a number of failures says about their probability."""

import math

_TINY = 1e-300
_MOST_TERMS = 100_000


def clopper_pearson(failures: int, trials: int, tail: float) -> tuple[float, float]:
    """The interval of a binomial probability.

    Each end is wrong with probability at most `tail`, whatever the probability is.

    Args:
        failures: how often it happened.
        trials: in how many independent trials, at least 1.
        tail: probability in (0, 1/2).

    Returns:
        Lower and upper end.
    """
    if not 0 <= failures <= trials or trials < 1:
        raise ValueError(f"there cannot be {failures} failures in {trials} trials")
    low, high = 0.0, 1.0
    if failures > 0:
        low = _solve(failures, trials - failures + 1, tail)
    if failures < trials:
        # P(X <= k) is the probability of at least n - k successes.
        high = 1.0 - _solve(trials - failures, failures + 1, tail)
    return low, high


def _solve(a: int, b: int, level: float) -> float:
    """The x at which the incomplete beta function I_x(a, b) is `level`, from below."""
    low, high = 0.0, 1.0
    # Halving doubles reaches every exponent first, and then every digit.
    for _ in range(2000):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if incomplete_beta(a, b, middle) <= level:
            low = middle
        else:
            high = middle
    return low


def incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), regularised: P(X >= a) of a binomial X with a + b - 1 trials of probability x."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # The continued fraction converges fast on this side of the mean, the other follows by symmetry.
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of I_x(a, b) (DLMF 8.17.22), by Lentz's method."""
    c = 1.0
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def _away_from_zero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY
