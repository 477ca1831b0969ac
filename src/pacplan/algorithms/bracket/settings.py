"""What a Bracket search starts from: units, shares of delta, grids, and what evidence costs by depth.

In units in which a step pays between 0 and 1 (docs/bracket.md, "Units").
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.bets import NEWEST, STEADY, first_moments
from pacplan.algorithms.betting.grid import Grid
from pacplan.algorithms.betting.settings import (
    ANYTHING,
    Scale,
    betting_settings,
    return_range,
    scale_of,
)
from pacplan.algorithms.bracket import constants
from pacplan.algorithms.bracket.records import LEVEL, SETTINGS, STEPS
from pacplan.bounds.elementary import powers
from pacplan.bounds.product import opening, scales
from pacplan.models.protocol import Model


class Setup(NamedTuple):
    """What a search starts from."""

    scale: Scale  # the units
    grid: Grid  # of the bounds from below
    settings: NDArray[Any]  # one record of SETTINGS
    levels: NDArray[Any]  # records of LEVEL
    steps: NDArray[Any]  # records of STEPS
    stakes: NDArray[np.float64]  # stakes[h, j]: a_j
    opening: NDArray[np.float64]  # what each S_j starts from
    moments: NDArray[Any]  # moments[action, q], records of MOMENTS


def setup_of(planner: Any, model: Model, horizon: int, gap: float, actions: int) -> Setup:
    """The setup for H steps, a gap to stop at, and so many actions of the root.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    gamma, value_range = planner.gamma, planner.value_range or ANYTHING
    successors = 1 if planner.transitions == "deterministic" else model.successors or math.inf
    learns = successors > 1
    # Where the last step leads does not matter.
    depths = horizon - 1 if learns else 0
    scale = scale_of(model.reward_range, model.may_end, gamma, horizon)
    floor, ceiling = return_range(value_range, scale)
    span = ceiling - floor
    settings, grid = betting_settings(
        SETTINGS, scale, model.reward_range, gamma=gamma, epsilon=gap, span=span, floor=floor
    )
    settings["learns"], settings["most_value"] = learns, value_range[1]
    _declare(settings, planner, gap, horizon)
    _predict(settings, successors)
    shares = shares_of(planner, depths > 0)
    _share_below(settings, shares, actions)
    levels = _levels(gamma, horizon, grid.resolution)
    if depths > 0:
        # How many sets of transitions must hold: how many states a policy can reach in h steps.
        levels["price"] = -math.log(shares.ball) + math.log(depths)
        if not math.isinf(successors):
            levels["price"] += np.arange(horizon) * math.log(successors)
    settings["log_share"] = log_share = -math.log(shares.product)
    settings["kappa"] = kappa = constants.PENALTY / (log_share + float(levels["excess"][0]))
    settings["least"] = least = kappa * grid.resolution
    # The range of what is bet on is at most this; lambda ends below SETTLED times its least.
    reach = constants.SETTLED * least * gamma * np.append(levels["excess"][1:], 0.0)
    chosen = scales(
        _largest_scale(levels["span"], reach, gamma, constants.STAKES_OPEN * grid.resolution)
    )
    steps = np.zeros(horizon + 1, STEPS)
    steps["sigma"], steps["prior"] = scale.sigma, constants.PRIOR * scale.sigma
    steps["ended"] = -scale.low / scale.width * scale.sigma
    steady = horizon <= constants.STEADY_HORIZON
    return Setup(
        scale=scale,
        grid=grid,
        settings=settings,
        levels=levels,
        steps=steps,
        stakes=1.0 + levels["span"][:, np.newaxis] * chosen,
        opening=opening(chosen),
        moments=first_moments(actions, span, STEADY if steady else NEWEST),
    )


class Shares(NamedTuple):
    """Shares of delta."""

    product: float  # delta_s: U(a) = W(a) + lambda log(1/delta_s)
    ball: float  # delta_p
    below: float  # delta_L
    joint: float  # delta_J (1 - beta), of both sides together; 0 if each has a process of its own


