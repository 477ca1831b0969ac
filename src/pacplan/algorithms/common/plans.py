"""The making of plans: from estimates alone, or from bounds."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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


def estimates_plan(
    planner: "Planner",
    query: Query,
    search: Any,
    stopped_by: str,
    seconds: float,
    *,
    guarantee: str | None = None,
    value: float | None = None,
    sequence: tuple[Any, ...] = (),
) -> Plan:
    """The plan of a planner that has estimates of the root's actions and no bounds on them.

    Args:
        planner: who plans; the next four as in `Planner.finish`.
        query: see there.
        search: has `values`, `calls` and `recommended()`.
        stopped_by: see there.
        seconds: see there.
        guarantee: what is guaranteed; by default nothing.
        value: estimate of the state's value; by default that of the action recommended.
        sequence: actions to take one after the other.
    """
    values, best = search.values.copy(), search.recommended()
    if guarantee is None:
        guarantee = f"{type(planner).__name__} gives no guarantee."
    return _plan(
        planner,
        query,
        search,
        search.standing(best, seconds),
        values=values,
        value=float(values[best]) if value is None else value,
        stopped_by=stopped_by,
        guarantee=f"Action {query.actions[best]!r} is the best guess. {guarantee}",
        sequence=sequence,
    )


def _plan(planner: "Planner", query: Query, search: Any, found: Snapshot, **fields: Any) -> Plan:
    """A plan with what every search has."""
    search.close_tree()
    return Plan(
        actions=query.actions,
        action=found.action,
        lower=found.lower,
        upper=found.upper,
        gap=found.gap,
        samples=found.samples,
        episodes=found.episodes,
        seconds=found.seconds,
        calls=search.calls.copy(),
        horizon=search.horizon,
        planner=repr(planner),
        tree=search.tree if len(search.tree) else None,
        memory=search.memory.used,
        **fields,
    )


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


def bounded_plan(
    planner: "Planner",
    query: Query,
    search: Any,
    snapshot: Snapshot,
    stopped_by: str,
    *,
    guarantee: str,
    assumptions: tuple[str, ...],
    values: NDArray[np.float64],
    value: float | None = None,
    proven: bool = True,
) -> Plan:
    """The plan of a planner that has bounds on the values of the root's actions.

    Args:
        planner: who plans.
        query: what it was asked.
        search: its search, with `calls` and `horizon`.
        snapshot: how it stands.
        stopped_by: what ended it.
        guarantee: what is guaranteed, as a sentence that can go on from another one.
        assumptions: what that depends on.
        values: estimates of the root's actions, NaN for those never seen. In the plan they are clipped
            to their bounds.
        value: estimate of the state's value; by default the largest of the estimates, clipped to
            [max L, max U], or the middle of that if there are none.
        proven: whether the planner's own stopping rule is a certificate.
    """
    values = within(values, snapshot.lower, snapshot.upper)
    low, high = float(snapshot.lower.max()), float(snapshot.upper.max())
    if value is None:
        best = max(values[~np.isnan(values)], default=0.5 * (low + high))
        value = max(min(float(best), high), low)
    if stopped_by == "rule" and proven:
        stopped_by = "certified"
    gaps, ruled_out = search.verdicts(snapshot.lower, snapshot.upper)
    diagnosis = None
    if stopped_by != "certified" and proven:
        diagnosis = diagnosis_of(planner, query.model, search, snapshot, values, ruled_out)
    if diagnosis is not None:
        asked = f"Not certified: you asked for epsilon = {exactly(diagnosis.asked)}, but "
        guarantee = asked + guarantee[0].lower() + guarantee[1:]
    return _plan(
        planner,
        query,
        search,
        snapshot,
        values=values,
        value=value,
        certified=stopped_by == "certified",
        stopped_by=stopped_by,
        guarantee=guarantee,
        assumptions=assumptions,
        diagnosis=diagnosis,
        curve=_curve(search, snapshot),
        gaps=gaps if proven else None,
        ruled_out=ruled_out if proven else None,
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
