"""The search tree: compact records of states and state-action pairs, linked by their indices.

A *node* is a state reached by one history of actions and states; a *pair* is an action that was
tried in a node. Only what was visited is stored, and what one visit reads lies in one record:

    node --first--> pair --sibling--> pair ...       the actions tried in this node
    pair --child--> node --sibling--> node ...       the outcomes seen after this pair

Node 0 is the root. A child has a larger index than its parent, so one sweep from the last node to the
first visits children before parents.

Most nodes have one pair, and a visit to the others reads all their pairs. So these lie side by side:
with its second pair a node gets records for the next ones too (`add_pair`).

A large tree is not in the caches, so what counts is how many loads wait for one another. A node also
names its `eldest` pair, which lies apart from the others, and a pair the `other` outcome after its
`child`: so all pairs of a node, or two outcomes, begin to load at once.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from pacplan.compiled.jit import PART, inlined
from pacplan.compiled.prefetch import begin_to_load
from pacplan.core.keys import signs
from pacplan.engine.memory import MemoryBudget

NONE = -1

# What every node has.
BARE_FIELDS = [
    ("state", np.int64),
    ("count", np.int32),  # how often the parent pair led here
    ("sibling", np.int32),  # next outcome of the parent pair
    ("first", np.int32),  # most recently made pair of this node
    ("eldest", np.int32),  # its first one
    ("actions", np.int32),  # how many are available; 0: the episode has ended here
    ("tried", np.int32),  # how many have a pair
]
BARE_NODE = np.dtype(BARE_FIELDS, align=True)

# What the nodes of planners with bounds have; planners may put their own fields after it.
NODE_FIELDS = [
    *BARE_FIELDS,
    ("upper", np.float64),  # max over the actions of their upper bounds
    ("lower", np.float64),  # max over the actions of their lower bounds
    ("favourite", np.int32),  # pair to try next; NONE: an untried action
]
NODE = np.dtype(NODE_FIELDS, align=True)

# What every pair has; planners put their own fields before it.
LINKS = [
    ("n", np.int32),  # visits
    ("action", np.int32),
    ("sibling", np.int32),  # next tried action of the same node
    ("child", np.int32),  # outcome seen last for the first time ...
    ("other", np.int32),  # ... and the one before it
]

Records = NDArray[Any]

# Pairs that lie side by side, after the first of a node. Longer lists have several such blocks.
BLOCK = 4

# Records are numbered in 32 bits, and so are their visits.
MOST_RECORDS = 2**31
MOST_COUNTED = 2**31 - 1

# Records at first. Untouched ones cost no memory, and most small searches never grow.
FIRST_ROOM = 1024


class NoRoomError(Exception):
    """A planner added more records to the tree in an episode than it had announced."""


class TreeArrays(NamedTuple):
    """The tree as kernels see it. `used` holds the numbers of records in use, of nodes and of pairs."""

    nodes: Records
    pairs: Records
    used: NDArray[np.int64]


def _begin_bounds(node: Any, upper: Any, lower: Any) -> None:
    """Set the bounds of a new node, if its nodes have bounds."""
    if "upper" in node.dtype.names:
        _set_bounds(node, upper, lower)


@overload(_begin_bounds, jit_options=PART)  # type: ignore[untyped-decorator]
def _compile_begin_bounds(node: Any, upper: Any, lower: Any) -> Any:
    return _set_bounds if "upper" in node.fields else _set_nothing


def _set_bounds(node: Any, upper: Any, lower: Any) -> None:
    node.upper = upper
    node.lower = lower
    node.favourite = NONE


def _set_nothing(node: Any, upper: Any, lower: Any) -> None:
    pass


@inlined
def add_node(tree: TreeArrays, state: int, actions: int, upper: float, lower: float) -> int:
    """Append an unvisited node; raises NoRoomError if the planner has reserved too little room."""
    index = tree.used[0]
    if index >= tree.nodes.size:
        raise NoRoomError
    tree.used[0] = index + 1
    node = tree.nodes[index]
    node.state = state
    node.sibling = NONE
    node.first = NONE
    node.eldest = NONE
    node.actions = actions
    _begin_bounds(node, upper, lower)
    return int(index)


@inlined
def _new_pair(tree: TreeArrays, at: int) -> int:
    """The record for the next pair of node `at`.

    The one after its latest pair, unless that was its first, or the last of a block.
    """
    node = tree.nodes[at]
    if node.tried > 1 and (node.tried - 1) % BLOCK != 0:
        return int(node.first + 1)
    return int(tree.used[1])


@inlined
def add_pair(tree: TreeArrays, at: int, action: int) -> int:
    """Append an unvisited pair to node `at`, its planner's fields zero.

    Raises NoRoomError as `add_node` does. Records are used once, and are zero before.
    """
    node = tree.nodes[at]
    index = _new_pair(tree, at)
    if index == tree.used[1]:
        block = 1 if node.tried == 0 else min(BLOCK, node.actions - node.tried)
        if index + block > tree.pairs.size:
            raise NoRoomError
        tree.used[1] = index + block
    pair = tree.pairs[index]
    pair.action = action
    pair.sibling = node.first
    pair.child = NONE
    pair.other = NONE
    if node.tried == 0:
        node.eldest = index
    node.first = index
    node.tried += 1
    return index


@inlined
def untried_action(tree: TreeArrays, at: int, rng: Any) -> int:
    """A uniformly random action of node `at` among those that have no pair yet."""
    node = tree.nodes[at]
    rank = int(rng.random() * (node.actions - node.tried))
    # The action of this rank among the untried: raise it by the tried actions at or below it.
    action = rank
    while True:
        below = 0
        link = node.first
        while link != NONE:
            if tree.pairs[link].action <= action:
                below += 1
            link = tree.pairs[link].sibling
        if action == rank + below:
            return action
        action = rank + below


@inlined
def find_child(tree: TreeArrays, pair: int, state: int, ended: bool) -> tuple[int, int]:
    """The outcome of `pair` that is `state` (or the end), or NONE, and how many were seen."""
    link = tree.pairs[pair].child
    seen = 0
    while link != NONE:
        node = tree.nodes[link]
        # All ends are one outcome: nothing follows any of them.
        if (node.actions == 0) == ended and (ended or node.state == state):
            return link, seen
        seen += 1
        link = node.sibling
    return NONE, seen


@inlined
def link_child(tree: TreeArrays, pair: int, node: int) -> None:
    """Make `node` an outcome of `pair`."""
    above = tree.pairs[pair]
    tree.nodes[node].sibling = above.child
    above.other = above.child
    above.child = node


@inlined
def expect_pairs(tree: TreeArrays, at: int) -> None:
    """Begin to load the pairs of a node: its latest, those of its block before that, and its first."""
    node = tree.nodes[at]
    begin_to_load(tree.pairs, node.first)
    begin_to_load(tree.pairs, node.first - 2)
    begin_to_load(tree.pairs, node.eldest)


@inlined
def expect_outcomes(tree: TreeArrays, link: int) -> None:
    """Begin to load the outcomes of a pair."""
    pair = tree.pairs[link]
    begin_to_load(tree.nodes, pair.child)
    begin_to_load(tree.nodes, pair.other)


@dataclass(frozen=True)
class Outcome:
    """A successor seen after a pair: its node, how often it was seen and what it is."""

    node: int
    count: int
    state: Any
    ended: bool


@dataclass(frozen=True)
class Evidence:
    """What a search knows of a pair, in the user's units; None for what it does not keep.

    Whether the bounds are proven depends on the planner: its plan's `guarantee` says.
    """

    reward: float | None = None
    """Mean of the rewards."""
    reward_interval: tuple[float, float] | None = None
    """Where confidence bounds put their expectation."""
    value: float | None = None
    """Estimate of what the action is worth, from its step on."""
    lower: float | None = None
    upper: float | None = None


# Reads a pair's record, given how many actions each state offered on the way to it.
Reader = Callable[[Any, Sequence[int]], Evidence]


def read_nothing(pair: Any, offered: Sequence[int]) -> Evidence:
    """The reader of a planner whose pairs hold only visits."""
    return Evidence()


class SearchTree:
    """Owns the records: makes room while a search runs, and is read when it is over.

    Args:
        pair: the type of the pairs' records.
        node: the type of the nodes' records.
        gamma: discount of the search.
        horizon: its number of steps.
        states: the user's states by their number; None: these are the numbers themselves.
        labels: the user's actions by the number of their state and their own; None likewise.
        open_loop: whether nodes stand for sequences of actions, whatever states they led to.
        room: records of each kind that there is room for at first.
    """

    def __init__(
        self,
        pair: np.dtype[Any],
        node: np.dtype[Any] = NODE,
        *,
        gamma: float,
        horizon: int,
        states: list[Any] | None,
        labels: Any,
        open_loop: bool = False,
        room: int = FIRST_ROOM,
    ) -> None:
        self.gamma, self.horizon, self.open_loop = gamma, horizon, open_loop
        self._states, self._labels = states, labels
        self._read: Reader = read_nothing
        self._acting: NDArray[np.int32] | None = None
        self._nodes = np.zeros(room, node)
        self._pairs = np.zeros(room, pair)
        self._used = np.zeros(2, np.int64)

    def arrays(self) -> TreeArrays:
        """The records for a kernel. Valid until the next `reserve`: never keep them."""
        return TreeArrays(self._nodes, self._pairs, self._used)

    def reserve(self, nodes: int, pairs: int, memory: MemoryBudget) -> None:
        """Make room for more records, growing by half at a time."""
        nodes, pairs = nodes + int(self._used[0]), pairs + int(self._used[1])
        if max(nodes, pairs) >= MOST_RECORDS:
            raise MemoryError("the search tree has reached 2**31 records")
        self._nodes = memory.extend(self._nodes, nodes)
        self._pairs = memory.extend(self._pairs, pairs)

    def close(self, read: Reader, acting: NDArray[np.int32] | None = None) -> None:
        """End of the search: give back the room that is not in use, and learn how to read pairs.

        `acting` names, by node, the one that holds its state's actions, if equal states are merged.
        """
        self._read = read
        self._acting = None if acting is None else acting[: int(self._used[0])].copy()
        self._nodes.resize(int(self._used[0]), refcheck=False)
        self._pairs.resize(int(self._used[1]), refcheck=False)

    def below(self, node: int) -> "SearchTree":
        """A copy of all that lies below a node, counts included, as a tree whose root is that node."""
        nodes, pairs = self.nodes, self.pairs
        node_numbers, pair_numbers = _below(nodes, pairs, node)
        # One more entry, the one that index NONE = -1 finds: it stays NONE.
        new_node, new_pair = np.full(len(nodes) + 1, NONE), np.full(len(pairs) + 1, NONE)
        new_node[node_numbers] = np.arange(len(node_numbers))
        new_pair[pair_numbers] = np.arange(len(pair_numbers))
        cut = copy.copy(self)
        cut._nodes, cut._pairs = nodes[node_numbers], pairs[pair_numbers]
        cut._used = np.array([len(node_numbers), len(pair_numbers)])
        for group, link, new in (
            (cut._nodes, "sibling", new_node),
            (cut._nodes, "first", new_pair),
            (cut._nodes, "eldest", new_pair),
            (cut._nodes, "favourite", new_pair),
            (cut._pairs, "sibling", new_pair),
            (cut._pairs, "child", new_node),
            (cut._pairs, "other", new_node),
        ):
            if link in (group.dtype.names or ()):
                group[link] = new[group[link]]
        return cut

    def adopt(self, other: "SearchTree", encode: Callable[[Any], int]) -> None:
        """Take over the records of another tree, whose states `encode` numbers as this tree does."""
        self._nodes, self._pairs = other.nodes.copy(), other.pairs.copy()
        self._used = other._used.copy()
        if other._states is not None:
            goes_on = self._nodes["actions"] > 0  # The end of an episode is not a state.
            keys, which = np.unique(self._nodes["state"][goes_on], return_inverse=True)
            numbers = np.array([encode(other._states[key]) for key in keys], np.int64)
            self._nodes["state"][goes_on] = numbers[which]
            if self._labels is not None and other._labels is not None:
                known = zip(keys.tolist(), numbers.tolist(), strict=True)
                self._labels.update((n, other._labels[k]) for k, n in known if k in other._labels)

    @property
    def nodes(self) -> Records:
        """The node records in use (fields of `NODE`); node 0 is the root."""
        return self._nodes[: int(self._used[0])]

    @property
    def pairs(self) -> Records:
        """The pair records in use: fields of the planner's own, then `LINKS`.

        Among them are zeros, kept free for actions that were not tried yet.
        """
        return self._pairs[: int(self._used[1])]

    @property
    def made(self) -> int:
        """Number of pairs: `pairs` without the records that are kept free."""
        return int(self.nodes["tried"].sum())

    @property
    def nbytes(self) -> int:
        """Bytes held by the records, used or not."""
        return int(self._nodes.nbytes + self._pairs.nbytes)

    def __len__(self) -> int:
        """Number of nodes."""
        return int(self._used[0])

    def state(self, node: int) -> Any:
        """The user's state of a node."""
        key = int(self.nodes[node]["state"])
        return key if self._states is None else self._states[key]

    def action(self, node: int, pair: int) -> Any:
        """The user's action of a pair of a node."""
        index = int(self.pairs[pair]["action"])
        if self._labels is None:
            return index
        label = self._labels[int(self.nodes[node]["state"])][index]
        return label.item() if isinstance(label, np.generic) else label

    def acting_node(self, node: int) -> int:
        """The node that holds the actions of a node's state: itself unless equal states are merged."""
        return node if self._acting is None else int(self._acting[node])

    def evidence(self, pair: int, path: Sequence[int]) -> Evidence:
        """What the search knows of a pair; `path` are the nodes from the root to the pair's own."""
        return self._read(self.pairs[pair], [int(self.nodes[node]["actions"]) for node in path])

    def tried(self, node: int) -> Iterator[int]:
        """Indices of the pairs of a node, the most recently tried action first."""
        link, after = int(self.nodes[node]["first"]), self.pairs["sibling"]
        while link != NONE:
            yield link
            link = int(after[link])

    def outcomes(self, pair: int) -> Iterator[Outcome]:
        """What was seen after a pair; nothing after the last step, where nothing follows."""
        link = int(self.pairs[pair]["child"])
        while link != NONE:
            node = self.nodes[link]
            ended = bool(node["actions"] == 0)
            yield Outcome(link, int(node["count"]), None if ended else self.state(link), ended)
            link = int(node["sibling"])

    def successor(self, action: int, state: Any) -> int | None:
        """The node of a state seen after an action of the root, by its index; None if never seen."""
        for pair in self.tried(0):
            if self.pairs[pair]["action"] == action:
                for outcome in self.outcomes(pair):
                    found = outcome.state
                    if not outcome.ended and found == state and signs(found) == signs(state):
                        return outcome.node
        return None

    def __repr__(self) -> str:
        return f"<SearchTree: {len(self)} nodes, {self.made} pairs, horizon {self.horizon}>"


