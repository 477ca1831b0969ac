"""Sampled trees, grown depth first, one call at a time (docs/canopy.md, "A tree").

At a node of depth h every action gets C_h draws, in rounds: the draws of a round share one seed. Then

    m_a = mean over C of r + gamma v(s')          A_a = gamma mean over D of ( R_(h+1) - v(s') )
    Y_a = m_a + 1{u_a < q_a} / q_a . gamma mean over D of ( J(s') - v(s') )       J = max_a Y_a

with q_a = 1 for the largest m_a, and q_a >= A_a / (R_h - m_a) for the others.
"""

from math import isnan
from typing import Any

import numpy as np

from pacplan.algorithms.canopy.constants import EXCESS, ROULETTE
from pacplan.algorithms.canopy.learning import hint, learn_node, learn_noise, locate, mixed, recall
from pacplan.algorithms.canopy.records import DRAW, EXPAND
from pacplan.algorithms.canopy.shape import blended, state_value
from pacplan.compiled.jit import inlined, kernel
from pacplan.compiled.streams import draw_seed
from pacplan.engine.calls import (
    BAD_ANSWER,
    CHUNK_DONE,
    NO_ROOM,
    break_promise,
    count_actions,
    draw_counted,
)
from pacplan.engine.tree import NONE
from pacplan.models import handles

GROWN = 13  # what `grow` returns when the tree is complete
CALL_NEEDED = 14  # ... and when it needs a call


@inlined
def open_node(search: Any, model: Any, h: int, state: int, only: int) -> int:
    """Begin a node of the tree under way: all its actions, or only one. Returns a status."""
    task, level = search.task[0], search.levels[h]
    actions = 1
    if only == NONE:
        actions, status = count_actions(search, model, state, h)
        if status != CHUNK_DONE:
            return int(status)
        task.most_actions = max(task.most_actions, actions)
    first, draws = 0, 0
    if h > task.start:
        above = search.frames[h - 1]
        first = above.stats + above.actions
        draws = above.draws + above.actions * search.levels[h - 1].kept
    continued = actions * level.kept if h + 1 < task.leaf else 0
    # Every node that is open will leave its J in the table, which must not be more than half full.
    full = 2 * (task.shared + h + 1) > search.shared.size
    if full or first + actions > search.action_stats.size or draws + continued > search.draws.size:
        task.stats = first + actions
        task.draws = draws + continued
        return NO_ROOM
    frame = search.frames[h]
    frame.state, frame.actions, frame.only = state, actions, only
    frame.stats, frame.draws, frame.phase = first, draws, DRAW
    frame.rounds = frame.turn = frame.expanded = 0
    frame.squares = frame.total = 0.0
    for j in range(actions):
        stats = search.action_stats[first + j]
        stats.m = stats.half = stats.guess = stats.squares = stats.kept = 0.0
    task.at = h
    return CHUNK_DONE


@inlined
def leaf_value(search: Any, model: Any, h: int, state: int) -> float:
    """An upper bound on the value of a state at depth h; NaN after an error."""
    settings, level = search.settings[0], search.levels[h]
    if h == settings.horizon:
        return 0.0
    _, high = handles.value_bounds(model, int(state), int(h))
    if isnan(high):
        return high
    return float(max(0.0, min(level.cap, (high - settings.low * level.span) / settings.width)))


@inlined
def state_guess(search: Any, model: Any, h: int, state: int) -> float:
    """The learnt value of a state at depth h, or the user's with what was learnt of it; NaN: error."""
    if h == search.settings[0].horizon:
        return 0.0
    span = search.levels[h].span
    hinted = hint(search, model, h, state)
    if isnan(hinted):
        return hinted
    locate(search, model, h, state)
    if hinted < np.inf:
        value = hinted + recall(search, NONE, 0.0)[0]
    else:
        value = recall(search, NONE, state_value(search.levels[h]) / span)[0]
    return float(min(max(value, 0.0), 1.0) * span)


