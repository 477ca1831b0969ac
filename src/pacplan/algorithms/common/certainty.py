"""What planners with certain bounds share: where values lie, what ends the search, and the plan."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.horizons import check_steps
from pacplan.algorithms.common.plans import bounded_plan, value_said
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
    if planner.horizon is not None:
        check_steps(model, planner.horizon)
    elif model.steps is not None:
        raise ValueError(f"the model is defined for {model.steps} steps: pass a horizon")


def left_to_chance(model: Model, transitions: str, rewards: str) -> list[str]:
    """Why it does not follow that nothing is random, in words; nothing if it does.

    It follows from what the model says of itself, as a table does, and from what the user declared of
    transitions and rewards. That nothing random was seen is no reason.
    """
    reasons = []
    if transitions != "deterministic" and model.successors != 1:
        reasons.append(
            "in this model's table some state and action has more than one successor"
            if model.known
            else "you did not declare that a state and action has one successor (if so, pass "
            'transitions="deterministic")'
        )
    if rewards != "deterministic" and model.random_rewards is not False:
        reasons.append(
            "this model's rewards are random"
            if model.random_rewards
            else "you did not declare that a state and action always pays the same (if so, pass "
            'rewards="deterministic")'
        )
    return reasons


def certain_plan(
    planner: Any,
    query: Query,
    search: Any,
    stopped_by: str,
    seconds: float,
    *,
    surely: str,
    assumed: tuple[str, ...],
    values: NDArray[np.float64] | None = None,
) -> Plan:
    """The plan of a planner whose bounds are certain.

    Args:
        planner: who plans; the next four as in `Planner.finish`.
        query: see there.
        search: see there.
        stopped_by: see there.
        seconds: see there.
        surely: a sentence that says on what the certainty rests.
        assumed: what it depends on.
        values: estimates of the root's actions; by default the lower bounds of those that were tried.
    """
    snapshot: Snapshot = search.snapshot(seconds)
    assert snapshot.lower is not None and snapshot.upper is not None and snapshot.gap is not None
    horizon: int | None = planner.horizon
    search.horizon = horizon or search.deepest()
    loss = max(0.0, snapshot.gap)
    problem = "over an infinite horizon" if horizon is None else f"in the {horizon}-step problem"
    quality = f"within {at_most(loss)} of optimal" if loss > 0.0 else "optimal"
    proven = f"Action {snapshot.action!r} is {quality} {problem}"
    value = float(snapshot.lower.max())
    if getattr(planner, "goal", "action") == "value":
        value = 0.5 * (value + float(snapshot.upper.max()))
        proven += f", and {value_said(snapshot)}"
    return bounded_plan(
        planner,
        query,
        search,
        snapshot,
        stopped_by,
        guarantee=f"{proven}. {surely}",
        assumptions=assumed,
        values=np.where(search.calls > 0, snapshot.lower, np.nan) if values is None else values,
        value=value,
    )


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
