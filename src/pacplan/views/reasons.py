"""Why this action and not another: what the gap consists of, and what would change the decision."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.views.evidence import Intervals

if TYPE_CHECKING:
    from pacplan.result import Plan


@dataclass(frozen=True)
class Reasons:
    """The case for the action taken.

    Attributes:
        against: what the strongest rival is, in words.
        parts: what adds up to the gap: words and amounts; empty if there is no gap, or no estimate.
        change: what would change the decision, or "".
    """

    against: str
    parts: tuple[tuple[str, float], ...] = ()
    change: str = ""

    @property
    def signed(self) -> list[tuple[str, str]]:
        """The parts in words, each with its sign."""
        # What is rounding error beside the rest is none.
        tiny = 1e-9 * max((abs(amount) for _, amount in self.parts), default=0.0)
        amounts = [(words, x if abs(x) > tiny else 0.0) for words, x in self.parts]
        return [(words, ("+" * (x >= 0.0) + estimated(x)).replace("-", "−")) for words, x in amounts]


def reasons(plan: "Plan") -> Reasons:
    """The case for the action that a plan takes, from its bounds, or from its estimates alone."""
    known = Intervals(plan)
    taken = f"action {short(plan.action)}"
    if len(plan.actions) == 1:
        return Reasons(f"There is no other than {taken}.")
    if known.rival is None:
        return Reasons(_of_estimates(plan, known.best, taken))
    assert plan.lower is not None and plan.upper is not None and plan.gap is not None
    low, high = float(plan.lower[known.best]), float(plan.upper[known.rival])
    rival = f"action {short(plan.actions[known.rival])}"
    against = (
        f"The challenger of {taken} is {rival}: of all others it has the largest upper bound, "
        f"{at_most(high)}. The lower bound of {taken} is {at_least(low)}."
    )
    # The gap is less than the distance of these if both bounds rest on one event.
    together = plan.gap - (high - low)
    together = together if together < -1e-9 * (1.0 + abs(high - low)) else 0.0
    if plan.gap <= 0.0:
        why = "" if together else f"even if {taken} is worth no more than its lower bound, "
        change = f"Nothing, if the bounds hold: {why}no other action is better."
    else:
        so = "together, what was seen of all actions says that" if together else "so"
        change = (
            f"The decision would change if {rival} turned out to be worth more than {taken}. If it is "
            f"the best action, and the bounds hold, it is worth at most {at_most(high)}, and {taken} "
            f"at least {at_least(low)}: {so} no more than {at_most(plan.gap)} is lost."
        )
    mine, other = plan.values[[known.best, known.rival]].tolist()
    # U(c) - L(b) = (U(c) - V(c)) + (V(b) - L(b)) - (V(b) - V(c)), V being the estimates.
    parts = [
        (f"the upper bound of {rival} lies above its estimate by", high - other),
        (f"the lower bound of {taken} lies below its estimate by", mine - low),
        (
            f"the estimate of {taken} is ahead of that of {rival} by, which counts against the gap",
            other - mine,
        ),
    ]
    if together:
        words = "more is proven of both actions together than of each, which counts against the gap"
        parts.append((words, together))
    return Reasons(against, () if np.isnan([mine, other]).any() else tuple(parts), change)


def _of_estimates(plan: "Plan", best: int, taken: str) -> str:
    """Without bounds only estimates speak."""
    others = np.where(np.arange(len(plan.actions)) == best, np.nan, plan.values)
    if np.isnan(others).all() or np.isnan(plan.values[best]):
        return "There are neither bounds nor estimates to compare the actions by."
    second = int(np.nanargmax(others))
    mine, other = float(plan.values[best]), float(others[second])
    return (
        f"The estimate of {taken} is {estimated(mine)}, and the largest of the others is "
        f"{estimated(other)}, of action {short(plan.actions[second])}: a difference of "
        f"{estimated(mine - other)}. Nothing bounds the error of these estimates, so this is no proof; "
        "a planner with bounds (Atlas, Bracket, Canopy) would give one."
    )
