"""Product bets against a mean: evidence that does not require a known variance.

For numbers z_i <= 1 with conditional means y_i and a >= 1, the product of (a - z_i) / (a - y_i) is a
martingale. Its logarithm is convex in the y_i, so with their average y in place of each it can only
decrease:

    M(y) = cash + (1 - cash) mean_j exp( S_j - n log(1 - y/a_j) ),   S_j = sum_i log(1 - z_i/a_j)

is at most a mixture of martingales that starts at 1. (Weights of the stakes are part of the S_j, see
`opening`. Logarithms of a_j - z_i would do as well, but their sums are large beside what they differ
by, and drift over many draws.) It grows if y lies above what was seen. Part of the stake, `cash`, is
never at risk, so log M >= log cash.
"""

from math import ceil, exp, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import inlined

# Stakes a_j = 1 + scale * span, span being the largest value at that depth. The last one limits what
# can be proven: numbers with variance v keep M(y) small up to about v / 2a above their mean.
_SCALES = (0.0, 0.07, 0.3, 1.0, 4.0)
# Weight of each stake beyond these, against 1 for each of them.
_FURTHER = 0.25

# In place of log 0: such a stake is lost forever.
LOST = -1e300

# Halving an interval of ordinary size ends long before this.
_MOST_STEPS = 400


def scales(largest: float) -> NDArray[np.float64]:
    """The scales of the stakes, in steps of four until one is at least `largest`."""
    further = max(0, ceil(log(largest / _SCALES[-1]) / log(4.0) - 1e-9)) if largest > 0.0 else 0
    return np.array([*_SCALES, *(_SCALES[-1] * 4.0**i for i in range(1, further + 1))])


def opening(chosen: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each S_j starts from: the extra scales have a smaller part of the stake.

    Their weights, relative to equal ones, average to 1.
    """
    weights = np.where(chosen > _SCALES[-1], _FURTHER, 1.0)
    return np.array([log(weight) for weight in weights / weights.mean()])


@inlined
def log_stake(a: float, z: float) -> float:
    """log(1 - z/a) for z <= 1 <= a, to be added to S."""
    return log1p(-z / a) if z < a else LOST


@inlined
def penalised_max(
    sums: Any,
    stakes: Any,
    n: int,
    cash: float,
    penalty: float,
    guess: float,
    tolerance: float,
    work: Any,
) -> tuple[float, float]:
    """The maximum over y <= 1 of y - penalty log M(y), never too small, and where it was found.

    The function is concave (log M is the logarithm of a sum of exponentials of convex functions). With
    its maximum in [low, high], the tangent at any point of it bounds the maximum from above, so the
    search errs outwards wherever it stops.

    Args:
        sums: S_j.
        stakes: a_j.
        n: number of draws, at least 1.
        cash: in (0, 1).
        penalty: positive.
        guess: where to look first.
        tolerance: how much too large the result may be.
        work: room for one number per stake.
    """
    count = stakes.size
    log_cash = log(cash)
    log_share = log((1.0 - cash) / count)
    low, high = 0.0, 1.0
    reach = max(1.0, tolerance)
    from_below = False
    best = 1.0 - penalty * log_cash
    y = guess
    if y >= 1.0 - 1e-6:
        y = 1.0 - max(min(penalty * n, 0.5), 1e-3)
    for i in range(_MOST_STEPS):
        top = log_cash
        for j in range(count):
            work[j] = log_share + sums[j] - n * log1p(-y / stakes[j])
            top = max(top, work[j])
        mass = exp(log_cash - top)
        first = 0.0
        second = 0.0
        for j in range(count):
            if work[j] - top > -30.0:
                weight = exp(work[j] - top)
                inverse = 1.0 / (stakes[j] - y)
                mass += weight
                weight *= n * inverse
                first += weight
                second += weight * (n + 1) * inverse
        first /= mass
        slope = 1.0 - penalty * first
        here = y - penalty * (top + log(mass))
        excess = np.inf
        if slope >= 0.0:
            low = y
            from_below = True
            excess = slope * (high - y)
        else:
            high = y
            if from_below:
                excess = -slope * (y - low)
        best = min(best, here + excess)
        if excess <= tolerance:
            break
        bend = max(penalty * (second / mass - first * first), 1e-9)
        # A little beyond the stationary point, so that the interval closes from both sides.
        beyond = 0.7 * sqrt(tolerance / bend)
        y += slope / bend + (beyond if slope >= 0.0 else -beyond)
        # Newton's method is quick but may stall; now and then, a step that is sure to make progress.
        sure = i >= 8 and i % 2 == 0
        if from_below:
            if sure or not low < y < high:
                y = 0.5 * (low + high)
        elif sure or y < high - reach:
            y = high - reach
            reach *= 2.0
    return best, y
