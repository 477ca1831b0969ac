"""Confidence intervals for a mean in [0, 1] from the Bernoulli Kullback-Leibler divergence.

    upper = max{ q : kl(mean, q) <= c },   lower = min{ q : kl(mean, q) <= c },   c = threshold / n

(Section 3 of the MDP-GapE paper.) Every result errs outwards. The fourth derivative of
q -> kl(p, q) is positive on (0, 1), so its cubic Taylor polynomial lies below it everywhere: once
the polynomial has reached the level c, so has the divergence. One evaluation of the logarithms
therefore gives a bound of fourth order that cannot fall inside the interval.
"""

from math import exp, expm1, log, log1p, sqrt
from typing import Any

from pacplan.compiled.jit import inlined

# Quartic error term below which the step just made is the last one.
_TOLERANCE = 1e-11
# Covers the rounding of numbers of order one.
_ROUNDING = 2e-15
# Above this c / (1 - p), 1 - q < exp(-c / (1 - p)) is less than the error allowed.
_SATURATION = 26.0
# Below this c the plain logarithms of kl cancel too much.
_SMALL = 1e-5
# Shares of more draws than this are not kept: then the last solution is a good start.
MOST_KEPT = 128
MOST_SHARES = MOST_KEPT * (MOST_KEPT + 1) // 2


@inlined
def _cold_start(p: float, c: float) -> float:
    """A first guess of the upper end, in (p, 1)."""
    if c < 0.5 * (1.0 - p):
        # Two terms of the expansion around c = 0.
        guess = p + sqrt(2.0 * c * p * (1.0 - p)) + (1.0 - 2.0 * p) * c * (2.0 / 3.0)
        if p < guess < 1.0:
            return guess
    # Without its term p log q, small towards one, the equation has a closed solution for 1 - q; then
    # half of Newton's step for log(1 - q) with that term.
    entropy = -p * log(p) - (1.0 - p) * log(1.0 - p)
    left = exp(-(c + entropy) / (1.0 - p))
    x = min(p * left / (1.0 - p), 0.4)
    return 1.0 - left * (1.0 + x / (1.0 - x))


@inlined
def warm_start(p: float, last: float, drift: float, c: float, before: float) -> float:
    """A guess of the upper end from the last one, or 0 for no guess.

    Args:
        p: the mean now, in (0, 1).
        last: the last solution; 0 if there is none.
        drift: how much p has grown since.
        c: the radius now.
        before: the radius then.
    """
    if 1.0 - last < 0.1 * (1.0 - p) or last == 0.0 or before <= 0.0:
        return 0.0  # This far out the cold start is better.
    # The half-width is about proportional to the square root of c p (1 - p).
    bend = 1.0 / (p * (1.0 - p))
    return p + (last - p + drift) * sqrt(c / before) * (1.0 + 0.5 * drift * (1.0 - 2.0 * p) * bend)


@inlined
def kl_upper_from(p: float, c: float, guess: float) -> float:
    """Upper end of the interval, starting from a guess of it (anything outside (p, 1): no guess)."""
    if c <= 0.0:
        return p
    if p >= 1.0:
        return 1.0
    if p <= 1e-300:
        return min(1.0, -expm1(-c) + _ROUNDING)
    if c >= _SATURATION * (1.0 - p):
        return 1.0
    low, high = p, 1.0
    q = guess if p < guess < 1.0 else _cold_start(p, c)
    for _ in range(100):
        if not low < q < high:
            q = 0.5 * (low + high)
        d = q - p
        spread = q * (1.0 - q)
        shared = 1.0 / (spread * d)
        x = (1.0 - q) * d * shared  # 1 / q
        y = q * d * shared  # 1 / (1 - q)
        inverse = spread * spread * shared  # One over the slope of kl at q.
        rounding = _ROUNDING
        if c < _SMALL:
            excess = -p * log1p(d / p) - (1.0 - p) * log1p(-d / (1.0 - p)) - c
        else:
            excess = p * log(p * x) + (1.0 - p) * log((1.0 - p) * y) - c
            rounding += _ROUNDING * inverse
        if excess > 0.0:
            high = q
        else:
            low = q
        # Taylor's coefficients of kl at q, divided by the first.
        a = p * x * x
        b = (1.0 - p) * y * y
        two = 0.5 * (a + b) * inverse
        three = (b * y - a * x) * inverse * (1.0 / 3.0)
        four = 0.25 * (a * x * x + b * y * y) * inverse
        step = -excess * inverse
        move = step / (1.0 + step * two)  # Halley's step.
        if abs(move) * two < 0.2 and four * move * move * move * move <= _TOLERANCE:
            # To the root of the cubic, then beyond it by the remainder: its slope there, relative to
            # the one at q, is above 1/2.
            move -= (move * (1.0 + move * (two + move * three)) - step) * (1.0 - 2.0 * move * two)
            left = abs(move * (1.0 + move * (two + move * three)) - step)
            if left <= _TOLERANCE:
                return min(1.0, q + move + 2.0 * left + rounding)
        if high - low <= _ROUNDING:
            break
        if abs(move) <= 0.25 * (1.0 - q):
            q += move
        else:
            # Newton's step for log(1 - q), in which kl is convex and nearly straight towards one.
            q = 1.0 - (1.0 - q) * exp(min(max(-step * y, -30.0), 30.0))
    return high


@inlined
def kl_upper(p: float, c: float) -> float:
    """max{ q : kl(p, q) <= c } for p in [0, 1] and c >= 0, to about 1e-10 and never too small."""
    return kl_upper_from(p, c, 0.0)


@inlined
def kl_lower(p: float, c: float) -> float:
    """min{ q : kl(p, q) <= c } for p in [0, 1] and c >= 0, to about 1e-10 and never too large."""
    return min(p, 1.0 - kl_upper_from(1.0 - p, c, 0.0))


@inlined
def share_upper(shares: Any, k: int, n: int, c: float) -> float:
    """max{ q : kl(k/n, q) <= c } for 0 < k < n <= MOST_KEPT, c being the radius of n.

    A search asks for the same ones over and over, so what was found is kept in `shares`, which has room
    for `MOST_SHARES`.
    """
    place = n * (n - 1) // 2 + k
    if shares[place] == 0.0:
        shares[place] = kl_upper(k / n, c)
    return float(shares[place])
