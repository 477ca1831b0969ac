"""What a Canopy search starts from, before its first call: units, shares of delta, first statistics."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.grid import Grid
from pacplan.algorithms.betting.settings import Scale, betting_settings, return_range, scale_of
from pacplan.algorithms.canopy.constants import (
    BELOW_SHARE,
    FIRST_CURVE,
    FIRST_NOISE,
    FIRST_VALUE,
    OPENED,
    ORDINARY_SHARE,
)
from pacplan.algorithms.canopy.records import LEVEL, SETTINGS


@dataclass(frozen=True, eq=False)
class Setup:
    """What searches of one problem start from. A search copies what it writes to.

    Attributes:
        scale: the units.
        settings: one record of `SETTINGS`.
        levels: records of `LEVEL`.
        grid: of the bounds.
    """

    scale: Scale
    settings: NDArray[Any]
    levels: NDArray[Any]
    grid: Grid


@lru_cache(maxsize=64)
def setup_of(
    *,
    epsilon: float,
    delta: float,
    gamma: float,
    horizon: int,
    reward_range: tuple[float, float],
    value_range: tuple[float, float],
    may_end: bool,
) -> Setup:
    """The setup for the planner's settings and the model's promises, in the user's units.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    scale = scale_of(reward_range, may_end, gamma, horizon)
    settings, grid = betting_settings(
        SETTINGS,
        scale,
        reward_range,
        gamma=gamma,
        epsilon=epsilon,
        span=scale.span,
        floor=return_range(value_range, scale)[0],
    )
    below, above = BELOW_SHARE * delta, (1.0 - BELOW_SHARE) * delta
    settings["delta_tree"], settings["delta_exploit"] = ORDINARY_SHARE * above, ORDINARY_SHARE * below
    settings["delta_forced_tree"] = (1.0 - ORDINARY_SHARE) * above
    settings["delta_forced"] = (1.0 - ORDINARY_SHARE) * below
    settings["reserve"], settings["may_end"] = 1.0, may_end
    levels = np.zeros(horizon + 1, LEVEL)
    levels["span"] = span = scale.sigma[::-1]
    levels["ended"] = -scale.low / scale.width * span
    known = (value_range[1] - scale.low * span) / scale.width
    levels["cap"] = np.minimum(span, np.maximum(known, levels["ended"] if may_end else 0.0))
    levels["noise"], levels["curve"] = FIRST_NOISE, FIRST_CURVE
    levels["misfit"], levels["opened"] = FIRST_NOISE, OPENED
    levels["value"], levels["scatter"] = FIRST_VALUE * span, (0.2 * span) ** 2
    return Setup(scale, settings, levels, grid)
