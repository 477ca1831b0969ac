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
        rows: the actions to list, in the user's order: all, or the strongest. Of each: its index, name
            and role, the numbers in words by column and all in one; bounds and estimate, as numbers and
            as places on the axis, in per cent of its length.
        guides: role, value and place of the lower bound of the action taken and of the upper one of its
            rival.
        ticks: places and words on the axis, which holds everything that is shown.
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
        middle = 0.5 * (self._low + self._high)
        self.ticks = [(self._at(x), f"{x:.4g}") for x in (self._low, middle, self._high)]
        self.rows = [self._row(i, short(standing.actions[i], 60)) for i in shown]
        self.guides: list[tuple[str, float, str]] = []
        if self.rival is not None:
            for i, end in ((self.best, lower[self.best]), (self.rival, upper[self.rival])):
                self.guides.append((self.role(i), float(end), self._at(end)))
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

    def _at(self, value: float) -> str:
        part = (value - self._low) / (self._high - self._low) if self._high > self._low else 0.5
        return f"{100.0 * min(max(part, 0.0), 1.0):.2f}%"

    def _row(self, i: int, name: str) -> dict[str, Any]:
        told = {head: _ROUNDED[head](column[i]) for head, column in self._columns.items()}
        row: dict[str, Any] = {"index": i, "name": name, "role": self.role(i), "told": told}
        row |= {"bounds": None, "estimate": None, "words": "nothing is known"}
        words = []
        if "lower" in told:
            # Upper bounds of Bracket may lie below the lower one: then there is a dot.
            low = float(self._columns["lower"][i])
            row["bounds"] = low, max(low, float(self._columns["upper"][i]))
            row["places"] = tuple(map(self._at, row["bounds"]))
            words.append(f"{told['lower']} to {told['upper']}")
        if "estimate" in told and not math.isnan(self._columns["estimate"][i]):
            row["estimate"] = float(self._columns["estimate"][i])
            row["dot"] = self._at(row["estimate"])
            words.append(f"estimate {told['estimate']}")
        return row | ({"words": ", ".join(words)} if words else {})
