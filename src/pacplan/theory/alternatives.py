"""The cheapest problem in which given answers are wrong, if a call of pair e costs N_e KL(P_e, P'_e).

In such a problem a rival c is worth more than epsilon above every denied action a. Below c it is enough
to raise one action at each node, those of a policy; below a *all* actions of a node must be lowered.
Both are the same work seen from two sides, so here everything is pushed down, and rewards below c count
negatively.

What is searched for is how far each node is pushed: given the values of what follows, the cheapest
law of a pair with a given value is known (`nearest_below`). In z = 0 a node keeps the value that the
laws of its pairs and the pushed values below it give, and towards z = 1 it goes to the lowest value
that any laws could. That makes every z a problem, and the derivatives are those of the dual form.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from pacplan.theory.divergence import divergence, nearest_below
from pacplan.theory.histories import Tree

_FARTHEST = 1.0 - 1e-7
# An alternative must deny answers by more than epsilon, so it does by this part of it more.
_BEYOND = 1e-7

Floats = NDArray[np.float64]
_Question = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]


class Change(NamedTuple):
    """Other laws of some pairs, and what they cost."""

    laws: dict[int, list[float]]
    cost: float


class Pushed(NamedTuple):
    """A side of an alternative: the value of its top and what it costs, with derivatives by z."""

    value: float
    value_by: Floats
    cost: float
    cost_by: Floats
    laws: dict[int, list[float]]


@dataclass(frozen=True)
class Side:
    """Groups of pairs, each pushed down to a value of its own.

    Attributes:
        tree: of all histories.
        groups: the pairs of each; parents come before children.
        below: for each node that matters the group of its pairs.
        sign: 1, or -1 to push values up.
    """

    tree: Tree
    groups: list[tuple[int, ...]]
    below: dict[int, int]
    sign: float

    @classmethod
    def lowered(cls, tree: Tree, actions: tuple[int, ...]) -> "Side":
        """All of these pairs, and so all pairs of every node below them."""
        return cls._grown(tree, actions, None, 1.0)

    @classmethod
    def raised(cls, tree: Tree, action: int, policy: dict[int, int]) -> "Side":
        """A pair, and at each node below it the pair that a policy takes."""
        return cls._grown(tree, (action,), policy, -1.0)

    @classmethod
    def _grown(
        cls, tree: Tree, top: tuple[int, ...], policy: dict[int, int] | None, sign: float
    ) -> "Side":
        groups, below = [top], {}
        for group in groups:
            for e in group:
                for node in sorted(set(tree.pairs[e].nodes) - {-1}):
                    below[node] = len(groups)
                    groups.append(tree.nodes[node].pairs if policy is None else (policy[node],))
        return cls(tree, groups, below, sign)

    def scores(self, e: int, values: list[float]) -> list[float]:
        """What each outcome of a pair is worth, given the values of the groups below it."""
        pair = self.tree.pairs[e]
        return [
            self.sign * reward + (self.tree.gamma * values[self.below[node]] if node >= 0 else 0.0)
            for reward, node in zip(pair.rewards, pair.nodes, strict=True)
        ]

    def push(self, z: Floats, visits: Floats) -> Pushed:
        """Push each group by its z."""
        count = len(self.groups)
        values = [0.0] * count
        moves: list[_Move] = [_NO_MOVE] * count
        cost, laws = 0.0, {}
        for g in range(count - 1, -1, -1):
            group = self.groups[g]
            scores = {e: self.scores(e, values) for e in group}
            means = {e: sum(map(mul, self.tree.pairs[e].chances, scores[e])) for e in group}
            dearest = max(group, key=means.__getitem__)
            highest_floor = max(group, key=lambda e: min(scores[e]))
            top, floor = means[dearest], min(scores[highest_floor])
            values[g] = top - float(z[g]) * (top - floor)
            slopes: dict[int, float] = {}
            for e in group:
                if means[e] > values[g]:
                    chances = self.tree.pairs[e].chances
                    slopes[e], laws[e] = nearest_below(chances, scores[e], values[g])
                    cost += visits[e] * divergence(chances, laws[e])
            at = scores[highest_floor].index(floor)
            moves[g] = _Move(top - floor, dearest, highest_floor, at, slopes)
        by_value = self._trace(z, moves, {}, visits, 1.0)
        by_cost = self._trace(z, moves, laws, visits, 0.0)
        return Pushed(values[0], by_value, cost, by_cost, laws)

    def _trace(
        self,
        z: Floats,
        moves: "Sequence[_Move]",
        laws: dict[int, list[float]],
        visits: Floats,
        of_top: float,
    ) -> Floats:
        """Derivatives by z, from the top down: of the top's value, or, with `laws`, of the cost."""
        by_z, by_value = np.zeros(len(z)), np.zeros(len(z))
        by_value[0] = of_top
        for g, move in enumerate(moves):
            of_target = by_value[g]
            for e, slope in move.slopes.items():
                if e in laws:
                    of_target -= visits[e] * slope
                    self._share(e, visits[e] * slope, laws[e], by_value)
            by_z[g] = -of_target * move.room
            self._share(
                move.dearest, of_target * (1.0 - z[g]), self.tree.pairs[move.dearest].chances, by_value
            )
            node = self.tree.pairs[move.highest_floor].nodes[move.at]
            if node >= 0:
                by_value[self.below[node]] += self.tree.gamma * of_target * z[g]
        return by_z

    def _share(self, e: int, amount: float, law: Sequence[float], by_value: Floats) -> None:
        """Pass a derivative by the mean score of a pair on to the values that follow."""
        for p, node in zip(law, self.tree.pairs[e].nodes, strict=True):
            if node >= 0:
                by_value[self.below[node]] += self.tree.gamma * amount * p


