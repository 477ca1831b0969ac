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
from pacplan.algorithms.canopy.learning import hint, locate, mixed, note, recall
from pacplan.algorithms.canopy.records import DRAW, EXPAND, Search
from pacplan.algorithms.canopy.shape import blended, state_value
from pacplan.compiled.jit import inlined, kernel
from pacplan.compiled.streams import draw_seed
from pacplan.engine.calls import (
    CHUNK_DONE,
    NO_ROOM,
    break_promise,
    count_actions,
    draw_counted,
)
from pacplan.engine.promises import BAD_ANSWER
from pacplan.engine.tree import NONE
from pacplan.models import handles

GROWN = 13  # what `grow` returns when the tree is complete
CALL_NEEDED = 14  # ... and when it needs a call


class ExcessError(ValueError):
    """A tree was worth more than its bound: the proof does not cover what was done.

    No tree is, unless the search was resumed from a file that somebody has changed.
    """

    def __init__(self) -> None:
        super().__init__("a tree was worth more than its bound")


@inlined
def open_node(search: Search, model: Any, h: int, state: int, only: int) -> int:
    """Begin a node of the tree under way: all its actions, or only one. Returns a status."""
    unit, level = search.unit[0], search.levels[h]
    actions = 1
    if only == NONE:
        actions, status = count_actions(search, model, state, h)
        if status != CHUNK_DONE:
            return int(status)
        unit.most_actions = max(unit.most_actions, actions)
    marks, draws = 0, 0
    if h > unit.start:
        above = search.frames[h - 1]
        marks = above.marks + above.actions
        draws = above.draws + above.actions * search.levels[h - 1].kept
    continued = actions * level.kept if h + 1 < unit.leaf else 0
    # Every node that is open will leave its J in the table, which must not be more than half full.
    full = 2 * (unit.shared + h + 1) > search.shared.size
    if full or marks + actions > search.marks.size or draws + continued > search.draws.size:
        unit.marks = marks + actions
        unit.draws = draws + continued
        return NO_ROOM
    frame = search.frames[h]
    frame.state = state
    frame.actions = actions
    frame.only = only
    frame.phase = DRAW
    frame.rounds = 0
    frame.turn = 0
    frame.marks = marks
    frame.draws = draws
    frame.expanded = 0
    frame.squares = 0.0
    frame.total = 0.0
    for j in range(actions):
        mark = search.marks[marks + j]
        mark.m = 0.0
        mark.half = 0.0
        mark.guess = 0.0
        mark.squares = 0.0
        mark.kept = 0.0
    unit.at = h
    return CHUNK_DONE


@inlined
def _acting(frame: Any, turn: int) -> int:
    """The action whose turn it is, as the model numbers it."""
    return int(turn if frame.only == NONE else frame.only)


@inlined
def leaf_value(search: Search, model: Any, h: int, state: int) -> float:
    """An upper bound on the value of a state at depth h; NaN after an error."""
    rules, level = search.rules[0], search.levels[h]
    if h == rules.horizon:
        return 0.0
    _, high = handles.value_bounds(model, int(state), int(h))
    if isnan(high):
        return high
    return float(max(0.0, min(level.cap, (high - rules.low * level.span) / rules.width)))


@inlined
def state_guess(search: Search, model: Any, h: int, state: int) -> float:
    """The learnt value of a state at depth h, or the user's with what was learnt of it; NaN: error."""
    if h == search.rules[0].horizon:
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
    search: Search, model: Any, state: int, action: int, h: int, rng: Any
) -> tuple[int, float, bool, int]:
    """A call whose randomness comes from `search.seed`; `rng` is left as it was."""
    seed, after = search.seed, search.after
    for i in range(seed.size):
        after[i] = rng.words[i]
        rng.words[i] = seed[i]
    handles.reseed(model, int(seed[0] >> np.uint64(1)), int(seed[1] >> np.uint64(1)))
    successor, reward, ended, status = draw_counted(
        search, model, state, action, h, search.unit[0].action, rng
    )
    for i in range(seed.size):
        rng.words[i] = after[i]
    return successor, reward, ended, status


@inlined
def draw_in_node(search: Search, model: Any, rng: Any) -> int:
    """The next draw of the node being worked on; returns a status."""
    unit, rules, h = search.unit[0], search.rules[0], search.unit[0].at
    frame, after = search.frames[h], search.levels[h + 1]
    if frame.turn == 0:
        draw_seed(rng, search.seed)
    successor, reward, ended, status = draw_seeded(
        search, model, frame.state, _acting(frame, frame.turn), h, rng
    )
    if status != CHUNK_DONE:
        return int(status)
    guess = after.ended if ended else state_guess(search, model, h + 1, successor)
    if isnan(guess):
        return int(break_promise(search, BAD_ANSWER, successor, 0, h + 1, 0.0))
    v = guess
    if not ended and h + 1 < unit.leaf:
        v = min(max(guess, after.low), after.high)
    elif not ended:
        v = leaf_value(search, model, h + 1, successor)
        if isnan(v):
            return int(break_promise(search, BAD_ANSWER, successor, 0, h + 1, 0.0))
    x = rules.offset + rules.slope * reward
    search.marks[frame.marks + frame.turn].guess += x + rules.gamma * guess
    _take_in(search, h, successor, x, v, ended)
    return CHUNK_DONE


