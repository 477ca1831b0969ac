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
from pacplan.algorithms.bracket.records import PREDICTOR, RULES, STEPS
from pacplan.algorithms.common.grid import Grid, grid_of
from pacplan.algorithms.common.returns import (
    ANYTHING,
    FIRST_SPREAD,
    MOMENTS,
    NEWEST,
    STEADY,
    return_range,
)
from pacplan.bounds.elementary import powers
from pacplan.engine.values import step_range


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
        rules: one record of `RULES`.
        steps: records of `STEPS`.
        moments: one record of `MOMENTS` per bettor.
        predictors: records of `PREDICTOR`.
        prices: of the bounds from above.
        grid: of the bounds from below.
    """

    low: float
    width: float
    sigma: NDArray[np.float64]
    rules: NDArray[Any]
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
    low, high = step_range(task.reward_range, task.may_end)
    width = high - low
    sigma = np.concatenate([[0.0], np.cumsum(powers(task.gamma, task.horizon))])
    floor, ceiling = return_range(task.value_range, low, width, float(sigma[-1]))
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
    rules = _rules(task, low, width, above)
    if shares.joint > 0.0:
        rules["joint"], rules["log_joint"] = True, -math.log(shares.joint)
        rules["exploit_cost"] *= JOINT_EXPLOIT_COST / EXPLOIT_COST
    rules["delta_exploit"] = EXPLOIT_SHARE * shares.below
    if shares.joint > 0.0 and task.choices == 2:
        # Whichever is the best, the money is on the other.
        rules["given"] = 1.0
        rules["delta_exploit"] /= 2.0
    else:
        rules["reserve"] = 1.0
    rules["delta_forced"] = (1.0 - EXPLOIT_SHARE) * shares.below
    rules["epsilon"], rules["resolution"] = task.epsilon / width, grid.resolution
    rules["learns"], rules["least"] = learns, above.kappa * grid.resolution
    if task.merge == "tree" and task.epsilon > 0.0:
        rules["curious"] = max(sigma[-1] / grid.resolution - HASTE, 0.0)
    rules["floor"], rules["most_value"] = floor, task.value_range[1]
    rules["least_return"], rules["most_return"] = np.inf, -np.inf
    rules["step"], rules["stride"] = grid.step, grid.stride
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
        rules=rules,
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


def _rules(task: Task, low: float, width: float, above: Prices) -> NDArray[Any]:
    """The record of rules, except for the grid."""
    lowest, highest = task.reward_range
    rules = np.zeros(1, RULES)
    rules["gamma"], rules["horizon"] = task.gamma, task.horizon
    rules["low"], rules["width"] = low, width
    rules["offset"], rules["slope"] = (lowest - low) / width, (highest - lowest) / width
    rules["kappa"], rules["log_share"] = above.kappa, above.log_share
    rules["shares"], rules["least_count"] = above.shares, math.isinf(task.successors)
    rules["cut"] = CUT if task.epsilon > 0.0 else ANYTIME_CUT
    rules["value_goal"], rules["guided"] = task.value_goal, task.guided
    rules["told"] = task.rewards != "unknown"
    rules["fixed_rewards"] = task.rewards == "deterministic"
    rules["known_rewards"] = task.rewards == "known"
    # A range that returns lie in need not hold for sums of means.
    rules["pays_means"] = task.rewards == "known" and task.value_range == ANYTHING
    rules["known_transitions"] = task.transitions == "known"
    rules["same_actions"] = task.same_actions
    rules["most_actions"] = task.most_actions
    rules["go_on"] = go_on = task.gamma**ROULETTE_POWER
    revealed = rules["fixed_rewards"][0] or rules["pays_means"][0]
    called = task.horizon - int(revealed and task.merge != "stationary")
    rounds = (max(h + 1 - ROULETTE_DEPTH, 0) for h in range(called))
    rules["exploit_cost"] = EXPLOIT_COST * math.fsum(go_on**k for k in rounds)
    rules["swept"] = -1
    return rules
