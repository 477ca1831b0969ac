"""What a Bracket search starts from: units, shares of delta, grids, and what evidence costs by depth.

It follows from the planner's settings and the model's promises, so plans with the same share it.
In units in which a step pays between 0 and 1 (docs/bracket.md, "Units").
"""

import math
from dataclasses import dataclass
from functools import lru_cache
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


class Task(NamedTuple):
    """What is asked: the planner's settings and the model's promises, in the user's units."""

    epsilon: float  # the gap to stop at
    delta: float
    gamma: float
    horizon: int
    value_goal: bool
    rewards: str
    transitions: str
    reward_range: tuple[float, float]
    value_range: tuple[float, float]  # infinite if nothing is known
    may_end: bool
    successors: float  # B, infinite if it is not known
    choices: int  # actions of the root

    @property
    def learns(self) -> bool:
        """Whether transitions must be learnt."""
        return self.successors > 1 and self.transitions == "unknown"

    @property
    def random_next(self) -> bool:
        """Whether it matters that they are."""
        return self.learns and self.horizon > 1


@dataclass(frozen=True, eq=False)
class Setup:
    """What searches of one task start from. A search copies what it writes to.

    Attributes:
        scale: the units.
        grid: of the bounds from below.
        settings: one record of `SETTINGS`.
        levels: records of `LEVEL`.
        steps: records of `STEPS`.
        stakes: stakes[h, j] is a_j.
        opening: what each S_j starts from.
        moments: moments[action, q], records of `MOMENTS`.
    """

    scale: Scale
    grid: Grid
    settings: NDArray[Any]
    levels: NDArray[Any]
    steps: NDArray[Any]
    stakes: NDArray[np.float64]
    opening: NDArray[np.float64]
    moments: NDArray[Any]


