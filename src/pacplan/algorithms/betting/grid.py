"""The grid of values on which bets prove bounds, in units in which a step pays between 0 and 1."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.bets import LARGEST_FRACTION, NEWEST
from pacplan.core.words import at_most, exactly

FORCED_GRID = 0.125  # step of the grid of forced bets, in parts of epsilon (ends)
FORCED_MARGIN = 1.0 / 12.0  # by which forced returns exceed a point that they prove, likewise (ends)

_LEAST_FRACTION = 0.5 * FORCED_MARGIN  # of the wealth staked by forced bets, over the range of values
_POINTS = 32  # within epsilon ...
_MOST_POINTS = 4096  # ... unless there would be more than this in all
_FINE = 1.0 / 64.0  # part of the range of values that stands for epsilon = 0
_FINEST = 1e5  # largest range of values relative to epsilon: the grid must fit into memory


class Grid(NamedTuple):
    """Points at equal distances."""

    resolution: float  # epsilon, or what stands for it
    step: float  # from point to point
    stride: int  # steps of it in one step of the coarser grid of forced bets
    points: int
    forced_points: int  # of the coarser grid
    fractions: int  # of the wealth that forced bets stake

    def accounts(self, rows: int) -> NDArray[np.float64]:
        """Room for the wealth of so many accounts, by point and bettor."""
        return np.zeros((rows, self.points, len(NEWEST)))

    def forced_accounts(self, rows: int) -> NDArray[np.float64]:
        """The same for forced bets, by point and fraction."""
        return np.zeros((rows, self.forced_points, self.fractions))


def grid_of(epsilon: float, span: float, width: float) -> Grid:
    """The grid of a search.

    Args:
        epsilon: the gap to stop at, in the user's units.
        span: the range of values.
        width: of what a step pays, in the user's units.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    scaled = epsilon / width
    if epsilon > 0.0 and span > _FINEST * scaled:
        raise ValueError(
            f"epsilon={exactly(epsilon)} is too small for values in a range of "
            f"{at_most(span * width)}; give at least {at_most(span * width / _FINEST)}, or 0"
        )
    # An epsilon beyond the range of values is reached before the first call.
    resolution = min(scaled, span) if scaled > 0.0 else _FINE * span
    coarse = FORCED_GRID * resolution
    step = max(resolution / _POINTS, min(coarse, span / _MOST_POINTS))
    stride = max(1, int(coarse / step + 1e-9))
    points = int(span / step) + 2
    least = min(0.5, _LEAST_FRACTION * resolution / span)
    return Grid(
        resolution=resolution,
        step=step,
        stride=stride,
        points=points,
        forced_points=points // stride + 2,
        # Halves of the largest fraction, until one is small enough.
        fractions=1 + max(0, math.ceil(math.log2(LARGEST_FRACTION / least))),
    )
