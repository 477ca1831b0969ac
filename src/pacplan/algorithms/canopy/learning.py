"""What Canopy learns about values: it steers, and no bound depends on it.

Where states are points in space, they lie in cells of several widths; an estimate goes from wide cells
to narrow ones, and trusts each by how much was seen in it. Where states are whole numbers or no points
at all, the narrowest cell is the state itself. Each cell comes twice, once for all depths together and
once for its own. Cells live in a table that forgets those seen least.

Learnt are the value of a state (of the action NONE), relative to the largest, and the advantage of an
action over the mean of all, of which draws with a common seed say much. Where the user gave a value
function, what is learnt of a state is by how much it errs.
"""

from math import floor
from typing import Any

import numpy as np

from pacplan.algorithms.canopy.constants import KNOWN_FROM, MOST_COUNT, RESOLUTIONS, SHRINK, WAYS
from pacplan.algorithms.canopy.shape import blended
from pacplan.compiled.jit import inlined
from pacplan.engine.tree import NONE
from pacplan.models import handles

_SEED = 0x2545F491  # of hashes: one of small numbers alone would be as small
_FAR = 2.0**40  # cells from the origin: all beyond are one


@inlined
def mixed(key: int, x: int) -> int:
    """A hash of 31 bits of such a hash and any number; no product exceeds 63 bits."""
    low, high = x & 0x7FFFFFFF, (x >> 31) & 0x7FFFFFFF
    product = (key ^ low) * 0x45D9F3B + high * 0x27D4EB2F
    product = ((product ^ (product >> 32)) & 0x7FFFFFFF) * 0x27D4EB2F
    return (product ^ (product >> 29)) & 0x7FFFFFFF


@inlined
def locate(search: Any, model: Any, h: int, state: int) -> None:
    """Find the cells of a state, the widest first: of all depths, and of depth h; or NONE."""
    keys, point = search.keys, search.point
    count = handles.coordinates(model, int(state), point)
    # States of Python simulators are numbered as they are found. Of a number that nothing was learnt of
    # nothing may be recalled, not even by a collision of keys: v must depend on the state alone.
    whole = state <= search.task[0].largest
    scaled = count > 0
    for i in range(count):
        whole = whole and point[i] == floor(point[i])
        scaled = scaled and search.extent[i] > 0.0
    parts = 2.0
    for j in range(RESOLUTIONS + 2):
        key = NONE
        if j == 0 or (j == RESOLUTIONS + 1 and whole):
            key = mixed(mixed(_SEED, j), state if j > 0 else 0)
        elif j <= RESOLUTIONS and scaled:
            parts *= 2.0
            key = mixed(_SEED, j)
            for i in range(count):
                cell = (point[i] - search.origin[i]) / search.extent[i] * parts
                key = mixed(key, floor(min(_FAR, max(-_FAR, cell))))
        keys[2 * j] = key
        keys[2 * j + 1] = mixed(key, h + 1) if key != NONE else NONE


@inlined
def _doubt(j: int) -> float:
    """Observations in a cell that a wider one counts for: more in a narrow cell."""
    level = j // 2
    doubt = SHRINK if level <= 1 or level > RESOLUTIONS else SHRINK * 4.0 ** (level - 1)
    return doubt * (1.0 + j % 2)


@inlined
def hint(search: Any, model: Any, h: int, state: int) -> float:
    """The user's guess of a state's value over the largest; infinite if there is none, NaN: error."""
    level, settings = search.levels[h], search.settings[0]
    value = handles.guess(model, int(state), int(h))
    return float((value - settings.low * level.span) / (settings.width * level.span))


