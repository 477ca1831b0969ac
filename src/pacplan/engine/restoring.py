"""Putting a search back to where a file says that it stood, without trusting the file.

Kernels follow links and counters without a second look. So ground rules are taken from the planner, and
whatever could lead a kernel out of an array, or round in a circle, is refused here. A planner declares
what its numbers count or point to (`KernelSearch.spans`), and checks the rest in `check_restored`.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import kernel
from pacplan.compiled.tiered import run
from pacplan.engine.curve import FIRST_MARK
from pacplan.engine.tree import NONE, kept_free

if TYPE_CHECKING:
    from pacplan.engine.checkpoint import Stored

# Visits of a node or pair are counted in 32 bits; each is a call to the model.
MOST_COUNTED = 2**31 - 1

Span = tuple[int, int | str]
"""The least number that a field may hold, and the one after the largest, or the name of that
(`KernelSearch.sizes`)."""
Spans = Mapping[str, Mapping[str, Span]]
"""Spans by the names of an array and of a field; "" if its entries have none."""

_GROWING = frozenset({"tree.nodes", "tree.pairs"})

COUNT: Span = (0, MOST_COUNTED + 1)
FLAG: Span = (0, 2)


def link_to(to: str) -> Span:
    """The number of a record, or NONE."""
    return NONE, to


def require(holds: Any, what: str) -> None:
    """Raise ValueError for a file that contradicts itself."""
    if not holds:
        raise ValueError(f"the checkpoint contradicts itself: {what}. Use another copy, or plan anew")


def restore(search: Any, saved: "Mapping[str, Stored]") -> None:
    """Put a search that was set up in the same way where the arrays of a file found it.

    Raises:
        ValueError: they do not fit this search, or contradict each other.
    """
    report = search.reports
    stored = _stored(saved, "report")
    if stored.shape == report.shape and not stored.unpacked(report)["calls"].any():
        return  # It had not begun.
    try:
        session = search.session
        session.recall(
            {name: _stored(saved, name).unpacked(like) for name, like in session.memory().items()}
        )
        for name, array in search.state_arrays().items():
            if not name.startswith("session."):
                _take_in(search, name, array, _stored(saved, name))
    except MemoryError:
        raise ValueError("the checkpoint names more memory than there is") from None
    # A deadline that came while it was saved is not that of the search that goes on.
    for name in ("promise", "state", "action", "h", "halt", "refused"):
        report[name] = 0
    _check_counters(search)
    arrays = search.state_arrays()
    for name in ("streams.rng", "streams.ties"):
        require(arrays[name].any(), f"{name} draws nothing")
    shape = TreeShape(search)
    sizes = search.sizes()
    for name, array in arrays.items():
        _check_flags(name, array)
        used = sizes.get(name, len(array))
        require(0 <= used <= len(array), f"{name} has no room")
        array[used:] = np.zeros((), array.dtype)
        for field, span in search.spans.get(name, {}).items():
            _check_span(name, field, array[:used], span, sizes)
    try:
        search.check_restored(shape)
        search.reserve()
    except MemoryError:
        raise ValueError("the checkpoint names more memory than there is") from None


def _stored(saved: "Mapping[str, Stored]", name: str) -> "Stored":
    if name not in saved:
        raise ValueError(f"the checkpoint does not fit this planner: {name} is missing")
    return saved[name]


def _take_in(search: Any, name: str, array: NDArray[Any], stored: "Stored") -> None:
    """Copy an array of a file, or those fields of it that change, to where the search has it."""
    shape = stored.shape
    grows = (
        name in search.growing | _GROWING and len(shape) == array.ndim and shape[1:] == array.shape[1:]
    )
    if shape != array.shape and not grows:
        raise ValueError(f"the checkpoint does not fit this planner: {name} differs in size")
    search.room.take(max(0, stored.nbytes_as(array) - array.nbytes))
    if name in search.changing:
        found = stored.unpacked(array)
        for field in search.changing[name]:
            array[field] = found[field]
    else:
        stored.write(search.sized(name, array, shape))


def _check_counters(search: Any) -> None:
    """What the engine counts."""
    report, calls = search.report, search.calls
    require((calls >= 0).all() and report["calls"] == calls.sum(), "its calls do not add up")
    require(0 <= report["calls"] <= MOST_COUNTED, "too many calls")
    require(0 <= report["episodes"] <= MOST_COUNTED, "too many episodes")
    mark, marks = FIRST_MARK, 0
    while mark <= report["episodes"]:
        mark, marks = mark + mark // 2, marks + 1
    require(0 <= report["points"] <= marks, "too many points of its curve")
    require(report["mark"] in (mark, FIRST_MARK), "the next point of its curve is not due then")
    times = search.points[: int(report["points"]), 0]
    require(
        np.all(np.diff(times, prepend=0.0) >= 0.0) and np.all(times <= report["calls"]),
        "its curve goes back in time",
    )


def _check_flags(name: str, array: NDArray[Any]) -> None:
    """Kernels take a truth value for 0 or 1."""
    for field in array.dtype.names or ():
        if array.dtype[field] == np.bool_:
            require(np.all(array[field].view(np.uint8) <= 1), f"{name}.{field} is neither 0 nor 1")


def _check_span(
    name: str, field: str, array: NDArray[Any], span: Span, sizes: Mapping[str, int]
) -> None:
    numbers = array[field] if field else array
    least, below = span
    below = sizes[below] if isinstance(below, str) else below
    require(
        np.all(numbers >= least) and np.all(numbers < below),
        f"{name}.{field} leads outside" if field else f"{name} leads outside",
    )


class TreeShape:
    """How the records of a restored tree hang together: as they do in one that was grown.

    Every record in use has one place: a node after one pair, a pair in one node, or kept free for the
    next one there. So lists are not shared, and have an end.

    Attributes:
        owner: by pair, the node that it belongs to; NONE: it is kept free.
        parent: by node, the pair that led there; NONE: the root.

    Raises:
        ValueError: they do not.
    """

    def __init__(self, search: Any) -> None:
        tree = search.tree
        used, (nodes, pairs, _) = tree.arrays().used.tolist(), tree.arrays()
        require(
            0 <= used[0] <= len(nodes) and 0 <= used[1] <= len(pairs) and (used[0] or not used[1]),
            "its tree has no room for its nodes",
        )
        nodes[used[0] :], pairs[used[1] :] = np.zeros((), nodes.dtype), np.zeros((), pairs.dtype)
        self._nodes, self._pairs = nodes, pairs = tree.nodes, tree.pairs
        self.owner = owners(nodes["first"], pairs["sibling"])
        made = self.owner != NONE
        self.parent = owners(np.where(made, pairs["child"], NONE), nodes["sibling"])
        if len(nodes) == 0:
            return
        at = np.arange(len(nodes))
        require(
            self.parent[0] == NONE
            and np.all(self.parent[1:] != NONE)
            and np.all(self.owner[self.parent[1:]] < at[1:]),
            "a node of its tree has no place",
        )
        self._check_nodes(search, nodes)
        whose, actions = self.owner[made], pairs["action"][made].astype(np.int64)
        require(np.array_equal(np.bincount(whose, minlength=len(nodes)), nodes["tried"]), "tried")
        require(np.all((actions >= 0) & (actions < nodes["actions"][whose])), "an unknown action")
        require(len(np.unique(whose << 32 | actions)) == len(whose), "an action was tried twice")
        free = kept_free(nodes)
        require(
            np.all((free >= 0) & (free < len(pairs)))
            and np.array_equal(np.bincount(free, minlength=len(pairs)), ~made),
            "a pair of its tree has no place",
        )
        pairs[free] = np.zeros((), pairs.dtype)
        for field in ("eldest", "favourite"):
            if field in nodes.dtype.names:
                self.require_own(field)
        require(np.array_equal(nodes["eldest"] == NONE, nodes["tried"] == 0), "eldest")
        require(np.all((pairs["other"] >= NONE) & (pairs["other"] < len(nodes))), "other")
        require(np.all(nodes["count"] >= 0) and np.all(pairs["n"] >= 0), "negative counts")

    def _check_nodes(self, search: Any, nodes: NDArray[Any]) -> None:
        """That states are known, and offer as many actions."""
        offered, inner = nodes["actions"], nodes[1:]
        root = nodes[0]
        require(root["state"] == search.root_state and offered[0] == len(search.actions), "the root")
        if search.tree.open_loop:
            require(np.all(inner["state"] == 0) and np.all(offered == offered[0]), "actions")
        else:
            going = nodes["actions"] != 0
            check_states(search, nodes["state"][going], offered[going])
            require(np.all(nodes["state"][~going] == 0), "the end has a state")
        require(np.all(nodes["tried"] <= offered), "more actions were tried than there are")

    def require_own(self, field: str) -> None:
        """Raise ValueError unless a field of the nodes names a pair of the same node, or none."""
        links = self._nodes[field]
        require(np.all((links >= NONE) & (links < len(self.owner))), field)
        own = self.owner[links] == np.arange(len(links)) if len(self.owner) else False
        require(np.all((links == NONE) | own), f"{field} belongs to another node")

    def require_arms(self, links: NDArray[Any]) -> None:
        """Raise ValueError unless the root's actions, in their order, name their pairs, or none."""
        known = np.flatnonzero(links != NONE)
        own = links[known]
        require(
            np.all(self.owner[own] == 0) and np.array_equal(self._pairs["action"][own], known),
            "an action of the root has another's place",
        )
        require(len(self.parent) == 0 or len(own) == self._nodes[0]["tried"], "the root's actions")

    def require_depth(self, below: int) -> None:
        """Raise ValueError unless all nodes are fewer than so many steps from the root."""
        require(np.all(self.depth < below), "steps after the last")

    @cached_property
    def depth(self) -> NDArray[np.int64]:
        """By node, its steps from the root."""
        above = np.zeros(len(self.parent), np.int64)
        above[1:] = self.owner[self.parent[1:]]
        steps = np.ones(len(above), np.int64)
        steps[:1] = 0
        while above.any():
            steps += steps[above]
            above = above[above]
        return steps

    @property
    def widest(self) -> int:
        """Most outcomes of a pair."""
        return int(np.bincount(self.parent[1:]).max(initial=0))

    def require_counts(self) -> None:
        """Raise ValueError unless every visit of a pair that has outcomes led to one of these."""
        counts = np.zeros(len(self.owner))
        np.add.at(counts, self.parent[1:], self._nodes["count"][1:])
        has = self._pairs["child"] != NONE
        has &= self.owner != NONE
        require(np.array_equal(counts[has], self._pairs["n"][has]), "visits and outcomes differ")
        require(np.all(self._nodes["count"][1:] > 0), "an outcome that was never seen")