@inlined
def _take_in(search: Search, h: int, successor: int, x: float, v: float, ended: bool) -> None:
    """Add a draw to the sums of its node."""
    frame, level = search.frames[h], search.levels[h]
    mark = search.marks[frame.marks + frame.turn]
    z = x + search.rules[0].gamma * v
    mark.m += z
    mark.squares += z * z
    frame.total += z
    if frame.rounds < level.width // 2:
        mark.half += z
    if frame.rounds < level.kept and h + 1 < search.unit[0].leaf:
        mark.kept += v
        drawn = search.draws[frame.draws + frame.turn * level.kept + frame.rounds]
        drawn.state = successor
        drawn.v = v
        drawn.alive = not ended
    frame.turn += 1
    if frame.turn == frame.actions:
        frame.squares += (frame.total / frame.actions) ** 2
        frame.total = 0.0
        frame.turn = 0
        frame.rounds += 1


@inlined
def grow(search: Search, model: Any, ties: Any) -> int:
    """Work on the tree without a call; returns CHUNK_DONE, CALL_NEEDED, GROWN or another status."""
    unit = search.unit[0]
    frame, level = search.frames[unit.at], search.levels[unit.at]
    if frame.phase == DRAW:
        if frame.rounds < level.width:
            return CALL_NEEDED
        _weigh(search, unit.at)
        return CHUNK_DONE
    if frame.turn < frame.actions:
        return _expand(search, model, ties)
    return _close(search)


@inlined
def _weigh(search: Search, h: int) -> None:
    """All draws are made: find the means, and with which action to begin."""
    unit, frame, level = search.unit[0], search.frames[h], search.levels[h]
    _learn_noise(search, h)
    frame.top = 0
    frame.best = -np.inf
    for j in range(frame.actions):
        mark = search.marks[frame.marks + j]
        mark.m /= level.width
        if mark.m > search.marks[frame.marks + frame.top].m:
            frame.top = j
    frame.phase = EXPAND
    frame.chosen = frame.top
    if h + 1 == unit.leaf:
        # Leaves have J = v.
        frame.best = search.marks[frame.marks + frame.top].m
        frame.turn = frame.actions
        return
    _start(search, h, frame.top, 1.0)


@inlined
def _start(search: Search, h: int, turn: int, q: float) -> None:
    """Begin to continue the successors of an action."""
    frame = search.frames[h]
    frame.turn = turn
    frame.q = q
    frame.child = 0
    frame.surplus = 0.0
    frame.expanded += 1


@inlined
def _expand(search: Search, model: Any, ties: Any) -> int:
    """Continue the successors of an action, or go on to the next action."""
    unit, h = search.unit[0], search.unit[0].at
    frame, level = search.frames[h], search.levels[h]
    while frame.child < level.kept:
        drawn = search.draws[frame.draws + frame.turn * level.kept + frame.child]
        if drawn.alive:
            after = search.levels[h + 1]
            value, found = _shared(search, h + 1, drawn.state)
            if not found:
                status = open_node(search, model, h + 1, drawn.state, NONE)
                after.fresh += status == CHUNK_DONE
                return int(status)
            after.asked += 1
            frame.surplus += value - drawn.v
        frame.child += 1
    mark = search.marks[frame.marks + frame.turn]
    rest = search.rules[0].gamma * frame.surplus / level.kept
    if mark.m + rest / frame.q > frame.best:
        frame.best = mark.m + rest / frame.q
        frame.chosen = frame.turn
    _next_action(search, unit.start, ties)
    return CHUNK_DONE


@inlined
def _next_action(search: Search, base: int, ties: Any) -> None:
    """Play roulette for one action after the other until one is to be continued, or all are done."""
    unit, h = search.unit[0], search.unit[0].at
    frame, level = search.frames[h], search.levels[h]
    gamma, most = search.rules[0].gamma, search.levels[h + 1].most
    turn = 0 if frame.turn == frame.top else frame.turn + 1
    while turn < frame.actions:
        mark = search.marks[frame.marks + turn]
        above = gamma * (most - mark.kept / level.kept)
        if turn != frame.top and mark.m + above > frame.best:
            q = _chance(search, h, mark.m, above)
            if unit.forces or ties.random() < q:
                _start(search, h, turn, q)
                return
            frame.best = max(frame.best, mark.m)
            frame.chosen = turn if frame.best == mark.m else frame.chosen
        turn += 1
    frame.turn = frame.actions


