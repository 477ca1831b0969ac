"""The chart: states seen, their pairs, and what calls of the pairs led to.

States and pairs have numbers in the order in which they were found; the state planned from is state 0.
The pairs of a state are neighbours. A link is one successor of a pair: a state, or the end.

One kernel makes all calls: of each pair as many as it is told to (`todo`). While a round is under way
it also multiplies the wealth of the bets on the pair's claims.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import inlined, kernel
from pacplan.compiled.reference import refer
from pacplan.engine.calls import (
    ABORTED,
    CHUNK_DONE,
    NO_ROOM,
    OUTSIDE,
    SPENT,
    break_promise,
    call_model,
    count_actions,
)
from pacplan.engine.merge_table import MergeTable, has_room, merge

# Columns of functions: that of the end, and that of state n is n + 1.
END = 0
# Factors of a wealth that are multiplied before the logarithm is taken: none is below 0.1.
_FACTORS = 16

STATE = np.dtype([("key", np.int64), ("pair", np.int64), ("actions", np.int64)])
PAIR = np.dtype(
    [
        ("state", np.int64),
        ("action", np.int64),
        ("calls", np.int64),
        ("todo", np.int64),
        ("claim", np.int64),  # its first one
        ("claims", np.int64),
    ]
)
# Rewards are scaled to [0, 1].
LINK = np.dtype(
    [
        ("pair", np.int64),
        ("to", np.int64),
        ("count", np.int64),
        ("sum", np.float64),
        ("square", np.float64),
    ]
)
# That E[reward + gamma g(successor)] is at most theta, or at least: the stake is negative then.
CLAIM = np.dtype(
    [
        ("column", np.int64),  # g
        ("theta", np.float64),
        ("stake", np.float64),
        ("product", np.float64),
        ("wealth", np.float64),  # its logarithm, without the product
    ]
)
NONE = -1


class Chart(NamedTuple):
    """What the kernel works on.

    `functions[n + 1]` has the values of the functions at state n, `functions[END]` those at the end,
    and `outside` those at states that are found while a round is under way. A pair's successor has the
    key (column, pair) in `link_table`.
    """

    problem: Any
    report: Any
    calls: NDArray[np.int64]
    states: Any  # records of STATE
    pairs: Any  # records of PAIR
    links: Any  # records of LINK
    claims: Any  # records of CLAIM
    used: NDArray[np.int64]  # states, pairs, links
    listed: NDArray[np.int64]  # keys to chart at once
    most: NDArray[np.int64]  # states that there can be
    cursor: NDArray[np.int64]  # the pair being called
    state_table: MergeTable
    link_table: MergeTable
    functions: NDArray[np.float64]
    outside: NDArray[np.float64]


@kernel
def make_calls(
    search: Chart, model: Any, root: int, most_episodes: int, most_calls: int, rng: Any, ties: Any
) -> int:
    """Make the calls that are to do, each an episode, until a reason in `engine.calls` to stop."""
    search, model = refer(search), refer(model)
    report, cursor = search.report[0], search.cursor
    last = report.episodes + most_episodes
    status = _chart_listed(search, root)
    while status == CHUNK_DONE:
        status = _chart_pairs(search, model)
        while cursor[0] < search.used[1] and search.pairs[cursor[0]].todo == 0:
            cursor[0] += 1
        if status != CHUNK_DONE or report.episodes >= last or cursor[0] == search.used[1]:
            return status
        if report.calls >= most_calls:
            return SPENT
        status = _call(search, model, cursor[0], rng)
    return status


@inlined
def _chart_listed(search: Chart, root: int) -> int:
    """Chart the state planned from, and those that were listed."""
    used = search.used
    if used[0] > 0:
        return CHUNK_DONE
    if search.states.size < search.listed.size + 1 or not has_room(
        search.state_table, search.listed.size + 1
    ):
        return NO_ROOM
    _find_state(search, root)
    for i in range(search.listed.size):
        _find_state(search, search.listed[i])
    return CHUNK_DONE


@inlined
def _find_state(search: Chart, key: int) -> int:
    """The number of a state, a new one if it was never seen. There must be room."""
    used = search.used
    number = merge(search.state_table, key, 0, used[0])
    if number == used[0]:
        state = search.states[number]
        state.key, state.actions = key, 0
        for column in range(search.outside.size):
            search.functions[number + 1, column] = search.outside[column]
        used[0] += 1
    return number


@inlined
def _chart_pairs(search: Chart, model: Any) -> int:
    """Give the states that were found last their pairs."""
    used = search.used
    number = used[0]
    while number > 0 and search.states[number - 1].actions == 0:
        number -= 1
    while number < used[0]:
        state = search.states[number]
        if search.report[0].halt != 0:
            search.report[0].refused = 1
            return ABORTED
        actions, status = count_actions(search, model, state.key, 0)
        if status != CHUNK_DONE:
            return status
        if used[1] + actions > search.pairs.size:
            return NO_ROOM
        state.pair = used[1]
        for action in range(actions):
            pair = search.pairs[used[1] + action]
            pair.state, pair.action = number, action
        used[1] += actions
        state.actions = actions
        number += 1
    return CHUNK_DONE


@inlined
def _call(search: Chart, model: Any, number: int, rng: Any) -> int:
    """Call a pair, and take in the outcome."""
    used, pair = search.used, search.pairs[number]
    if (
        used[0] == search.states.size
        or used[2] == search.links.size
        or not has_room(search.state_table, 1)
        or not has_room(search.link_table, 1)
    ):
        return NO_ROOM
    key = search.states[pair.state].key
    successor, x, ended, status = call_model(search, model, key, pair.action, 0, rng)
    if status != CHUNK_DONE:
        return status
    column = END
    if not ended:
        column = _find_state(search, successor) + 1
        if used[0] > search.most[0]:
            return break_promise(search, OUTSIDE, key, pair.action, 0, float(search.most[0]))
    place = merge(search.link_table, column, number, used[2])
    link = search.links[place]
    if place == used[2]:
        link.pair, link.to = number, column
        used[2] += 1
    link.count += 1
    link.sum += x
    link.square += x * x
    pair.calls += 1
    pair.todo -= 1
    if pair.state == 0:
        search.calls[pair.action] += 1
    search.report[0].calls += 1
    search.report[0].episodes += 1
    _bet(search, pair, column, x)
    return CHUNK_DONE


@inlined
def _bet(search: Chart, pair: Any, column: int, x: float) -> None:
    """Multiply the wealth of the bets on a pair's claims."""
    problem = search.problem[0]
    reward = problem.lowest + problem.width * x
    fold = pair.todo == 0 or pair.calls % _FACTORS == 0
    for number in range(pair.claim, pair.claim + pair.claims):
        claim = search.claims[number]
        value = reward + problem.gamma * search.functions[column, claim.column]
        claim.product *= 1.0 + claim.stake * (claim.theta - value)
        if fold:
            claim.wealth += math.log(claim.product)
            claim.product = 1.0
