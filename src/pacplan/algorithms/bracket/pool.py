"""What was seen, by state, and estimates made of it. They steer; no bound depends on them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.bracket import constants
from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import halted
from pacplan.engine.memory import MemoryBudget
from pacplan.engine.merge_table import MergeTable, empty_table, find, grown, merge
from pacplan.engine.root_rules import largest
from pacplan.engine.tree import NONE

# In place of a successor: the end of the episode.
ENDED = -2

STATE = np.dtype([("first", np.int64), ("actions", np.int64)], align=True)
# A state and action; its outcomes are a list, in the order in which they were first seen.
PAIR = np.dtype(
    [
        ("reward", np.float64),  # sum of rewards ...
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
    values: NDArray[np.float64]  # values[place, h]: at depth h
    guesses: NDArray[np.float64]  # the same by the user, infinite where not asked for; or empty
    places: MergeTable  # by state, all at depth 0
    used: NDArray[np.int64]  # how many states, pairs, outcomes


def empty_pool(horizon: int, guessed: bool) -> Pool:
    """A pool without states."""
    states, pairs, outcomes = (np.zeros(0, kind) for kind in (STATE, PAIR, OUTCOME))
    values, guesses = np.zeros((0, horizon + 1)), np.zeros((0, (horizon + 1) * guessed))
    return Pool(states, pairs, outcomes, values, guesses, empty_table(16), np.zeros(3, np.int64))


def grown_pool(pool: Pool, settings: Any, room: MemoryBudget) -> Pool:
    """The pool, with room for another episode at least, up to a limit.

    An episode finds at most one state and one outcome per step, and `most_actions` pairs with each
    state. (If a model does not say how many a state has, states that have more may not be pooled.)
    """
    steps = pool.values.shape[1]
    limits = np.array([constants.MOST_POOLED // steps, constants.MOST_POOLED, constants.MOST_POOLED])
    needed = pool.used + np.array([steps, steps * settings["most_actions"], steps])
    settings["pool_full"] = (needed > limits).any()
    rows = np.minimum(np.maximum(needed, _FIRST_ROOM), limits).tolist()
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
    """The place of a state, a new one if it was never seen; NONE if there is no room."""
    pool = search.pool
    if pool.used[0] >= pool.states.size or pool.used[1] + actions > pool.pairs.size:
        return find(pool.places, state, 0)
    place = merge(pool.places, state, 0, pool.used[0])
    if place == pool.used[0]:
        pool.states[place].first = pool.used[1]
        pool.states[place].actions = actions
        for h in range(search.levels.size):
            pool.values[place, h] = search.levels[h].prior
        for h in range(pool.guesses.shape[1]):
            pool.guesses[place, h] = np.inf
        pool.used[0] = place + 1
        pool.used[1] += actions
    return place


@inlined
def note_in_pool(
    search: Any, at: int, action: int, h: int, successor: int, ended: bool, child: int, x: float
) -> None:
    """Count a call in the pool."""
    settings, pool, here = search.settings[0], search.pool, search.tree.nodes[at].place
    after = ENDED
    if child != NONE:
        after = search.tree.nodes[child].place
    elif not ended and settings.same_actions:
        after = find_place(search, successor, search.root.size)
    elif not ended:
        # No action is taken in this state, so the model is not asked for its actions.
        after = find(pool.places, successor, 0)
    # After the last step a state may be new to the pool. It is not counted as an outcome without a
    # place then, since later draws of the same state may have one.
    if here == NONE or (after == NONE and h + 1 == settings.horizon):
        return
    pair = pool.pairs[pool.states[here].first + action]
    last, outcome = NONE, pair.outcome if pair.n > 0 else NONE
    while outcome != NONE and pool.outcomes[outcome].place != after:
        last, outcome = outcome, pool.outcomes[outcome].next
    if outcome == NONE:
        outcome = pool.used[2]
        if outcome == pool.outcomes.size:
            return
        pool.used[2] = outcome + 1
        pool.outcomes[outcome].place = after
        pool.outcomes[outcome].next = NONE
        if last == NONE:
            pair.outcome = outcome
        else:
            pool.outcomes[last].next = outcome
    pool.outcomes[outcome].count += 1
    pair.reward = x if pair.n == 0 else pair.reward + x
    pair.square += x * x
    pair.n += 1


@inlined
def pooled_value(search: Any, place: int, action: int, h: int) -> float:
    """Plug-in estimate of an action at depth h."""
    pool, levels, settings = search.pool, search.levels, search.settings[0]
    if place == NONE:
        return float(levels[h].prior)
    pair = pool.pairs[pool.states[place].first + action]
    if pair.n == 0:
        value = levels[h].prior
        return float(value if pool.guesses.shape[1] == 0 else min(value, pool.guesses[place, h]))
    after = 0.0
    at = pair.outcome
    while at != NONE:
        outcome = pool.outcomes[at]
        if outcome.place >= 0:
            value = pool.values[outcome.place, h + 1]
        else:
            value = levels[h + 1].ended if outcome.place == ENDED else levels[h + 1].prior
        after += outcome.count * value
        at = outcome.next
    weight = settings.prior_draws
    reward = pair.reward + weight * levels[settings.horizon - 1].prior
    return float(reward / (pair.n + weight) + settings.gamma * after / pair.n)


@called
def refresh_state(search: Any, place: int, h: int) -> None:
    """Renew the value of a state at depth h."""
    pool, best, calls = search.pool, -np.inf, 0.0
    first = pool.states[place].first
    for action in range(pool.states[place].actions):
        best = max(best, pooled_value(search, place, action, h))
        calls += pool.pairs[first + action].n
    if pool.guesses.shape[1] > 0 and pool.guesses[place, h] < np.inf:
        weight = constants.GUESS_WEIGHT
        best += weight / (weight + calls) * (pool.guesses[place, h] - best)
    pool.values[place, h] = best


@inlined
def update_pool(search: Any) -> None:
    """Learn the prior, then dynamic programming over all that was seen, as calls grow by a tenth.

    Less often if most states were seen only a few times: then there is little to learn. What was never
    seen is valued by the rewards that were, since some problems pay less often than others. The less
    rewards vary from draw to draw, beside what they vary from pair to pair, the less the prior counts
    for a pair that was seen.
    """
    pool, levels, settings = search.pool, search.levels, search.settings[0]
    calls = search.report[0].calls
    if calls < settings.pool_due:
        return
    growth = constants.POOL_GROWTH if pool.used[0] * 2 <= calls else constants.SPARSE_GROWTH
    settings.pool_due = int(calls * growth) + constants.POOL_CALLS
    total, squares, count = constants.PRIOR_REWARDS, 0.0, constants.PRIOR_COUNT
    noise, again = constants.NOISE * constants.NOISE_DRAWS, constants.NOISE_DRAWS
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
    spread = max(squares / count - mean * mean, constants.LEAST_SPREAD)
    # If one visit reveals a reward, the prior says nothing more.
    draws = 0.0 if settings.told else min(max(noise / again / spread, constants.LEAST_WEIGHT), 1.0)
    settings.prior_draws = draws
    prior = min(constants.PRIOR_LEAST + constants.PRIOR_SLOPE * mean, 1.0)
    for h in range(levels.size):
        levels[h].prior = prior * levels[h].span
    for h in range(settings.horizon - 1, -1, -1):
        for place in range(pool.used[0]):
            if halted(search):
                return
            refresh_state(search, place, h)


@inlined
def score_actions(search: Any, at: int, h: int) -> int:
    """Put estimates of a node's actions, from tree and pool together, and their pairs, into `scratch`.

    Returns how many; 0 if there is no room for them yet.
    """
    tree, scratch, node = search.tree, search.scratch, search.tree.nodes[at]
    if node.actions > scratch.size:
        return 0
    for action in range(node.actions):
        scratch.score[action] = pooled_value(search, node.place, action, h)
        scratch.link[action] = NONE
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        # What was seen after this history counts more than what the pool says of its state.
        pooled, weight = scratch.score[pair.action], pair.n + constants.POOL_WEIGHT
        scratch.score[pair.action] = (pair.n * pair.estimate + constants.POOL_WEIGHT * pooled) / weight
        scratch.link[pair.action] = link
        link = pair.sibling
    return int(node.actions)


@inlined
def refresh_estimates(search: Any, at: int, link: int, h: int) -> None:
    """Renew the estimates of a node at depth h and of the pair that was visited in it."""
    tree, settings = search.tree, search.settings[0]
    node, pair = tree.nodes[at], tree.pairs[link]
    if node.place >= 0:
        refresh_state(search, node.place, h)
    estimate = pair.reward
    if not settings.told:
        weight = settings.prior_draws
        prior = search.levels[settings.horizon - 1].prior
        estimate = (pair.reward + weight * prior) / (pair.n + weight)
    if h + 1 < settings.horizon:
        total = 0.0
        outcome = pair.child
        while outcome != NONE:
            after = tree.nodes[outcome]
            total += after.count * after.estimate
            outcome = after.sibling
        estimate += settings.gamma * total / pair.n
    pair.estimate = estimate
    count = score_actions(search, at, h)
    if count > 0:
        node.estimate = largest(search.scratch.score[:count])
