"""The plan of a planner whose bounds are proven by bets, and how its tree is read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.confidence import certificate
from pacplan.algorithms.common.plans import bounded_plan
from pacplan.engine.query import Query
from pacplan.engine.search_tree import Evidence
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
            "Only the best action's upper bound is guaranteed."
        ),
        assumptions=assumptions,
        values=search.estimates(),
        value=middle if planner.goal == "value" else None,
    )


@dataclass(frozen=True, eq=False)
class RootReader:
    """Reads the record of an action of the root: its bounds and estimate, as the plan has them."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    values: NDArray[np.float64]

    def __call__(self, pair: Any, offered: Sequence[int]) -> Evidence:
        action = int(pair["action"])
        value, lower, upper = (float(x[action]) for x in (self.values, self.lower, self.upper))
        return Evidence(value=None if math.isnan(value) else value, lower=lower, upper=upper)
