"""The map of a chart: the states that a policy comes by, what it does there, and where that leads."""

import math
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from pacplan.core.words import at_least, at_most, short
from pacplan.policy import NONE, Policy

# States that are drawn at most, those visited most; and the least likely arrow.
_MOST, _LIKELY = 60, 0.05
# Visits are summed up until this part is left, and over so many steps at most.
_VISITS_LEFT, _STEPS = 1e-2, 2000
# Moves of the layout; how far an unlikely successor lies, in steps; and the room that a state has, in
# parts of what there would be if they lay evenly.
_MOVES, _UNLIKELY, _ROOM = 200, 3.0, 0.7
# Units of the drawing: its width, the space around the states, that between them, and their radii.
_WIDTH, _SPACE, _APART, _SMALLEST, _LARGEST = 900, 45.0, 85.0, 5.0, 19.0

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Chart:
    """A drawing of states and arrows between them, for assets/chart.html.

    Attributes:
        width: its width.
        height: its height.
        least: its minimum width on the page, in rem.
        states: what to draw of each state; the first is the one planned from.
        arrows: where the policy leads.
        left_out: how many states are not drawn.
    """

    width: float
    height: float
    least: float
    states: list[dict[str, Any]]
    arrows: list[dict[str, str]]
    left_out: int


def chart(policy: Policy, most: int | None) -> Chart:
    """The states that the policy visits most, at most `most`."""
    visits, chances = _followed(policy)
    said = np.flatnonzero((policy.chosen != NONE).any(0))
    # The state planned from comes first.
    numbers = said[np.lexsort((-visits[said], said != 0))][: min(most or _MOST, _MOST)]
    chances = chances[numbers][:, numbers].toarray()
    at, room = _spread(_places(chances))
    first = (policy.chosen[:, numbers] != NONE).argmax(0)
    worth = policy.lower.content[first, numbers]
    shades = 0.1 + 0.9 * (worth - worth.min()) / max(float(np.ptp(worth)), 1e-300)
    largest = min(_LARGEST, 0.25 * room)
    radii = _SMALLEST + (largest - _SMALLEST) * np.sqrt(visits[numbers] / visits[numbers].max())
    rings = 1.0 + 6.0 * policy.spent[numbers] / policy.spent[numbers].max()
    outer = radii + rings
    arrows = [
        _arrow(at[i], at[j], outer[i], outer[j], chances[i, j])
        for i, j in np.argwhere(chances >= _LIKELY).tolist()
        if i != j
    ]
    states = []
    for i, number in enumerate(numbers.tolist()):
        x, y = at[i].round(1).tolist()
        sizes = {
            "x": x,
            "y": y,
            "radius": radii[i],
            "ring": rings[i],
            "outer": outer[i] + 3.0 * (i == 0),
        }
        states.append(_told(policy, number) | sizes | {"shade": f"{shades[i]:.2f}"})
    least, height = 4.4 * math.sqrt(len(numbers)), float(at[:, 1].max()) + 1.3 * _SPACE
    found = [arrow for arrow in arrows if arrow is not None]
    return Chart(_WIDTH, round(height), round(least, 1), states, found, len(said) - len(numbers))


def _followed(policy: Policy) -> tuple[Values, Any]:
    """Discounted visits of each state by the policy, and how likely it then leads to each other one."""
    pairs, states = len(policy.content), len(policy.states)
    owner, taken, now = np.zeros(pairs, np.int64), np.full(pairs, 1e-12), np.zeros(states)
    now[0] = 1.0
    for row in policy.chosen:
        owner[row[row != NONE]] = np.flatnonzero(row != NONE)
    back = policy.transitions.T.tocsr()
    for h in range(policy.horizon or _STEPS):
        row = policy.chosen[0 if policy.horizon is None else h]
        step = np.zeros(pairs)
        step[row[row != NONE]] = now[row != NONE]
        taken += step
        now = policy.gamma * (back @ step)
        if now.sum() < _VISITS_LEFT * (1.0 - policy.gamma):
            break
    visits = np.asarray(np.bincount(owner, taken, states), np.float64)
    parts = csr_array((taken / visits[owner], (owner, np.arange(pairs))), shape=(states, pairs))
    return visits, parts @ policy.transitions


def _places(chances: Values) -> Values:
    """Where the states lie: as far apart as there are steps between them (stress majorisation).

    It begins with classical scaling. The longer side lies across, the state planned from at the left.
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
    at[:, : min(n, 2)] += vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    weight = (apart + np.eye(n)) ** -2 - np.eye(n)
    solve = np.linalg.pinv(np.diag(weight.sum(1)) - weight)
    for _ in range(_MOVES):
        pull = weight * apart / np.maximum(np.linalg.norm(at[:, np.newaxis] - at, axis=2), 1e-9)
        at = solve @ (np.diag(pull.sum(1)) - pull) @ at
    at = (at - at.mean(0)) @ np.linalg.eigh(np.cov(at.T, ddof=0))[1][:, ::-1]
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


def _told(policy: Policy, number: int) -> dict[str, Any]:
    """A state, what is done there, and all there is to say of it."""
    column = policy.chosen[:, number].tolist()
    begins = [(pair, next(steps)[0]) for pair, steps in groupby(enumerate(column), lambda x: x[1])]
    runs = [(short(policy.content[pair]), pair, h) for pair, h in begins if pair != NONE]
    does = "; ".join(name + f" from step {h} on" * (len(runs) > 1) for name, _, h in runs)
    (action, pair, h), state = runs[0], short(policy.states[number])
    low, high = float(policy.lower.content[h, number]), float(policy.upper.content[h, number])
    worth = f"Worth at most {at_most(high)}, the policy earns at least {at_least(low)}"
    calls = f"{policy.spent[number]:,} calls, {policy.calls[pair]:,} of them of {action}"
    words = f"State {state}: action {does}. {worth}. {calls}."
    return {"name": short(state, 12), "action": short(action, 10), "title": words}


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
