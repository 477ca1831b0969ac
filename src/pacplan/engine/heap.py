"""A binary heap of leaves, largest key first, as compiled functions over two arrays."""

from typing import Any

from pacplan.compiled.jit import inlined


@inlined
def push(keys: Any, items: Any, size: int, key: float, item: int) -> int:
    """Add an item to a heap of `size`; returns the new size. There must be room."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if keys[above] >= key:
            break
        keys[place] = keys[above]
        items[place] = items[above]
        place = above
    keys[place] = key
    items[place] = item
    return size + 1


@inlined
def pop(keys: Any, items: Any, size: int) -> int:
    """Take the item with the largest key, items[0], out of a heap of `size`; returns the new size."""
    size -= 1
    key = keys[size]
    item = items[size]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] > keys[below]:
            below += 1
        if keys[below] <= key:
            break
        keys[place] = keys[below]
        items[place] = items[below]
        place = below
    keys[place] = key
    items[place] = item
    return size
