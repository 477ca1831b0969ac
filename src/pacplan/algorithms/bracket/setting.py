"""The setting of a Bracket search, before its first call: grids, shares of delta, prices.

All of it follows from the planner's settings and the model's promises, so plans with the same share it.
In units in which a step pays between 0 and 1 (docs/bracket.md, "Units").
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.bets import FIRST_SPREAD, MOMENTS, NEWEST, STEADY
from pacplan.algorithms.betting.grid import Grid, grid_of
from pacplan.algorithms.betting.settings import ANYTHING, return_range, scale_of
from pacplan.algorithms.bracket.constants import (
    ANYTIME_CUT,
    BELOW,
    CUT,
    EXPLOIT_COST,
    EXPLOIT_SHARE,
    HASTE,
    JOINT_ABOVE,
    JOINT_BELOW,
    JOINT_EXPLOIT_COST,
    JOINT_SHARE,
    PREDICTORS,
    PRIOR,
    PRODUCT_SHARE,
    ROULETTE_DEPTH,
    ROULETTE_POWER,
    STEADY_HORIZON,
)
from pacplan.algorithms.bracket.prices import Prices, prices
from pacplan.algorithms.bracket.records import PREDICTOR, SETTINGS, STEPS


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
    successors: float  # infinite if it is not known
    states: float  # infinite if their number is not known
    same_actions: bool
    most_actions: int
    choices: int  # actions of the root
    guided: bool  # whether the user gave a policy


@dataclass(frozen=True, eq=False)
class Setting:
    """What a search starts from. A search copies what it writes to.

    Attributes:
        low: what 0 stands for, in the user's units.
        width: what 1 stands for, minus that.
        sigma: 1 + gamma + ... + gamma^(k-1), by k.
        settings: one record of `SETTINGS`.
        steps: records of `STEPS`.
        moments: one record of `MOMENTS` per bettor.
        predictors: records of `PREDICTOR`.
        prices: of the bounds from above.
        grid: of the bounds from below.
    """

    low: float
    width: float
    sigma: NDArray[np.float64]
    settings: NDArray[Any]
    steps: NDArray[Any]
    moments: NDArray[Any]
    predictors: NDArray[Any]
    prices: Prices
    grid: Grid


@lru_cache(maxsize=64)
def setting_of(task: Task) -> Setting:
    """The setting of a search.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    scale = scale_of(task.reward_range, task.may_end, task.gamma, task.horizon)
    low, width, sigma = scale.low, scale.width, scale.sigma
    floor, ceiling = return_range(task.value_range, scale)
    grid = grid_of(task.epsilon, ceiling - floor, width)
    learns = task.successors > 1 and task.transitions == "unknown"
    random_next = learns and task.horizon > 1
    shares = _shares(task, random_next)
    above = prices(
        shares.product,
        shares.ball,
        task.gamma,
        task.horizon,
        grid.resolution,
        merge=task.merge,
        successors=task.successors,
        states=task.states,
        random_next=random_next,
    )
    settings = _settings(task, low, width, above)
    if shares.joint > 0.0:
        settings["joint"], settings["log_joint"] = True, -math.log(shares.joint)
        settings["exploit_cost"] *= JOINT_EXPLOIT_COST / EXPLOIT_COST
    settings["delta_exploit"] = EXPLOIT_SHARE * shares.below
    if shares.joint > 0.0 and task.choices == 2:
        # Whichever is the best, the money is on the other.
        settings["given"] = 1.0
        settings["delta_exploit"] /= 2.0
    else:
        settings["reserve"] = 1.0
    settings["delta_forced"] = (1.0 - EXPLOIT_SHARE) * shares.below
    settings["epsilon"], settings["resolution"] = task.epsilon / width, grid.resolution
    settings["learns"], settings["least"] = learns, above.kappa * grid.resolution
    if task.merge == "tree" and task.epsilon > 0.0:
        settings["curious"] = max(sigma[-1] / grid.resolution - HASTE, 0.0)
    settings["floor"], settings["most_value"] = floor, task.value_range[1]
    settings["least_return"], settings["most_return"] = np.inf, -np.inf
    settings["step"], settings["stride"] = grid.step, grid.stride
    steps = np.zeros(task.horizon + 1, STEPS)
    steps["sigma"], steps["prior"], steps["ended"] = sigma, PRIOR * sigma, -low / width * sigma
    moments = np.zeros(len(NEWEST), MOMENTS)
    moments["spread"] = (FIRST_SPREAD * (ceiling - floor)) ** 2
    steady = task.merge == "tree" and task.horizon <= STEADY_HORIZON
    moments["newest"] = STEADY if steady else NEWEST
    return Setting(
        low=low,
        width=width,
        sigma=sigma,
        settings=settings,
        steps=steps,
        moments=moments,
        predictors=_predictors(task.successors),
        prices=above,
        grid=grid,
    )


