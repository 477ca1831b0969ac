"""What is known of the actions of a state, ready to be drawn."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import place
from pacplan.core.words import at_least, at_most, estimated, short

# Actions that are listed one by one; the rest is summed up.
_MOST_ROWS = 16


def challenger(upper: NDArray[np.float64], best: int) -> int | None:
    """Index of the largest upper bound among the other actions; None if there is none."""
    others: list[int] = [i for i in range(len(upper)) if i != best]
    return max(others, key=lambda i: float(upper[i])) if others else None


class Scale:
    """Where values lie on an axis, in per cent of its length."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        values = values[np.isfinite(values)]
        self.low, self.high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)

    def at(self, value: float) -> str:
        """The place of a value."""
        part = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return f"{100.0 * min(max(part, 0.0), 1.0):.2f}%"

    def ticks(self) -> list[tuple[str, str]]:
        """Places and words of at most five round numbers."""
        width = self.high - self.low
        if not width > 0.0 or not math.isfinite(width):
            return [(self.at(self.low), f"{self.low:.6g}")]
        power = 10.0 ** math.floor(math.log10(width / 4))
        step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= width / 4)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(self.at(k * step), f"{k * step:.6g}") for k in range(first, last + 1)]


class Intervals:
    """The actions of a plan, or of a snapshot of a search, as rows of a table.

    Attributes:
        best: index of the action taken.
        rival: index of its challenger; None without bounds, or without another action.
        heads: names of the columns of numbers.
        rows: the actions to list, in the user's order: all, or the strongest.
        guides: role and place of the lower bound of the action taken and of the upper one of its rival.
        scale: an axis that holds everything that is shown.
        rest: what is said of the actions that are not listed, or "".
    """

    def __init__(self, standing: Any) -> None:
        self.actions, self.lower, self.upper = standing.actions, standing.lower, standing.upper
        self.values, self.calls = getattr(standing, "values", None), getattr(standing, "calls", None)
        self.best = place(standing.action, standing.actions)
        self.rival = None if self.upper is None else challenger(self.upper, self.best)
        numbers = {
            "lower": self.lower,
            "upper": self.upper,
            "estimate": self.values,
            "calls": self.calls,
        }
        self._columns = {name: column for name, column in numbers.items() if column is not None}
        self.heads = list(self._columns)
        shown = self._shown()
        kept = [x[shown] for name, x in self._columns.items() if name != "calls"]
        self.scale = Scale(np.concatenate([np.zeros(0), *kept]))
        self.rows = list(map(self._row, shown))
        self.guides = []
        if self.rival is not None:
            self.guides = [
                ("taken", self.scale.at(self.lower[self.best])),
                ("challenger", self.scale.at(self.upper[self.rival])),
            ]
        self.rest = self._rest(np.delete(np.arange(len(self.actions)), shown))

    def role(self, i: int) -> str:
        """What an action is in this decision: "taken", "challenger" or "other"."""
        return "taken" if i == self.best else "challenger" if i == self.rival else "other"

    def _shown(self) -> list[int]:
        strength = self.values if self.upper is None else self.upper
        ranks = np.nan_to_num(np.array(strength, np.float64), nan=-np.inf)
        ranks[self.best] = np.inf
        return sorted(np.argsort(-ranks, kind="stable")[:_MOST_ROWS].tolist())

    def _row(self, i: int) -> dict[str, Any]:
        rounded = {"lower": at_least, "upper": at_most, "estimate": estimated, "calls": "{:,}".format}
        told = {name: rounded[name](column[i]) for name, column in self._columns.items()}
        bounds = dot = None
        words = []
        if self.lower is not None:
            # Upper bounds of Bracket may lie below the lower one: then there is a dot.
            right = max(self.lower[i], self.upper[i])
            bounds = self.scale.at(self.lower[i]), self.scale.at(right)
            words.append(f"{told['lower']} to {told['upper']}")
        if self.values is not None and not math.isnan(self.values[i]):
            dot = self.scale.at(self.values[i])
            words.append(f"estimate {told['estimate']}")
        said = ", ".join(words) or "nothing is known"
        name = short(self.actions[i], 60)
        return {
            "name": name,
            "role": self.role(i),
            "bounds": bounds,
            "dot": dot,
            "words": said,
            "told": told,
        }

    def _rest(self, hidden: NDArray[np.int64]) -> str:
        if not len(hidden):
            return ""
        words = f"{len(hidden):,} other actions are not listed"
        if self.upper is not None:
            words += f"; their upper bounds are at most {at_most(float(self.upper[hidden].max()))}"
        return f"{words}."
