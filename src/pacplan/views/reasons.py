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
        against: what the strongest rival is, in a sentence.
        parts: what adds up to the gap: words and amounts; empty if there is no gap, or no estimate.
        change: what would change the decision, sentences.
    """

    against: str
    parts: tuple[tuple[str, float], ...]
    change: tuple[str, ...]

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
        return Reasons(f"There is no other than {taken}.", (), ())
    if known.rival is None:
        return _of_estimates(plan, known, taken)
    assert plan.lower is not None and plan.upper is not None and plan.gap is not None
    best, c = known.best, known.rival
    low, high = float(plan.lower[best]), float(plan.upper[c])
    rival = f"action {short(plan.actions[c])}"
    against = (
        f"The challenger of {taken} is {rival}: of all others it has the largest upper bound, "
        f"{at_most(high)}. The lower bound of {taken} is {at_least(low)}."
    )
    together = _together(plan, best, c) < 0.0
    if plan.gap <= 0.0:
        why = "" if together else f"even if {taken} is worth no more than its lower bound, "
        change: tuple[str, ...] = (f"Nothing, if the bounds hold: {why}no other action is better.",)
    else:
        so = "together, what was seen of all actions says that" if together else "so"
        change = (
            f"The decision would change if {rival} turned out to be worth more than {taken}. If it is "
            f"the best action, and the bounds hold, it is worth at most {at_most(high)}, and {taken} "
            f"at least {at_least(low)}: {so} no more than {at_most(plan.gap)} is lost.",
            *_possible(plan, best),
        )
    return Reasons(_capital(against), _parts(plan, best, c, taken, rival), change)


def _possible(plan: "Plan", best: int) -> tuple[str, ...]:
    if plan.ruled_out is None or len(plan.actions) == 2:
        return ()
    others = np.delete(plan.ruled_out, best)
    rest = "; the rest is ruled out" if others.any() else ""
    return (f"{(~others).sum():,} of {len(others):,} other actions may still be the best{rest}.",)


def _of_estimates(plan: "Plan", known: Intervals, taken: str) -> Reasons:
    """Without bounds only estimates speak."""
    values = np.where(np.arange(len(plan.actions)) == known.best, np.nan, plan.values)
    if np.isnan(values).all() or np.isnan(plan.values[known.best]):
        return Reasons("There are neither bounds nor estimates to compare the actions by.", (), ())
    second = int(np.nanargmax(values))
    ahead = float(plan.values[known.best] - values[second])
    against = (
        f"The estimate of {taken} is {estimated(float(plan.values[known.best]))}, and the largest of "
        f"the others is {estimated(float(values[second]))}, of action {short(plan.actions[second])}: a "
        f"difference of {estimated(ahead)}. Nothing bounds the error of these estimates, so this is no "
        "proof; a planner with bounds (Atlas, Bracket, Canopy) would give one."
    )
    return Reasons(_capital(against), (), ())


def _parts(
    plan: "Plan", best: int, rival: int, taken: str, other: str
) -> tuple[tuple[str, float], ...]:
    """U(c) - L(b) = (U(c) - V(c)) + (V(b) - L(b)) - (V(b) - V(c)), V being the estimates.

    The gap may be less than that.
    """
    assert plan.lower is not None and plan.upper is not None
    values = plan.values[[best, rival]]
    if np.isnan(values).any():
        return ()
    together = _together(plan, best, rival)
    words = "more is proven of both actions together than of each, which counts against the gap"
    return (
        (
            f"the upper bound of {other} lies above its estimate by",
            float(plan.upper[rival] - values[1]),
        ),
        (f"the lower bound of {taken} lies below its estimate by", float(values[0] - plan.lower[best])),
        (
            f"the estimate of {taken} is ahead of that of {other} by, which counts against the gap",
            -float(values[0] - values[1]),
        ),
        *(((words, together),) if together < 0.0 else ()),
    )


def _together(plan: "Plan", best: int, rival: int) -> float:
    """What the gap differs from U(c) - L(b) by, if it is less because both bounds rest on one event."""
    assert plan.lower is not None and plan.upper is not None and plan.gap is not None
    apart = float(plan.upper[rival] - plan.lower[best])
    return plan.gap - apart if plan.gap < apart - 1e-9 * (1.0 + abs(apart)) else 0.0


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
