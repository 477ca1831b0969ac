"""Bounds of pairs and nodes, and their way up after an expansion.

The pairs of a node lie side by side, in the order of their actions: an expansion that was cut short is
resumed before any other begins.
"""

from typing import Any

from pacplan.algorithms.opd.records import Search
from pacplan.compiled.jit import inlined
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
def bound_pair(search: Search, link: int) -> None:
    """Bounds of a pair: its reward, and what its outcome is worth; nothing follows the last step."""
    tree = search.tree
    pair = tree.pairs[link]
    pair.upper = pair.reward
    pair.lower = pair.reward
    if pair.child != NONE:
        gamma = search.terms[0].gamma
        outcome = tree.nodes[tree.nodes[pair.child].same]
        pair.upper += gamma * outcome.upper
        pair.lower += gamma * outcome.lower
    if pair.at == 0:
        search.upper[pair.action] = pair.upper
        search.lower[pair.action] = pair.lower


@inlined
def reach(search: Search, link: int) -> int:
    """Depth of the leaf that the favourites below a pair lead to; NONE if all is known there."""
    pair = search.tree.pairs[link]
    if pair.child == NONE or pair.upper - pair.lower <= search.rules[0].tie:
        return NONE
    nodes = search.tree.nodes
    return int(nodes[nodes[pair.child].same].reach)


@inlined
def _bound_node(search: Search, at: int) -> bool:
    """Bounds and favourite of an expanded node; returns whether its parents are concerned.

    The favourite has the largest upper bound. Of several, it is the one that leads deepest, so that one
    sequence is finished before the next begins: if nothing better is possible, that ends the search.
    """
    tree = search.tree
    node = tree.nodes[at]
    upper, lower, depth = node.upper, node.lower, node.reach
    first = pair_of(node, 0)
    node.upper = tree.pairs[first].upper
    node.lower = tree.pairs[first].lower
    for link in range(first + 1, first + node.actions):
        node.upper = max(node.upper, tree.pairs[link].upper)
        node.lower = max(node.lower, tree.pairs[link].lower)
    node.favourite = NONE
    for link in range(first, first + node.actions):
        if tree.pairs[link].upper >= node.upper - search.rules[0].tie:
            below = reach(search, link)
            if node.favourite == NONE or below > node.reach:
                node.favourite = link
                node.reach = below
    return bool(node.upper != upper or node.lower != lower or node.reach != depth)


@inlined
def _put_due(search: Search, at: int) -> None:
    """Have the bounds of a node renewed."""
    node = search.tree.nodes[at]
    if not node.due:
        node.due = True
        node.next_due = search.dues[node.depth]
        search.dues[node.depth] = at


@inlined
def renew_bounds(search: Search, leaf: int) -> None:
    """Renew all bounds that depend on a node that was expanded, the deepest first."""
    tree = search.tree
    _put_due(search, leaf)
    for depth in range(tree.nodes[leaf].depth, -1, -1):
        at = search.dues[depth]
        while at != NONE:
            node = tree.nodes[at]
            node.due = False
            if _bound_node(search, at) and depth > 0:
                twin = at
                while twin != NONE:
                    link = tree.nodes[twin].way
                    bound_pair(search, link)
                    _put_due(search, tree.pairs[link].at)
                    twin = tree.nodes[twin].twin
            at = node.next_due
        search.dues[depth] = NONE
