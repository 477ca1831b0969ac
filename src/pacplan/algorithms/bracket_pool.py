"""A model of what was seen, pooled by state: it steers Bracket's episodes, and no bound rests on it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan._jit import inlined, records
from pacplan.search.kernel import halted
from pacplan.search.merging import MergeTable, empty_table, find, grown, merge
from pacplan.search.room import Room
from pacplan.search.tree import NONE

# In place of a successor: the end of the episode.
ENDED = -2

STATE = np.dtype([("first", np.int64), ("actions", np.int64)])
PAIR = np.dtype([("reward", np.float64), ("n", np.int64), ("seen", np.int64)])
OUTCOME = np.dtype([("place", np.int32), ("count", np.int32)])

# Room for outcomes; what is found beyond it is not pooled.
_MOST_OUTCOMES = 8_000_000
_FIRST_STATES = 1024


class Pool(NamedTuple):
    """States by their place, each with a block of pairs, each with room for B outcomes."""

    states: Any  # records of STATE
    pairs: Any  # records of PAIR
    outcomes: Any  # records of OUTCOME, B for each pair
    values: NDArray[np.float64]  # values[place, k]: of k steps to go
    places: MergeTable  # by state, all at depth 0
    used: NDArray[np.int64]  # [states, pairs, calls at the next sweep]


class PoolArrays:
    """Owns the arrays, and makes room."""

    def __init__(self, actions: int, successors: int, horizon: int) -> None:
        states = _FIRST_STATES
        while states > 1 and states * actions * successors > _MOST_OUTCOMES:
            states //= 2
        self._used = np.zeros(3, np.int64)
        self._states = np.zeros(states, STATE)
        self._pairs = np.zeros(states * actions, PAIR)
        self._outcomes = np.zeros(len(self._pairs) * successors, OUTCOME)
        self._values = np.zeros((states, horizon + 1))
        self._places = empty_table(4 * states)

    def arrays(self) -> Pool:
        """What the kernels see; valid until the next `reserve`."""
        return Pool(
            records(self._states),
            records(self._pairs),
            records(self._outcomes),
            self._values,
            self._places,
            self._used,
        )

    def reserve(self, more: int, room: Room) -> None:
        """Make room for so many more states, up to a limit."""
        needed = int(self._used[0]) + more
        while len(self._states) < needed and 2 * len(self._outcomes) <= _MOST_OUTCOMES:
            self._double(room)

    def _double(self, room: Room) -> None:
        arrays = (self._states, self._pairs, self._outcomes, self._values)
        room.take(sum(array.nbytes for array in arrays))
        for name in ("_states", "_pairs", "_outcomes"):
            old = getattr(self, name)
            new = np.zeros(2 * len(old), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        self._places = grown(self._places, len(self._states), room)


@inlined
def find_place(pool: Pool, state: int, actions: int, prior: Any) -> int:
    """The place of a state, a new one if it was never seen; NONE where there is no room.

    `prior[k]` is the value of a new state with k steps to go.
    """
    if pool.used[0] >= pool.states.size or pool.used[1] + actions > pool.pairs.size:
        return find(pool.places, state, 0)
    place = merge(pool.places, state, 0, pool.used[0])
    if place < pool.used[0]:
        return place
    pool.states[place].first = pool.used[1]
    pool.states[place].actions = actions
    for k in range(prior.size):
        pool.values[place, k] = prior[k]
    pool.used[0] = place + 1
    pool.used[1] += actions
    return place


@inlined
def record(pool: Pool, successors: int, place: int, action: int, reward: float, after: int) -> None:
    """Count a draw of a state and action; `after` is a place, ENDED, or NONE if it is not pooled."""
    if place == NONE:
        return
    link = pool.states[place].first + action
    pair = pool.pairs[link]
    pair.reward += reward
    pair.n += 1
    base = link * successors
    k = 0
    while k < pair.seen and pool.outcomes[base + k].place != after:
        k += 1
    if k == pair.seen:
        if k == successors:
            return  # Beyond the promise: the search ends with an error, or all unpooled ones are one.
        pair.seen += 1
        pool.outcomes[base + k].place = after
        pool.outcomes[base + k].count = 0
    pool.outcomes[base + k].count += 1


@inlined
def pooled_value(
    pool: Pool,
    successors: int,
    place: int,
    action: int,
    k: int,
    gamma: float,
    prior: Any,
    ended: Any,
) -> float:
    """Plug-in estimate of an action with k steps to go.

    `prior[k]` and `ended[k]` are the values of an unknown state and of the end.
    """
    if place == NONE:
        return float(prior[k])
    link = pool.states[place].first + action
    pair = pool.pairs[link]
    if pair.n == 0:
        return float(prior[k])
    base = link * successors
    after = 0.0
    for j in range(pair.seen):
        outcome = pool.outcomes[base + j]
        if outcome.place >= 0:
            value = pool.values[outcome.place, k - 1]
        elif outcome.place == ENDED:
            value = ended[k - 1]
        else:
            value = prior[k - 1]
        after += outcome.count * value
    return float((pair.reward + prior[1]) / (pair.n + 1) + gamma * after / pair.n)


@inlined
def refresh(
    pool: Pool, successors: int, place: int, k: int, gamma: float, prior: Any, ended: Any
) -> None:
    """Renew the value of a state with k steps to go."""
    best = -np.inf
    for action in range(pool.states[place].actions):
        best = max(best, pooled_value(pool, successors, place, action, k, gamma, prior, ended))
    pool.values[place, k] = best


@inlined
def _learn_prior(pool: Pool, sigma: Any, prior: Any) -> None:
    """Value what was never seen by what was: rewards are rarer in some problems than in others."""
    total, count = 4.0, 20.0
    for link in range(pool.used[1]):
        pair = pool.pairs[link]
        if pair.n > 0:
            total += pair.reward / pair.n
            count += 1.0
    step = min(0.45 + 0.7 * total / count, 1.0)
    for k in range(prior.size):
        prior[k] = step * sigma[k]


@inlined
def sweep(
    pool: Pool, report: Any, successors: int, gamma: float, sigma: Any, prior: Any, ended: Any
) -> None:
    """Dynamic programming over all that was seen, anew whenever the calls have grown by a tenth.

    Less often where most states were seen only a few times: there is little to learn from it.
    """
    calls = report[0].calls
    if calls < pool.used[2]:
        return
    growth = 1.1 if pool.used[0] * 2 <= calls else 1.5
    pool.used[2] = int(calls * growth) + 20
    _learn_prior(pool, sigma, prior)
    for k in range(1, prior.size):
        for place in range(pool.used[0]):
            if halted(report):
                return
            refresh(pool, successors, place, k, gamma, prior, ended)
