"""Putting a search back to where a file says that it stood.

The archive's checksums and the header tell damaged and foreign files apart. What is checked here is
that the arrays are those of this search, and that no number in them leads a kernel out of an array.
What numbers count or point to is declared: here for the engine's arrays, by planners for their own.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.engine.curve import FIRST_MARK

NONE = -1
# Visits of a node or pair are counted in 32 bits; each is a call to the model.
MOST_COUNTED = 2**31 - 1

Span = tuple[int, int | str]
"""The least number that a field may hold, and the one after the largest, or the name of that: one of
`KernelSearch.sizes`, or an array, which stands for its length."""
Spans = Mapping[str, Mapping[str, Span]]
"""Spans by the names of an array and of a field; "" if its entries have none."""

COUNT: Span = (0, MOST_COUNTED + 1)
FLAG: Span = (0, 2)


def link_to(to: str) -> Span:
    """The number of a record, or NONE."""
    return NONE, to


_GROWING = frozenset({"tree.nodes", "tree.pairs"})
_SPANS: Spans = {
    "tree.nodes": {
        "count": COUNT,
        "sibling": link_to("nodes"),
        "first": link_to("pairs"),
        "eldest": link_to("pairs"),
        "favourite": link_to("pairs"),
        "actions": COUNT,
        "tried": COUNT,
    },
    "tree.pairs": {
        "n": (0, "visits"),
        "action": (0, "offered"),
        "sibling": link_to("pairs"),
        "child": link_to("nodes"),
        "other": link_to("nodes"),
    },
    "graph.canonical": {"": link_to("nodes")},
    "graph.peer": {"": link_to("nodes")},
    "graph.heads": {"": link_to("nodes")},
}


def require(holds: Any, what: str) -> None:
    """Raise ValueError for a file that contradicts itself."""
    if not holds:
        raise ValueError(f"the checkpoint contradicts itself: {what}. Use another copy, or plan anew")


def restore(search: Any, saved: Mapping[str, NDArray[Any]]) -> None:
    """Put a search that was set up in the same way where the arrays of a file found it.

    Raises:
        ValueError: they do not fit this search, or contradict each other.
    """
    if not _fitting(saved, "report", search.reports)["calls"].any():
        return  # It had not begun.
    try:
        session = search.session
        session.recall({name: _fitting(saved, name, like) for name, like in session.memory().items()})
        for name, array in search.state_arrays().items():
            if not name.startswith("session."):
                _take_in(search, name, array, _fitting(saved, name, array))
        # A deadline that came while it was saved is not that of the search that goes on.
        for name in ("promise", "state", "action", "h", "halt", "refused"):
            search.reports[name] = 0
        _check(search)
        search.reserve()
    except MemoryError:
        raise ValueError("the checkpoint names more memory than there is") from None


def _fitting(saved: Mapping[str, NDArray[Any]], name: str, like: NDArray[Any]) -> NDArray[Any]:
    if name not in saved:
        raise ValueError(f"the checkpoint does not fit this planner: {name} is missing")
    found = saved[name]
    if found.dtype != like.dtype or found.ndim != like.ndim:
        raise ValueError(f"the checkpoint does not fit this planner: {name} has other records")
    return found


def _take_in(search: Any, name: str, array: NDArray[Any], found: NDArray[Any]) -> None:
    """Copy an array of a file, or those fields of it that change, to where the search has it."""
    trimmed = name in search.sizes()  # Only what is in use was saved.
    grows = name in search.growing | search.grows.keys() | _GROWING
    fits = grows or len(found) == len(array) or (trimmed and len(found) < len(array))
    if found.shape[1:] != array.shape[1:] or not fits:
        raise ValueError(f"the checkpoint does not fit this planner: {name} differs in size")
    if name in search.changing:
        for field in search.changing[name]:
            array[field] = found[field]
        return
    search.room.take(max(0, found.nbytes - array.nbytes))
    rows = max(len(found), len(array)) if trimmed else len(found)
    array = search.sized(name, array, (rows, *array.shape[1:]))
    array[: len(found)] = found
    array[len(found) :] = np.zeros((), array.dtype)


def _check(search: Any) -> None:
    """Raise ValueError for numbers that lead outside, or contradict each other."""
    report, arrays = search.report, search.state_arrays()
    require((search.calls >= 0).all() and report["calls"] == search.calls.sum(), "its calls")
    require(0 <= report["calls"] <= MOST_COUNTED, "too many calls")
    require(0 <= report["episodes"] <= MOST_COUNTED, "too many episodes")
    require(0 <= report["points"] < len(search.points), "the points of its curve")
    require(report["mark"] >= FIRST_MARK, "the next point of its curve")
    for name in ("streams.rng", "streams.ties"):
        require(arrays[name].any(), f"{name} draws nothing")
    _check_tree(search)
    for spans in (_SPANS, search.spans):
        for name in spans.keys() & arrays.keys():
            for field, span in spans[name].items():
                _check_span(search, arrays, name, field, span)
    for name, array in arrays.items():
        if name.endswith(".slots"):  # Of a hash table, which needs a free one.
            used = arrays[f"{name.removesuffix('.slots')}.used"][0]
            require(used == np.count_nonzero(array["node"]) < len(array), f"{name} is too full")
            require(len(array) & (len(array) - 1) == 0, f"{name} has a size that none has")
            limit = max(search.sizes()["nodes"], len(array))
            require(np.all((array["node"] >= 0) & (array["node"] <= limit)), f"{name} leads outside")
    search.check_restored()


def _check_tree(search: Any) -> None:
    """That lists have an end, and that states are those of the model."""
    tree = search.tree.arrays()
    (nodes, pairs), rooms = tree.used.tolist(), (len(tree.nodes), len(tree.pairs))
    require(0 <= nodes <= rooms[0] and 0 <= pairs <= rooms[1], "its tree has no room for its nodes")
    for records, used in ((tree.nodes, nodes), (tree.pairs, pairs)):
        records[used:] = np.zeros((), records.dtype)
        # What is made later comes first in its list.
        require(np.all(records["sibling"][:used] < np.arange(used)), "links that go round in a circle")
    known = search.tree.nodes
    going = known["actions"] != 0
    if nodes and not search.tree.open_loop:
        check_states(search, known["state"][going], known["actions"][going])
    require(np.all(known["tried"] <= known["actions"]), "more actions were tried than there are")


def check_states(search: Any, states: Any, actions: Any = None) -> None:
    """Raise ValueError unless these are states of the model, that offer so many actions."""
    keys, which = np.unique(np.asarray(states, np.int64), return_inverse=True)
    offered = search.session.offered(keys)
    require(np.all(offered > 0), "an unknown state")
    if actions is not None:
        require(np.array_equal(offered[which.reshape(-1)], np.ravel(actions)), "other actions")


def _check_span(
    search: Any, arrays: Mapping[str, NDArray[Any]], name: str, field: str, span: Span
) -> None:
    sizes = search.sizes()
    array = arrays[name][: sizes.get(name)]
    if field and field not in (array.dtype.names or ()):
        return
    numbers, (least, below) = array[field] if field else array, span
    if isinstance(below, str):
        below = sizes[below] if below in sizes else len(arrays[below])
    require(
        np.all(numbers >= least) and np.all(numbers < below),
        f"{name}.{field} leads outside".replace(". ", " "),
    )
