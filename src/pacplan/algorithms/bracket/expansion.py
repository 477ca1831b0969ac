"""New nodes and pairs of Bracket's tree, with the bounds that they have before any visit."""

from math import log
from typing import Any

import numpy as np

from pacplan.algorithms.betting.returns import raise_floor
from pacplan.algorithms.bracket.constants import PRIOR
from pacplan.algorithms.bracket.state_model import ENDED, find_place, refresh, tell
from pacplan.algorithms.bracket.upper_bound import column, depths, refresh_node
from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import CHUNK_DONE, break_promise
from pacplan.engine.graph import join, pools
from pacplan.engine.promises import BAD_ANSWER
from pacplan.engine.tree import NONE, add_node, add_pair
from pacplan.models import handles


@inlined
def plant_root(search: Any, model: Any, state: int) -> int:
    """Make the root; returns a status."""
    settings, tree = search.settings[0], search.tree
    actions = search.root.size
    add_node(tree, state, actions, 0.0, 0.0)
    status = _cap(search, model, 0, 0)
    span = search.bounds.caps[0, 0]
    root = tree.nodes[0]
    root.place = find_place(search.pool, state, actions, search.steps.prior)
    root.branch = NONE
    join(search.graph, 0, state, 0, False)
    if status == CHUNK_DONE:
        status = _guess(search, model, 0, 0)
    if settings.shares and pools(search.graph):
        root.price = _share_price(search, search.graph, 0, 0, 0)
    for action in range(actions):
        arm = search.root[action]
        arm.upper = span
        raise_floor(arm, settings.floor)
        arm.estimate = PRIOR * span
        arm.penalty = settings.least
        arm.asked = settings.log_share
        arm.pair = NONE
    if settings.known_rewards:
        _expand_known(search, model, 0, 0)
        for link in range(actions):
            pair = tree.pairs[link]
            arm = search.root[pair.action]
            arm.pair = link
            arm.upper = min(span, search.bounds.pairs[link, 0])
            arm.estimate = pair.estimate
            if settings.pays_means:
                raise_floor(arm, pair.reward)
    return status


@inlined
def _cap(search: Any, model: Any, at: int, first: int) -> int:
    """Limit the value of a new node by what the user knows; returns a status."""
    state, settings, bounds = search.tree.nodes[at].state, search.settings[0], search.bounds
    start, stop = depths(search.graph, search.settings[0].horizon, first)
    for h in range(start, stop):
        # Whatever the user's function does, the node it leaves behind is valid.
        bounds.caps[at, column(search.graph, h)] = search.levels[h].span
        bounds.nodes[at, column(search.graph, h)] = search.levels[h].span
    for h in range(start, stop):
        span = search.levels[h].span
        _, high = handles.value_bounds(model, state, h)
        if np.isnan(high):
            return break_promise(search, BAD_ANSWER, state, 0, h, 0.0)
        # If nodes are merged, the span exceeds every value by what evidence may add.
        largest_value = search.steps.sigma[settings.horizon - h]
        known = (min(high, settings.most_value) - settings.low * largest_value) / settings.width
        cap = max(0.0, min(span, known + span - largest_value))
        bounds.caps[at, column(search.graph, h)] = cap
        bounds.nodes[at, column(search.graph, h)] = cap
    return CHUNK_DONE


@inlined
def _guess(search: Any, model: Any, at: int, first: int) -> int:
    """Let the pool know the user's guess of a new node's value; returns a status."""
    node, settings, pool, steps = search.tree.nodes[at], search.settings[0], search.pool, search.steps
    if pool.guesses.shape[1] == 0 or node.place < 0:
        return CHUNK_DONE
    start, stop = depths(search.graph, settings.horizon, first)
    for h in range(start, stop):
        k = settings.horizon - h
        value = handles.guess(model, node.state, h)
        if np.isnan(value):
            return break_promise(search, BAD_ANSWER, node.state, 0, h, 0.0)
        guess = (value - settings.low * steps.sigma[k]) / settings.width
        pool.guesses[node.place, k] = min(max(guess, 0.0), steps.sigma[k])
        refresh(pool, node.place, k, settings.gamma, steps.prior, steps.ended)
    return CHUNK_DONE


