"""What was seen, by state, and estimates made of it. They steer; no bound depends on them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.bracket.constants import GUESS_WEIGHT, POOL_CALLS, POOL_GROWTH, PRIOR
from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import halted
from pacplan.engine.memory import MemoryBudget
from pacplan.engine.merge_table import MergeTable, empty_table, find, grown, merge
from pacplan.engine.tree import NONE

# In place of a successor: the end of the episode.
ENDED = -2

STATE = np.dtype([("first", np.int64), ("actions", np.int64)], align=True)
# A state and action; its outcomes are a list, in the order in which they were first seen.
PAIR = np.dtype([("reward", np.float64), ("n", np.int64), ("outcome", np.int64)])
# `place` is that of the successor: ENDED, or NONE if it has none.
OUTCOME = np.dtype([("place", np.int32), ("count", np.int32), ("next", np.int32)])

_FIRST_ROOM = 1024  # records


class Pool(NamedTuple):
    """States by their place, each with a block of pairs, each with a list of outcomes."""

    states: Any  # records of STATE
    pairs: Any  # records of PAIR
    outcomes: Any  # records of OUTCOME
    values: NDArray[np.float64]  # values[place, h]: at depth h
    guesses: NDArray[np.float64]  # the same by the user, infinite where not asked for; or empty
    places: MergeTable  # by state, all at depth 0
    used: NDArray[np.int64]  # how many states, pairs, outcomes


def empty_pool(horizon: int, guessed: bool) -> Pool:
    """A pool without states."""
    states, pairs, outcomes = (np.zeros(0, kind) for kind in (STATE, PAIR, OUTCOME))
    values, guesses = np.zeros((0, horizon + 1)), np.zeros((0, (horizon + 1) * guessed))
    return Pool(states, pairs, outcomes, values, guesses, empty_table(16), np.zeros(3, np.int64))


def grown_pool(pool: Pool, most_actions: int, room: MemoryBudget) -> Pool:
    """The pool, with room for another episode at least.

    That finds at most one state and one outcome per step, and `most_actions` pairs with each state.
    """
    steps = pool.values.shape[1]
    rows = np.maximum(pool.used + np.array([steps, steps * most_actions, steps]), _FIRST_ROOM).tolist()
    states, pairs, outcomes = map(room.extend, pool[:3], rows)
    return pool._replace(
        states=states,
        pairs=pairs,
        outcomes=outcomes,
        values=room.extend(pool.values, len(states)),
        guesses=room.extend(pool.guesses, len(states)),
        places=grown(pool.places, len(states) - int(pool.used[0]), room),
    )


@inlined
def find_place(search: Any, state: int, actions: int) -> int:
    """The place of a state, a new one if it was never seen.

    NONE if it has more actions than any before it, so that there may be no room in this episode.
    """
    pool = search.pool
    if pool.used[1] + actions > pool.pairs.size:
        return find(pool.places, state, 0)
    place = merge(pool.places, state, 0, pool.used[0])
    if place == pool.used[0]:
        pool.states[place].first = pool.used[1]
        pool.states[place].actions = actions
        for h in range(search.levels.size):
            pool.values[place, h] = PRIOR * search.levels[h].span
        for h in range(pool.guesses.shape[1]):
            pool.guesses[place, h] = np.inf
        pool.used[0] = place + 1
        pool.used[1] += actions
    return place


@inlined
def note_in_pool(search: Any, at: int, action: int, after: int, x: float) -> None:
    """Count a call of an action of node `at` that paid x and led to the place `after`."""
    pool, here = search.pool, search.tree.nodes[at].place
    if here == NONE:
        return
    pair = pool.pairs[pool.states[here].first + action]
    last, outcome = NONE, pair.outcome if pair.n > 0 else NONE
    while outcome != NONE and pool.outcomes[outcome].place != after:
        last, outcome = outcome, pool.outcomes[outcome].next
    if outcome == NONE:
        outcome = pool.used[2]
        pool.used[2] = outcome + 1
        pool.outcomes[outcome].place = after
        pool.outcomes[outcome].next = NONE
        if last == NONE:
            pair.outcome = outcome
        else:
            pool.outcomes[last].next = outcome
    pool.outcomes[outcome].count += 1
    pair.reward += x
    pair.n += 1


@inlined
def pooled_value(search: Any, place: int, action: int, h: int) -> float:
    """Plug-in estimate of an action at depth h: a reward counts with one draw of what is expected."""
    pool, levels = search.pool, search.levels
    value = PRIOR * levels[h].span
    if place == NONE:
        return float(value)
    pair = pool.pairs[pool.states[place].first + action]
    if pair.n == 0:
        return float(value if pool.guesses.shape[1] == 0 else min(value, pool.guesses[place, h]))
    after = 0.0
    at = pair.outcome
    while at != NONE:
        outcome = pool.outcomes[at]
        if outcome.place >= 0:
            value = pool.values[outcome.place, h + 1]
        else:
            value = levels[h + 1].ended if outcome.place == ENDED else PRIOR * levels[h + 1].span
        after += outcome.count * value
        at = outcome.next
    return float((pair.reward + PRIOR) / (pair.n + 1) + search.settings[0].gamma * after / pair.n)


@called
def refresh_state(search: Any, place: int, h: int) -> None:
    """Renew the value of a state at depth h."""
    pool, best, calls = search.pool, -np.inf, 0.0
    first = pool.states[place].first
    for action in range(pool.states[place].actions):
        best = max(best, pooled_value(search, place, action, h))
        calls += pool.pairs[first + action].n
    if pool.guesses.shape[1] > 0 and pool.guesses[place, h] < np.inf:
        best += GUESS_WEIGHT / (GUESS_WEIGHT + calls) * (pool.guesses[place, h] - best)
    pool.values[place, h] = best


@inlined
def update_pool(search: Any) -> None:
    """Dynamic programming over all that was seen, whenever the calls have grown by a half."""
    pool, settings, calls = search.pool, search.settings[0], search.report[0].calls
    if calls < settings.pool_due:
        return
    settings.pool_due = int(calls * POOL_GROWTH) + POOL_CALLS
    for h in range(settings.horizon - 1, -1, -1):
        for place in range(pool.used[0]):
            if halted(search):
                return
            refresh_state(search, place, h)