def _below(nodes: Records, pairs: Records, node: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Numbers of the nodes and pairs below a node, itself included, in their order.

    With the pairs are the records that are kept free beside them.
    """
    level = np.array([node])
    found_nodes, found_pairs = [level], [level[:0]]
    while level.size:
        made = _chained(nodes["first"][level], pairs["sibling"])
        found_pairs += [made, kept_free(nodes[level])]
        level = _chained(pairs["child"][made], nodes["sibling"])
        found_nodes.append(level)
    return np.sort(np.concatenate(found_nodes)), np.sort(np.concatenate(found_pairs))


def kept_free(nodes: Records) -> NDArray[Any]:
    """Numbers of the pairs that are kept free for further actions of some nodes (`add_pair`)."""
    nodes = nodes[nodes["tried"] > 1]
    in_block = (nodes["tried"] - 2) % BLOCK + 1
    block = np.minimum(BLOCK, nodes["actions"] - (nodes["tried"] - in_block))
    free = block - in_block
    start = np.repeat(nodes["first"] + 1 - (np.cumsum(free) - free), free)
    free_pairs: NDArray[Any] = start + np.arange(len(start))
    return free_pairs


def _chained(link: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
    """All members of some linked lists, given by their first ones."""
    found = [link[:0]]
    while link.size:
        link = link[link != NONE]
        found.append(link)
        link = after[link]
    return np.concatenate(found)