def check_states(search: Any, states: Any, actions: Any = None) -> None:
    """Raise ValueError unless these are states of the model, that offer so many actions."""
    keys, which = np.unique(np.asarray(states, np.int64), return_inverse=True)
    offered = search.session.offered(keys)
    require(np.all(offered > 0), "an unknown state")
    if actions is not None:
        require(np.array_equal(offered[which.reshape(-1)], np.ravel(actions)), "other actions")


def owners(heads: NDArray[Any], after: NDArray[Any]) -> NDArray[np.int64]:
    """In which of some linked lists each record is; NONE: in none.

    Raises:
        ValueError: a link leads outside, or two lead to the same record.
    """
    found = np.full(len(after), NONE, np.int64)
    heads, after = (np.ascontiguousarray(links, np.int64) for links in (heads, after))
    apart = run(_note_owners, len(after), heads, after, found)
    require(apart, "links that lead outside, or to the same record")
    return found


@kernel
def _note_owners(heads: Any, after: Any, found: Any) -> bool:
    for i in range(heads.size):
        at = heads[i]
        while at != NONE:
            if at < 0 or at >= found.size or found[at] != NONE:
                return False
            found[at] = i
            at = after[at]
    return True


def check_table(table: Any, most: int) -> NDArray[np.int64]:
    """The numbers in a hash table; raises ValueError unless they are below `most`, and it has room."""
    slots, used = table.slots, int(table.used[0])
    found: NDArray[np.int64] = slots["node"][slots["node"] != 0].astype(np.int64) - 1
    size = len(slots)
    require(size > 0 and size & (size - 1) == 0, "a table of a size that none has")
    require(len(found) == used < size, "a table that is too full")
    require(np.all((found >= 0) & (found < most)), "a table that leads outside")
    require(len(np.unique(found)) == used, "a table that names a node twice")
    return found


