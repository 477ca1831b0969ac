"""What can be called in a table, and the law of each: the histories from a state on, or all states."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from pacplan import exact
from pacplan.core import checks
from pacplan.models.protocol import Table

# Beyond this a bound would take hours.
_MOST_PAIRS = 1000

# Values are settled when a sweep changes them by no more than this part of the largest.
_ROUNDING = 1e-14

History = tuple[int, ...]
"""A pair: (a_0, s_1, a_1, ..., s_h, a_h), or (s, a) where states recur."""


class Pair(NamedTuple):
    """A history, or a state, and an action, and the law of what it pays and where it leads.

    Outcomes that the law never gives are listed too if another law might: the lowest and the highest
    reward, with each successor.
    """

    history: History
    chances: tuple[float, ...]
    rewards: tuple[float, ...]
    nodes: tuple[int, ...]  # where an outcome leads; -1 if nothing follows


class Node(NamedTuple):
    """A state, if need be reached by one history, and its pairs."""

    pairs: tuple[int, ...]
    parent: int  # the pair that leads here, -1 if it may be called at any time
    chance: float  # with which it does


@dataclass(frozen=True)
class Graph:
    """Nodes that lead to each other; node 0 is the root. In a tree, parents come before children."""

    nodes: list[Node]
    pairs: list[Pair]
    gamma: float

    def values(
        self, laws: Mapping[int, Sequence[float]], near: Sequence[float] | None = None
    ) -> list[float]:
        """Optimal values of all pairs, if the pairs in `laws` have these laws in place of theirs.

        It goes faster from values of the nodes that are near.
        """
        values = [0.0] * len(self.pairs)
        best = list(near or [0.0] * len(self.nodes))
        while True:
            before = best.copy()
            for k in range(len(self.nodes) - 1, -1, -1):
                for e in self.nodes[k].pairs:
                    law = laws.get(e, self.pairs[e].chances)
                    values[e] = sum(map(mul, law, self.scores(e, best)))
                best[k] = max(values[e] for e in self.nodes[k].pairs)
            change = max(abs(new - old) for new, old in zip(best, before, strict=True))
            if change <= _ROUNDING * max(map(abs, best)):
                return values

    def scores(self, e: int, values: Sequence[float]) -> list[float]:
        """What each outcome of a pair is worth, given the values of the nodes."""
        pair = self.pairs[e]
        return [
            reward + (self.gamma * values[k] if k >= 0 else 0.0)
            for reward, k in zip(pair.rewards, pair.nodes, strict=True)
        ]


def recurring(model: Table, root: int, *, gamma: float) -> Graph:
    """The states of a model, each a node. Any law may lead to any of them."""
    if not exact.check_discount(gamma) < 1.0:
        raise ValueError("infinitely many steps need gamma < 1; give a horizon")
    if model.steps is not None:
        raise ValueError("the model is not stationary; give a horizon")
    session = model.open(np.random.SeedSequence(0))
    handle = session.handle.table
    counts = handle.action_counts
    states = [root, *(s for s in range(len(counts)) if counts[s] and s != root)]
    nodes = {state: k for k, state in enumerate(states)} | ({-1: -1} if model.may_end else {})
    extremes = (handle.lowest, handle.lowest + handle.width)
    graph = Graph([], [], gamma)
    for state in states:
        first = len(graph.pairs)
        graph.nodes.append(Node(tuple(range(first, first + int(counts[state]))), -1, 1.0))
        for action in range(int(counts[state])):
            law = {(reward, after): 0.0 for reward in extremes for after in nodes}
            law |= _law(handle, state, action, 0, last=False)
            graph.pairs.append(_pair((state, session.label(state, action)), law, nodes))
    return graph


def histories(model: Table, root: int, *, gamma: float, horizon: int) -> Graph:
    """The tree of a model's histories from a state on.

    Raises:
        ValueError: the tree is too large to work with.
    """
    steps = checks.integer("horizon", horizon, least=1)
    if model.steps is not None and steps > model.steps:
        raise ValueError(f"the model is defined for {model.steps} steps, horizon is {steps}")
    session = model.open(np.random.SeedSequence(0))
    handle = session.handle.table
    tree = Graph([], [], exact.check_discount(gamma))
    waiting: list[tuple[int, int, History, int, float]] = [(0, root, (), -1, 1.0)]
    # Breadth first, so that a node's index is known when it is put into the queue.
    for h, state, history, parent, chance in waiting:
        first = len(tree.pairs)
        count = int(handle.action_counts[state])
        tree.nodes.append(Node(tuple(range(first, first + count)), parent, chance))
        if first + count > _MOST_PAIRS:
            raise ValueError(
                f"the tree of histories has more than {_MOST_PAIRS} pairs; choose a shorter horizon"
            )
        for action in range(count):
            taken = (*history, session.label(state, action))
            law = _law(handle, state, action, h, last=h + 1 == steps)
            nodes: dict[int, int] = {-1: -1}
            reached: dict[int, float] = defaultdict(float)
            for (_, successor), p in law.items():
                reached[successor] += p
            for successor, p in reached.items():
                if successor >= 0:
                    nodes[successor] = len(waiting)
                    waiting.append((h + 1, successor, (*taken, successor), len(tree.pairs), p))
            tree.pairs.append(_pair(taken, law, nodes))
    return tree


def _pair(taken: History, law: Mapping[tuple[float, int], float], nodes: Mapping[int, int]) -> Pair:
    return Pair(
        taken,
        tuple(law.values()),
        tuple(reward for reward, _ in law),
        tuple(nodes[successor] for _, successor in law),
    )


def _law(handle: Any, state: int, action: int, h: int, *, last: bool) -> dict[tuple[float, int], float]:
    """Probabilities of (reward, successor); -1 if nothing follows."""
    row = handle.outcomes[h if handle.per_step else 0, state, action]
    low, high = handle.lowest, handle.lowest + handle.width
    law: dict[tuple[float, int], float] = defaultdict(float)
    for outcome, p in zip(row, np.diff(row["cumulative"], prepend=0.0).tolist(), strict=True):
        if p <= 0.0:
            continue
        successor = -1 if last or outcome["ended"] else int(outcome["state"])
        mean = float(outcome["reward"])
        if handle.bernoulli:
            # A mean may lie outside the range by rounding.
            part = min(1.0, max(0.0, (mean - low) / handle.width))
            paid = {low: 1.0 - part, high: part}
        else:
            paid = {low: 0.0, high: 0.0} | {mean: 1.0}
        for reward, share in paid.items():
            law[reward, successor] += p * share
    return dict(law)
