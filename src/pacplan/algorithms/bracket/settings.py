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
from pacplan.algorithms.bracket.records import LEVEL, PREDICTOR, SETTINGS, STEPS
from pacplan.bounds.elementary import powers
from pacplan.bounds.product import opening, scales


class Task(NamedTuple):
    """What is asked: the planner's settings and the model's promises, in the user's units."""

    epsilon: float  # the gap to stop at
    delta: float
    gamma: float
    horizon: int
    value_goal: bool
    merge: str
    rewards: str
    transitions: str
    reward_range: tuple[float, float]
    value_range: tuple[float, float]  # infinite if nothing is known
    may_end: bool
    successors: float  # B, infinite if it is not known
    states: float  # S, infinite if it is not known
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
        predictors: records of `PREDICTOR`.
        moments: moments[action, q], records of `MOMENTS`.
    """

    scale: Scale
    grid: Grid
    settings: NDArray[Any]
    levels: NDArray[Any]
    steps: NDArray[Any]
    stakes: NDArray[np.float64]
    opening: NDArray[np.float64]
    predictors: NDArray[Any]
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
    left_open = constants.PENALTY if task.merge == "tree" else constants.MERGED_PENALTY
    settings["kappa"] = kappa = left_open / (log_share + float(levels["excess"][0]))
    settings["least"] = least = kappa * grid.resolution
    stakes, opened = _stakes(task, levels, least, grid.resolution)
    sigma = scale.sigma
    if task.merge == "tree" and task.epsilon > 0.0:
        settings["curious"] = max(sigma[-1] / grid.resolution - constants.HASTE, 0.0)
    steps = np.zeros(task.horizon + 1, STEPS)
    steps["sigma"], steps["prior"] = sigma, constants.PRIOR * sigma
    steps["ended"] = -scale.low / scale.width * sigma
    steady = task.merge == "tree" and task.horizon <= constants.STEADY_HORIZON
    return Setup(
        scale=scale,
        grid=grid,
        settings=settings,
        levels=levels,
        steps=steps,
        stakes=stakes,
        opening=opened,
        predictors=_predictors(task.successors),
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
    if task.merge == "tree" and not task.value_goal:
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
    settings["least_count"] = math.isinf(task.successors)
    unknown = task.successors if task.merge == "tree" else task.states
    settings["shares"] = task.random_next and math.isinf(unknown)
    settings["cut"] = constants.CUT if task.epsilon > 0.0 else constants.ANYTIME_CUT
    settings["go_on"] = go_on = task.gamma**constants.ROULETTE_POWER
    revealed = settings["fixed_rewards"][0] or settings["pays_means"][0]
    called = task.horizon - int(revealed and task.merge != "stationary")
    rounds = (max(h + 1 - constants.ROULETTE_DEPTH, 0) for h in range(called))
    joint = task.merge == "tree" and not task.value_goal
    cost = constants.JOINT_EXPLOIT_COST if joint else constants.EXPLOIT_COST
    settings["exploit_cost"] = cost * math.fsum(go_on**k for k in rounds)
    settings["swept"] = -1


def _levels(task: Task, delta_ball: float, resolution: float) -> NDArray[Any]:
    """Records of `LEVEL`; the set of transitions has the share `delta_ball`."""
    pooled, horizon = task.merge == "stationary", task.horizon
    discount = powers(task.gamma, horizon)
    levels = np.zeros(horizon, LEVEL)
    levels["span"] = span = np.cumsum(discount)[::-1]
    levels["tolerance"] = min(constants.SOLVER_LEAST, constants.SOLVER_OPEN / horizon) * resolution
    if pooled:
        # The exponent of a pair is the discounted number of the optimal policy's visits, over sigma_H:
        # all exponents sum to one, however often a pair is visited.
        levels["cash"] = constants.POOLED_CASH
        levels["weight"] = 1.0 / span[0]
        levels["excess"] = -math.log(constants.POOLED_CASH) * span / span[0]
    else:
        risk = np.maximum(powers(constants.RISK_DECAY, horizon), constants.LEAST_RISK)
        levels["cash"] = 1.0 - constants.RISK[task.merge] * risk
        levels["weight"] = 1.0 / discount
        held = [-math.log(cash) for cash in levels["cash"][::-1]]
        levels["excess"] = np.cumsum(held)[::-1] / discount
        levels["tolerance"] /= discount
    if task.random_next:
        levels["price"] = _ball_prices(task, delta_ball)
    return levels


def _ball_prices(task: Task, delta_ball: float) -> Any:
    """log(1/delta_p), and the log of how many sets of transitions must hold at a depth."""
    pooled, horizon, tree = task.merge == "stationary", task.horizon, task.merge == "tree"
    by_discovery = math.isinf(task.successors if tree else task.states)
    prices = np.full(horizon, -math.log(delta_ball))
    if not (pooled and by_discovery):
        # Where the last step leads matters only if it is evidence for other steps.
        prices += math.log(horizon if pooled else horizon - 1)
    if not by_discovery:
        # How many states an optimal policy can reach in h steps.
        reachable = np.append(0.0, np.arange(1, horizon) * math.log(task.successors))
        prices += reachable if tree else np.minimum(reachable, math.log(task.states))
    return prices


def _stakes(
    task: Task, levels: NDArray[Any], least: float, resolution: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The stakes a_j by depth, and what each S_j starts from; levels of merged nodes get their span."""
    pooled, span = task.merge == "stationary", levels["span"].copy()
    discount = powers(task.gamma, task.horizon)
    # The range of what is bet on is at most this; lambda ends below SETTLED times its least.
    reach = span + constants.SETTLED * least * task.gamma * np.append(levels["excess"][1:], 0.0)
    if pooled:
        span, reach = np.full(task.horizon, span[0]), np.full(task.horizon, reach.max())
    chosen = scales(_largest_scale(span, reach, discount, constants.STAKES_OPEN * resolution))
    if task.merge != "tree":
        # A state that a pair was never seen to lead to may have been reached by another path, and the
        # evidence on it counts.
        levels["span"][1:] += least * levels["excess"][1:]
        levels["excess"][1:] = 0.0
    most = span if pooled else levels["span"]
    return 1.0 + most[:, np.newaxis] * chosen, opening(chosen)


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


def _predictors(successors: float) -> NDArray[Any]:
    """The predictors of outcomes: of one out of B, or of one seen before or new."""
    if math.isinf(successors):
        found = np.zeros(len(constants.PREDICTORS), PREDICTOR)
        found["discount"], found["strength"] = np.transpose(constants.PREDICTORS)
        found["fresh"], found["fresher"] = found["strength"], found["discount"]
    else:
        found = np.zeros(1, PREDICTOR)
        found["discount"], found["strength"], found["fresh"] = -0.5, 0.5 * successors, 0.5
    return found
