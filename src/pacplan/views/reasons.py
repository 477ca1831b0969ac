"""Why this action and not another: what the gap consists of, and what would change the decision."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.views.evidence import Intervals

if TYPE_CHECKING:
    from pacplan.result import Plan


class Reasons(NamedTuple):
    """The case for the action taken.

    Attributes:
        against: what the strongest rival is, in words.
        parts: what adds up to the gap: words and amounts; empty if there is no gap, or no estimate.
        change: what would change the decision, or "".
    """

    against: str
    parts: tuple[tuple[str, float], ...] = ()
    change: str = ""


def reasons(plan: "Plan") -> Reasons:
    """The case for the action that a plan takes, from its bounds, or from its estimates alone."""
    known = Intervals(plan)
    taken = f"action {short(plan.action)}"
    if len(plan.actions) == 1:
        return Reasons(f"There is no other than {taken}.")
    if known.rival is None:
        others = plan.values.copy()
        others[known.best] = np.nan
        if np.isnan(others).all() or np.isnan(plan.values[known.best]):
            return Reasons("There are neither bounds nor estimates to compare the actions by.")
        second = int(np.nanargmax(others))
        return Reasons(
            f"The estimate of {taken} is {estimated(plan.values[known.best])}, and the largest of the "
            f"others is {estimated(others[second])}, of action {short(plan.actions[second])}. Nothing "
            "bounds the error of these estimates, so this is no proof; a planner with bounds (Atlas, "
            "Bracket, Canopy) would give one."
        )
    assert plan.lower is not None and plan.upper is not None and plan.gap is not None
    low, high = float(plan.lower[known.best]), float(plan.upper[known.rival])
    rival = f"action {short(plan.actions[known.rival])}"
    against = (
        f"The challenger of {taken} is {rival}: of all others it has the largest upper bound, "
        f"{at_most(high)}. The lower bound of {taken} is {at_least(low)}."
    )
    # U(c) - L(b) = (U(c) - V(c)) + (V(b) - L(b)) - (V(b) - V(c)), V being the estimates.
    mine, other = plan.values[[known.best, known.rival]].tolist()
    parts = [
        (f"the upper bound of {rival} lies above its estimate by", high - other),
        (f"the lower bound of {taken} lies below its estimate by", mine - low),
        (f"the estimate of {taken} is ahead of that of {rival} by (against the gap)", other - mine),
    ]
    # The gap is less than the distance of these if both bounds rest on one event.
    together = plan.gap - (high - low)
    if together < -1e-9 * (1.0 + abs(high - low)):
        words = "more is proven of both actions together than of each (against the gap)"
        parts.append((words, together))
    if plan.gap <= 0.0:
        change = "Nothing, if the bounds hold: no other action is better."
    else:
        change = (
            f"The decision would change if {rival} turned out to be worth more than {taken}. If the "
            f"bounds hold, no more than {at_most(plan.gap)} is lost then."
        )
    return Reasons(against, () if np.isnan([mine, other]).any() else tuple(parts), change)