@inlined
def _chance(search: Search, h: int, m: float, above: float) -> float:
    """The probability q with which an action is expanded: small for one that is far behind."""
    if search.unit[0].forces:
        return 1.0
    level, after = search.levels[h], search.levels[h + 1]
    # Fixed before the tree, so that q depends on this node alone.
    spread = search.rules[0].gamma * after.spread
    behind = search.frames[h].best - m
    wanted = 1.0 if behind <= ROULETTE * spread else ROULETTE * spread / behind
    least = above / (level.most - m) if above > 0.0 else 1.0
    return float(min(1.0, max(wanted, least)))


@inlined
def _close(search: Search) -> int:
    """A node is complete: its J is the value of the tree, or known to the node above."""
    unit, h = search.unit[0], search.unit[0].at
    frame, level = search.frames[h], search.levels[h]
    if frame.best > level.most * (1.0 + EXCESS):
        raise ExcessError
    if frame.only == NONE:
        _learn_node(search, h)
    if h == unit.start:
        return GROWN
    _share(search, h, frame.state, frame.best)
    above = search.frames[h - 1]
    place = above.draws + above.turn * search.levels[h - 1].kept + above.child
    error = frame.best - search.draws[place].v
    level.misfits += 1.0
    level.misfit = blended(level.misfit, error * error - level.jitter, level.misfits)
    unit.at = h - 1
    return CHUNK_DONE


@inlined
def _learn_noise(search: Search, h: int) -> None:
    """Learn how much draws vary, and what the largest of several means gains by that."""
    frame, level = search.frames[h], search.levels[h]
    width = level.width
    if width < 2:
        return
    within, mean = 0.0, 0.0
    first, second, whole = -np.inf, -np.inf, -np.inf
    half = width // 2
    for j in range(frame.actions):
        mark = search.marks[frame.marks + j]
        m = mark.m / width
        within += (mark.squares / width - m * m) / frame.actions
        mean += m / frame.actions
        whole = max(whole, m)
        first = max(first, mark.half / half)
        second = max(second, (mark.m - mark.half) / (width - half))
    level.noises += 1.0
    if frame.actions > 1:
        # What all actions share does not matter to their order.
        within -= frame.squares / width - mean * mean
        drop = 0.5 * (first + second) - whole
        level.curve = blended(level.curve, max(drop, 0.0) * width, level.noises)
    noise = max(within, 0.0) * width / (width - 1)
    level.noise = blended(level.noise, noise, level.noises)


@inlined
def _learn_node(search: Search, h: int) -> None:
    frame, level = search.frames[h], search.levels[h]
    level.nodes += 1.0
    level.actions = blended(level.actions, frame.actions, level.nodes)
    if h + 1 < search.unit[0].leaf:
        level.opened = blended(level.opened, frame.expanded, level.nodes)
    error = frame.best - level.value
    level.values += 1.0
    level.value = blended(level.value, frame.best, level.values)
    level.scatter = blended(level.scatter, error * error, level.values + 1.0)
    note(search, h, frame.state, NONE, frame.best / level.span)
    mean = 0.0
    for j in range(frame.actions):
        mean += search.marks[frame.marks + j].guess / frame.actions
    for j in range(frame.actions):
        guess = search.marks[frame.marks + j].guess
        note(search, h, frame.state, j, (guess - mean) / level.width)


@inlined
def learn_repeats(search: Search) -> None:
    """Learn from a complete tree how often states recur, by depth."""
    for h in range(1, search.unit[0].leaf):
        level = search.levels[h]
        asked, fresh = float(level.asked), float(level.fresh)
        if asked >= 2.0 and fresh > 0.0:
            again = asked - fresh
            level.trees += 1.0
            rate = 2.0 * again / (fresh * asked + fresh * again)
            level.repeats = blended(level.repeats, rate, level.trees)


@inlined
def _place(slots: Any, tree: int, h: int, state: int) -> int:
    """Where the J of a state at a depth of a tree lies, or the free slot where it belongs."""
    place = mixed(mixed(h + 1, 0), state) & (slots.size - 1)
    while slots[place].tree == tree and (slots[place].h != h or slots[place].state != state):
        place = (place + 1) & (slots.size - 1)
    return int(place)


@inlined
def _shared(search: Search, h: int, state: int) -> tuple[float, bool]:
    """J of a state at a depth of this tree, if it is known."""
    tree = search.unit[0].number
    slot = search.shared[_place(search.shared, tree, h, state)]
    return slot.value, slot.tree == tree


@inlined
def _put(slots: Any, tree: int, h: int, state: int, value: float) -> None:
    slot = slots[_place(slots, tree, h, state)]
    slot.tree = tree
    slot.h = h
    slot.state = state
    slot.value = value


@inlined
def _share(search: Search, h: int, state: int, value: float) -> None:
    unit = search.unit[0]
    _put(search.shared, unit.number, h, state, value)
    unit.shared += 1


@kernel
def copy_shared(slots: Any, larger: Any, tree: int) -> None:
    """Copy the values that the nodes of a tree share to a larger table."""
    for i in range(slots.size):
        slot = slots[i]
        if slot.tree == tree:
            _put(larger, tree, slot.h, slot.state, slot.value)
