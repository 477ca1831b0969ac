"""Drawings of intervals in HTML and SVG that fit any width, light or dark, without a script.

Lengths along an axis are per cent, so that text keeps its size on a phone. Colours are properties of
CSS with a default, and text has the colour around it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import place
from pacplan.core.rivals import challenger
from pacplan.core.words import at_least, at_most, estimated, short

# Where nothing says whether it is light or dark, colours that stand out from white and from black.
COLOURS = {
    "taken": "var(--taken, #2388cc)",
    "challenger": "var(--challenger, #dd6b10)",
    "other": "var(--other, #8a8a8a)",
}
# Actions that are listed one by one; the rest is summed up.
MOST_ROWS = 16
_GUIDES = {"taken": "4 3", "challenger": "1.5 3"}


@dataclass(frozen=True)
class Scale:
    """Where values lie on an axis, in per cent of its length."""

    low: float
    high: float

    def at(self, value: float) -> str:
        """The place of a value."""
        part = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return f"{100.0 * min(max(part, 0.0), 1.0):.2f}%"

    def ticks(self, most: int) -> list[float]:
        """Round numbers on the axis, at most `most` of them."""
        width = self.high - self.low
        if not width > 0.0 or not math.isfinite(width):
            return [self.low]
        rough = width / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Intervals:
    """What is known of the actions of a state, ready to be drawn.

    Attributes:
        actions: the user's actions.
        lower: their lower bounds, or None.
        upper: their upper bounds, or None.
        values: their estimates, NaN where there is none; None: not kept.
        calls: calls spent on each, or None.
        best: index of the action taken.
    """

    actions: Sequence[Any]
    lower: NDArray[np.float64] | None
    upper: NDArray[np.float64] | None
    values: NDArray[np.float64] | None
    calls: NDArray[np.int64] | None
    best: int

    @classmethod
    def of(cls, standing: Any) -> "Intervals":
        """Those of a plan, or of a snapshot of a search."""
        return cls(
            standing.actions,
            standing.lower,
            standing.upper,
            getattr(standing, "values", None),
            getattr(standing, "calls", None),
            place(standing.action, standing.actions),
        )

    @property
    def rival(self) -> int | None:
        """Index of the challenger; None without bounds, or without another action."""
        return None if self.upper is None else challenger(self.upper, self.best)

    def role(self, i: int) -> str:
        """What an action is in this decision: "taken", "challenger" or "other"."""
        return "taken" if i == self.best else "challenger" if i == self.rival else "other"

    def shown(self) -> list[int]:
        """The actions to list, in the user's order: all, or the strongest."""
        count = len(self.actions)
        if count <= MOST_ROWS:
            return list(range(count))
        strength = self.upper if self.upper is not None else self.values
        ranks = np.zeros(count) if strength is None else np.nan_to_num(strength, nan=-np.inf)
        ranks = np.where(np.arange(count) == self.best, np.inf, ranks)
        return sorted(np.argsort(-ranks, kind="stable")[:MOST_ROWS].tolist())

    def scale(self) -> Scale:
        """An axis that holds everything that is shown."""
        shown = self.shown()
        kept = [x[shown] for x in (self.lower, self.upper, self.values) if x is not None]
        values = np.concatenate(kept) if kept else np.zeros(0)
        values = values[np.isfinite(values)]
        return Scale(float(values.min()), float(values.max())) if len(values) else Scale(0.0, 1.0)


def bar(known: Intervals, i: int, scale: Scale) -> str:
    """The interval and estimate of one action, across them L of the action taken and U of its rival."""
    parts = []
    if known.lower is not None and known.upper is not None:
        if known.rival is not None:
            ends = {"taken": known.lower[known.best], "challenger": known.upper[known.rival]}
            for role, end in ends.items():
                at = scale.at(float(end))
                parts.append(
                    f'<line x1="{at}" x2="{at}" y1="0" y2="100%" stroke-width="1.2" '
                    f'stroke-dasharray="{_GUIDES[role]}" style="stroke:{COLOURS[role]}"/>'
                )
        # Upper bounds of Bracket may lie below the lower one: then there is a dot.
        left, right = float(known.lower[i]), max(float(known.lower[i]), float(known.upper[i]))
        parts.append(
            f'<line x1="{scale.at(left)}" x2="{scale.at(right)}" y1="10" y2="10" stroke-width="7" '
            f'stroke-linecap="round" style="stroke:{COLOURS[known.role(i)]};stroke-opacity:.6"/>'
        )
    if known.values is not None and not math.isnan(known.values[i]):
        parts.append(
            f'<circle cx="{scale.at(float(known.values[i]))}" cy="10" r="4" '
            f'style="fill:{COLOURS[known.role(i)]}"/>'
        )
    words = escape(interval_words(known, i))
    return (
        f'<svg width="100%" height="20" role="img" aria-label="{words}" '
        f'style="display:block;overflow:visible;min-width:9em">{"".join(parts)}</svg>'
    )


