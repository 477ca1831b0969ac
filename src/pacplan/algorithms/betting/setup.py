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
    ("step", np.float64),  # of the grid of bounds ...
    ("forced_step", np.float64),  # ... and of the coarser one of forced bets
    ("floor", np.float64),  # the least return
    ("delta_exploit", np.float64),  # shares of delta of the bets on exploit episodes ...
    ("delta_forced", np.float64),  # ... and on forced ones
    ("reserve", np.float64),  # wealth that no account holds
    ("accounts", np.int64),  # actions that have one
    ("guided", np.bool_),  # whether the user gave a policy
    ("most_value", np.float64),  # what no state's value exceeds, in the user's units
    ("best", np.int64),  # the action to recommend
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


class Setup(NamedTuple):
    """What a search that bets starts from."""

    scale: Scale
    arrays: dict[str, NDArray[Any]]  # as in the search's named tuple


def betting_setup(
    planner: Any,
    model: Model,
    horizon: int,
    actions: int,
    kinds: tuple[np.dtype[Any], np.dtype[Any]],
    *,
    newest: NDArray[np.float64] = NEWEST,
    trees: bool = False,
) -> Setup:
    """What a search starts from, without shares of delta, and without an account.

    `kinds` are the types of `settings`, with `BETTING_FIELDS`, and of `root`, with `ACCOUNT_FIELDS`.
    If values of `trees` are bet on, the grid spans all values; else those of returns.

    Raises:
        ValueError: epsilon is too small beside the range of values, or value_range cannot be.
    """
    gamma, (lowest, highest) = planner.gamma, model.reward_range
    low, high = step_range(model.reward_range, model.may_end)
    width = high - low
    scale = Scale(low, width, np.concatenate([[0.0], np.cumsum(powers(gamma, horizon))]))
    floor, ceiling = _return_range(planner.value_range, scale)
    span = float(scale.sigma[-1]) if trees else ceiling - floor
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
    settings["gamma"], settings["horizon"] = gamma, horizon
    settings["epsilon"], settings["resolution"] = scaled, resolution
    settings["low"], settings["width"] = low, width
    settings["offset"], settings["slope"] = (lowest - low) / width, (highest - lowest) / width
    settings["reserve"], settings["guided"] = 1.0, planner.policy is not None
    settings["most_value"] = math.inf if planner.value_range is None else planner.value_range[1]
    settings["step"], settings["forced_step"], settings["floor"] = step, stride * step, floor
    settings["least_return"], settings["most_return"] = np.inf, -np.inf
    root["account"] = -1
    arrays = {
        "settings": settings,
        "root": root,
        "moments": first_moments(actions, span, newest),
        "wealth": np.zeros((0, points, len(newest))),
        "forced_wealth": np.zeros((0, points // stride + 2, fractions)),
    }
    return Setup(scale, arrays)


def _return_range(value_range: tuple[float, float] | None, scale: Scale) -> tuple[float, float]:
    """Least and largest return of all steps; `value_range` is in the user's units."""
    low, width, sigma = scale.low, scale.width, float(scale.sigma[-1])
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
