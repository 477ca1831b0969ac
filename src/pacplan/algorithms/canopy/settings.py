"""What a Canopy search starts from, before its first call: units, shares of delta, first statistics."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.setup import Scale, betting_arrays, return_range, scale_of
from pacplan.algorithms.canopy.constants import (
    BELOW_SHARE,
    FIRST_CURVE,
    FIRST_NOISE,
    FIRST_VALUE,
    OPENED,
    ORDINARY_SHARE,
)
from pacplan.algorithms.canopy.records import ARM, LEVEL, SETTINGS
from pacplan.models.protocol import Model


class Setup(NamedTuple):
    """What a search starts from."""

    scale: Scale  # the units
    arrays: dict[str, NDArray[Any]]  # of bets
    levels: NDArray[Any]  # records of LEVEL


def setup_of(planner: Any, model: Model, horizon: int, actions: int) -> Setup:
    """The setup for H steps, and so many actions of the root.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    scale = scale_of(model, planner.gamma, horizon)
    arrays = betting_arrays(
        (SETTINGS, ARM),
        model,
        scale,
        gamma=planner.gamma,
        epsilon=planner.gap_for(model, horizon),
        floor=return_range(planner.value_range, scale)[0],
        span=scale.span,
        actions=actions,
    )
    settings, root = arrays["settings"], arrays["root"]
    root["upper"] = scale.span
    delta, may_end = planner.delta, model.may_end
    below, above = BELOW_SHARE * delta, (1.0 - BELOW_SHARE) * delta
    settings["delta_tree"], settings["delta_exploit"] = ORDINARY_SHARE * above, ORDINARY_SHARE * below
    settings["delta_forced_tree"] = (1.0 - ORDINARY_SHARE) * above
    settings["delta_forced"] = (1.0 - ORDINARY_SHARE) * below
    settings["reserve"], settings["may_end"] = 1.0, may_end
    levels = np.zeros(horizon + 1, LEVEL)
    levels["span"] = span = scale.sigma[::-1]
    levels["ended"] = -scale.low / scale.width * span
    most = math.inf if planner.value_range is None else planner.value_range[1]
    known = (most - scale.low * span) / scale.width
    levels["cap"] = np.minimum(span, np.maximum(known, levels["ended"] if may_end else 0.0))
    levels["noise"], levels["curve"] = FIRST_NOISE, FIRST_CURVE
    levels["misfit"], levels["opened"] = FIRST_NOISE, OPENED
    levels["value"], levels["scatter"] = FIRST_VALUE * span, (0.2 * span) ** 2
    return Setup(scale, arrays, levels)
