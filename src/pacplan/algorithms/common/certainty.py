"""What planners with certain bounds share: where values lie, what ends the search, and the plan."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_steps
from pacplan.algorithms.common.plans import nearly_optimal, value_said
from pacplan.core.words import at_most
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search_tree import Evidence
from pacplan.engine.values import value_range
from pacplan.models.protocol import Model
from pacplan.result import Plan

# Bounds on what an open leaf of each depth can still earn, before discounting.
TAIL = np.dtype([("upper", np.float64), ("lower", np.float64)])


def check_limits(planner: Any, limits: Limits, model: Model, ends: bool = False) -> None:
    """Refuse a search that nothing would end, and steps that the model is not defined for.

    `ends` says that it ends by itself.
    """
    if not (ends or limits.any):
        name = type(planner).__name__
        raise ValueError(f"{name} rarely stops by itself; pass budget= or time_limit=")
    check_steps(model, planner.horizon)


def left_to_chance(model: Model, transitions: str, rewards: str) -> list[str]:
    """Why it does not follow that nothing is random, in words; nothing if it does.

    It follows from what the model says of itself, as a table does, and from what the user declared of
    transitions and rewards. That nothing random was seen is no reason.
    """
    reasons = []
    if transitions != "deterministic" and model.successors != 1:
        may = (
            'a state and action may have several successors (if not, pass transitions="deterministic")'
        )
        several = "in this model's table some state and action has more than one successor"
        reasons.append(several if model.known else may)
    if rewards != "deterministic" and model.random_rewards is not False:
        may = (
            'a state and action may not always pay the same (if it does, pass rewards="deterministic")'
        )
        reasons.append("this model's rewards are random" if model.random_rewards else may)
    return reasons


class CertainPlanner(Planner):
    """A planner whose bounds are certain: for `horizon` steps, or over an infinite horizon if None."""

    horizon: int | None
    goal: str = "action"
    surely: ClassVar[str] = "That is certain."
    """On what the certainty rests, as a sentence."""

    def finish(self, query: Query, search: Any, stopped_by: str, seconds: float) -> Plan:
        search.horizon = self.horizon or search.deepest()
        return super().finish(query, search, stopped_by, seconds)

    def guarantee(self, model: Model, search: Any, snapshot: Snapshot) -> str:
        proven = nearly_optimal(snapshot, self.horizon)
        if snapshot.gap <= 0.0:
            proven = proven.replace(f"within {at_most(0.0)} of optimal", "optimal")
        if self.goal == "value":
            proven += f", and {value_said(snapshot)}"
        return f"{proven}. {self.surely}"


def tails_of(
    gamma: float,
    horizon: int | None,
    model: Model,
    known: tuple[float, float] = (-math.inf, math.inf),
    name: str = "value_range",
) -> NDArray[Any]:
    """What can still be earned after d steps, d = 0, 1, ..., if a setting may say more.

    Raises:
        ValueError: after some number of steps, rewards cannot add up to anything in that range.
    """
    low, high = model.reward_range
    if math.isinf(high - low):
        rows = [(math.inf, -math.inf)] * (1 if horizon is None else horizon + 1)
    elif horizon is not None:
        ranges = value_range(model.reward_range, model.may_end, gamma, horizon)[::-1]
        rows = list(zip(ranges["node_upper"], ranges["node_lower"], strict=True))
    elif not model.may_end:
        rows = [(high / (1.0 - gamma), low / (1.0 - gamma))]
    else:
        # One reward at least, after which the episode may end.
        rest = gamma / (1.0 - gamma)
        rows = [(high + max(high * rest, 0.0), low + min(low * rest, 0.0))]
    tails = np.array(rows, TAIL)
    before_the_end = tails[: horizon or 1]
    for h, tail in enumerate(before_the_end):
        if known[0] > tail["upper"] or known[1] < tail["lower"]:
            earned = "returns" if horizon is None else f"returns of the last {horizon - h} steps"
            raise ValueError(
                f"{name}={known} contradicts the model's reward_range, by which {earned} lie in "
                f"[{tail['lower']}, {tail['upper']}]. It must hold after any number of steps"
            )
    before_the_end["lower"] = np.maximum(before_the_end["lower"], known[0])
    before_the_end["upper"] = np.minimum(before_the_end["upper"], known[1])
    return tails


def read_certain(pair: Any, offered: Sequence[int]) -> Evidence:
    """Reads pairs that hold their reward, and bounds (`pacplan.engine.search_tree.Reader`)."""
    reward = float(pair["reward"])
    return Evidence(reward, (reward, reward), lower=float(pair["lower"]), upper=float(pair["upper"]))
