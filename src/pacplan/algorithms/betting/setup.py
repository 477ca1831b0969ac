"""What bets depend on, and the units in which they are made: a step pays between 0 and 1."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.bets import LARGEST_FRACTION, NEWEST, first_moments
from pacplan.bounds.elementary import powers
from pacplan.core.words import at_most, exactly
from pacplan.engine.values import step_range
from pacplan.models.protocol import Model

# What bets depend on; the last four change as a search goes on.
BETTING_FIELDS = [
    ("epsilon", np.float64),  # the gap to stop at
    ("resolution", np.float64),  # epsilon, or a small part of the range if that is 0
    ("low", np.float64),  # what 0 and 1 stand for, in the user's units
    ("width", np.float64),
    ("offset", np.float64),  # a reward scaled to [0, 1] by the model's range, x, becomes ...
    ("slope", np.float64),  # ... offset + slope x
    ("gamma", np.float64),
    ("horizon", np.int64),
    ("step", np.float64),  # of the grid of bounds ...
    ("forced_step", np.float64),  # ... and of the coarser one of forced bets
    ("floor", np.float64),  # the least return
    ("delta_exploit", np.float64),  # shares of delta of the bets on exploit episodes ...
    ("delta_forced", np.float64),  # ... and on forced ones
    ("given", np.float64),  # wealth that each account has beside what is allocated to it
    ("reserve", np.float64),  # wealth that no account holds
    ("accounts", np.int64),  # actions that have one
    ("least_return", np.float64),  # of the episodes that were bet on
    ("most_return", np.float64),
]

FORCED_GRID = 0.125  # step of the grid of forced bets, in parts of epsilon (ends)
FORCED_MARGIN = 1.0 / 12.0  # by which forced returns exceed a point that they prove, likewise (ends)

_LEAST_FRACTION = 0.5 * FORCED_MARGIN  # of the wealth staked by forced bets, over the range of values
_POINTS = 32  # within epsilon ...
_MOST_POINTS = 4096  # ... unless there would be more than this in all
_FINE = 1.0 / 64.0  # part of the range of values that stands for epsilon = 0
_FINEST = 1e5  # largest range of values relative to epsilon: the grid must fit into memory


class Scale(NamedTuple):
    """Units in which a step pays between 0 and 1 (docs/bracket.md, "Units")."""

    low: float  # what 0 stands for, in the user's units
    width: float  # what 1 stands for, minus that
    sigma: NDArray[np.float64]  # 1 + gamma + ... + gamma^(k-1), by k, up to the horizon

    @property
    def span(self) -> float:
        """The largest value of all steps."""
        return float(self.sigma[-1])


def scale_of(model: Model, gamma: float, horizon: int) -> Scale:
    """The units of a problem of so many steps."""
    low, high = step_range(model.reward_range, model.may_end)
    return Scale(low, high - low, np.concatenate([[0.0], np.cumsum(powers(gamma, horizon))]))


def return_range(value_range: tuple[float, float] | None, scale: Scale) -> tuple[float, float]:
    """Least and largest return of all steps; `value_range` is in the user's units.

    Raises:
        ValueError: rewards cannot add up to anything in that range, or to one number only.
    """
    low, width, sigma = scale.low, scale.width, scale.span
    if value_range is None:
        return 0.0, sigma
    least, most = ((value - low * sigma) / width for value in value_range)
    floor, ceiling = max(0.0, least), min(sigma, most)
    if not floor < ceiling:
        raise ValueError(
            f"value_range={value_range} contradicts the model's reward_range, by which returns lie in "
            f"[{low * sigma}, {(low + width) * sigma}]: the two must share more than one number"
        )
    return floor, ceiling


def betting_arrays(
    planner: Any,
    model: Model,
    scale: Scale,
    kinds: tuple[np.dtype[Any], np.dtype[Any]],
    actions: int,
    floor: float,
    span: float,
    newest: NDArray[np.float64] = NEWEST,
) -> dict[str, NDArray[Any]]:
    """The arrays of a search that bets, without shares of delta, and without an account.

    `kinds` are the types of `settings`, with `BETTING_FIELDS`, and of `root`, with `ACCOUNT_FIELDS`.
    Returns are at least `floor`, and values have the range `span`.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    (lowest, highest), low, width = model.reward_range, scale.low, scale.width
    horizon = len(scale.sigma) - 1
    epsilon = planner.gap_for(model, horizon)
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
    stride, points = max(1, int(coarse / step + 1e-9)), int(span / step) + 2
    # Halves of the largest fraction, until one is small enough.
    least = min(0.5, _LEAST_FRACTION * resolution / span)
    fractions = 1 + max(0, math.ceil(math.log2(LARGEST_FRACTION / least)))
    settings, root = np.zeros(1, kinds[0]), np.zeros(actions, kinds[1])
    settings["gamma"], settings["horizon"] = planner.gamma, horizon
    settings["epsilon"], settings["resolution"] = scaled, resolution
    settings["low"], settings["width"] = low, width
    settings["offset"], settings["slope"] = (lowest - low) / width, (highest - lowest) / width
    settings["step"], settings["forced_step"], settings["floor"] = step, stride * step, floor
    settings["least_return"], settings["most_return"] = np.inf, -np.inf
    root["account"] = -1
    return {
        "settings": settings,
        "root": root,
        "moments": first_moments(actions, span, newest),
        "wealth": np.zeros((0, points, len(newest))),
        "forced_wealth": np.zeros((0, points // stride + 2, fractions)),
    }
