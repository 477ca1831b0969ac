"""Merging: one node for all histories that lead to the same state at the same depth.

An outcome of a pair keeps a node of its own, which holds its count and its place among the outcomes.
Its `same` names the node that holds the state's actions and bounds: itself, or the first one that was
made for the same state and depth.
"""

from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined
from pacplan.engine.merge_table import MergeTable, has_room, merge
from pacplan.engine.tree import NODE_FIELDS, NONE, TreeArrays

# Nodes of a search that merges.
MERGED_NODE = np.dtype([*NODE_FIELDS, ("same", np.int32), ("depth", np.int32)], align=True)
# Their table; None in a search that does not merge.
Graph = MergeTable | None


@inlined
def join(graph: Graph, tree: TreeArrays, at: int, depth: int) -> None:
    """Give a new node its place; an end stays by itself."""
    if graph is None:
        return
    node = tree.nodes[at]
    node.depth = depth
    node.same = merge(graph, node.state, depth, at) if node.actions > 0 else at


@inlined
def acting(graph: Graph, tree: TreeArrays, at: int) -> int:
    """The node that holds the actions and bounds of a node's state: itself if nothing is merged."""
    if graph is None:
        return at
    return int(tree.nodes[at].same)


@inlined
def graph_has_room(graph: Graph, more: int) -> bool:
    """Whether a graph has room for `more` nodes."""
    if graph is None:
        return True
    return has_room(graph, more)


@inlined
def look_up(graph: Graph, tree: TreeArrays, pair: Any) -> None:
    """If nodes are merged, copy the bounds of their states to the outcomes of a pair."""
    if graph is None:
        return
    outcome = pair.child
    while outcome != NONE:
        node = tree.nodes[outcome]
        node.upper, node.lower = tree.nodes[node.same].upper, tree.nodes[node.same].lower
        outcome = node.sibling


@inlined
def tightest(graph: Graph, pair: Any, upper: float, lower: float) -> tuple[float, float]:
    """If nodes are merged, the tighter of the bounds before and now.

    All bounds hold on one event, so the tightest do as well, and a sweep loosens none. (Outside of that
    event they may cross, and then the latest count.)
    """
    if graph is None or max(lower, pair.lower) > min(upper, pair.upper):
        return upper, lower
    return min(upper, pair.upper), max(lower, pair.lower)