class _Move(NamedTuple):
    """What the derivatives of a group depend on: its value is top - z room, room = top - floor."""

    room: float
    dearest: int  # the pair whose mean is the top
    highest_floor: int  # the pair whose lowest score is the floor
    at: int  # and that score
    slopes: dict[int, float]


_NO_MOVE = _Move(0.0, 0, 0, 0, {})


class Search:
    """Looks for cheap alternatives in one tree, from the last ones on while these are cheap.

    For every rival and set of denied actions it knows policies by which the rival rose cheaply.
    """

    def __init__(self, tree: Tree, epsilon: float) -> None:
        self.tree = tree
        self.epsilon = epsilon
        values = tree.values({})
        self._best = {
            k: max(node.pairs, key=values.__getitem__) for k, node in enumerate(tree.nodes) if k
        }
        self._known: dict[tuple[int, tuple[int, ...]], list[dict[int, int]]] = {}
        # Where searches start and where they ended, by the denied actions and what is raised.
        self._first: dict[_Question, Floats | None] = {}
        self._last: dict[_Question, Floats] = {}

    def cheap(
        self, rival: int, denied: tuple[int, ...], visits: Floats, *, thorough: bool
    ) -> list[Change]:
        """Alternatives in which no denied action is epsilon-optimal, one for each policy known.

        Empty if there is none: values cannot be that far apart. A thorough search starts anew,
        and looks for policies that are cheaper than those known, changing one node of one of them.
        """
        known = self._known.setdefault((rival, denied), [self._best])
        if thorough:
            self._last.clear()
        tried = (self._with(rival, denied, policy, visits) for policy in known)
        found = [change for change in tried if change]
        least = min((change.cost for change in found), default=math.inf)
        # The list grows while it is gone through.
        for policy in known if thorough else ():
            for other in self._neighbours(rival, policy):
                change = None if other in known else self._with(rival, denied, other, visits)
                if change and change.cost < (1.0 - 1e-6) * least:
                    least = change.cost
                    found.append(change)
                    known.append(other)
        return found

    def _neighbours(self, rival: int, policy: dict[int, int]) -> Iterator[dict[int, int]]:
        """The policies that differ at one of the nodes that matter."""
        for node in Side.raised(self.tree, rival, policy).below:
            for e in self.tree.nodes[node].pairs:
                if e != policy[node]:
                    yield policy | {node: e}

    def _with(
        self, rival: int, denied: tuple[int, ...], policy: dict[int, int], visits: Floats
    ) -> Change | None:
        """The same with one policy for the rival."""
        up = Side.raised(self.tree, rival, policy)
        sides = _Sides(up, Side.lowered(self.tree, denied), visits, self.epsilon * (1.0 + _BEYOND))
        key = denied, tuple(up.groups)
        if key not in self._first:
            self._first[key] = sides.reach()
        start = self._first[key]
        if start is None:
            return None
        start = min(start, self._last.get(key, start), key=sides.cost)
        z = self._last[key] = sides.minimise(start)
        raised, lowered = sides.push(z)
        laws = raised.laws | lowered.laws
        values = self.tree.values(laws)
        if values[rival] - max(values[a] for a in denied) <= self.epsilon:
            return None
        return Change(laws, raised.cost + lowered.cost)