@inlined
def recall(search: Any, action: int, prior: float) -> tuple[float, bool]:
    """What was learnt about an action in the state located last, or about the state itself (NONE).

    And whether anything is known about it in particular.
    """
    value = prior
    known = False
    for j in range(search.keys.size):
        if search.keys[j] == NONE:
            continue
        key = mixed(search.keys[j], action + 2)
        home = int((mixed(key, 1) & (search.cells.size // WAYS - 1)) * WAYS)
        for place in range(home, home + WAYS):
            cell = search.cells[place]
            if cell.count > 0.0 and cell.key == key:
                value += cell.count / (cell.count + _doubt(j)) * (cell.centre - value)
                known = known or j >= 2 * KNOWN_FROM
                break
    return value, known


@inlined
def learn(search: Any, action: int, value: float) -> None:
    """Learn about an action in the state located last, or about the state itself (NONE)."""
    for j in range(search.keys.size):
        if search.keys[j] == NONE:
            continue
        key = mixed(search.keys[j], action + 2)
        home = int((mixed(key, 1) & (search.cells.size // WAYS - 1)) * WAYS)
        found = home
        for place in range(home, home + WAYS):
            cell = search.cells[place]
            if cell.count > 0.0 and cell.key == key:
                found = place
                break
            if cell.count < search.cells[found].count:
                found = place
        cell = search.cells[found]
        if cell.key != key:
            cell.key, cell.count, cell.centre = key, 0.0, 0.0
        cell.count = min(cell.count + 1.0, MOST_COUNT)
        cell.centre += (value - cell.centre) / cell.count


@inlined
def note(search: Any, h: int, state: int, action: int, value: float) -> None:
    """Note an observation, to be learnt when the tree or episode is done."""
    task = search.task[0]
    if task.notes < search.notes.size:
        entry = search.notes[task.notes]
        entry.h, entry.state, entry.action, entry.value = h, state, action, value
        task.notes += 1


@inlined
def learn_notes(search: Any, model: Any) -> None:
    """Learn from all that was noted."""
    task = search.task[0]
    _measure(search, model)
    for i in range(task.notes):
        task.largest = max(task.largest, search.notes[i].state)
    for i in range(task.notes):
        entry = search.notes[i]
        locate(search, model, entry.h, entry.state)
        value = entry.value
        if entry.action == NONE:
            hinted = hint(search, model, entry.h, entry.state)
            value -= hinted if hinted < np.inf else 0.0
        learn(search, entry.action, value)
    task.notes = 0


@inlined
def _measure(search: Any, model: Any) -> None:
    """Fix the widths of cells by the first states that differ in a coordinate."""
    count = handles.coordinates(model, int(search.task[0].root), search.point)
    for i in range(count):
        if search.extent[i] > 0.0:
            continue
        least = most = search.point[i]
        for j in range(search.task[0].notes):
            if handles.coordinates(model, int(search.notes[j].state), search.point) > i:
                least = min(least, search.point[i])
                most = max(most, search.point[i])
        search.origin[i] = least
        search.extent[i] = most - least
        handles.coordinates(model, int(search.task[0].root), search.point)


@inlined
def learn_noise(search: Any, h: int) -> None:
    """Learn how much draws vary, and what the largest of several means gains by that."""
    frame, level = search.frames[h], search.levels[h]
    width = level.width
    if width < 2:
        return
    within, mean = 0.0, 0.0
    first, second, whole = -np.inf, -np.inf, -np.inf
    half = width // 2
    for j in range(frame.actions):
        stats = search.action_stats[frame.stats + j]
        m = stats.m / width
        within += (stats.squares / width - m * m) / frame.actions
        mean += m / frame.actions
        whole = max(whole, m)
        first = max(first, stats.half / half)
        second = max(second, (stats.m - stats.half) / (width - half))
    level.noises += 1.0
    if frame.actions > 1:
        # What all actions share does not matter to their order.
        within -= frame.squares / width - mean * mean
        drop = 0.5 * (first + second) - whole
        level.curve = blended(level.curve, max(drop, 0.0) * width, level.noises)
    noise = max(within, 0.0) * width / (width - 1)
    level.noise = blended(level.noise, noise, level.noises)


@inlined
def learn_node(search: Any, h: int) -> None:
    """Learn from a complete node: the values of its state and of its actions, how many it opened."""
    frame, level = search.frames[h], search.levels[h]
    level.nodes += 1.0
    level.actions = blended(level.actions, frame.actions, level.nodes)
    if h + 1 < search.task[0].leaf:
        level.opened = blended(level.opened, frame.expanded, level.nodes)
    error = frame.best - level.value
    level.value = blended(level.value, frame.best, level.nodes)
    level.scatter = blended(level.scatter, error * error, level.nodes + 1.0)
    note(search, h, frame.state, NONE, frame.best / level.span)
    mean = 0.0
    for j in range(frame.actions):
        mean += search.action_stats[frame.stats + j].guess / frame.actions
    for j in range(frame.actions):
        guess = search.action_stats[frame.stats + j].guess
        note(search, h, frame.state, j, (guess - mean) / level.width)
