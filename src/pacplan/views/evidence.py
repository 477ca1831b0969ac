"""What is known of the actions of a state, ready to be drawn."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import place
from pacplan.core.words import at_least, at_most, estimated, short

# Actions that are listed one by one; the rest is summed up.
_MOST_ROWS = 16
_ROUNDED: dict[str, Callable[[Any], str]] = {
    "lower": at_least,
    "upper": at_most,
    "estimate": estimated,
    "calls": "{:,}".format,
}


def challenger(upper: NDArray[np.float64], best: int) -> int | None:
    """Index of the largest upper bound among the other actions; None if there is none."""
    others: list[int] = [i for i in range(len(upper)) if i != best]
    return max(others, key=lambda i: float(upper[i])) if others else None


class Intervals:
    """The actions of a plan, or of a snapshot of a search, as rows of a table.

    Attributes:
        best: index of the action taken.
        rival: index of its challenger; None without bounds, or without another action.
        heads: names of the columns of numbers.
        rows: the actions to list, in the user's order: all, or the strongest. Of each: its name and
            role, the numbers in words by column, and bounds and estimate, None where there are none.
        guides: role and value of the lower bound of the action taken and of the upper one of its rival.
        ticks: numbers on the axis, which holds everything that is shown.
        rest: what is said of the actions that are not listed, or "".
    """

    def __init__(self, standing: Any) -> None:
        lower, upper = standing.lower, standing.upper
        values, calls = getattr(standing, "values", None), getattr(standing, "calls", None)
        columns = {"lower": lower, "upper": upper, "estimate": values, "calls": calls}
        self._columns = {name: column for name, column in columns.items() if column is not None}
        self.heads = list(self._columns)
        self.best = place(standing.action, standing.actions)
        self.rival = None if upper is None else challenger(upper, self.best)
        strength = np.nan_to_num(np.array(values if upper is None else upper), nan=-np.inf)
        strength[self.best] = np.inf
        shown = sorted(np.argsort(-strength, kind="stable")[:_MOST_ROWS].tolist())
        parts = [x[shown] for name, x in self._columns.items() if name != "calls"]
        drawn = np.concatenate([np.zeros(0), *parts])
        drawn = drawn[np.isfinite(drawn)] if np.isfinite(drawn).any() else np.array([0.0, 1.0])
        self._low, self._high = float(drawn.min()), float(drawn.max())
        self.ticks = [self._low, 0.5 * (self._low + self._high), self._high]
        self.rows = [self._row(i, short(standing.actions[i], 60)) for i in shown]
        self.guides: list[tuple[str, float]] = []
        if self.rival is not None:
            self.guides = [("taken", lower[self.best]), ("challenger", upper[self.rival])]
        self.rest = ""
        if len(shown) < len(strength):
            self.rest = f"{len(strength) - len(shown):,} other actions are not listed"
            if upper is not None:
                most = at_most(float(np.delete(upper, shown).max()))
                self.rest += f"; their upper bounds are at most {most}"
            self.rest += "."

    def role(self, i: int) -> str:
        """What an action is in the decision: "taken", "challenger" or "other"."""
        return "taken" if i == self.best else "challenger" if i == self.rival else "other"

    def at(self, value: float) -> float:
        """Its place on the axis, as a part of the length."""
        part = (value - self._low) / (self._high - self._low) if self._high > self._low else 0.5
        return min(max(part, 0.0), 1.0)

    def _row(self, i: int, name: str) -> dict[str, Any]:
        told = {head: _ROUNDED[head](column[i]) for head, column in self._columns.items()}
        bounds = estimate = None
        if "lower" in told:
            # Upper bounds of Bracket may lie below the lower one: then there is a dot.
            low = float(self._columns["lower"][i])
            bounds = low, max(low, float(self._columns["upper"][i]))
        if "estimate" in told and not math.isnan(self._columns["estimate"][i]):
            estimate = float(self._columns["estimate"][i])
        return {
            "name": name,
            "role": self.role(i),
            "told": told,
            "bounds": bounds,
            "estimate": estimate,
        }
