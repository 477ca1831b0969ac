"""New nodes and pairs of the tree, and the outcome of a call with its d."""

from math import log
from typing import Any

import numpy as np

from pacplan.algorithms.bracket.pool import ENDED, find_place, refresh_state
from pacplan.algorithms.bracket.upper_bound import best_outcome
from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import BAD_ANSWER, CHUNK_DONE, break_promise, follow
from pacplan.engine.tree import NONE, add_pair
from pacplan.models import handles


@inlined
def fill_in(search: Any, model: Any, at: int, h: int) -> int:
    """Give a new node its place in the pool, and what the user knows or guesses; returns a status."""
    node, level = search.tree.nodes[at], search.levels[h]
    settings, pool = search.settings[0], search.pool
    node.place = find_place(search, node.state, node.actions)
    # Whatever the user's functions do, the node they leave behind is valid.
    node.cap = node.upper = level.span
    _, high = handles.value_bounds(model, node.state, h)
    if np.isnan(high):
        return break_promise(search, BAD_ANSWER, node.state, 0, h, 0.0)
    known = (min(high, settings.most_value) - settings.low * level.span) / settings.width
    node.cap = node.upper = max(0.0, min(level.span, known))
    if pool.guesses.shape[1] > 0 and node.place != NONE:
        value = handles.guess(model, node.state, h)
        if np.isnan(value):
            return break_promise(search, BAD_ANSWER, node.state, 0, h, 0.0)
        guess = (value - settings.low * level.span) / settings.width
        pool.guesses[node.place, h] = min(max(guess, 0.0), level.span)
        refresh_state(search, node.place, h)
    return CHUNK_DONE


@called
def add_unvisited(search: Any, at: int, action: int, h: int) -> int:
    """A pair for an action that is tried for the first time, at depth h, without bets."""
    link = add_pair(search.tree, at, action)
    pair = search.tree.pairs[link]
    pair.guess = 1.0
    for j in range(search.opening.size):
        search.bets[link, j] = search.opening[j]
    pair.upper = search.tree.nodes[at].cap
    pair.estimate = min(pair.upper, search.levels[h].prior)
    if at == 0:
        search.root[action].pair = link
    return link


@inlined
def note_outcome(
    search: Any, model: Any, at: int, link: int, h: int, successor: int, ended: bool
) -> tuple[int, float, int]:
    """The node of an outcome; its d; and a status.

    d = gamma (max g - g) was fixed before the call for all outcomes, and is added to their sums. g is
    f, cut to the largest value; so bets have a fixed range. All unseen outcomes share one history of d.

    After n calls with m different outcomes, one seen c times is thought to have the probability
    (c - discount) / (n + strength), and a new one (fresh + fresher m) / (n + strength).
    """
    tree, settings, level = search.tree, search.settings[0], search.levels[h + 1]
    pair, gamma, most = tree.pairs[link], settings.gamma, search.levels[h + 1].span
    top, seen = best_outcome(search, link, h, most)
    if settings.learns:
        outcome = pair.child
        while outcome != NONE:
            tree.nodes[outcome].drift += gamma * (top - min(tree.nodes[outcome].upper, most))
            outcome = tree.nodes[outcome].sibling
        if seen < search.problem[0].successors:
            pair.drift += gamma * (top - most)
    child, new, status = follow(search, model, at, link, successor, ended, h)
    if status != CHUNK_DONE:
        return NONE, 0.0, status
    node, drift = tree.nodes[child], 0.0
    if settings.learns:
        mass = settings.fresh + settings.fresher * seen
        if node.count > 0:
            mass = node.count - settings.discount
        pair.predicted += log(mass / (pair.n + settings.strength))
        drift = gamma * (top - (most if new else min(node.upper, most)))
    node.count += 1
    if not new:
        return child, drift, CHUNK_DONE
    rank = seen + 1
    settings.widest = max(settings.widest, rank, node.actions)
    node.depth, node.branch, node.drift = h + 1, search.decision[0].play, pair.drift
    if ended:
        node.place = ENDED
        node.estimate = node.upper = level.ended
        return child, drift, CHUNK_DONE
    if settings.least_count > 0:
        # log(1/w), w = w(at) / (rank (rank + 1)).
        node.price = tree.nodes[at].price + log(rank * (rank + 1.0))
    status = fill_in(search, model, child, h + 1)
    estimate = level.prior if node.place == NONE else search.pool.values[node.place, h + 1]
    node.estimate = min(node.cap, estimate)
    return child, drift, status
