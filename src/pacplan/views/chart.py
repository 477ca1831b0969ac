"""The map of a policy: the states, what it does there, where that leads, and where calls went."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from pacplan.core.words import short
from pacplan.policy import NONE, Policy

# States that are drawn at most, those called most; and the least likely arrow.
_MOST, _LIKELY = 60, 0.05
# Moves of the layout; how far an unlikely successor lies, in steps; and the room that a state has, in
# parts of what there would be if they lay evenly.
_MOVES, _UNLIKELY, _ROOM = 200, 3.0, 0.7
# Units of the drawing: its width, the space around the states, that between them, and their radii.
_WIDTH, _SPACE, _APART, _SMALLEST, _LARGEST = 900, 45.0, 85.0, 5.0, 19.0

Values = NDArray[np.float64]


def chart(policy: Policy) -> dict[str, Any]:
    """What assets/chart.html draws: states (that planned from is the first), arrows, and their room."""
    known = np.flatnonzero((policy.chosen != NONE).any(0))
    numbers = known[np.lexsort((-policy.spent[known], known != 0))][:_MOST]
    steps = (policy.chosen[:, numbers] != NONE).argmax(0)
    pairs = policy.chosen[steps, numbers]
    chances = policy.transitions[pairs][:, numbers].toarray()
    at, room = _spread(_places(chances))
    low, high = (bound.content[steps, numbers] for bound in (policy.lower, policy.upper))
    shades = 0.1 + 0.9 * (low - low.min()) / max(float(np.ptp(low)), 1e-300)
    rings = 1.0 + 6.0 * (high - low) / max(float((high - low).max()), 1e-300)
    share = np.sqrt(policy.spent[numbers] / policy.spent[numbers].max())
    radii = _SMALLEST + (min(_LARGEST, 0.25 * room) - _SMALLEST) * share
    outer = radii + rings
    states = [
        {
            "state": short(policy.states[number]),
            "action": short(policy.content[pair]),
            "after": None if policy.horizon is None else steps[i],
            "worth": (low[i], high[i]),
            "calls": (policy.spent[number], policy.calls[pair]),
            "x": round(float(at[i, 0]), 1),
            "y": round(float(at[i, 1]), 1),
            **{"radius": radii[i], "ring": rings[i], "outer": outer[i], "shade": f"{shades[i]:.2f}"},
        }
        for i, (number, pair) in enumerate(zip(numbers, pairs, strict=True))
    ]
    arrows = [
        _arrow(at[i], at[j], outer[i], outer[j], chances[i, j])
        for i, j in np.argwhere(chances >= _LIKELY).tolist()
        if i != j
    ]
    return {
        "width": _WIDTH,
        "height": round(float(at[:, 1].max()) + 1.3 * _SPACE),
        "least": round(4.4 * math.sqrt(len(numbers)), 1),
        "states": states,
        "arrows": [arrow for arrow in arrows if arrow is not None],
        "left_out": len(known) - len(numbers),
    }


def _places(chances: Values) -> Values:
    """Where the states lie: about as far apart as there are steps between them (classical scaling).

    The longer side lies across, the state planned from at the left.
    """
    n = len(chances)
    linked = np.maximum(chances, chances.T)
    steps = np.where(linked >= _LIKELY, 1.0, np.where(linked > 0.0, _UNLIKELY, 0.0))
    apart = shortest_path(steps, directed=False)
    apart = np.where(np.isfinite(apart), apart, apart[np.isfinite(apart)].max() + 1.0)
    centred = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centred @ apart**2 @ centred)
    # States that are alike would lie in one place for ever.
    at = 1e-3 * np.cos(np.outer(np.arange(n), (1.0, 2.0)))
    at[:, : min(n, 2)] += (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :2]
    return np.asarray(at * np.where(at[0] > 0.0, -1.0, 1.0))


def _spread(at: Values) -> tuple[Values, float]:
    """The same places in units of the drawing, none too close to another; and the room of each."""
    extent = np.maximum(np.ptp(at, axis=0), 1e-9)
    across = _WIDTH - 2.0 * _SPACE
    high = max(across * float(extent[1] / extent[0]), len(at) * _APART**2 / across)
    size = np.array([across, min(high, across)])
    room = math.sqrt(float(size.prod()) / len(at))
    at = _SPACE + (at - at.min(0)) / extent * size
    for _ in range(_MOVES):
        away = at[:, np.newaxis] - at
        now = np.linalg.norm(away, axis=2) + _ROOM * room * np.eye(len(at))
        missing = np.maximum(_ROOM * room - now, 0.0) / np.maximum(now, 1e-9)
        at = np.clip(at + 0.25 * (away * missing[..., np.newaxis]).sum(1), _SPACE, _SPACE + size)
    return at, room


def _arrow(
    start: Values, end: Values, leave: float, arrive: float, chance: float
) -> dict[str, str] | None:
    """An arrow, a little bent, so that the one back is another; None if there is no room for it."""
    way = end - start
    bend = 0.5 * (start + end) + 0.12 * np.array([way[1], -way[0]])
    half = float(np.linalg.norm(bend - start))
    if leave + arrive > 2.0 * half:
        return None
    a, b = start + leave / half * (bend - start), end + (arrive + 1.0) / half * (bend - end)
    path = f"M{a[0]:.1f},{a[1]:.1f}Q{bend[0]:.1f},{bend[1]:.1f} {b[0]:.1f},{b[1]:.1f}"
    return {"path": path, "width": f"{0.8 + 4.0 * chance:.1f}", "opacity": f"{0.3 + 0.6 * chance:.2f}"}