@inlined
def draw_seeded(
    search: Any, model: Any, state: int, action: int, h: int, rng: Any
) -> tuple[int, float, bool, int]:
    """A call whose randomness comes from `search.seed`; `rng` is left as it was."""
    seed, after = search.seed, search.after
    for i in range(seed.size):
        after[i] = rng.words[i]
        rng.words[i] = seed[i]
    handles.reseed(model, int(seed[0] >> np.uint64(1)), int(seed[1] >> np.uint64(1)))
    successor, reward, ended, status = draw_counted(
        search, model, state, action, h, search.task[0].action, rng
    )
    for i in range(seed.size):
        rng.words[i] = after[i]
    return successor, reward, ended, status


@inlined
def draw_in_node(search: Any, model: Any, rng: Any) -> int:
    """The next draw of the node being worked on; returns a status."""
    task, settings, h = search.task[0], search.settings[0], search.task[0].at
    frame, after = search.frames[h], search.levels[h + 1]
    if frame.turn == 0:
        draw_seed(rng, search.seed)
    action = int(frame.turn if frame.only == NONE else frame.only)
    successor, reward, ended, status = draw_seeded(search, model, frame.state, action, h, rng)
    if status != CHUNK_DONE:
        return int(status)
    guess = after.ended if ended else state_guess(search, model, h + 1, successor)
    if isnan(guess):
        return int(break_promise(search, BAD_ANSWER, successor, 0, h + 1, 0.0))
    v = guess
    if not ended and h + 1 < task.leaf:
        v = min(max(guess, after.low), after.high)
    elif not ended:
        v = leaf_value(search, model, h + 1, successor)
        if isnan(v):
            return int(break_promise(search, BAD_ANSWER, successor, 0, h + 1, 0.0))
    x = settings.offset + settings.slope * reward
    search.action_stats[frame.stats + frame.turn].guess += x + settings.gamma * guess
    _take_in(search, h, successor, x, v, ended)
    return CHUNK_DONE


@inlined
def _take_in(search: Any, h: int, successor: int, x: float, v: float, ended: bool) -> None:
    """Add a draw to the sums of its node."""
    frame, level = search.frames[h], search.levels[h]
    stats = search.action_stats[frame.stats + frame.turn]
    z = x + search.settings[0].gamma * v
    stats.m += z
    stats.squares += z * z
    frame.total += z
    if frame.rounds < level.width // 2:
        stats.half += z
    if frame.rounds < level.kept and h + 1 < search.task[0].leaf:
        stats.kept += v
        drawn = search.draws[frame.draws + frame.turn * level.kept + frame.rounds]
        drawn.state, drawn.v, drawn.alive = successor, v, not ended
    frame.turn += 1
    if frame.turn == frame.actions:
        frame.squares += (frame.total / frame.actions) ** 2
        frame.total, frame.turn = 0.0, 0
        frame.rounds += 1


@inlined
def grow(search: Any, model: Any, ties: Any) -> int:
    """Work on the tree without a call; returns CHUNK_DONE, CALL_NEEDED, GROWN or another status."""
    task = search.task[0]
    frame, level = search.frames[task.at], search.levels[task.at]
    if frame.phase == DRAW:
        if frame.rounds < level.width:
            return CALL_NEEDED
        _weigh(search, task.at)
        return CHUNK_DONE
    if frame.turn < frame.actions:
        return _expand(search, model, ties)
    return _close(search)


@inlined
def _weigh(search: Any, h: int) -> None:
    """All draws are made: find the means, and with which action to begin."""
    task, frame, level = search.task[0], search.frames[h], search.levels[h]
    learn_noise(search, h)
    frame.top, frame.best = 0, -np.inf
    for j in range(frame.actions):
        stats = search.action_stats[frame.stats + j]
        stats.m /= level.width
        if stats.m > search.action_stats[frame.stats + frame.top].m:
            frame.top = j
    frame.phase, frame.chosen = EXPAND, frame.top
    if h + 1 == task.leaf:
        # Leaves have J = v.
        frame.best = search.action_stats[frame.stats + frame.top].m
        frame.turn = frame.actions
        return
    _start(search, h, frame.top, 1.0)


