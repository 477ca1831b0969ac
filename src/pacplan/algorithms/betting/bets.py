"""Bets on a grid of points m: evidence that a mean lies above them, or, mirrored, below them.

With a stake g fixed before a number x is seen, the wealth at m grows by the factor 1 + g (x - m), which
has a conditional mean of at most 1 if the mean of x is at most m. From above it is 1 + g (m - x). A
point counts as proven only when all points before it are.

The *side* of a bet is BELOW (prove that the mean is above m; the grid is passed upwards) or ABOVE (that
it is below m; the grid is passed downwards). `worst` is what x may come to at worst for those who bet:
its least number below, its largest one above.
"""

from math import sqrt
from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined

BELOW, ABOVE = 1, -1

# What a bettor saw of a random number: mean, and mean squares and cubes of deviations, with the weight
# of the newest one, against 1 for each before.
MOMENTS = np.dtype(
    [("centre", np.float64), ("spread", np.float64), ("skew", np.float64), ("newest", np.float64)]
)

NEWEST = np.array([4.0, 2.0])  # of each bettor: weight of the newest number ...
STEADY = np.array([2.0, 1.0])  # ... and if returns do not improve as a search learns
LEAN = 0.5  # standard errors by which a bettor trusts its luck
MOST_STAKE = 0.95  # of what can be staked at all
FIRST_SPREAD = 0.25  # standard deviation before anything was seen, over the range of values
LARGEST_FRACTION = 0.9  # of the wealth that a forced bet stakes; others are halves of it (ends)
MOST_WEALTH = 1e300  # more is not counted


def first_moments(actions: int, span: float, newest: Any = NEWEST) -> Any:
    """Moments of every action's bettors before anything was seen; values have the range `span`."""
    moments = np.zeros((actions, len(newest)), MOMENTS)
    moments["spread"], moments["newest"] = (FIRST_SPREAD * span) ** 2, newest
    return moments


@inlined
def total(wealth: Any) -> float:
    """The wealth at a point, of all bettors."""
    sum_of_all = 0.0
    for q in range(wealth.size):
        sum_of_all += wealth[q]
    return float(sum_of_all)


@inlined
def bet_on_grid(
    wealth: Any,
    moments: Any,
    seen: int,
    x: float,
    worst: float,
    step: float,
    proven: int,
    side: int,
    share: float,
) -> int:
    """Bet on x, after `seen` numbers, at the points after `proven`; returns the last one now proven.

    A bettor assumes a mean a little luckier than what it saw, and stakes the smaller of Kelly's stakes
    for a two-valued law with its moments and for one without skew: if the numbers are skewed towards
    losses, these are rare but large. Without moments bets are *forced*: fixed fractions of the wealth,
    each half of the one before. A point is proven when the wealth there is 1 over the `share` of delta.
    """
    last = wealth.shape[0] - 1 if side == BELOW else 0
    fraction = LARGEST_FRACTION
    for q in range(wealth.shape[1]):
        centre, spread, skew = 0.0, 0.0, 0.0
        if moments.size > 0:
            moment = moments[q]
            spread, skew = moment.spread, moment.skew
            centre = moment.centre + side * LEAN * sqrt(spread * moment.newest / seen)
        for i in range(proven + side, last + side, side):
            m = i * step
            room = side * (m - worst)
            stake = fraction / room
            if moments.size > 0:
                edge = side * (centre - m)
                if not edge > 0.0:
                    break  # It sees no advantage from here on.
                wide = spread - side * edge * skew / spread - edge * edge
                stake = min(edge / max(wide, spread + edge * edge), MOST_STAKE / room)
            wealth[i, q] = min(wealth[i, q] * (1.0 + stake * (side * (x - m))), MOST_WEALTH)
        fraction *= 0.5
    while proven != last and total(wealth[proven + side]) * share >= 1.0:
        proven += side
    return proven


@inlined
def learn_moments(moments: Any, seen: int, x: float) -> None:
    """Let the bettors learn from a number, after `seen` others."""
    for q in range(moments.size):
        moment, newest = moments[q], moments[q].newest
        error = x - moment.centre
        if seen == 0:
            moment.centre = x
            continue
        moment.centre += newest / (seen + newest) * error
        share = newest / (seen + 1 + newest)
        moment.spread += share * (error * error - moment.spread)
        moment.skew += share * (error * error * error - moment.skew)