class _Shares(NamedTuple):
    """Shares of delta."""

    product: float  # delta_s: U(a) = W(a) + lambda log(1/delta_s)
    ball: float  # delta_p
    below: float  # delta_L
    joint: float  # delta_J (1 - beta), of both sides together; 0 if each has a process of its own


def _shares(task: Task, random_next: bool) -> _Shares:
    """Who gets which share of delta: docs/bracket.md, "Shares" and "Both sides at once"."""
    if task.merge == "tree" and not task.value_goal:
        process = (JOINT_SHARE if random_next else 1.0) * task.delta
        joint = (1.0 - JOINT_BELOW) * process
        ball = (1.0 - JOINT_SHARE) * task.delta
        return _Shares(JOINT_ABOVE * joint, ball, JOINT_BELOW * process, joint)
    above = (1.0 - BELOW) * task.delta
    product = (PRODUCT_SHARE if random_next else 1.0) * above
    return _Shares(product, (1.0 - PRODUCT_SHARE) * above, BELOW * task.delta, 0.0)


def _predictors(successors: float) -> NDArray[Any]:
    """The predictors of outcomes: of one out of B, or of one seen before or new."""
    if math.isinf(successors):
        found = np.zeros(len(PREDICTORS), PREDICTOR)
        found["discount"], found["strength"] = np.transpose(PREDICTORS)
        found["fresh"], found["fresher"] = found["strength"], found["discount"]
    else:
        found = np.zeros(1, PREDICTOR)
        found["discount"], found["strength"], found["fresh"] = -0.5, 0.5 * successors, 0.5
    return found


def _settings(task: Task, low: float, width: float, above: Prices) -> NDArray[Any]:
    """The record of settings, except for the grid."""
    lowest, highest = task.reward_range
    settings = np.zeros(1, SETTINGS)
    settings["gamma"], settings["horizon"] = task.gamma, task.horizon
    settings["low"], settings["width"] = low, width
    settings["offset"], settings["slope"] = (lowest - low) / width, (highest - lowest) / width
    settings["kappa"], settings["log_share"] = above.kappa, above.log_share
    settings["shares"], settings["least_count"] = above.shares, math.isinf(task.successors)
    settings["cut"] = CUT if task.epsilon > 0.0 else ANYTIME_CUT
    settings["value_goal"], settings["guided"] = task.value_goal, task.guided
    settings["told"] = task.rewards != "unknown"
    settings["fixed_rewards"] = task.rewards == "deterministic"
    settings["known_rewards"] = task.rewards == "known"
    # A range that returns lie in need not hold for sums of means.
    settings["pays_means"] = task.rewards == "known" and task.value_range == ANYTHING
    settings["known_transitions"] = task.transitions == "known"
    settings["same_actions"] = task.same_actions
    settings["most_actions"] = task.most_actions
    settings["go_on"] = go_on = task.gamma**ROULETTE_POWER
    revealed = settings["fixed_rewards"][0] or settings["pays_means"][0]
    called = task.horizon - int(revealed and task.merge != "stationary")
    rounds = (max(h + 1 - ROULETTE_DEPTH, 0) for h in range(called))
    settings["exploit_cost"] = EXPLOIT_COST * math.fsum(go_on**k for k in rounds)
    settings["swept"] = -1
    return settings
