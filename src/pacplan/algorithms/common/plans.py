"""The making of plans: from estimates alone, or from bounds."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import place
from pacplan.core.words import at_least, at_most, exactly
from pacplan.diagnosis import diagnosis_of
from pacplan.engine.driver import Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.models.protocol import Session
from pacplan.result import Curve, Plan

if TYPE_CHECKING:
    from pacplan.algorithms.common.base import Planner


def within(
    values: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Estimates clipped to their bounds; NaN (no estimate) stays NaN.

    An upper bound may lie below the lower one if the guarantee failed, or with Bracket, whose upper
    bounds hold for the best action only. Then the lower bound is the estimate.
    """
    return np.maximum(np.minimum(values, upper), lower)


def best_estimate(values: NDArray[Any], order: NDArray[np.int64]) -> int:
    """Index of the largest estimate; `order` breaks ties, and decides if there is no estimate (NaN)."""
    scores = np.where(np.isnan(values), -np.inf, values)
    return int(order[scores[order].argmax()])


def root_field(search: KernelSearch, field: str, untried: float) -> NDArray[np.float64]:
    """A field of the root's pairs, by action; of actions that were never tried, as given."""
    found = np.full(len(search.actions), untried)
    if len(search.tree) > 0:
        pairs = search.tree.pairs[list(search.tree.tried(0))]
        found[pairs["action"]] = pairs[field]
    return found


class EstimateSearch(KernelSearch):
    """A search with `values`, estimates of the root's actions (NaN: none), recommends the largest."""

    values: Any

    def __init__(self, query: Query, session: Session, *types: Any, **settings: Any) -> None:
        super().__init__(query, session, *types, **settings)
        # This order breaks ties between estimates, and decides if there are no estimates at all.
        self.order = query.ties.permutation(len(query.actions))

    def recommended(self) -> int:
        """Index of the action to take now."""
        return best_estimate(self.values, self.order)

    def snapshot(self, seconds: float) -> Snapshot:
        return self.standing(self.recommended(), seconds)


def nearly_optimal(snapshot: Snapshot, horizon: int | None) -> str:
    """What a gap says of an action, as the beginning of a sentence; without a horizon, for ever."""
    problem = "over an infinite horizon" if horizon is None else f"in the {horizon}-step problem"
    loss = at_most(max(0.0, snapshot.gap))
    return f"Action {snapshot.action!r} is within {loss} of optimal {problem}"


def value_said(snapshot: Snapshot) -> str:
    """Where the state's value lies, in words."""
    low, high = float(snapshot.lower.max()), float(snapshot.upper.max())
    half = at_most(0.5 * (high - low))
    return f"the optimal value lies in [{at_least(low)}, {at_most(high)}], within {half} of its middle"


def plan_of(planner: "Planner", query: Query, search: Any, stopped_by: str, seconds: float) -> Plan:
    """The plan of a search that has ended.

    Its `values` are estimates of the root's actions, NaN for those never seen. If it has bounds, the
    plan has the estimates clipped to them; and the state's value is the largest of those, clipped to
    [max L, max U], or the middle of that if there are none. Else it is that of the action recommended.
    The planner's `value_estimate` may say otherwise.
    """
    found, values, known = search.snapshot(seconds), search.values.copy(), dict[str, Any]()
    guarantee = planner.guarantee(query.model, search, found)
    value = planner.value_estimate(search, found)
    if found.lower is None:
        guarantee = f"Action {found.action!r} is the best guess. {guarantee}"
        value = float(values[place(found.action, query.actions)]) if value is None else value
    else:
        values = within(values, found.lower, found.upper)
        low, high = float(found.lower.max()), float(found.upper.max())
        if value is None:
            best = max(values[~np.isnan(values)], default=0.5 * (low + high))
            value = max(min(float(best), high), low)
        known = {
            "assumptions": planner.assumptions(query.model, search),
            "curve": _curve(search, found),
        }
        if search.certifies:
            gaps, ruled_out = search.verdicts(found.lower, found.upper)
            known |= {"gaps": gaps, "ruled_out": ruled_out, "certified": stopped_by == "rule"}
            if stopped_by == "rule":
                stopped_by = "certified"
            elif diagnosis := diagnosis_of(planner, query.model, search, found, values, ruled_out):
                known["diagnosis"] = diagnosis
                asked = f"Not certified: you asked for epsilon = {exactly(diagnosis.asked)}, but "
                guarantee = asked + guarantee[0].lower() + guarantee[1:]
    search.close_tree()
    return Plan(
        actions=query.actions,
        action=found.action,
        values=values,
        value=value,
        lower=found.lower,
        upper=found.upper,
        gap=found.gap,
        samples=found.samples,
        episodes=found.episodes,
        seconds=found.seconds,
        calls=search.calls.copy(),
        horizon=search.horizon,
        planner=repr(planner),
        stopped_by=stopped_by,
        guarantee=guarantee,
        tree=search.tree if len(search.tree) else None,
        sequence=search.sequence(),
        memory=search.memory.used,
        **known,
    )


def _curve(search: Any, snapshot: Snapshot) -> Curve:
    """The curve of the search, up to where it stands."""
    calls, _, lower, upper = search.curve()
    points = int(np.searchsorted(calls, snapshot.samples))  # What was noted now is not repeated.
    return Curve(
        samples=np.append(calls[:points], snapshot.samples),
        lower=np.vstack([lower[:points], snapshot.lower]),
        upper=np.vstack([upper[:points], snapshot.upper]),
    )
