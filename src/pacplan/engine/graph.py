"""Merging: one node for all histories that lead to the same state at the same depth.

An outcome of a pair keeps a node of its own, which holds its count and its place among the outcomes.
Its `canonical` names the node that holds the state's actions and bounds: itself, or the first one that
was made for the same state and depth.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import inlined, kernel
from pacplan.compiled.tiered import run
from pacplan.engine.memory import MemoryBudget
from pacplan.engine.tree import NONE

# A canonical node by state and depth. It holds the node's number plus one: 0 is a free slot.
SLOT = np.dtype([("state", np.int64), ("depth", np.int32), ("node", np.int32)])


class MergeTable(NamedTuple):
    """Canonical nodes by state and depth: a hash table with open addressing."""

    slots: Any  # records of SLOT
    used: NDArray[np.int64]


class Graph(NamedTuple):
    """How merged nodes are linked; None in a search that does not merge.

    The canonical nodes of a depth are a list, since one may lie before its parents in the tree.
    """

    table: MergeTable
    canonical: NDArray[np.int32]  # by node
    peer: NDArray[np.int32]  # by canonical node, the next one of its depth
    heads: NDArray[np.int32]  # by depth, the first canonical node; NONE: none yet


@inlined
def join(graph: Graph | None, node: int, state: int, depth: int, ended: bool) -> bool:
    """Give a new node its place; returns whether it is the first of its state and depth."""
    if graph is None:
        return True
    graph.canonical[node] = node if ended else merge(graph.table, state, depth, node)
    if ended or graph.canonical[node] != node:
        return ended
    graph.peer[node] = graph.heads[depth]
    graph.heads[depth] = node
    return True


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


@inlined
def _home(state: int, depth: int, slots: int) -> int:
    """Where a state and depth are looked for first; `slots` is a power of two."""
    # Both halves of a state are hashed, each in its own way; and no sum exceeds 63 bits, whatever the
    # state: interpreted runs would warn.
    low, high = state & 0x7FFFFFFF, (state >> 31) & 0x7FFFFFFF
    key = low * 0x45D9F3B + high * 0x27D4EB2F + depth * 31
    mixed = ((key ^ (key >> 32)) & 0x7FFFFFFF) * 0x45D9F3B
    return (mixed ^ (mixed >> 16)) & (slots - 1)


@inlined
def _place(table: MergeTable, state: int, depth: int) -> int:
    """The slot of a state and depth, or the free one where it belongs."""
    place = _home(state, depth, table.slots.size)
    while table.slots[place].node != 0:
        if table.slots[place].state == state and table.slots[place].depth == depth:
            break
        place = (place + 1) & (table.slots.size - 1)
    return place


@inlined
def merge(table: MergeTable, state: int, depth: int, node: int) -> int:
    """The canonical node of a state and depth: `node` itself if it is the first. There must be room."""
    place = _place(table, state, depth)
    slot = table.slots[place]
    if slot.node != 0:
        return int(slot.node) - 1
    slot.state = state
    slot.depth = depth
    slot.node = node + 1
    table.used[0] += 1
    return node


@inlined
def find(table: MergeTable, state: int, depth: int) -> int:
    """The canonical node of a state and depth, or NONE."""
    # A free slot holds 0, so this is NONE.
    return int(table.slots[_place(table, state, depth)].node) - 1


@inlined
def has_room(table: MergeTable, more: int) -> bool:
    """Whether `more` nodes would leave the table half empty."""
    return bool(2 * (table.used[0] + more) <= table.slots.size)


def empty_table(slots: int) -> MergeTable:
    """A table of `slots` slots, a power of two."""
    return MergeTable(np.zeros(slots, SLOT), np.zeros(1, np.int64))


def grown(table: MergeTable, needed: int, room: MemoryBudget) -> MergeTable:
    """The table, or a larger copy if `needed` more nodes would not leave it half empty."""
    slots = len(table.slots)
    while 2 * (int(table.used[0]) + needed) > slots:
        slots *= 2
    if slots == len(table.slots):
        return table
    room.request((slots - len(table.slots)) * SLOT.itemsize)
    larger = empty_table(slots)
    if table.used[0] > 0:
        run(_copy, slots, table, larger)
    return larger


def empty_graph(horizon: int) -> Graph:
    """A graph without nodes."""
    return Graph(
        empty_table(16), np.zeros(0, np.int32), np.zeros(0, np.int32), np.full(horizon, NONE, np.int32)
    )


def grown_graph(graph: Graph, nodes: int, needed: int, room: MemoryBudget) -> Graph:
    """The graph, with room for `nodes` in all and for `needed` more in its table."""
    return graph._replace(
        table=grown(graph.table, needed, room),
        canonical=room.extend(graph.canonical, nodes),
        peer=room.extend(graph.peer, nodes),
    )


@kernel
def _copy(table: MergeTable, larger: MergeTable) -> None:
    for place in range(table.slots.size):
        slot = table.slots[place]
        if slot.node != 0:
            merge(larger, slot.state, slot.depth, slot.node - 1)
