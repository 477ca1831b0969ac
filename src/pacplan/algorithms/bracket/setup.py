"""What a Bracket search starts from: units, shares of delta, grids, and what evidence costs by depth.

In units in which a step pays between 0 and 1 (docs/bracket.md, "Units").
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.bets import NEWEST, STEADY
from pacplan.algorithms.betting.setup import Scale, betting_arrays, return_range, scale_of
from pacplan.algorithms.bracket import constants
from pacplan.algorithms.bracket.records import ARM, LEVEL, SETTINGS
from pacplan.bounds.elementary import powers
from pacplan.bounds.product import opening, scales
from pacplan.models.protocol import Model


class Setup(NamedTuple):
    """What a search starts from."""

    scale: Scale
    arrays: dict[str, NDArray[Any]]  # those of bets, `levels`, `stakes` and `opening`


def setup_of(planner: Any, model: Model, horizon: int, actions: int) -> Setup:
    """The setup for H steps, and so many actions of the root.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    gamma = planner.gamma
    scale = scale_of(model, gamma, horizon)
    floor, ceiling = return_range(planner.value_range, scale)
    newest = STEADY if horizon <= constants.STEADY_HORIZON else NEWEST
    range_, kinds = (floor, ceiling - floor), (SETTINGS, ARM)
    arrays = betting_arrays(planner, model, scale, kinds, actions, *range_, newest)
    settings = arrays["settings"]
    resolution = float(settings["resolution"][0])
    _declare(settings, planner, model, horizon)
    levels = _levels(scale, gamma, resolution)
    _share(settings, levels[:-1], planner, model, actions)
    log_share = float(settings["log_share"][0])
    settings["kappa"] = kappa = constants.PENALTY / (log_share + float(levels["excess"][0]))
    settings["least"] = least = kappa * resolution
    # The range of what is bet on is at most this; lambda ends below SETTLED times its least.
    span, beyond = levels["span"][:-1], constants.SETTLED * least * gamma * levels["excess"][1:]
    chosen = scales(_largest_scale(span, beyond, gamma, constants.STAKES_OPEN * resolution))
    stakes = 1.0 + span[:, np.newaxis] * chosen
    return Setup(scale, arrays | {"levels": levels, "stakes": stakes, "opening": opening(chosen)})


def _declare(settings: NDArray[Any], planner: Any, model: Model, horizon: int) -> None:
    """Note what was declared, and what follows from it."""
    settings["value_goal"], settings["guided"] = planner.goal == "value", planner.policy is not None
    settings["told"] = told = planner.rewards == "deterministic"
    settings["same_actions"], settings["prior_draws"] = model.same_actions, 1.0
    settings["most_value"] = math.inf if planner.value_range is None else planner.value_range[1]
    settings["cut"] = constants.CUT if settings["epsilon"][0] > 0.0 else constants.ANYTIME_CUT
    settings["go_on"] = go_on = planner.gamma**constants.ROULETTE_POWER
    called = horizon - int(told)
    rounds = (max(h + 1 - constants.ROULETTE_DEPTH, 0) for h in range(called))
    cost = constants.EXPLOIT_COST if planner.goal == "value" else constants.JOINT_EXPLOIT_COST
    settings["exploit_cost"] = cost * math.fsum(go_on**k for k in rounds)


def _share(
    settings: NDArray[Any], levels: NDArray[Any], planner: Any, model: Model, actions: int
) -> None:
    """Share delta out: docs/bracket.md, "Shares" and "Both sides at once". And predict outcomes."""
    successors = 1 if planner.transitions == "deterministic" else model.successors
    settings["learns"] = learns = successors != 1
    # Where the last step leads does not matter.
    depths, delta = len(levels) - 1 if learns else 0, planner.delta
    if planner.goal == "action":
        ball = (1.0 - constants.JOINT_SHARE) * delta
        process = (constants.JOINT_SHARE if depths > 0 else 1.0) * delta
        joint, below = (1.0 - constants.JOINT_BELOW) * process, constants.JOINT_BELOW * process
        settings["apart"] = apart = constants.JOINT_ABOVE
    else:
        above, below, apart = (1.0 - constants.BELOW) * delta, constants.BELOW * delta, 1.0
        ball = (1.0 - constants.PRODUCT_SHARE) * above
        joint = (constants.PRODUCT_SHARE if depths > 0 else 1.0) * above
        settings["apart"] = apart
    settings["log_joint"], settings["log_share"] = -math.log(joint), -math.log(apart * joint)
    settings["delta_exploit"] = constants.EXPLOIT_SHARE * below
    settings["delta_forced"] = (1.0 - constants.EXPLOIT_SHARE) * below
    if planner.goal == "action" and actions == 2:
        # Whichever is the best, the wealth is on the other.
        settings["given"] = 1.0
        settings["delta_exploit"] /= 2.0
    else:
        settings["reserve"] = 1.0
    # How outcomes are predicted: as one out of B, or as one seen before or new.
    if successors is None:
        settings["least_count"] = 1
        settings["discount"] = settings["fresher"] = constants.DISCOUNT
        settings["strength"] = settings["fresh"] = constants.STRENGTH
    else:
        settings["discount"], settings["fresh"], settings["strength"] = -0.5, 0.5, 0.5 * successors
    if depths > 0:
        # How many sets of transitions must hold: how many states a policy can reach in h steps.
        levels["price"] = -math.log(ball) + math.log(depths)
        if successors is not None:
            levels["price"] += np.arange(len(levels)) * math.log(successors)


def _levels(scale: Scale, gamma: float, resolution: float) -> NDArray[Any]:
    """Records of `LEVEL`, without the prices of sets of transitions."""
    span, horizon = scale.sigma[::-1], len(scale.sigma) - 1
    every = np.zeros(horizon + 1, LEVEL)
    every["span"], every["prior"] = span, constants.PRIOR * span
    every["ended"] = -scale.low / scale.width * span
    levels, discount = every[:-1], powers(gamma, horizon)
    tolerance = min(constants.SOLVER_LEAST, constants.SOLVER_OPEN / horizon) * resolution
    levels["tolerance"] = tolerance / discount
    risk = np.maximum(powers(constants.RISK_DECAY, horizon), constants.LEAST_RISK)
    levels["cash"] = 1.0 - constants.RISK * risk
    levels["weight"] = 1.0 / discount
    kept = [-math.log(cash) for cash in levels["cash"][::-1]]
    levels["excess"] = np.cumsum(kept)[::-1] / discount
    return every


def _largest_scale(
    span: NDArray[np.float64], beyond: NDArray[np.float64], gamma: float, left_open: float
) -> float:
    """The scale of the last stake, such that all pairs of a path together leave at most this much open.

    A mean of numbers with range R = span + beyond is found to within R^2 / 4 (a - 1), if that is at
    most R / 4.
    """
    reach, discount, scale = span + beyond, powers(gamma, len(span)), 1.0
    while True:
        room = scale * span
        found = np.where(room >= reach, reach**2 / (4.0 * room), reach)
        if (found * discount).sum() <= left_open:
            return scale
        scale *= 2.0
