"""The search tree as Python reads it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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

    def __repr__(self) -> str:
        return f"<SearchTree: {len(self)} nodes, {self.made} pairs, horizon {self.horizon}>"
