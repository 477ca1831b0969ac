"""Bounds of pairs and nodes, and their way up after an expansion.

The pairs of a node lie side by side, in the order of their actions: an expansion that was cut short is
resumed before any other begins. Bounds are certain at all times, so the closest so far is kept: a node
may have been given one that is closer than what its actions show.
"""

from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined
from pacplan.engine.calls import CHUNK_DONE, FALSE_BOUND, break_promise
from pacplan.engine.tree import NONE


@inlined
def whole(node: Any) -> bool:
    """Whether a node was expanded, all its actions tried."""
    return bool(node.tried == node.actions)


@inlined
def pair_of(node: Any, action: int) -> int:
    """The pair of an action that was tried in a node."""
    return int(node.first - node.tried + 1 + action)


@inlined
def next_node(search: Any, link: int) -> int:
    """The node that holds the actions of the state that a pair leads to; NONE after the last step."""
    child = search.tree.pairs[link].child
    return int(search.tree.nodes[child].same) if child != NONE else NONE


@inlined
def bound_pair(search: Any, link: int) -> None:
    """Bounds of a pair: its reward, and what follows."""
    nodes, pair, gamma = search.tree.nodes, search.tree.pairs[link], search.problem[0].gamma
    after = next_node(search, link)
    pair.upper = pair.lower = pair.reward
    if after != NONE:
        pair.upper += gamma * nodes[after].upper
        pair.lower += gamma * nodes[after].lower
    if pair.at == 0:
        search.upper[pair.action] = min(search.upper[pair.action], pair.upper)
        search.lower[pair.action] = max(search.lower[pair.action], pair.lower)


@inlined
def reach(search: Any, link: int) -> int:
    """Depth of the leaf that the favourites below a pair lead to; NONE if all is known there."""
    pair, after = search.tree.pairs[link], next_node(search, link)
    if after == NONE or pair.upper - pair.lower <= search.tie:
        return NONE
    return int(search.tree.nodes[after].reach)


@inlined
def _bound_node(search: Any, at: int) -> tuple[bool, int]:
    """Bounds and favourite of an expanded node; whether its parents are concerned, and a status.

    The favourite has the largest upper bound. Of several, it is the one that leads deepest, so that one
    sequence is finished before the next begins: if nothing better is possible, that ends the search.
    """
    node, pairs, tie = search.tree.nodes[at], search.tree.pairs, search.tie
    upper, lower, depth, first = node.upper, node.lower, node.reach, pair_of(node, 0)
    most, least, width, slack = -np.inf, -np.inf, 0.0, search.slack
    for link in range(first, first + node.actions):
        most = max(most, pairs[link].upper)
        least = max(least, pairs[link].lower)
    if max(lower, least) > min(upper, most) + slack:
        false = lower if most < lower - slack else upper
        return False, break_promise(search, FALSE_BOUND, node.state, 0, node.depth, false)
    node.upper, node.lower, node.favourite = min(upper, most), max(lower, least), NONE
    for link in range(first, first + node.actions):
        if pairs[link].upper >= node.upper - tie:
            below, apart = reach(search, link), pairs[link].upper - pairs[link].lower
            deeper = node.favourite == NONE or below > node.reach
            if deeper or (below == NONE and node.reach == NONE and apart > width):
                node.favourite, node.reach, width = link, below, apart
    return bool(node.upper != upper or node.lower != lower or node.reach != depth), CHUNK_DONE


@inlined
def _put_due(search: Any, at: int) -> None:
    """Have the bounds of a node renewed."""
    node = search.tree.nodes[at]
    if not node.due:
        node.due, node.next_due = True, search.dues[node.depth]
        search.dues[node.depth] = at


@inlined
def renew_bounds(search: Any, leaf: int) -> int:
    """Renew all bounds that depend on a leaf, expanded or not, the deepest first; returns a status."""
    tree = search.tree
    _put_due(search, leaf)
    for depth in range(tree.nodes[leaf].depth, -1, -1):
        at = search.dues[depth]
        while at != NONE:
            node = tree.nodes[at]
            node.due = False
            changed, status = True, CHUNK_DONE
            if whole(node):
                changed, status = _bound_node(search, at)
            if status != CHUNK_DONE:
                return status
            if changed and depth > 0:
                twin = at
                while twin != NONE:
                    link = tree.nodes[twin].way
                    bound_pair(search, link)
                    _put_due(search, tree.pairs[link].at)
                    twin = tree.nodes[twin].twin
            at = node.next_due
        search.dues[depth] = NONE
    return CHUNK_DONE
