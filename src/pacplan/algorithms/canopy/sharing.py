"""The J of states that one tree has computed: equal states at one depth of a tree share one value."""

from typing import Any

from pacplan.algorithms.canopy.learning import mixed
from pacplan.compiled.jit import inlined, kernel


@inlined
def _place(slots: Any, tree: int, h: int, state: int) -> int:
    """Where the J of a state at a depth of a tree lies, or the free slot where it belongs."""
    place = mixed(mixed(h + 1, 0), state) & (slots.size - 1)
    while slots[place].tree == tree and (slots[place].h != h or slots[place].state != state):
        place = (place + 1) & (slots.size - 1)
    return int(place)


@inlined
def shared_value(search: Any, h: int, state: int) -> tuple[float, bool]:
    """J of a state at a depth of this tree, if it is known."""
    tree = search.task[0].number
    slot = search.shared[_place(search.shared, tree, h, state)]
    return slot.value, slot.tree == tree


@inlined
def _put(slots: Any, tree: int, h: int, state: int, value: float) -> None:
    slot = slots[_place(slots, tree, h, state)]
    slot.tree, slot.h, slot.state, slot.value = tree, h, state, value


@inlined
def share_value(search: Any, h: int, state: int, value: float) -> None:
    """Let other nodes of this tree know the J of a state."""
    task = search.task[0]
    _put(search.shared, task.number, h, state, value)
    task.shared += 1


@kernel
def copy_shared(slots: Any, larger: Any, tree: int) -> None:
    """Copy the values that the nodes of a tree share to a larger table."""
    for i in range(slots.size):
        slot = slots[i]
        if slot.tree == tree:
            _put(larger, tree, slot.h, slot.state, slot.value)
