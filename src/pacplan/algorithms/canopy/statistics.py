"""What Canopy learns from a tree, by depth: noise, values, how often states recur; and note for later.

It steers the shapes of trees, and no bound depends on it.
"""

from typing import Any

import numpy as np

from pacplan.algorithms.canopy.learning import note
from pacplan.algorithms.canopy.shape import blended
from pacplan.compiled.jit import inlined
from pacplan.engine.tree import NONE


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
    level.values += 1.0
    level.value = blended(level.value, frame.best, level.values)
    level.scatter = blended(level.scatter, error * error, level.values + 1.0)
    note(search, h, frame.state, NONE, frame.best / level.span)
    mean = 0.0
    for j in range(frame.actions):
        mean += search.action_stats[frame.stats + j].guess / frame.actions
    for j in range(frame.actions):
        guess = search.action_stats[frame.stats + j].guess
        note(search, h, frame.state, j, (guess - mean) / level.width)


@inlined
def learn_repeats(search: Any) -> None:
    """Learn from a complete tree how often states recur, by depth."""
    for h in range(1, search.task[0].leaf):
        level = search.levels[h]
        asked, fresh = float(level.asked), float(level.fresh)
        if asked >= 2.0 and fresh > 0.0:
            again = asked - fresh
            level.trees += 1.0
            rate = 2.0 * again / (fresh * asked + fresh * again)
            level.repeats = blended(level.repeats, rate, level.trees)