def check_graph(search: Any, graph: Any, shape: TreeShape) -> None:
    """Raise ValueError unless merged nodes are linked as a search links them."""
    nodes = search.tree.nodes
    at = np.arange(len(nodes))
    require(min(len(graph.canonical), len(graph.peer)) >= len(nodes), "merged nodes without room")
    canonical = graph.canonical[: len(nodes)].astype(np.int64)
    require(np.all((canonical >= 0) & (canonical <= at)), "merged nodes lead outside")
    acting, going = canonical == at, nodes["actions"] != 0
    require(np.all(acting[canonical]) and np.all(acting | going), "merged nodes")
    require(np.array_equal(nodes["state"][canonical], nodes["state"]), "merged states")
    require(np.all(acting | (nodes["tried"] == 0)), "actions of a merged node")
    depths = owners(graph.heads, graph.peer[: len(nodes)])
    require(np.array_equal(depths != NONE, acting & going), "a merged node without a place")
    if graph.pooled:
        require(np.all(depths <= 0), "merged depths")
    else:
        require(np.all((depths == shape.depth) | (depths == NONE)), "merged depths")
        require(np.array_equal(shape.depth[canonical], shape.depth), "merged depths")
    found = check_table(graph.table, len(nodes))
    require(np.array_equal(np.sort(found), np.flatnonzero(acting & going)), "the table of states")
    slots = graph.table.slots
    filled = slots[slots["node"] != 0]
    require(np.array_equal(filled["state"], nodes["state"][found]), "the table of states")
