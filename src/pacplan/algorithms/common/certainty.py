"""What planners with certain bounds share: where values lie, what ends the search, and the plan."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.horizons import check_steps
from pacplan.algorithms.common.plans import bounded_plan
from pacplan.core.words import at_most
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.values import value_range
from pacplan.models.protocol import Model
from pacplan.result import Plan

# Bounds on what an open leaf of each depth can still earn, before discounting.
TAIL = np.dtype([("upper", np.float64), ("lower", np.float64)])


def check_limits(planner: Any, limits: Limits, model: Model, ends: bool = False) -> None:
    """Refuse a search that nothing would end, and steps that the model is not defined for.

    `ends` says that it ends by itself.
    """
    limited = (limits.budget, limits.time_limit, limits.callback) != (None, None, None)
    if not (ends or limited):
        name = type(planner).__name__
        raise ValueError(f"{name} rarely stops by itself; pass budget= or time_limit=")
    if planner.horizon is not None:
        check_steps(model, planner.horizon)
    elif model.steps is not None:
        raise ValueError(f"the model is defined for {model.steps} steps: pass a horizon")


def certain_plan(
    planner: Any,
    query: Query,
    search: Any,
    stopped_by: str,
    seconds: float,
    surely: str,
    assumed: tuple[str, ...],
) -> Plan:
    """The plan of a planner whose bounds are certain, as `surely` says."""
    snapshot: Snapshot = search.snapshot(seconds)
    assert snapshot.lower is not None and snapshot.upper is not None and snapshot.gap is not None
    problem = "over an infinite horizon"
    if planner.horizon is not None:
        problem = f"in the {planner.horizon}-step problem"
    search.horizon = planner.horizon or search.deepest()
    return bounded_plan(
        planner,
        query,
        search,
        snapshot,
        stopped_by,
        guarantee=(
            f"Action {snapshot.action!r} is within {at_most(max(0.0, snapshot.gap))} of "
            f"optimal {problem}. {surely}"
        ),
        assumptions=assumed,
        values=np.where(search.calls > 0, snapshot.lower, np.nan),
        value=float(snapshot.lower.max()),
    )


def tails_of(gamma: float, horizon: int | None, model: Model) -> NDArray[Any]:
    """What can still be earned after d steps, d = 0, 1, ..."""
    if horizon is not None:
        ranges = value_range(model.reward_range, model.may_end, gamma, horizon)[::-1]
        rows = list(zip(ranges["node_upper"], ranges["node_lower"], strict=True))
        return np.array(rows, TAIL)
    low, high = model.reward_range
    rest = 1.0 / (1.0 - gamma)
    if not model.may_end:
        return np.array([(high * rest, low * rest)], TAIL)
    # One reward at least, after which the episode may end.
    most = high + gamma * max(high * rest, 0.0)
    least = low + gamma * min(low * rest, 0.0)
    return np.array([(most, least)], TAIL)
