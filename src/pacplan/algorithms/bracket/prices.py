"""What Bracket's evidence costs at each depth: cash, stakes, penalties, sets of transitions.

In units in which a step pays between 0 and 1. docs/bracket.md has the reasons.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.bracket.constants import (
    LEAST_RISK,
    MERGED_PENALTY,
    PENALTY,
    POOLED_CASH,
    RISK,
    RISK_DECAY,
    SETTLED,
    SOLVER_LEAST,
    SOLVER_OPEN,
    STAKES_OPEN,
)
from pacplan.algorithms.bracket.records import LEVEL
from pacplan.bounds.elementary import powers
from pacplan.bounds.product import opening, scales


@dataclass(frozen=True, eq=False)
class Prices:
    """What the bounds from above are computed with.

    Attributes:
        levels: records of `LEVEL`, by depth.
        stakes: stakes[h, j] is a_j.
        opening: what each S_j starts from.
        kappa: the least lambda, relative to the resolution.
        log_share: log(1/delta_s).
        shares: whether nodes have shares of delta_p by the order in which they are found, because
            their number is not known beforehand.
    """

    levels: Any
    stakes: NDArray[np.float64]
    opening: NDArray[np.float64]
    kappa: float
    log_share: float
    shares: bool


def prices(
    delta: float,
    delta_ball: float,
    gamma: float,
    horizon: int,
    resolution: float,
    *,
    merge: str,
    successors: float,
    states: float,
    random_next: bool,
) -> Prices:
    """The prices of the bounds from above.

    Args:
        delta: share of the product of bets, delta_s.
        delta_ball: of the sets of transitions, delta_p, if there are any.
        gamma: discount.
        horizon: steps, H.
        resolution: epsilon, or what stands for it.
        merge: what nodes stand for.
        successors: B, infinite if it is not known.
        states: S, infinite if it is not known. It matters only if nodes are merged.
        random_next: whether transitions must be learnt.
    """
    pooled = merge == "stationary"
    depth = np.arange(horizon)
    discount = powers(gamma, horizon)
    levels = np.zeros(horizon, LEVEL)
    span = np.cumsum(discount)[::-1]
    levels["span"] = span
    levels["tolerance"] = min(SOLVER_LEAST, SOLVER_OPEN / horizon) * resolution
    if pooled:
        # The exponent of a pair is the discounted number of the optimal policy's visits, over sigma_H:
        # all exponents sum to one, however often a pair is visited.
        levels["cash"] = POOLED_CASH
        levels["weight"] = 1.0 / span[0]
        levels["excess"] = -math.log(POOLED_CASH) * span / span[0]
    else:
        levels["cash"] = 1.0 - RISK[merge] * np.maximum(powers(RISK_DECAY, horizon), LEAST_RISK)
        levels["weight"] = 1.0 / discount
        levels["excess"] = (
            np.cumsum([-math.log(cash) for cash in levels["cash"][::-1]])[::-1] / discount
        )
        levels["tolerance"] /= discount
    shares = random_next and math.isinf(successors if merge == "tree" else states)
    if random_next:
        levels["price"] = -math.log(delta_ball)
        if not (pooled and shares):
            # Where the last step leads matters only if it is evidence for other steps.
            levels["price"] += math.log(horizon if pooled else horizon - 1)
        if not shares:
            # How many states an optimal policy can reach in h steps.
            reachable = np.append(0.0, depth[1:] * math.log(successors))
            levels["price"] += reachable if merge == "tree" else np.minimum(reachable, math.log(states))
    log_share = -math.log(delta)
    left_open = PENALTY if merge == "tree" else MERGED_PENALTY
    kappa = left_open / (log_share + float(levels["excess"][0]))
    least = kappa * resolution
    # The range of what is bet on is at most this; lambda ends below SETTLED times its least.
    reach = span + SETTLED * least * gamma * np.append(levels["excess"][1:], 0.0)
    if pooled:
        span, reach = np.full(horizon, span[0]), np.full(horizon, reach.max())
    chosen = scales(_largest_scale(span, reach, discount, STAKES_OPEN * resolution))
    if merge != "tree":
        # A state that a pair was never seen to lead to may have been reached by another path, and the
        # evidence on it counts.
        levels["span"][1:] += least * levels["excess"][1:]
        levels["excess"][1:] = 0.0
    return Prices(
        levels=levels,
        stakes=1.0 + (span if pooled else levels["span"])[:, np.newaxis] * chosen,
        opening=opening(chosen),
        kappa=kappa,
        log_share=log_share,
        shares=shares,
    )


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
