"""The part of a known model that was explored, as arrays.

Nodes are states, numbered in the order in which they were found; node 0 is the one planned from. A node
is a leaf until it is explored, that is until the outcomes of its actions were read.
"""

from array import array
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pacplan.models.outcomes import Outcomes
from pacplan.models.protocol import Table

Values = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Rows(NamedTuple):
    """What is known of the explored nodes, a row for each."""

    node: Numbers
    pairs: Numbers  # where the pairs of a row begin; its last entry is the number of pairs
    reward: Values  # expected, of each pair
    transitions: Any  # of each node after each pair; less than 1 in all where an episode may end

    def worth(self, values: Values, gamma: float) -> Values:
        """What each pair is worth, if the nodes are worth `values`."""
        return np.asarray(self.reward + gamma * (self.transitions @ values))

    def best(self, worth: Values) -> Values:
        """The largest entry of each row."""
        return np.asarray(np.maximum.reduceat(worth, self.pairs[:-1]))

    def greedy(self, worth: Values) -> Numbers:
        """The pair of the largest entry of each row, the first of several."""
        best = np.repeat(self.best(worth), np.diff(self.pairs))
        candidates = np.where(worth == best, np.arange(len(worth)), len(worth))
        return np.asarray(np.minimum.reduceat(candidates, self.pairs[:-1]))

    def following(self, policy: Numbers) -> "Rows":
        """The same rows with one pair each."""
        return Rows(
            self.node, np.arange(len(policy) + 1), self.reward[policy], self.transitions[policy]
        )


class TableChart:
    """All that can be reached in a table, within some steps or any number."""

    def __init__(self, table: Table, root: int, steps: int | None) -> None:
        self._per_step = table.steps is not None
        arrays = table.sparse()
        rewards, probabilities, successors = (
            arrays if self._per_step else (x[np.newaxis] for x in arrays)
        )
        number = np.full(table.states, -1)  # of each state's node
        number[root], nodes, self.depth = 0, 1, 0
        found = [np.array([root])]
        while steps is None or self.depth < steps:
            reached = np.unique(successors[:, found[-1]][probabilities[:, found[-1]] > 0.0])
            new = reached[number[reached] < 0]
            if not new.size:
                break
            number[new] = nodes + np.arange(len(new))
            found.append(new)
            nodes, self.depth = nodes + len(new), self.depth + 1
        self.states = np.concatenate(found)
        self._layers = []
        for r, p, to in zip(rewards, probabilities, successors, strict=True):
            r, p, to = r[self.states], p[self.states], to[self.states]
            offered = ~np.isneginf(r)
            # Beyond the last step lies what has no number, and is worth nothing.
            there = (p > 0.0) & (number[to] >= 0) & offered[..., np.newaxis]
            pairs, first = _sums(offered.sum(-1)), _sums(there.sum(-1)[offered])
            transitions = _matrix(p[there], number[to[there]], first, nodes)
            self._layers.append(Rows(np.arange(nodes), pairs, r[offered], transitions))

    def rows(self, h: int = 0) -> Rows:
        """The rows after h steps."""
        return self._layers[h if self._per_step else 0]

    def leaves(self, steps: int | None) -> Numbers:
        """There are none."""
        return np.zeros(0, np.int64)


class OutcomesChart:
    """What was explored of a model by outcomes, from a state on."""

    def __init__(self, model: Outcomes, root: Any) -> None:
        self._model, self.read = model, 0  # pairs that were read
        self.states: list[Any] = [root]
        self._number = {root: 0}
        self._depths = array("q", [0])  # least number of steps to each node
        self._explored = array("b", [0])
        self._node, self._pairs, self._first = array("q"), array("q", [0]), array("q", [0])
        self._reward, self._probability, self._to = array("d"), array("d"), array("q")

    def actions(self, leaf: int) -> tuple[Any, ...]:
        """The actions of a leaf's state."""
        return self._model.actions(self.states[leaf])

    def explore(self, leaf: int) -> None:
        """Read the outcomes of all actions of a leaf."""
        for action in self.actions(leaf):
            expected = 0.0
            for p, after, reward, ended in self._model.outcomes(self.states[leaf], action):
                expected += p * reward
                if not ended:
                    self._probability.append(p)
                    self._to.append(self._found(after, leaf))
            self._reward.append(expected)
            self._first.append(len(self._to))
            self.read += 1
        self._node.append(leaf)
        self._pairs.append(self.read)
        self._explored[leaf] = 1

    def _found(self, state: Any, before: int) -> int:
        """The node of a state that was reached from another."""
        node = self._number.setdefault(state, len(self.states))
        if node == len(self.states):
            self.states.append(state)
            self._depths.append(self._depths[before] + 1)
            self._explored.append(0)
        return node

    def rows(self, h: int = 0) -> Rows:
        """The rows, the same after any number of steps."""
        first, to = np.array(self._first), np.array(self._to)
        transitions = _matrix(np.array(self._probability), to, first, len(self.states))
        return Rows(np.array(self._node), np.array(self._pairs), np.array(self._reward), transitions)

    @property
    def depth(self) -> int:
        """The largest number of steps to a node."""
        return max(self._depths)

    def leaves(self, steps: int | None) -> Numbers:
        """The leaves that can be reached before the last of so many steps."""
        leaves = np.flatnonzero(np.array(self._explored) == 0)
        return leaves if steps is None else leaves[np.array(self._depths)[leaves] < steps]


def _sums(counts: Numbers) -> Numbers:
    """Where parts of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)])


def _matrix(probability: Values, node: Numbers, first: Numbers, nodes: int) -> Any:
    """A sparse matrix with a row for each pair."""
    return sparse.csr_array((probability, node, first), shape=(len(first) - 1, nodes))