@inlined
def _start(search: Any, h: int, turn: int, q: float) -> None:
    """Begin to continue the successors of an action."""
    frame = search.frames[h]
    frame.turn, frame.q, frame.child, frame.surplus = turn, q, 0, 0.0
    frame.expanded += 1


@inlined
def _expand(search: Any, model: Any, ties: Any) -> int:
    """Continue the successors of an action, or go on to the next action."""
    task, h = search.task[0], search.task[0].at
    frame, level = search.frames[h], search.levels[h]
    while frame.child < level.kept:
        drawn = search.draws[frame.draws + frame.turn * level.kept + frame.child]
        if drawn.alive:
            slot = search.shared[_place(search.shared, task.number, h + 1, drawn.state)]
            if slot.tree != task.number:
                return int(open_node(search, model, h + 1, drawn.state, NONE))
            frame.surplus += slot.value - drawn.v
        frame.child += 1
    stats = search.action_stats[frame.stats + frame.turn]
    rest = search.settings[0].gamma * frame.surplus / level.kept
    if stats.m + rest / frame.q > frame.best:
        frame.best = stats.m + rest / frame.q
        frame.chosen = frame.turn
    _next_action(search, ties)
    return CHUNK_DONE


@inlined
def _next_action(search: Any, ties: Any) -> None:
    """Play roulette for one action after the other until one is to be continued, or all are done.

    q, the probability of being continued, is small for an action that is far behind; it depends on this
    node, and otherwise only on what was fixed before the tree.
    """
    task, h = search.task[0], search.task[0].at
    frame, level, after = search.frames[h], search.levels[h], search.levels[h + 1]
    gamma = search.settings[0].gamma
    spread = ROULETTE * (gamma * after.spread)
    turn = 0 if frame.turn == frame.top else frame.turn + 1
    while turn < frame.actions:
        stats = search.action_stats[frame.stats + turn]
        above = gamma * (after.most - stats.kept / level.kept)
        if turn != frame.top and stats.m + above > frame.best:
            q, behind = 1.0, frame.best - stats.m
            if not task.forces and behind > spread and above > 0.0:
                q = min(1.0, max(spread / behind, above / (level.most - stats.m)))
            if task.forces or ties.random() < q:
                _start(search, h, turn, q)
                return
            frame.best = max(frame.best, stats.m)
            frame.chosen = turn if frame.best == stats.m else frame.chosen
        turn += 1
    frame.turn = frame.actions


@inlined
def _close(search: Any) -> int:
    """A node is complete: its J is the value of the tree, or known to the node above."""
    task, h = search.task[0], search.task[0].at
    frame, level = search.frames[h], search.levels[h]
    if frame.best > level.most * (1.0 + EXCESS):
        raise ValueError("a tree was worth more than its bound: the proof does not cover that")
    if frame.only == NONE:
        learn_node(search, h)
    if h == task.start:
        return GROWN
    slot = search.shared[_place(search.shared, task.number, h, frame.state)]
    slot.tree, slot.h, slot.state, slot.value = task.number, h, frame.state, frame.best
    task.shared += 1
    above = search.frames[h - 1]
    place = above.draws + above.turn * search.levels[h - 1].kept + above.child
    error = frame.best - search.draws[place].v
    level.misfits += 1.0
    level.misfit = blended(level.misfit, error * error - level.jitter, level.misfits)
    task.at = h - 1
    return CHUNK_DONE


@inlined
def _place(slots: Any, tree: int, h: int, state: int) -> int:
    """Where the J of a state at a depth of a tree lies, or the free slot where it belongs."""
    place = mixed(mixed(h + 1, 0), state) & (slots.size - 1)
    while slots[place].tree == tree and (slots[place].h != h or slots[place].state != state):
        place = (place + 1) & (slots.size - 1)
    return int(place)


@kernel
def copy_shared(slots: Any, larger: Any, tree: int) -> None:
    """Copy the values that the nodes of a tree share to a larger table."""
    for i in range(slots.size):
        slot = slots[i]
        if slot.tree == tree:
            larger[_place(larger, tree, slot.h, slot.state)] = slot