class _Sides:
    """A rival that is raised and actions that are lowered, until they are `wanted` apart."""

    def __init__(self, up: Side, down: Side, visits: Floats, wanted: float) -> None:
        self.up, self.down = up, down
        self.visits = visits
        self.wanted = wanted
        self.split = len(up.groups)
        self.count = self.split + len(down.groups)
        self._last: tuple[bytes, tuple[Pushed, Pushed]] | None = None

    def push(self, z: Floats) -> tuple[Pushed, Pushed]:
        """Both sides, pushed by z. The last answer is kept: values and derivatives are asked apart."""
        asked = z.tobytes()
        if self._last is None or self._last[0] != asked:
            raised = self.up.push(z[: self.split], self.visits)
            self._last = asked, (raised, self.down.push(z[self.split :], self.visits))
        return self._last[1]

    def beyond(self, z: Floats) -> float:
        """How much farther apart they are than wanted."""
        raised, lowered = self.push(z)
        return -raised.value - lowered.value - self.wanted

    def beyond_by(self, z: Floats) -> Floats:
        """Its derivatives."""
        raised, lowered = self.push(z)
        return -np.concatenate([raised.value_by, lowered.value_by])

    def cost(self, z: Floats) -> float:
        """What the laws cost."""
        raised, lowered = self.push(z)
        return raised.cost + lowered.cost

    def cost_by(self, z: Floats) -> Floats:
        """Its derivatives."""
        raised, lowered = self.push(z)
        return np.concatenate([raised.cost_by, lowered.cost_by])

    def reach(self) -> Floats | None:
        """The least z, the same for all groups, that goes far enough; None if none does."""
        low, high = 0.0, _FARTHEST
        if self.beyond(np.full(self.count, high)) < 0.0:
            return None
        for _ in range(20):
            middle = 0.5 * (low + high)
            if self.beyond(np.full(self.count, middle)) < 0.0:
                low = middle
            else:
                high = middle
        return np.full(self.count, high)

    def minimise(self, start: Floats) -> Floats:
        """The z of least cost that goes far enough; `start`, which does, if none was found."""
        scale = self.cost(start) or 1.0
        found = optimize.minimize(
            lambda z: self.cost(z) / scale,
            start,
            jac=lambda z: self.cost_by(z) / scale,
            method="SLSQP",
            bounds=[(0.0, _FARTHEST)] * self.count,
            constraints={"type": "ineq", "fun": self.beyond, "jac": self.beyond_by},
            options={"ftol": 1e-9, "maxiter": 100},
        )
        z = np.clip(found.x, 0.0, _FARTHEST)
        # The constraint holds up to rounding; a little on the way back to the start it holds entirely.
        for part in (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
            mended = (1.0 - part) * z + part * start
            if self.beyond(mended) >= -0.5 * _BEYOND * self.wanted:
                return np.asarray(mended)
        return start


def subsets(actions: Sequence[int]) -> list[tuple[int, ...]]:
    """All sets of actions but the empty one; if they are many, each action, and all of them."""
    sizes = range(1, len(actions) + 1) if len(actions) <= 4 else (1, len(actions))
    return [chosen for size in sizes for chosen in itertools.combinations(actions, size)]