def axis(scale: Scale) -> str:
    """Round numbers below the bars."""
    marks = "".join(
        f'<line x1="{scale.at(x)}" x2="{scale.at(x)}" y1="0" y2="4" stroke="currentColor"/>'
        f'<text x="{scale.at(x)}" y="15" text-anchor="middle" font-size="11" fill="currentColor">'
        f"{x:.6g}</text>"
        for x in scale.ticks(4)
    )
    return (
        '<svg width="100%" height="18" aria-hidden="true" style="display:block;overflow:visible;'
        'min-width:9em"><line x1="0" x2="100%" y1="0.5" y2="0.5" stroke="currentColor" '
        f'stroke-opacity=".4"/>{marks}</svg>'
    )


def interval_words(known: Intervals, i: int) -> str:
    """The bounds and the estimate of an action, for those who cannot see the bar."""
    words = []
    if known.lower is not None and known.upper is not None:
        words.append(f"{at_least(float(known.lower[i]))} to {at_most(float(known.upper[i]))}")
    if known.values is not None and not math.isnan(known.values[i]):
        words.append(f"estimate {estimated(float(known.values[i]))}")
    return ", ".join(words) or "nothing is known"


def interval_table(known: Intervals) -> str:
    """A table of the actions: mark, name, bar, bounds, estimate, calls."""
    scale, bounded = known.scale(), known.lower is not None
    # Styles stand with what they style: notebooks show fragments, also of other versions of this.
    cell = (
        'style="text-align:right;padding:1px 8px;white-space:nowrap;font-variant-numeric:tabular-nums"'
    )
    named = "text-align:left;padding:1px 8px;font-weight:inherit;min-width:8em;overflow-wrap:anywhere"
    name = f'style="{named}"'
    wide = 'style="width:55%;padding:1px 8px;text-align:left"'
    heads = [f"<th {name}>action</th>", f"<th {wide}>value</th>"]
    columns = [
        *(["lower", "upper"] if bounded else []),
        *(["estimate"] if known.values is not None else []),
        *(["calls"] if known.calls is not None else []),
    ]
    heads += [f"<th {cell}>{head}</th>" for head in columns]
    rows = []
    for i in known.shown():
        role = known.role(i)
        tag = "" if role == "other" else f" {_tag(role)}"
        cells = [f'<th scope="row" {name}>{escape(short(known.actions[i], 60))}{tag}</th>']
        cells.append(f"<td {wide}>{bar(known, i, scale)}</td>")
        cells += [
            f'<td data-head="{head}" {cell}>{text}</td>'
            for head, text in zip(columns, _numbers(known, i), strict=True)
        ]
        strong = ' style="font-weight:bold"' if role == "taken" else ""
        rows.append(f'<tr class="{role}"{strong}>{"".join(cells)}</tr>')
    rows.append(
        f'<tr class="axis"><td></td><td {wide}>{axis(scale)}</td>{"<td></td>" * len(columns)}</tr>'
    )
    return (
        '<table class="intervals" '
        'style="border-collapse:collapse;table-layout:auto;width:100%;max-width:60em;font-size:inherit">'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(rows)}</tbody></table>{_rest(known)}"
    )


def _tag(role: str) -> str:
    return (
        f'<small style="white-space:nowrap"><span style="color:{COLOURS[role]}">●</span> {role}</small>'
    )


def _numbers(known: Intervals, i: int) -> list[str]:
    found = []
    if known.lower is not None and known.upper is not None:
        found += [at_least(float(known.lower[i])), at_most(float(known.upper[i]))]
    if known.values is not None:
        found.append(estimated(float(known.values[i])))
    if known.calls is not None:
        found.append(f"{int(known.calls[i]):,}")
    return found


def _rest(known: Intervals) -> str:
    """What is said of the actions that are not listed."""
    hidden = sorted(set(range(len(known.actions))) - set(known.shown()))
    if not hidden:
        return ""
    words = f"{len(hidden):,} other actions are not listed"
    if known.upper is not None:
        words += f"; their upper bounds are at most {at_most(float(known.upper[hidden].max()))}"
    return f"<p>{words}.</p>"