@lru_cache(maxsize=64)
def setup_of(task: Task) -> Setup:
    """The setup of a search.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    scale = scale_of(task.reward_range, task.may_end, task.gamma, task.horizon)
    floor, ceiling = return_range(task.value_range, scale)
    settings, grid = betting_settings(
        SETTINGS,
        scale,
        task.reward_range,
        gamma=task.gamma,
        epsilon=task.epsilon,
        span=ceiling - floor,
        floor=floor,
    )
    _declare(settings, task)
    shares = shares_of(task)
    _share_below(settings, task, shares)
    levels = _levels(task, shares.ball, grid.resolution)
    settings["log_share"] = log_share = -math.log(shares.product)
    settings["kappa"] = kappa = constants.PENALTY / (log_share + float(levels["excess"][0]))
    settings["least"] = least = kappa * grid.resolution
    stakes, opened = _stakes(task, levels, least, grid.resolution)
    sigma = scale.sigma
    steps = np.zeros(task.horizon + 1, STEPS)
    steps["sigma"], steps["prior"] = sigma, constants.PRIOR * sigma
    steps["ended"] = -scale.low / scale.width * sigma
    steady = task.horizon <= constants.STEADY_HORIZON
    return Setup(
        scale=scale,
        grid=grid,
        settings=settings,
        levels=levels,
        steps=steps,
        stakes=stakes,
        opening=opened,
        moments=first_moments(task.choices, ceiling - floor, STEADY if steady else NEWEST),
    )


class Shares(NamedTuple):
    """Shares of delta."""

    product: float  # delta_s: U(a) = W(a) + lambda log(1/delta_s)
    ball: float  # delta_p
    below: float  # delta_L
    joint: float  # delta_J (1 - beta), of both sides together; 0 if each has a process of its own


def shares_of(task: Task) -> Shares:
    """Who gets which share of delta: docs/bracket.md, "Shares" and "Both sides at once"."""
    if not task.value_goal:
        process = (constants.JOINT_SHARE if task.random_next else 1.0) * task.delta
        joint = (1.0 - constants.JOINT_BELOW) * process
        ball = (1.0 - constants.JOINT_SHARE) * task.delta
        return Shares(constants.JOINT_ABOVE * joint, ball, constants.JOINT_BELOW * process, joint)
    above = (1.0 - constants.BELOW) * task.delta
    product = (constants.PRODUCT_SHARE if task.random_next else 1.0) * above
    return Shares(product, (1.0 - constants.PRODUCT_SHARE) * above, constants.BELOW * task.delta, 0.0)


def _share_below(settings: NDArray[Any], task: Task, shares: Shares) -> None:
    """What the bets on returns begin with."""
    settings["delta_exploit"] = constants.EXPLOIT_SHARE * shares.below
    settings["delta_forced"] = (1.0 - constants.EXPLOIT_SHARE) * shares.below
    if shares.joint > 0.0:
        settings["joint"], settings["log_joint"] = True, -math.log(shares.joint)
    if shares.joint > 0.0 and task.choices == 2:
        # Whichever is the best, the wealth is on the other.
        settings["given"] = 1.0
        settings["delta_exploit"] /= 2.0
    else:
        settings["reserve"] = 1.0


def _declare(settings: NDArray[Any], task: Task) -> None:
    """Note what was declared, and what follows from it."""
    settings["value_goal"], settings["learns"] = task.value_goal, task.learns
    settings["told"] = task.rewards != "unknown"
    settings["fixed_rewards"] = task.rewards == "deterministic"
    settings["known_rewards"] = task.rewards == "known"
    # A range that returns lie in need not hold for sums of means.
    settings["pays_means"] = task.rewards == "known" and task.value_range == ANYTHING
    settings["known_transitions"] = task.transitions == "known"
    settings["most_value"] = task.value_range[1]
    unknown = math.isinf(task.successors)
    settings["least_count"], settings["shares"] = unknown, task.random_next and unknown
    if unknown:
        settings["discount"] = settings["fresher"] = constants.DISCOUNT
        settings["strength"] = settings["fresh"] = constants.STRENGTH
    else:
        # One out of B.
        settings["discount"], settings["fresh"] = -0.5, 0.5
        settings["strength"] = 0.5 * task.successors
    settings["cut"] = constants.CUT if task.epsilon > 0.0 else constants.ANYTIME_CUT
    settings["go_on"] = go_on = task.gamma**constants.ROULETTE_POWER
    revealed = settings["fixed_rewards"][0] or settings["pays_means"][0]
    called = task.horizon - int(revealed)
    rounds = (max(h + 1 - constants.ROULETTE_DEPTH, 0) for h in range(called))
    cost = constants.EXPLOIT_COST if task.value_goal else constants.JOINT_EXPLOIT_COST
    settings["exploit_cost"] = cost * math.fsum(go_on**k for k in rounds)


def _levels(task: Task, delta_ball: float, resolution: float) -> NDArray[Any]:
    """Records of `LEVEL`; the set of transitions has the share `delta_ball`."""
    horizon = task.horizon
    discount = powers(task.gamma, horizon)
    levels = np.zeros(horizon, LEVEL)
    levels["span"] = np.cumsum(discount)[::-1]
    tolerance = min(constants.SOLVER_LEAST, constants.SOLVER_OPEN / horizon) * resolution
    levels["tolerance"] = tolerance / discount
    risk = np.maximum(powers(constants.RISK_DECAY, horizon), constants.LEAST_RISK)
    levels["cash"] = 1.0 - constants.RISK * risk
    levels["weight"] = 1.0 / discount
    kept = [-math.log(cash) for cash in levels["cash"][::-1]]
    levels["excess"] = np.cumsum(kept)[::-1] / discount
    if task.random_next:
        # Where the last step leads does not matter.
        levels["price"] = -math.log(delta_ball) + math.log(horizon - 1)
        if not math.isinf(task.successors):
            # How many states an optimal policy can reach in h steps.
            levels["price"] += np.arange(horizon) * math.log(task.successors)
    return levels


def _stakes(
    task: Task, levels: NDArray[Any], least: float, resolution: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The stakes a_j by depth, and what each S_j starts from."""
    span = levels["span"]
    # The range of what is bet on is at most this; lambda ends below SETTLED times its least.
    reach = span + constants.SETTLED * least * task.gamma * np.append(levels["excess"][1:], 0.0)
    left_open = constants.STAKES_OPEN * resolution
    chosen = scales(_largest_scale(span, reach, powers(task.gamma, task.horizon), left_open))
    return 1.0 + span[:, np.newaxis] * chosen, opening(chosen)


def _largest_scale(
    span: NDArray[Any], reach: NDArray[Any], discount: NDArray[Any], left_open: float
) -> float:
    """The scale of the last stake, such that all pairs of a path together leave at most this much open.

    A mean of numbers with range R is found to within R^2 / 4 (a - 1), if that is at most R / 4.
    """
    scale = 1.0
    while True:
        room = scale * span
        found = np.where(room >= reach, reach**2 / (4.0 * room), reach)
        if (found * discount).sum() <= left_open:
            return scale
        scale *= 2.0
