"""The search tree as Python reads it."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.engine.tree import NONE, Records, TreeArrays


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

    Attributes:
        reward: mean of the rewards.
        reward_interval: where confidence bounds put their expectation.
        value: estimate of what the action is worth, from its step on.
        lower: bound on that; the plan's `guarantee` says whether it is proven.
        upper: likewise.
    """

    reward: float | None = None
    reward_interval: tuple[float, float] | None = None
    value: float | None = None
    lower: float | None = None
    upper: float | None = None


# Reads a pair's record, given how many actions each state offered on the way to it.
Reader = Callable[[Any, Sequence[int]], Evidence]


def read_nothing(pair: Any, offered: Sequence[int]) -> Evidence:
    """The reader of a planner whose pairs hold only visits."""
    return Evidence()


@dataclass(eq=False, repr=False)
class SearchTree:
    """What a search has found, by nodes and pairs, which are numbers. Node 0 is the root.

    Attributes:
        arrays: the records, which move while a search runs: never keep them.
        gamma: discount of the search.
        horizon: its number of steps.
        states: the user's states by their number; None: these are the numbers themselves.
        labels: the user's actions by the number of their state and their own; None likewise.
        open_loop: whether nodes stand for sequences of actions, whatever states they led to.
        read: reads the records of pairs.
    """

    arrays: TreeArrays
    gamma: float
    horizon: int
    states: list[Any] | None
    labels: Any
    open_loop: bool = False
    read: Reader = read_nothing

    def below(self, node: int) -> "SearchTree":
        """A copy of all that lies below a node, counts included, as a tree whose root is that node."""
        nodes, pairs = self.nodes, self.pairs
        kept_nodes, kept_pairs = _below(nodes, pairs, node)
        # One more entry, the one that index NONE = -1 finds: it stays NONE.
        new_node, new_pair = np.full(len(nodes) + 1, NONE), np.full(len(pairs) + 1, NONE)
        new_node[kept_nodes] = np.arange(len(kept_nodes))
        new_node[0] = 0  # No pair leads to the root, but those that are kept free hold zeros.
        new_pair[kept_pairs] = np.arange(len(kept_pairs))
        nodes, pairs = nodes[kept_nodes], pairs[kept_pairs]
        for link in {"first", "eldest", "favourite"} & set(nodes.dtype.names or ()):
            nodes[link] = new_pair[nodes[link]]
        for link in ("child", "other"):
            pairs[link] = new_node[pairs[link]]
        nodes["sibling"], pairs["sibling"] = new_node[nodes["sibling"]], new_pair[pairs["sibling"]]
        cut = copy.copy(self)
        cut.arrays = TreeArrays(nodes, pairs, np.array([len(nodes), len(pairs)]))
        return cut

    def adopt(self, other: "SearchTree", encode: Callable[[Any], int]) -> None:
        """Take over the records of another tree, whose states `encode` numbers as this tree does."""
        self.arrays = TreeArrays(*map(np.copy, other.arrays))
        if other.states is not None:
            nodes = self.arrays.nodes
            goes_on = nodes["actions"] > 0  # The end of an episode is not a state.
            keys, which = np.unique(nodes["state"][goes_on], return_inverse=True)
            numbers = np.array([encode(other.states[key]) for key in keys], np.int64)
            nodes["state"][goes_on] = numbers[which]
            if self.labels is not None and other.labels is not None:
                known = zip(keys.tolist(), numbers.tolist(), strict=True)
                self.labels.update((n, other.labels[k]) for k, n in known if k in other.labels)

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
        return key if self.states is None else self.states[key]

    def action(self, node: int, pair: int) -> Any:
        """The user's action of a pair of a node."""
        index = int(self.pairs[pair]["action"])
        if self.labels is None:
            return index
        label = self.labels[int(self.nodes[node]["state"])][index]
        return label.item() if isinstance(label, np.generic) else label

    def acting_node(self, node: int) -> int:
        """The node that holds the actions of a node's state: itself unless equal states are merged."""
        return int(self.nodes["same"][node]) if "same" in (self.nodes.dtype.names or ()) else node

    def evidence(self, pair: int, path: Sequence[int]) -> Evidence:
        """What the search knows of a pair; `path` are the nodes from the root to the pair's own."""
        return self.read(self.pairs[pair], [int(self.nodes[node]["actions"]) for node in path])

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
                    if not outcome.ended and outcome.state == state:
                        return outcome.node
        return None

    def __repr__(self) -> str:
        return f"<SearchTree: {len(self)} nodes, {self.made} pairs, horizon {self.horizon}>"


def _below(nodes: Records, pairs: Records, node: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Numbers of the nodes and pairs below a node, itself included, in their order.

    With the pairs are the records that are kept free beside them (`add_pair`): these follow a pair of
    the same node, and their child is 0, though no pair leads to the root.
    """
    in_nodes, in_pairs = np.zeros(len(nodes), np.bool_), np.zeros(len(pairs), np.bool_)
    level = np.array([node])
    while level.size:
        in_nodes[level] = True
        made = _chained(nodes["first"][level], pairs["sibling"])
        in_pairs[made] = True
        level = _chained(pairs["child"][made], nodes["sibling"])
    free = pairs["child"] == 0
    before = np.maximum.accumulate(np.where(free, 0, np.arange(len(pairs))))
    return np.flatnonzero(in_nodes), np.flatnonzero(in_pairs[before])


def _chained(link: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
    """All members of some linked lists, given by their first ones."""
    found = [link[:0]]
    while link.size:
        link = link[link != NONE]
        found.append(link)
        link = after[link]
    return np.concatenate(found)
