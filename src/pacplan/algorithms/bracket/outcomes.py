"""New nodes and pairs of Bracket's tree, and what a call of a pair tells."""

from math import log
from typing import Any

import numpy as np

from pacplan.algorithms.betting.returns import raise_floor
from pacplan.algorithms.bracket.constants import PRIOR
from pacplan.algorithms.bracket.pool import ENDED, find_place, refresh_state
from pacplan.algorithms.bracket.upper_bound import add_drifts, best_outcome, predict
from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import CHUNK_DONE, break_promise, follow
from pacplan.engine.promises import BAD_ANSWER, REWARD_VARIES
from pacplan.engine.tree import NONE, add_node, add_pair
from pacplan.models import handles


@inlined
def plant_root(search: Any, model: Any, state: int) -> int:
    """Make the root; returns a status."""
    settings, actions = search.settings[0], search.root.size
    root = search.tree.nodes[add_node(search.tree, state, actions, 0.0, 0.0)]
    root.branch = NONE
    status = _fill_in(search, model, 0, 0)
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
def _fill_in(search: Any, model: Any, at: int, h: int) -> int:
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
def note_reward(search: Any, at: int, link: int, h: int, reward: float, x: float) -> int:
    """Keep a reward, in Bracket's units x; returns a status."""
    settings, problem, pair = search.settings[0], search.problem[0], search.tree.pairs[link]
    if not settings.told:
        pair.reward += x
    elif pair.n == 0:
        pair.reward = x
        if at == 0:
            raise_floor(search.root[pair.action], x)
    elif abs(pair.reward - x) > 1e-9:
        state, paid = search.tree.nodes[at].state, problem.lowest + problem.width * reward
        return break_promise(search, REWARD_VARIES, state, pair.action, h, paid)
    return CHUNK_DONE


@inlined
def note_outcome(
    search: Any, model: Any, at: int, link: int, h: int, successor: int, ended: bool
) -> tuple[int, float, int]:
    """The node of an outcome, made if it is new; its d; and a status."""
    learns, gamma = search.settings[0].learns, search.settings[0].gamma
    most = search.levels[h + 1].span
    top, seen = best_outcome(search, link, h, most)
    if learns:
        add_drifts(search, link, most, top, seen)
    child, new, status = follow(search, model, at, link, successor, ended, h, most, 0.0)
    if status != CHUNK_DONE:
        return NONE, 0.0, status
    drift = 0.0
    if learns:
        predict(search, link, search.tree.nodes[child].count, seen)
        # A new outcome was still unseen when d was fixed.
        drift = gamma * (top - (most if new else min(search.tree.nodes[child].upper, most)))
    if new:
        status = _settle(search, model, at, child, h, link, seen + 1, ended)
    search.tree.nodes[child].count += 1
    return child, drift, status


@inlined
def _settle(
    search: Any, model: Any, at: int, child: int, h: int, link: int, rank: int, ended: bool
) -> int:
    """Fill in a new node, the `rank`-th outcome of pair `link` of node `at` at depth h.

    Returns a status.
    """
    tree, settings, level = search.tree, search.settings[0], search.levels[h + 1]
    node = tree.nodes[child]
    node.depth = h + 1
    node.branch = search.decision[0].play
    settings.widest = max(settings.widest, rank, node.actions)
    # All unseen outcomes share one history of d.
    node.drift = tree.pairs[link].drift
    if ended:
        node.place = ENDED
        node.estimate = node.upper = level.ended
        return CHUNK_DONE
    if settings.least_count > 0:
        # log(1/w), w = w(at) / (rank (rank + 1)).
        node.price = tree.nodes[at].price + log(rank * (rank + 1.0))
    status = _fill_in(search, model, child, h + 1)
    node.estimate = level.prior
    if node.place != NONE:
        node.estimate = search.pool.values[node.place, h + 1]
    node.estimate = min(node.cap, node.estimate)
    return status
