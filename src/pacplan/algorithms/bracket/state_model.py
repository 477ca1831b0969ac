"""A model of what was seen, pooled by state: it steers Bracket's episodes; no bound depends on it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.bracket.constants import (
    GUESS_WEIGHT,
    LEAST_SPREAD,
    LEAST_WEIGHT,
    MOST_POOLED,
    NOISE,
    NOISE_DRAWS,
    POOL_CALLS,
    POOL_GROWTH,
    PRIOR_COUNT,
    PRIOR_LEAST,
    PRIOR_REWARDS,
    PRIOR_SLOPE,
    SPARSE_GROWTH,
)
from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import halted
from pacplan.engine.graph import MergeTable, empty_table, find, grown, merge
from pacplan.engine.memory import MemoryBudget
from pacplan.engine.tree import NONE

# In place of a successor: the end of the episode.
ENDED = -2

STATE = np.dtype([("first", np.int64), ("actions", np.int64)], align=True)
# A state and action; its outcomes are a list, in the order in which they were first seen.
PAIR = np.dtype(
    [
        ("reward", np.float64),  # sum of rewards; the known one itself before any call ...
        ("square", np.float64),  # ... and of their squares
        ("n", np.int64),
        ("outcome", np.int64),
    ]
)
OUTCOME = np.dtype([("place", np.int32), ("count", np.int32), ("next", np.int32)])

_FIRST_ROOM = 1024  # records


class Pool(NamedTuple):
    """States by their place, each with a block of pairs, each with a list of outcomes."""

    states: Any  # records of STATE
    pairs: Any  # records of PAIR
    outcomes: Any  # records of OUTCOME
    values: NDArray[np.float64]  # values[place, k]: with k steps to go
    guesses: NDArray[np.float64]  # the same by the user, infinite where not asked for; or empty
    weight: NDArray[np.float64]  # [draws that the prior of a reward is worth]
    places: MergeTable  # by state, all at depth 0
    # [states, pairs, outcomes, calls at the next update, 1 if there is no more room]
    used: NDArray[np.int64]


def empty_pool(horizon: int, guessed: bool) -> Pool:
    """A pool without states."""
    return Pool(
        np.zeros(0, STATE),
        np.zeros(0, PAIR),
        np.zeros(0, OUTCOME),
        np.zeros((0, horizon + 1)),
        np.zeros((0, horizon + 1 if guessed else 0)),
        np.ones(1),
        empty_table(16),
        np.zeros(5, np.int64),
    )


def grown_pool(pool: Pool, actions: int, room: MemoryBudget) -> Pool:
    """The pool, with room for another episode at least, up to a limit.

    An episode finds at most one state and one outcome per step, and `actions` pairs with each state.
    (If a model does not say how many a state has, states that have more may not be pooled.)
    """
    steps = pool.values.shape[1]
    needed = (pool.used[:3] + np.array([steps, steps * actions, steps])).tolist()
    limits = (MOST_POOLED // steps, MOST_POOLED, MOST_POOLED)
    tables = (pool.states, pool.pairs, pool.outcomes)
    rows = [_rows(*each) for each in zip(map(len, tables), needed, limits, strict=True)]
    pool.used[4] = any(more > most for more, most in zip(needed, rows, strict=True))
    states, pairs, outcomes = map(room.extend, tables, rows)
    return pool._replace(
        states=states,
        pairs=pairs,
        outcomes=outcomes,
        values=room.extend(pool.values, rows[0]),
        guesses=room.extend(pool.guesses, rows[0]),
        places=grown(pool.places, rows[0] - int(pool.used[0]), room),
    )


def _rows(rows: int, needed: int, most: int) -> int:
    """How many records to have room for."""
    return rows if needed <= rows else max(rows, min(max(needed, _FIRST_ROOM), most))


@inlined
def pool_has_room(pool: Pool, horizon: int, actions: int) -> bool:
    """Whether the pool has room for another episode of `horizon` steps, or never will."""
    states, pairs, outcomes, full = pool.used[0], pool.used[1], pool.used[2], pool.used[4] != 0
    fits = states + horizon < pool.states.size and outcomes + horizon < pool.outcomes.size
    return bool(full or (fits and pairs + (horizon + 1) * actions <= pool.pairs.size))


@inlined
def find_place(search: Any, state: int, actions: int) -> int:
    """The place of a state, a new one if it was never seen; NONE if there is no room."""
    pool = search.pool
    if pool.used[0] >= pool.states.size or pool.used[1] + actions > pool.pairs.size:
        return find(pool.places, state, 0)
    place = merge(pool.places, state, 0, pool.used[0])
    if place == pool.used[0]:
        pool.states[place].first = pool.used[1]
        pool.states[place].actions = actions
        for k in range(search.steps.size):
            pool.values[place, k] = search.steps[k].prior
        for k in range(pool.guesses.shape[1]):
            pool.guesses[place, k] = np.inf
        pool.used[0] = place + 1
        pool.used[1] += actions
    return place


@inlined
def record(pool: Pool, place: int, action: int, reward: float, after: int) -> None:
    """Count a draw of a state and action; `after` is a place, ENDED, or NONE if it is not pooled."""
    if place == NONE:
        return
    pair = pool.pairs[pool.states[place].first + action]
    last, at = NONE, pair.outcome if pair.n > 0 else NONE
    while at != NONE and pool.outcomes[at].place != after:
        last, at = at, pool.outcomes[at].next
    if at == NONE:
        at = pool.used[2]
        if at == pool.outcomes.size:
            return  # No room: it is not pooled.
        pool.used[2] = at + 1
        pool.outcomes[at].place = after
        pool.outcomes[at].next = NONE
        if last == NONE:
            pair.outcome = at
        else:
            pool.outcomes[last].next = at
    pool.outcomes[at].count += 1
    pair.reward = reward if pair.n == 0 else pair.reward + reward
    pair.square += reward * reward
    pair.n += 1


@inlined
def pooled_value(search: Any, place: int, action: int, k: int) -> float:
    """Plug-in estimate of an action with k steps to go."""
    pool, steps, gamma = search.pool, search.steps, search.settings[0].gamma
    if place == NONE:
        return float(steps.prior[k])
    pair = pool.pairs[pool.states[place].first + action]
    if pair.n == 0:
        value = steps.prior[k]
        return float(value if pool.guesses.shape[1] == 0 else min(value, pool.guesses[place, k]))
    after = 0.0
    at = pair.outcome
    while at != NONE:
        outcome = pool.outcomes[at]
        if outcome.place >= 0:
            value = pool.values[outcome.place, k - 1]
        else:
            value = steps.ended[k - 1] if outcome.place == ENDED else steps.prior[k - 1]
        after += outcome.count * value
        at = outcome.next
    weight = pool.weight[0]
    return float((pair.reward + weight * steps.prior[1]) / (pair.n + weight) + gamma * after / pair.n)


@called
def refresh(search: Any, place: int, k: int) -> None:
    """Renew the value of a state with k steps to go."""
    pool, best, calls = search.pool, -np.inf, 0.0
    first = pool.states[place].first
    for action in range(pool.states[place].actions):
        best = max(best, pooled_value(search, place, action, k))
        calls += pool.pairs[first + action].n
    if pool.guesses.shape[1] > 0 and pool.guesses[place, k] < np.inf:
        best += GUESS_WEIGHT / (GUESS_WEIGHT + calls) * (pool.guesses[place, k] - best)
    pool.values[place, k] = best


@inlined
def _learn_prior(search: Any) -> None:
    """Value what was never seen by the rewards that were: some problems pay less often than others.

    The less rewards vary from draw to draw, beside what they vary from pair to pair, the less the
    prior counts for a pair that was seen.
    """
    pool, steps = search.pool, search.steps
    total, squares, count = PRIOR_REWARDS, 0.0, PRIOR_COUNT
    noise, again = NOISE * NOISE_DRAWS, NOISE_DRAWS
    for link in range(pool.used[1]):
        pair = pool.pairs[link]
        if pair.n > 0:
            mean = pair.reward / pair.n
            total += mean
            squares += mean * mean
            count += 1.0
            noise += pair.square - pair.reward * mean
            again += pair.n - 1
    mean = total / count
    spread = max(squares / count - mean * mean, LEAST_SPREAD)
    pool.weight[0] = min(max(noise / again / spread, LEAST_WEIGHT), 1.0)
    if search.settings[0].told:
        # One visit reveals a reward, and later ones may be left out.
        pool.weight[0] = 0.0
    reward = min(PRIOR_LEAST + PRIOR_SLOPE * mean, 1.0)
    for k in range(steps.size):
        steps.prior[k] = reward * steps.sigma[k]


@inlined
def update_pool(search: Any) -> None:
    """Dynamic programming over all that was seen, repeated whenever the calls have grown by a tenth.

    Less often if most states were seen only a few times: then there is little to learn.
    """
    pool, calls = search.pool, search.report[0].calls
    if calls < pool.used[3]:
        return
    growth = POOL_GROWTH if pool.used[0] * 2 <= calls else SPARSE_GROWTH
    pool.used[3] = int(calls * growth) + POOL_CALLS
    _learn_prior(search)
    for k in range(1, search.steps.size):
        for place in range(pool.used[0]):
            if halted(search):
                return
            refresh(search, place, k)