@called
def _expand_known(search: Any, model: Any, at: int, first: int) -> None:
    """Give every action of a new node its pair: if rewards are known, each has its own."""
    tree, settings, problem = search.tree, search.settings[0], search.problem[0]
    node, bounds = tree.nodes[at], search.bounds
    start, stop = depths(search.graph, search.settings[0].horizon, first)
    node.estimate = -np.inf
    for action in range(node.actions):
        raw = handles.mean_reward(model, node.state, action, first)
        reward = settings.offset + settings.slope * (raw - problem.lowest) / problem.width
        link = _open_pair(search, at, action)
        pair = tree.pairs[link]
        pair.reward = reward
        tell(search.pool, node.place, action, reward)
        pair.estimate = reward + settings.gamma * search.steps.prior[settings.horizon - first - 1]
        node.estimate = max(node.estimate, pair.estimate)
        for h in range(start, stop):
            after = search.levels[h + 1].span if h + 1 < settings.horizon else 0.0
            place = column(search.graph, h)
            bounds.pairs[link, place] = min(reward + settings.gamma * after, bounds.caps[at, place])
    for h in range(start, stop):
        refresh_node(search, at, h)


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
    pair, bounds = search.tree.pairs[link], search.bounds
    for place in range(bounds.caps.shape[1]):
        bounds.pairs[link, place] = bounds.caps[at, place]
    cap = bounds.caps[at, column(search.graph, h)]
    pair.estimate = min(cap, search.steps.prior[search.settings[0].horizon - h])
    if at == 0:
        search.root[action].pair = link
    return link


@inlined
def _share_price(search: Any, graph: Any, at: int, child: int, rank: int) -> float:
    """log(1/w) of a new node, the `rank`-th outcome of a pair of node `at`.

    In a tree w = w(at) / (rank (rank + 1)). In a graph w = 1 / (j (j + 1)) for the j-th node of its
    depth; if a node stands for its state at all depths, for the j-th of all, divided by the number of
    its actions that an optimal policy can take.
    """
    if graph is None:
        return float(search.tree.nodes[at].price) + log(rank * (rank + 1.0))
    horizon, node = search.settings[0].horizon, search.tree.nodes[child]
    steps = search.steps[horizon - node.depth]
    steps.found += 1
    price = log(steps.found * (steps.found + 1.0))
    return price + log(min(horizon, node.actions)) if graph.pooled else price


@inlined
def settle(
    search: Any, model: Any, at: int, child: int, h: int, link: int, rank: int, ended: bool
) -> int:
    """Fill in a new node, the `rank`-th outcome of pair `link` of node `at` at depth h.

    Returns a status.
    """
    tree, settings = search.tree, search.settings[0]
    node = tree.nodes[child]
    left = settings.horizon - h - 1
    node.depth = 0 if pools(search.graph) else h + 1
    node.branch = search.decision[0].play
    settings.widest = max(settings.widest, rank)
    # All unseen outcomes share one history of d.
    node.drift = tree.pairs[link].drift
    if ended:
        join(search.graph, child, 0, node.depth, True)
        _end(search, child, left)
        return CHUNK_DONE
    node.place = find_place(search.pool, node.state, node.actions, search.steps.prior)
    if not join(search.graph, child, node.state, node.depth, False):
        return CHUNK_DONE
    if settings.shares:
        node.price = _share_price(search, search.graph, at, child, rank)
    status = _cap(search, model, child, node.depth)
    if status == CHUNK_DONE:
        status = _guess(search, model, child, node.depth)
    node.estimate = search.steps.prior[left]
    if node.place != NONE:
        node.estimate = search.pool.values[node.place, left]
    node.estimate = min(search.bounds.caps[child, 0], node.estimate)
    if settings.known_rewards:
        _expand_known(search, model, child, node.depth)
    return status


@inlined
def _end(search: Any, child: int, left: int) -> None:
    """Fill in a node that ends the episode, with `left` steps to go."""
    node = search.tree.nodes[child]
    node.place = ENDED
    node.estimate = search.steps.ended[left]
    start, stop = depths(search.graph, search.settings[0].horizon, node.depth)
    for depth in range(start, stop):
        worth = search.steps.ended[search.settings[0].horizon - depth]
        search.bounds.nodes[child, column(search.graph, depth)] = worth
