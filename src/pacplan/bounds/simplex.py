"""Extreme expectations over a Kullback-Leibler ball on the simplex of B outcomes.

    max{ p.f : p in the simplex of B outcomes, KL(p_hat, p) <= c },   c = threshold / n

The minimum is its mirror image, with all values negated. Outcomes that were never seen have p_hat = 0
and the value `unseen`. The maximum has the dual form

    min over v >= max f of  G(v) = v - e^(-c) prod_k (v - f_k)^(p_hat_k)

in which every v is a valid upper bound, so the search for the best v cannot err inwards, and an
error of its v counts only quadratically. The minimiser solves phi(v) = c, where

    phi(v) = sum_k p_hat_k log(v - f_k) + log( sum_k p_hat_k / (v - f_k) )

decreases from phi(max f) to 0, unless phi(max f) <= c: then v = max f, which is attained by an
unseen outcome, and p puts mass on it (Filippi, Cappé, Garivier 2010, appendix A).
"""

from math import exp, expm1, log, log1p, sqrt
from typing import Any

from pacplan.compiled.jit import called, inlined

# Relative error of v - max f at which the search ends; it enters the bound squared.
_TOLERANCE = 2e-6
# Covers the rounding of G, relative to the largest value.
_ROUNDING = 4e-15


@inlined
def one_seen_max(f: float, unseen: float, decay: float) -> float:
    """The maximum when one outcome, of value f, was seen in all draws; decay = e^(-c)."""
    if unseen <= f:
        return f
    return unseen - (unseen - f) * decay


@inlined
def _log_product(p: Any, f: Any, seen: int, mean: float, top: float, t: float) -> float:
    """sum_k p_k log( (v - f_k) / (v - mean) ) for v = top + t.

    Written so that nothing cancels, neither for large v (small c), where every ratio is close to 1,
    nor for v close to an f_k.
    """
    w = top - mean + t
    total = 0.0
    for k in range(seen):
        x = (f[k] - mean) / w
        total += p[k] * (log1p(-x) if x < 0.5 else log((top - f[k] + t) / w))
    return total


@inlined
def _stationarity(p: Any, f: Any, seen: int, mean: float, top: float, t: float) -> tuple[float, float]:
    """phi(top + t) and its derivative with respect to t.

    The derivative is written as minus a sum of squares, so that it does not cancel either.
    """
    w = top - mean + t
    square = 0.0
    for k in range(seen):
        x = (f[k] - mean) / w
        square += p[k] * x * x / ((top - f[k] + t) / w)
    spread = 0.0
    for k in range(seen):
        x = (f[k] - mean) / w
        y = x / ((top - f[k] + t) / w) - square
        spread += p[k] * y * y
    phi = _log_product(p, f, seen, mean, top, t) + log1p(square)
    return phi, -spread / ((1.0 + square) * w)


@called
def ball_max(p: Any, f: Any, seen: int, unseen: float, c: float) -> float:
    """Largest expectation over the ball.

    Args:
        p: empirical probabilities of the outcomes seen; entries up to `seen` are read, and sum to 1.
        f: their values.
        seen: how many outcomes were seen.
        unseen: the value of an unseen outcome; minus infinity if all B were seen.
        c: radius of the ball, threshold / n.

    Returns:
        The maximum, to about 1e-10 of the spread of the values and never too small.
    """
    mean = 0.0
    best = f[0]
    worst = f[0]
    for k in range(seen):
        mean += p[k] * f[k]
        best = max(best, f[k])
        worst = min(worst, f[k])
    top = max(best, unseen)
    if top <= worst:
        return float(top)
    margin = _ROUNDING * max(abs(top), abs(worst))
    if c <= 0.0:
        return float(min(top, mean + margin))
    if seen == 1:
        return float(min(top, one_seen_max(f[0], unseen, exp(-c)) + margin))
    spread = top - worst
    variance = 0.0
    for k in range(seen):
        variance += p[k] * (f[k] - mean) ** 2
    t = 0.0
    if unseen <= best or _stationarity(p, f, seen, mean, top, t)[0] > c:
        # Newton's method for z = log(v - top), in which phi is nearly straight at both ends.
        low, high = -745.0, 745.0
        z = log(
            max(sqrt(variance / (2.0 * c)) - 0.5 * (top - mean), 1e-3 * spread * exp(-min(c, 30.0)))
        )
        for _ in range(200):
            t = exp(z)
            phi, slope = _stationarity(p, f, seen, mean, top, t)
            if phi > c:
                low = z
            else:
                high = z
            slope *= t
            if c < 1.0 and phi > 0.0:
                step = phi * log(phi / c) / slope if slope < 0.0 else 1e3
            else:
                step = (phi - c) / slope if slope < 0.0 else 1e3
            z -= step
            if (abs(step) <= _TOLERANCE and abs(phi - c) <= 1e-3 * c) or high - low <= _TOLERANCE:
                break
            if not low < z < high:
                z = 0.5 * (max(low, log(t) - 40.0) + min(high, log(t) + 40.0))
        t = exp(z)
    logs = _log_product(p, f, seen, mean, top, t)
    return float(min(top, mean - (top - mean + t) * expm1(logs - c) + margin))
