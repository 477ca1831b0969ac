"""The plan of a planner whose bounds are proven by bets."""

from typing import Any

from pacplan.algorithms.common.confidence import certificate
from pacplan.algorithms.common.plans import bounded_plan
from pacplan.engine.query import Query
from pacplan.result import Plan


def proven_plan(
    planner: Any,
    query: Query,
    search: Any,
    stopped_by: str,
    seconds: float,
    assumptions: tuple[str, ...],
) -> Plan:
    """The plan where the search stands; its value is the middle if the value was asked for."""
    snapshot = search.snapshot(seconds)
    middle = 0.5 * float(snapshot.lower.max() + snapshot.upper.max())
    return bounded_plan(
        planner,
        query,
        search,
        snapshot,
        stopped_by,
        guarantee=(
            f"{certificate(planner, query.model, search.horizon, snapshot)} "
            "Of the upper bounds, only that of the best action is guaranteed."
        ),
        assumptions=assumptions,
        values=search.estimates(),
        value=middle if planner.goal == "value" else None,
    )
