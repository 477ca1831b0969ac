"""Merging: one node for all histories that lead to the same state after as many steps.

An outcome of a pair keeps a node of its own, which holds its count and its place among the outcomes.
Its `canonical` names the node that holds the state's actions and bounds: itself, or the first one that
was made for the same state and depth.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan._jit import inlined, kernel
from pacplan.search.tree import NONE


class MergeTable(NamedTuple):
    """Canonical nodes by state and depth: a hash table with open addressing."""

    states: NDArray[np.int64]
    depths: NDArray[np.int32]
    nodes: NDArray[np.int32]  # NONE: free
    used: NDArray[np.int64]


@inlined
def _home(state: int, depth: int, slots: int) -> int:
    """Where a state and depth are looked for first; `slots` is a power of two."""
    key = state * 31 + depth
    mixed = ((key ^ (key >> 32)) & 0x7FFFFFFF) * 0x45D9F3B
    return (mixed ^ (mixed >> 16)) & (slots - 1)


@inlined
def merge(table: MergeTable, state: int, depth: int, node: int) -> int:
    """The canonical node of a state and depth: `node` itself if it is the first. There must be room."""
    mask = table.nodes.size - 1
    slot = _home(state, depth, table.nodes.size)
    while table.nodes[slot] != NONE:
        if table.states[slot] == state and table.depths[slot] == depth:
            return int(table.nodes[slot])
        slot = (slot + 1) & mask
    table.states[slot] = state
    table.depths[slot] = depth
    table.nodes[slot] = node
    table.used[0] += 1
    return node


@inlined
def find(table: MergeTable, state: int, depth: int) -> int:
    """The canonical node of a state and depth, or NONE."""
    slot = _home(state, depth, table.nodes.size)
    while table.nodes[slot] != NONE:
        if table.states[slot] == state and table.depths[slot] == depth:
            return int(table.nodes[slot])
        slot = (slot + 1) & (table.nodes.size - 1)
    return NONE


@inlined
def has_room(table: MergeTable, more: int) -> bool:
    """Whether so many more nodes leave the table half empty."""
    return bool(2 * (table.used[0] + more) <= table.nodes.size)


def empty_table(slots: int) -> MergeTable:
    """A table of so many slots, a power of two."""
    return MergeTable(
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int32),
        np.full(slots, NONE, np.int32),
        np.zeros(1, np.int64),
    )


def grown(table: MergeTable, needed: int) -> MergeTable:
    """The table, or a larger copy where `needed` more nodes would not leave it half empty."""
    slots = len(table.nodes)
    while 2 * (int(table.used[0]) + needed) > slots:
        slots *= 2
    if slots == len(table.nodes):
        return table
    larger = empty_table(slots)
    _copy(table, larger)
    return larger


@kernel
def _copy(table: MergeTable, larger: MergeTable) -> None:
    for slot in range(table.nodes.size):
        if table.nodes[slot] != NONE:
            merge(larger, table.states[slot], table.depths[slot], table.nodes[slot])
