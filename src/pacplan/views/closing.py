"""How the bounds of the root's actions closed in, as HTML and SVG."""

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pacplan.core.words import short
from pacplan.views.svg import COLOURS, Intervals, Scale

if TYPE_CHECKING:
    from pacplan.result import Plan

# Other actions whose bounds are drawn, the strongest ones.
_MOST_OTHERS = 10


def closing(plan: "Plan") -> str:
    """The bounds against the calls to the model, on a logarithmic axis; "" if there is no course."""
    curve = plan.curve
    if curve is None or len(curve.samples) < 2:
        return ""
    known = Intervals.of(plan)
    calls = np.log10(curve.samples.astype(np.float64))
    across = Scale(float(calls[0]), float(calls[-1]))
    roles = {i: known.role(i) for i in range(len(known.actions))}
    others = [i for i in known.shown() if roles[i] == "other"]
    others = sorted(others, key=lambda i: -curve.upper[-1, i])[:_MOST_OTHERS]
    front = [i for i in (known.rival, known.best) if i is not None]
    drawn = np.concatenate(
        [curve.lower[:, [*front, *others]], curve.upper[:, [*front, *others]]], axis=1
    )
    up = Scale(float(drawn.min()), float(drawn.max()))
    shapes = [
        _line(calls, bound[:, i], across, up, "other", 1.0)
        for i in others
        for bound in (curve.lower, curve.upper)
    ]
    for i in front:
        shapes.append(_band(calls, curve.lower[:, i], curve.upper[:, i], across, up, roles[i]))
        for bound in (curve.lower, curve.upper):
            shapes.append(_line(calls, bound[:, i], across, up, roles[i], 2.2))
    legend = [f"{escape(short(known.actions[known.best]))}, taken"]
    keys = ["taken"]
    if known.rival is not None:
        legend.append(f"{escape(short(known.actions[known.rival]))}, its challenger")
        keys.append("challenger")
    if others:
        every = len(others) + len(front) == len(known.actions)
        legend.append("the others" if every else f"{len(others)} others, the strongest")
        keys.append("other")
    swatches = "".join(
        f'<span><i style="background:{COLOURS[key]}"></i>{words}</span>'
        for key, words in zip(keys, legend, strict=True)
    )
    return (
        f'<p class="legend">{swatches}</p><div class="plot" role="img" aria-label="Lower and upper '
        f'bounds of the actions against calls to the model"><div class="up">{_upwards(up)}</div>'
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">'
        f'{"".join(shapes)}</svg><div class="across">{_decades(across, int(curve.samples[-1]))}</div>'
        "</div>"
    )


def _points(
    x: NDArray[np.float64], y: NDArray[np.float64], across: Scale, up: Scale
) -> list[tuple[float, float]]:
    def part(value: float, scale: Scale) -> float:
        return 100.0 * (value - scale.low) / ((scale.high - scale.low) or 1.0)

    return [(part(a, across), 100.0 - part(b, up)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


def _line(
    x: NDArray[np.float64], y: NDArray[np.float64], across: Scale, up: Scale, role: str, width: float
) -> str:
    return (
        f'<path d="{_path(_points(x, y, across, up))}" vector-effect="non-scaling-stroke" '
        f'style="fill:none;stroke:{COLOURS[role]};stroke-width:{width}"/>'
    )


def _band(
    x: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    across: Scale,
    up: Scale,
    role: str,
) -> str:
    there = _points(x, lower, across, up)
    back = _points(x, np.maximum(lower, upper), across, up)[::-1]
    return f'<path d="{_path(there + back)}Z" style="fill:{COLOURS[role]};fill-opacity:.13"/>'


def _upwards(scale: Scale) -> str:
    return "".join(
        f'<span style="bottom:{scale.at(value)}">{value:.6g}</span>' for value in scale.ticks(5)
    )


def _decades(scale: Scale, last: int) -> str:
    """Powers of ten, or what lies between if they are few, and the number of calls at the end."""
    marks = [10.0**k for k in range(math.ceil(scale.low), math.floor(scale.high) + 1)]
    if len(marks) < 3:
        marks = [d * 10.0**k for k in range(math.floor(scale.low), 12) for d in (1, 2, 5)]
    # Labels keep apart, on a phone as well, and most of all from the long one at the end.
    room = 0.2 * (scale.high - scale.low)
    kept: list[float] = []
    for mark in marks:
        place = math.log10(mark)
        if scale.low <= place <= scale.high - 1.7 * room and (
            not kept or place - math.log10(kept[-1]) >= room
        ):
            kept.append(mark)
    spans = [f'<span style="left:{scale.at(math.log10(x))}">{x:,.0f}</span>' for x in kept]
    return "".join([*spans, f'<span class="end">{last:,} calls</span>'])
