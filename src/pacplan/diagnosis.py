"""Diagnosis: why a plan was not certified, what it would take, and what to try."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pacplan.core.words import at_most, exactly

# A curve is judged by its points from this part of the calls on, and by no fewer points than that.
_RECENT = 1.0 / 8.0
_LEAST_POINTS = 4
# A gap that falls with a lower power of the calls has come to rest.
_FLAT = 0.1
# Calls that have to grow by a larger factor, as a logarithm, lie too far ahead, or out of sight.
_FAR = math.log(50.0)
_HOPELESS = math.log(1e6)


@dataclass(frozen=True)
class Advice:
    """Something to try.

    Attributes:
        setting: the setting of the planner to change.
        value: its new value; None if only you know it.
        why: when or why it helps.
    """

    setting: str
    value: str | float | None
    why: str

    def text(self) -> str:
        """In words, as an argument of Python."""
        value = f'"{self.value}"' if isinstance(self.value, str) else "..."
        if isinstance(self.value, float):
            value = exactly(self.value)
        return f"{self.setting}={value} ({self.why})"


@dataclass(frozen=True)
class Diagnosis:
    """Why a plan is not certified, as the search measured it.

    Attributes:
        asked: the requested accuracy.
        reached: the proven accuracy.
        goal: "action" or "value", what it is the accuracy of.
        calls: calls to the model so far.
        causes: clauses: what the gap consists of.
        calls_needed: total calls at this rate, a rough guess; None if unknown.
        outlook: the same in words.
        advice: what to try.
    """

    asked: float
    reached: float
    goal: str
    calls: int
    causes: tuple[str, ...]
    calls_needed: int | None
    outlook: str
    advice: tuple[Advice, ...]

    @property
    def headline(self) -> str:
        """What was asked for, and what is proven."""
        known = f"the action is only known to be within {at_most(self.reached)} of optimal"
        if self.goal == "value":
            known = f"the value is only known within {at_most(self.reached)}"
        return f"Not certified: you asked for epsilon = {exactly(self.asked)}, but {known}."

    def explanation(self) -> str:
        """The rest: causes, outlook, advice."""
        lines = [f"Why: {'; '.join(self.causes)}."] if self.causes else []
        lines.append(f"Outlook: {self.outlook}.")
        if self.advice:
            lines.append(f"Try: {'; '.join(each.text() for each in self.advice)}.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.headline}\n{self.explanation()}"


def outlook(points: NDArray[np.float64], asked: float, apart: float = 0.0) -> tuple[int | None, str]:
    """The calls it takes to reach an accuracy, or None, and that in words.

    The gap tends to -apart. Fits log(gap + apart) = c - s log(calls) to the later points of a curve:
    at this rate it takes calls ((gap + apart) / (asked + apart))^(1/s) in all.

    Args:
        points: rows of calls and gap, in the order of time; the last is now.
        asked: the gap to reach, more than 0.
        apart: by how much the action seems to be better than its rival.
    """
    now, gap = points[-1] + (0.0, apart)
    recent = points[(points[:, 0] >= _RECENT * now) & (points[:, 1] > -apart)]
    if len(recent) < _LEAST_POINTS or recent[0, 0] * 2.0 > now:
        return None, "too few calls to tell; raise the budget"
    slope = float(np.polyfit(np.log(recent[:, 0]), np.log(recent[:, 1] + apart), 1)[0])
    growth = math.log(gap / (asked + apart)) / -slope if slope < -_FLAT else math.inf
    if growth > _HOPELESS:
        return None, "the gap has stopped shrinking; this run is unlikely to finish"
    needed = round(_rounded_up(now * math.exp(growth)))
    hedge = (
        "a rough guess"
        if growth <= _FAR
        else "too far ahead to trust; run it longer for a better guess"
    )
    return needed, f"at this rate about {needed:,} calls in all, {hedge}"


def _rounded_up(value: float) -> float:
    """With two digits; up, so that a forecast is no less than the calls already made."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