def shares_of(planner: Any, learns: bool) -> Shares:
    """Who gets which share of delta: docs/bracket.md, "Shares" and "Both sides at once"."""
    delta = planner.delta
    if planner.goal == "action":
        process = (constants.JOINT_SHARE if learns else 1.0) * delta
        joint, ball = (1.0 - constants.JOINT_BELOW) * process, (1.0 - constants.JOINT_SHARE) * delta
        return Shares(constants.JOINT_ABOVE * joint, ball, constants.JOINT_BELOW * process, joint)
    above = (1.0 - constants.BELOW) * delta
    product = (constants.PRODUCT_SHARE if learns else 1.0) * above
    return Shares(product, (1.0 - constants.PRODUCT_SHARE) * above, constants.BELOW * delta, 0.0)


def _share_below(settings: NDArray[Any], shares: Shares, actions: int) -> None:
    """What the bets on returns begin with."""
    settings["delta_exploit"] = constants.EXPLOIT_SHARE * shares.below
    settings["delta_forced"] = (1.0 - constants.EXPLOIT_SHARE) * shares.below
    if shares.joint > 0.0:
        settings["joint"], settings["log_joint"] = True, -math.log(shares.joint)
    if shares.joint > 0.0 and actions == 2:
        # Whichever is the best, the wealth is on the other.
        settings["given"] = 1.0
        settings["delta_exploit"] /= 2.0
    else:
        settings["reserve"] = 1.0


def _declare(settings: NDArray[Any], planner: Any, gap: float, horizon: int) -> None:
    """Note what was declared, and what follows from it."""
    settings["value_goal"], settings["guided"] = planner.goal == "value", planner.policy is not None
    settings["told"] = told = planner.rewards == "deterministic"
    settings["cut"] = constants.CUT if gap > 0.0 else constants.ANYTIME_CUT
    settings["go_on"] = go_on = planner.gamma**constants.ROULETTE_POWER
    called = horizon - int(told)
    rounds = (max(h + 1 - constants.ROULETTE_DEPTH, 0) for h in range(called))
    cost = constants.EXPLOIT_COST if planner.goal == "value" else constants.JOINT_EXPLOIT_COST
    settings["exploit_cost"] = cost * math.fsum(go_on**k for k in rounds)


def _predict(settings: NDArray[Any], successors: float) -> None:
    """How outcomes are predicted: as one out of B, or as one seen before or new."""
    unknown = math.isinf(successors)
    settings["least_count"] = unknown
    if unknown:
        settings["discount"] = settings["fresher"] = constants.DISCOUNT
        settings["strength"] = settings["fresh"] = constants.STRENGTH
    else:
        settings["discount"], settings["fresh"], settings["strength"] = -0.5, 0.5, 0.5 * successors


def _levels(gamma: float, horizon: int, resolution: float) -> NDArray[Any]:
    """Records of `LEVEL`, without the prices of sets of transitions."""
    discount = powers(gamma, horizon)
    levels = np.zeros(horizon, LEVEL)
    levels["span"] = np.cumsum(discount)[::-1]
    tolerance = min(constants.SOLVER_LEAST, constants.SOLVER_OPEN / horizon) * resolution
    levels["tolerance"] = tolerance / discount
    risk = np.maximum(powers(constants.RISK_DECAY, horizon), constants.LEAST_RISK)
    levels["cash"] = 1.0 - constants.RISK * risk
    levels["weight"] = 1.0 / discount
    kept = [-math.log(cash) for cash in levels["cash"][::-1]]
    levels["excess"] = np.cumsum(kept)[::-1] / discount
    return levels


def _largest_scale(span: NDArray[Any], more: NDArray[Any], gamma: float, left_open: float) -> float:
    """The scale of the last stake, such that all pairs of a path together leave at most this much open.

    A mean of numbers with range R = span + more is found to within R^2 / 4 (a - 1), if that is at most
    R / 4.
    """
    reach, discount, scale = span + more, powers(gamma, len(span)), 1.0
    while True:
        room = scale * span
        found = np.where(room >= reach, reach**2 / (4.0 * room), reach)
        if (found * discount).sum() <= left_open:
            return scale
        scale *= 2.0
