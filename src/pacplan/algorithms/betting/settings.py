"""What bets depend on, and the units in which they are made: a step pays between 0 and 1."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.grid import Grid, grid_of
from pacplan.bounds.elementary import powers
from pacplan.engine.values import step_range

# What bets depend on; the last five change as a search goes on.
BETTING_FIELDS = [
    ("epsilon", np.float64),  # the gap to stop at
    ("resolution", np.float64),  # epsilon, or a small part of the range if that is 0
    ("low", np.float64),  # what 0 and 1 stand for, in the user's units
    ("width", np.float64),
    ("offset", np.float64),  # a reward scaled to [0, 1] by the model's range, x, becomes ...
    ("slope", np.float64),  # ... offset + slope x
    ("gamma", np.float64),
    ("horizon", np.int64),
    ("step", np.float64),  # of the grid of bounds
    ("stride", np.int64),  # steps of it in one step of the grid of forced bets
    ("floor", np.float64),  # the least return
    ("delta_exploit", np.float64),  # shares of delta of the bets on exploit episodes ...
    ("delta_forced", np.float64),  # ... and on forced ones
    ("given", np.float64),  # wealth that each account has beside what is allocated to it
    ("reserve", np.float64),  # wealth that no account holds
    ("bettors", np.int64),  # actions that have begun to bet on returns ...
    ("forcers", np.int64),  # ... and on forced episodes
    ("least_return", np.float64),  # of the episodes that were bet on
    ("most_return", np.float64),
]

ANYTHING = (-math.inf, math.inf)
"""The range of returns of which nothing is known."""


class Scale(NamedTuple):
    """Units in which a step pays between 0 and 1 (docs/bracket.md, "Units")."""

    low: float  # what 0 stands for, in the user's units
    width: float  # what 1 stands for, minus that
    sigma: NDArray[np.float64]  # 1 + gamma + ... + gamma^(k-1), by k, up to the horizon

    @property
    def span(self) -> float:
        """The largest value of all steps."""
        return float(self.sigma[-1])

    @property
    def units(self) -> tuple[float, float]:
        """What values of all steps are made of, in the user's units: that of 0, and the width."""
        return self.low * self.span, self.width


def scale_of(reward_range: tuple[float, float], may_end: bool, gamma: float, horizon: int) -> Scale:
    """The units of a problem of so many steps."""
    low, high = step_range(reward_range, may_end)
    return Scale(low, high - low, np.concatenate([[0.0], np.cumsum(powers(gamma, horizon))]))


def return_range(value_range: tuple[float, float], scale: Scale) -> tuple[float, float]:
    """Least and largest return of all steps; `value_range` is in the user's units.

    Raises:
        ValueError: rewards cannot add up to anything in that range, or to one number only.
    """
    low, width, sigma = scale.low, scale.width, scale.span
    least, most = ((value - low * sigma) / width for value in value_range)
    floor, ceiling = max(0.0, least), min(sigma, most)
    if not floor < ceiling:
        raise ValueError(
            f"value_range={value_range} contradicts the model's reward_range, by which returns lie in "
            f"[{low * sigma}, {(low + width) * sigma}]: the two must share more than one number"
        )
    return floor, ceiling


def betting_settings(
    kind: np.dtype[Any],
    scale: Scale,
    reward_range: tuple[float, float],
    *,
    gamma: float,
    epsilon: float,
    span: float,
    floor: float,
) -> tuple[NDArray[Any], Grid]:
    """One record with `BETTING_FIELDS`, without shares of delta, and the grid that it speaks of.

    Raises:
        ValueError: epsilon is too small beside `span`, the range of values.
    """
    (lowest, highest), low, width = reward_range, scale.low, scale.width
    grid = grid_of(epsilon, span, width)
    settings = np.zeros(1, kind)
    settings["gamma"], settings["horizon"] = gamma, len(scale.sigma) - 1
    settings["epsilon"], settings["resolution"] = epsilon / width, grid.resolution
    settings["low"], settings["width"] = low, width
    settings["offset"], settings["slope"] = (lowest - low) / width, (highest - lowest) / width
    settings["step"], settings["stride"], settings["floor"] = grid.step, grid.stride, floor
    settings["least_return"], settings["most_return"] = np.inf, -np.inf
    return settings, grid
