"""A hash table of nodes by state and depth, with open addressing: which ways lead to the same state."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import inlined, kernel
from pacplan.compiled.tiered import run
from pacplan.engine.memory import MemoryBudget

# It holds the node's number plus one: 0 is a free slot.
SLOT = np.dtype([("state", np.int64), ("depth", np.int32), ("node", np.int32)])


class MergeTable(NamedTuple):
    """The first node of each state and depth."""

    slots: Any  # records of SLOT
    used: NDArray[np.int64]


@inlined
def _place(table: MergeTable, state: int, depth: int) -> int:
    """The slot of a state and depth, or the free one where it belongs."""
    # Both halves of a state are hashed, each in its own way; and no sum exceeds 63 bits, whatever the
    # state: interpreted runs would warn. The number of slots is a power of two.
    low, high = state & 0x7FFFFFFF, (state >> 31) & 0x7FFFFFFF
    key = low * 0x45D9F3B + high * 0x27D4EB2F + depth * 31
    mixed = ((key ^ (key >> 32)) & 0x7FFFFFFF) * 0x45D9F3B
    place = (mixed ^ (mixed >> 16)) & (table.slots.size - 1)
    while table.slots[place].node != 0:
        if table.slots[place].state == state and table.slots[place].depth == depth:
            break
        place = (place + 1) & (table.slots.size - 1)
    return int(place)


@inlined
def merge(table: MergeTable, state: int, depth: int, node: int) -> int:
    """The first node of a state and depth: `node` itself if there was none. There must be room."""
    slot = table.slots[_place(table, state, depth)]
    if slot.node != 0:
        return int(slot.node) - 1
    slot.state = state
    slot.depth = depth
    slot.node = node + 1
    table.used[0] += 1
    return node


@inlined
def find(table: MergeTable, state: int, depth: int) -> int:
    """The first node of a state and depth, or NONE."""
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


@kernel
def _copy(table: MergeTable, larger: MergeTable) -> None:
    for place in range(table.slots.size):
        slot = table.slots[place]
        if slot.node != 0:
            merge(larger, slot.state, slot.depth, slot.node - 1)
