"""What can be called in a table, and the law of each: the histories from a state on, or all states."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.horizons import check_steps
from pacplan.core import checks
from pacplan.models.protocol import Table

# Beyond this a bound would take hours.
_MOST_PAIRS = 1000

# Values are settled when a sweep changes them by no more than this part of the largest.
_ROUNDING = 1e-14

Floats = NDArray[np.float64]

History = tuple[int, ...]
"""A pair: (a_0, s_1, a_1, ..., s_h, a_h), or (s, a) where states recur."""

Law = dict[tuple[float, int], float]
"""Probabilities of (reward, what follows); -1 if nothing follows."""


class Graph:
    """Nodes (a state, if need be reached by one history) and their pairs; node 0 is the root.

    Outcomes that a law never gives are listed too if another law might: the lowest and the highest
    reward, with each successor.

    Attributes:
        histories: of the pairs; those of a node come one after the other.
        parents: for every node the pair that leads to it (-1 if it may be called at any time), and with
            which chance.
        nodes: of each pair.
        first: pair of each node.
        chances, rewards, successors: of the outcomes of each pair, a row for each. Successors are
            nodes, and the number of nodes stands for none. Rows are filled up with impossible copies.
    """

    def __init__(
        self,
        gamma: float,
        parents: Sequence[tuple[int, float]],
        pairs: Sequence[tuple[int, History, Law]],
    ) -> None:
        self.gamma, self.parents = gamma, parents
        self.histories = [history for _, history, _ in pairs]
        self.nodes = np.array([node for node, _, _ in pairs])
        self.first = np.flatnonzero(np.diff(self.nodes, prepend=-1))
        width = max(len(law) for _, _, law in pairs)
        rows = [[*law, *[next(iter(law))] * (width - len(law))] for _, _, law in pairs]
        self.rewards = np.array([[reward for reward, _ in row] for row in rows])
        follows = np.array([[node for _, node in row] for row in rows])
        self.successors = np.where(follows < 0, len(parents), follows)
        self.chances = np.zeros(self.rewards.shape)
        for e, (_, _, law) in enumerate(pairs):
            self.chances[e, : len(law)] = list(law.values())

    def scores(self, values: Floats) -> Floats:
        """What each outcome of each pair is worth, given the values of the nodes."""
        return self.rewards + self.gamma * np.append(values, 0.0)[self.successors]

    def best(self, pairs: Floats) -> Floats:
        """The largest of the numbers of each node's pairs."""
        return np.maximum.reduceat(pairs, self.first)

    def solve(self, laws: Floats, near: Floats | None = None) -> Floats:
        """Optimal values of all pairs under these laws; quicker from values of nodes that are near."""
        best = np.zeros(len(self.parents)) if near is None else near
        while True:
            pairs = np.asarray((laws * self.scores(best)).sum(1))
            before, best = best, self.best(pairs)
            if abs(best - before).max() <= _ROUNDING * abs(best).max():
                return pairs


def recurring(model: Table, root: int, *, gamma: float) -> Graph:
    """The states of a model, each a node. Any law may lead to any of them."""
    if not checks.within_one("gamma", gamma) < 1.0:
        raise ValueError("infinitely many steps need gamma < 1; give a horizon")
    if model.steps is not None:
        raise ValueError("the model is not stationary; give a horizon")
    session = model.open(np.random.SeedSequence(0))
    handle = session.handle.table
    counts = handle.action_counts
    states = [root, *(s for s in range(len(counts)) if counts[s] and s != root)]
    nodes = {state: k for k, state in enumerate(states)} | ({-1: -1} if model.may_end else {})
    pairs = []
    for k, state in enumerate(states):
        for action in range(int(counts[state])):
            law = {(r, s): 0.0 for r in (handle.lowest, handle.lowest + handle.width) for s in nodes}
            law |= _law(handle, state, action, 0, last=False)
            named = {(reward, nodes[s]): p for (reward, s), p in law.items()}
            pairs.append((k, (state, session.label(state, action)), named))
    return Graph(gamma, [(-1, 1.0)] * len(states), pairs)


def histories(model: Table, root: int, *, gamma: float, horizon: int) -> Graph:
    """The tree of a model's histories from a state on.

    Raises:
        ValueError: the tree is too large to work with.
    """
    discount = checks.within_one("gamma", gamma)
    steps = checks.integer("horizon", horizon, least=1)
    check_steps(model, steps)
    session = model.open(np.random.SeedSequence(0))
    handle = session.handle.table
    parents, pairs = [(-1, 1.0)], list[tuple[int, History, Law]]()
    waiting: list[tuple[int, int, History]] = [(0, root, ())]
    # Breadth first, so that a node's index is known when it is put into the queue.
    for k, (h, state, history) in enumerate(waiting):
        for action in range(int(handle.action_counts[state])):
            taken = (*history, session.label(state, action))
            law = _law(handle, state, action, h, last=h + 1 == steps)
            reached: dict[int, float] = defaultdict(float)
            for (_, successor), p in law.items():
                reached[successor] += p
            nodes = {-1: -1}
            for successor in reached.keys() - {-1}:
                nodes[successor] = len(waiting)
                waiting.append((h + 1, successor, (*taken, successor)))
                parents.append((len(pairs), reached[successor]))
            pairs.append((k, taken, {(reward, nodes[s]): p for (reward, s), p in law.items()}))
        if len(pairs) > _MOST_PAIRS:
            raise ValueError(
                f"the tree of histories has more than {_MOST_PAIRS} pairs; choose a shorter horizon"
            )
    return Graph(discount, parents, pairs)


def _law(handle: Any, state: int, action: int, h: int, *, last: bool) -> Law:
    """What a table says of a pair, in terms of its states."""
    row = handle.outcomes[h if handle.per_step else 0, state, action]
    low, high = handle.lowest, handle.lowest + handle.width
    law: Law = defaultdict(float)
    for outcome, p in zip(row, np.diff(row["cumulative"], prepend=0.0).tolist(), strict=True):
        if p <= 0.0:
            continue
        successor = -1 if last or outcome["ended"] else int(outcome["state"])
        paid = {low: 0.0, high: 0.0} | {float(outcome["reward"]): 1.0}
        if handle.bernoulli:
            # A mean may lie outside the range by rounding.
            part = min(1.0, max(0.0, (float(outcome["reward"]) - low) / handle.width))
            paid = {low: 1.0 - part, high: part}
        for reward, share in paid.items():
            law[reward, successor] += p * share
    return law
