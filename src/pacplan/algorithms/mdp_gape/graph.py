"""Merging: one node for all histories that lead to the same state at the same depth.

An outcome of a pair keeps a node of its own, which holds its count and its place among the outcomes.
Its `canonical` names the node that holds the state's actions and bounds: itself, or the first one that
was made for the same state and depth.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import inlined
from pacplan.engine.memory import MemoryBudget
from pacplan.engine.merge_table import MergeTable, empty_table, grown, has_room, merge
from pacplan.engine.tree import NONE


class Graph(NamedTuple):
    """How merged nodes are linked; None in a search that does not merge.

    The canonical nodes of a depth are a list, since one may lie before its parents in the tree.
    """

    table: MergeTable
    canonical: NDArray[np.int32]  # by node
    peer: NDArray[np.int32]  # by canonical node, the next one of its depth
    heads: NDArray[np.int32]  # by depth, the first canonical node; NONE: none yet


@inlined
def join(graph: Graph | None, node: int, state: int, depth: int, ended: bool) -> None:
    """Give a new node its place."""
    if graph is None:
        return
    graph.canonical[node] = node if ended else merge(graph.table, state, depth, node)
    if not ended and graph.canonical[node] == node:
        graph.peer[node] = graph.heads[depth]
        graph.heads[depth] = node


@inlined
def canonical(graph: Graph | None, node: int) -> int:
    """The node that holds the actions and bounds of a node's state: itself if nothing is merged."""
    if graph is None:
        return node
    return int(graph.canonical[node])


@inlined
def graph_has_room(graph: Graph | None, more: int) -> bool:
    """Whether a graph has room for `more` nodes."""
    if graph is None:
        return True
    return has_room(graph.table, more)


def empty_graph(horizon: int) -> Graph:
    """A graph without nodes."""
    links = np.zeros(0, np.int32), np.zeros(0, np.int32), np.full(horizon, NONE, np.int32)
    return Graph(empty_table(16), *links)


def grown_graph(graph: Graph, nodes: int, needed: int, room: MemoryBudget) -> Graph:
    """The graph, with room for `nodes` in all and for `needed` more in its table."""
    return graph._replace(
        table=grown(graph.table, needed, room),
        canonical=room.extend(graph.canonical, nodes),
        peer=room.extend(graph.peer, nodes),
    )
