"""New nodes and pairs of Bracket's tree, with the bounds that they have before any visit."""

from math import log
from typing import Any

import numpy as np

from pacplan.algorithms.betting.returns import raise_floor
from pacplan.algorithms.bracket.constants import PRIOR
from pacplan.algorithms.bracket.state_model import ENDED, find_place, refresh
from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import CHUNK_DONE, break_promise
from pacplan.engine.promises import BAD_ANSWER
from pacplan.engine.tree import NONE, add_node, add_pair
from pacplan.models import handles


@inlined
def plant_root(search: Any, model: Any, state: int) -> int:
    """Make the root; returns a status."""
    settings, tree, actions = search.settings[0], search.tree, search.root.size
    add_node(tree, state, actions, 0.0, 0.0)
    status = _cap(search, model, 0, 0)
    root = tree.nodes[0]
    root.place = find_place(search, state, actions)
    root.branch = NONE
    if status == CHUNK_DONE:
        status = _guess(search, model, 0, 0)
    for action in range(actions):
        arm = search.root[action]
        arm.upper = root.cap
        raise_floor(arm, settings.floor)
        arm.estimate = PRIOR * root.cap
        arm.penalty = settings.least
        arm.asked = settings.log_share
        arm.pair = NONE
    return status


@inlined
def _cap(search: Any, model: Any, at: int, h: int) -> int:
    """Limit the value of a new node by what the user knows; returns a status."""
    node, settings, span = search.tree.nodes[at], search.settings[0], search.levels[h].span
    # Whatever the user's function does, the node it leaves behind is valid.
    node.cap = node.upper = span
    _, high = handles.value_bounds(model, node.state, h)
    if np.isnan(high):
        return break_promise(search, BAD_ANSWER, node.state, 0, h, 0.0)
    known = (min(high, settings.most_value) - settings.low * span) / settings.width
    node.cap = node.upper = max(0.0, min(span, known))
    return CHUNK_DONE


@inlined
def _guess(search: Any, model: Any, at: int, h: int) -> int:
    """Let the pool know the user's guess of a new node's value; returns a status."""
    node, settings, pool, steps = search.tree.nodes[at], search.settings[0], search.pool, search.steps
    if pool.guesses.shape[1] == 0 or node.place < 0:
        return CHUNK_DONE
    k = settings.horizon - h
    value = handles.guess(model, node.state, h)
    if np.isnan(value):
        return break_promise(search, BAD_ANSWER, node.state, 0, h, 0.0)
    guess = (value - settings.low * steps.sigma[k]) / settings.width
    pool.guesses[node.place, k] = min(max(guess, 0.0), steps.sigma[k])
    refresh(search, node.place, k)
    return CHUNK_DONE


@called
def _open_pair(search: Any, at: int, action: int) -> int:
    """A new pair, without bets."""
    link = add_pair(search.tree, at, action)
    search.tree.pairs[link].guess = 1.0
    for j in range(search.opening.size):
        search.bets[link, j] = search.opening[j]
    return link


@inlined
def add_unvisited(search: Any, at: int, action: int, h: int) -> int:
    """A pair for an action that is tried for the first time, at depth h."""
    link = _open_pair(search, at, action)
    pair = search.tree.pairs[link]
    pair.upper = search.tree.nodes[at].cap
    pair.estimate = min(pair.upper, search.steps.prior[search.settings[0].horizon - h])
    if at == 0:
        search.root[action].pair = link
    return link


@inlined
def settle(
    search: Any, model: Any, at: int, child: int, h: int, link: int, rank: int, ended: bool
) -> int:
    """Fill in a new node, the `rank`-th outcome of pair `link` of node `at` at depth h.

    Returns a status.
    """
    tree, settings, steps = search.tree, search.settings[0], search.steps
    node, left = tree.nodes[child], settings.horizon - h - 1
    node.depth = h + 1
    node.branch = search.decision[0].play
    settings.widest = max(settings.widest, rank)
    # All unseen outcomes share one history of d.
    node.drift = tree.pairs[link].drift
    if ended:
        node.place = ENDED
        node.estimate = node.upper = steps.ended[left]
        return CHUNK_DONE
    node.place = find_place(search, node.state, node.actions)
    if settings.least_count > 0:
        # log(1/w), w = w(at) / (rank (rank + 1)).
        node.price = tree.nodes[at].price + log(rank * (rank + 1.0))
    status = _cap(search, model, child, h + 1)
    if status == CHUNK_DONE:
        status = _guess(search, model, child, h + 1)
    node.estimate = steps.prior[left]
    if node.place != NONE:
        node.estimate = search.pool.values[node.place, left]
    node.estimate = min(node.cap, node.estimate)
    return status
