"""The tree of histories of a table: what a search from its root can see, with the law of each pair."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pacplan import exact
from pacplan.core import checks
from pacplan.models.protocol import Table

# Beyond this a bound would take hours.
_MOST_PAIRS = 1000

History = tuple[int, ...]
"""A pair of the tree: (a_0, s_1, a_1, ..., s_h, a_h)."""


class Pair(NamedTuple):
    """A history and an action, and the law of what it pays and where it leads, outcome by outcome.

    Outcomes that the law never gives are listed too if another law might: the lowest and the highest
    reward, with each successor.
    """

    history: History
    chances: tuple[float, ...]
    rewards: tuple[float, ...]
    nodes: tuple[int, ...]  # where an outcome leads; -1 if nothing follows


class Node(NamedTuple):
    """A state reached by one history, and its pairs."""

    pairs: tuple[int, ...]
    parent: int  # the pair that leads here, -1 at the root
    chance: float  # with which it does


@dataclass(frozen=True)
class Tree:
    """All histories of H steps. The root is node 0, and parents come before their children."""

    nodes: list[Node]
    pairs: list[Pair]
    gamma: float

    def values(self, laws: Mapping[int, Sequence[float]]) -> list[float]:
        """Optimal values of all pairs, if the pairs in `laws` have these laws in place of theirs."""
        values = [0.0] * len(self.pairs)
        for node in reversed(self.nodes):
            for e in node.pairs:
                pair = self.pairs[e]
                law = laws.get(e, pair.chances)
                values[e] = sum(
                    p * (r + self.gamma * max((values[f] for f in self.following(k)), default=0.0))
                    for p, r, k in zip(law, pair.rewards, pair.nodes, strict=True)
                )
        return values

    def following(self, node: int) -> tuple[int, ...]:
        """The pairs of a node; none after the last step and after the end."""
        return self.nodes[node].pairs if node >= 0 else ()


def histories(model: Table, root: int, *, gamma: float, horizon: int) -> Tree:
    """The tree of a model's histories from a state on.

    Raises:
        ValueError: the tree is too large to work with.
    """
    exact.check_tables(model)
    steps = checks.integer("horizon", horizon, least=1)
    if model.steps is not None and steps > model.steps:
        raise ValueError(f"the model is defined for {model.steps} steps, horizon is {steps}")
    session = model.open(np.random.SeedSequence(0))
    handle = session.handle.table
    tree = Tree([], [], exact.check_discount(gamma))
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
            tree.pairs.append(
                Pair(
                    taken,
                    tuple(law.values()),
                    tuple(reward for reward, _ in law),
                    tuple(nodes[successor] for _, successor in law),
                )
            )
    return tree


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
