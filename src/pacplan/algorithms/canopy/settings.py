"""What a Canopy search starts from, before its first call: units, shares of delta, first statistics."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.grid import Grid
from pacplan.algorithms.betting.settings import (
    ANYTHING,
    Scale,
    betting_settings,
    return_range,
    scale_of,
)
from pacplan.algorithms.canopy.constants import (
    BELOW_SHARE,
    FIRST_CURVE,
    FIRST_NOISE,
    FIRST_VALUE,
    OPENED,
    ORDINARY_SHARE,
)
from pacplan.algorithms.canopy.records import LEVEL, SETTINGS
from pacplan.models.protocol import Model


class Setup(NamedTuple):
    """What a search starts from."""

    scale: Scale  # the units
    settings: NDArray[Any]  # one record of SETTINGS
    levels: NDArray[Any]  # records of LEVEL
    grid: Grid  # of the bounds


def setup_of(planner: Any, model: Model, horizon: int, gap: float) -> Setup:
    """The setup for H steps and a gap to stop at.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    gamma, value_range = planner.gamma, planner.value_range or ANYTHING
    scale = scale_of(model.reward_range, model.may_end, gamma, horizon)
    floor = return_range(value_range, scale)[0]
    settings, grid = betting_settings(
        SETTINGS, scale, model.reward_range, gamma=gamma, epsilon=gap, span=scale.span, floor=floor
    )
    delta, may_end = planner.delta, model.may_end
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
