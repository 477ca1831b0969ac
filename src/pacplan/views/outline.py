"""The part of a search tree that is shown on a page: the most visited, as boxes inside boxes."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import kernel
from pacplan.engine.tree import NONE, SearchTree


@dataclass(frozen=True)
class Box:
    """A state reached, or an action tried.

    Attributes:
        name: unique in the outline.
        parent: name of the box above it; "" for the root.
        path: nodes from the root to the state, or to the state that the action was tried in.
        pair: the action's pair; None for a state.
        visits: how often the search came here, or the sum over the boxes below if that is larger. So
            boxes fit into the ones above them.
    """

    name: str
    parent: str
    path: tuple[int, ...]
    pair: int | None
    visits: int


@dataclass(frozen=True)
class Outline:
    """The boxes shown, parents before children, the most visited first.

    Attributes:
        boxes: those shown.
        total: number of boxes of the tree that were visited.
    """

    boxes: tuple[Box, ...]
    total: int


def outline(tree: SearchTree, most: int) -> Outline:
    """The most visited boxes of a tree, at most `most`.

    No box is visited more often than the one above it, so these are connected.
    """
    reached, tried = _visits(tree)
    order = count()
    root = Box("s0", "", (0,), None, int(reached[0]))
    # A tree that is only a root still has a box.
    waiting = [(-root.visits, next(order), root)]
    boxes: list[Box] = []
    while waiting and len(boxes) < most:
        box = heappop(waiting)[2]
        boxes.append(box)
        for child in _below(tree, box, reached, tried):
            heappush(waiting, (-child.visits, next(order), child))
    # The states of an open-loop tree, except the root, are not boxes.
    states = reached[:1] if tree.open_loop else reached
    return Outline(tuple(boxes), int((states[1:] > 0).sum() + (tried > 0).sum()) + 1)


def _below(
    tree: SearchTree, box: Box, reached: NDArray[np.int64], tried: NDArray[np.int64]
) -> Iterator[Box]:
    """The visited boxes right below a box."""
    if box.pair is None:
        nodes = [box.path]
    else:
        nodes = [(*box.path, outcome.node) for outcome in tree.outcomes(box.pair)]
        if not tree.open_loop:
            for path in nodes:
                if reached[path[-1]] > 0:
                    yield Box(f"s{path[-1]}", box.name, path, None, int(reached[path[-1]]))
            return
    for path in nodes:
        for pair in tree.tried(path[-1]):
            if tried[pair] > 0:
                yield Box(f"a{pair}", box.name, path, pair, int(tried[pair]))


def _visits(tree: SearchTree) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often each node was reached and each pair was tried, as in `Box.visits`."""
    nodes, pairs = tree.nodes, tree.pairs
    reached, tried = np.zeros(len(nodes), np.int64), np.zeros(len(pairs), np.int64)
    # Columns, each in one piece, so that one compiled kernel serves the trees of all planners.
    first, outcome, count = (
        np.ascontiguousarray(nodes[name]) for name in ("first", "sibling", "count")
    )
    child, sibling, n = (np.ascontiguousarray(pairs[k]) for k in ("child", "sibling", "n"))
    _sum_up(first, outcome, child, sibling, count, n, reached, tried)
    return reached, tried


@kernel
def _sum_up(
    first: NDArray[np.int32],
    outcome: NDArray[np.int32],
    child: NDArray[np.int32],
    sibling: NDArray[np.int32],
    count: NDArray[np.int32],
    n: NDArray[np.int32],
    reached: NDArray[np.int64],
    tried: NDArray[np.int64],
) -> None:
    """One pass from the last node to the first visits children before parents."""
    for at in range(first.size - 1, -1, -1):
        total = 0
        link = first[at]
        while link != NONE:
            below = 0
            step = child[link]
            while step != NONE:
                below += reached[step]
                step = outcome[step]
            tried[link] = max(n[link], below)
            total += tried[link]
            link = sibling[link]
        reached[at] = max(count[at], total)
