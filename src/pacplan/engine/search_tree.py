"""The search tree as Python sees it: it grows between chunks, and is read when the search is over."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import signs
from pacplan.engine.memory import MemoryBudget
from pacplan.engine.tree import BLOCK, FIRST_ROOM, MOST_RECORDS, NODE, NONE, Records, TreeArrays


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
        # What kernels work on. Valid until the next `reserve`: never keep it.
        self.arrays = TreeArrays(np.zeros(room, node), np.zeros(room, pair), np.zeros(2, np.int64))

    def reserve(self, nodes: int, pairs: int, memory: MemoryBudget) -> None:
        """Make room for more records, growing by half at a time."""
        old = self.arrays
        nodes, pairs = nodes + int(old.used[0]), pairs + int(old.used[1])
        if max(nodes, pairs) >= MOST_RECORDS:
            raise MemoryError("the search tree has reached 2**31 records")
        grown = memory.extend(old.nodes, nodes), memory.extend(old.pairs, pairs)
        self.arrays = TreeArrays(*grown, old.used)

    def close(self, read: Reader, acting: NDArray[np.int32] | None = None) -> None:
        """End of the search: give back the room that is not in use, and learn how to read pairs.

        `acting` names, by node, the one that holds its state's actions, if equal states are merged.
        """
        self._read = read
        self._acting = None if acting is None else acting[: len(self)].copy()
        for records, used in zip(self.arrays[:2], self.arrays.used.tolist(), strict=True):
            records.resize(used, refcheck=False)

    def below(self, node: int) -> "SearchTree":
        """A copy of all that lies below a node, counts included, as a tree whose root is that node."""
        nodes, pairs = self.nodes, self.pairs
        node_numbers, pair_numbers = _below(nodes, pairs, node)
        # One more entry, the one that index NONE = -1 finds: it stays NONE.
        new_node, new_pair = np.full(len(nodes) + 1, NONE), np.full(len(pairs) + 1, NONE)
        new_node[node_numbers] = np.arange(len(node_numbers))
        new_pair[pair_numbers] = np.arange(len(pair_numbers))
        nodes, pairs = nodes[node_numbers], pairs[pair_numbers]
        for link, new in (("first", new_pair), ("eldest", new_pair), ("favourite", new_pair)):
            if link in (nodes.dtype.names or ()):
                nodes[link] = new[nodes[link]]
        for link in ("child", "other"):
            pairs[link] = new_node[pairs[link]]
        nodes["sibling"], pairs["sibling"] = new_node[nodes["sibling"]], new_pair[pairs["sibling"]]
        cut = copy.copy(self)
        cut.arrays = TreeArrays(nodes, pairs, np.array([len(nodes), len(pairs)]))
        return cut

    def adopt(self, other: "SearchTree", encode: Callable[[Any], int]) -> None:
        """Take over the records of another tree, whose states `encode` numbers as this tree does."""
        nodes = other.nodes.copy()
        self.arrays = TreeArrays(nodes, other.pairs.copy(), other.arrays.used.copy())
        if other._states is not None:
            goes_on = nodes["actions"] > 0  # The end of an episode is not a state.
            keys, which = np.unique(nodes["state"][goes_on], return_inverse=True)
            numbers = np.array([encode(other._states[key]) for key in keys], np.int64)
            nodes["state"][goes_on] = numbers[which]
            if self._labels is not None and other._labels is not None:
                known = zip(keys.tolist(), numbers.tolist(), strict=True)
                self._labels.update((n, other._labels[k]) for k, n in known if k in other._labels)

    @property
    def nodes(self) -> Records:
        """The node records in use (fields of `NODE`); node 0 is the root."""
        return self.arrays.nodes[: int(self.arrays.used[0])]

    @property
    def pairs(self) -> Records:
        """The pair records in use: fields of the planner's own, then `LINKS`.

        Among them are zeros, kept free for actions that were not tried yet.
        """
        return self.arrays.pairs[: int(self.arrays.used[1])]

    @property
    def made(self) -> int:
        """Number of pairs: `pairs` without the records that are kept free."""
        return int(self.nodes["tried"].sum())

    @property
    def nbytes(self) -> int:
        """Bytes held by the records, used or not."""
        return int(self.arrays.nodes.nbytes + self.arrays.pairs.nbytes)

    def __len__(self) -> int:
        """Number of nodes."""
        return int(self.arrays.used[0])

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
