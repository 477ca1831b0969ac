"""The cheapest problem in which given answers are wrong, if a call of pair e costs N_e KL(P_e, P'_e).

In such a problem a rival is best at the root, and worth more than every denied action by more than
epsilon. Given the values v of all nodes there, each law can be chosen by itself: a pair whose mean
score r + gamma v is above the value of its node is lowered to it; if the means of all pairs of a node
are below its value, the one for which that is cheapest is raised to it. The cheapest law with a given
mean is known (`nearest_below`). So what is searched for is v.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from pacplan.theory.divergence import divergence, nearest_below
from pacplan.theory.histories import Graph

# How near to the farthest value that any law could give: beyond, divergences are infinite.
_FARTHEST = 1e-7
# An alternative must deny answers by more than epsilon, so it does by this part of it more.
_BEYOND = 1e-7
# Other places at which a thorough search starts.
_STARTS = 4

Floats = NDArray[np.float64]


class Change(NamedTuple):
    """Other laws of some pairs, what they cost, and the derivatives of that by the values of nodes."""

    laws: dict[int, list[float]]
    cost: float
    slopes: Floats


class Search:
    """Looks for cheap alternatives, from the last ones on while these are cheap.

    For every rival and set of denied actions it knows values to which searches led.
    """

    def __init__(self, graph: Graph, epsilon: float) -> None:
        self.graph = graph
        self.epsilon = epsilon
        self._truth = self._nodes({})
        self._known: dict[tuple[int, tuple[int, ...]], list[Floats]] = {}
        self._rng = np.random.default_rng(0)

    def cheap(
        self, rival: int, denied: tuple[int, ...], visits: Floats, *, thorough: bool
    ) -> list[Change]:
        """Alternatives in which no denied action is epsilon-optimal.

        Empty if there is none: values cannot be that far apart. A search starts where others ended; a
        thorough one starts in other places, too, and keeps what is cheaper than all before.
        """
        known = self._known.setdefault((rival, denied), [])
        old = len(known)
        fresh: list[Floats] = []
        if thorough or not old:
            others = min(_STARTS, len(self._truth) - 1)
            fresh = [self._truth, *(self._elsewhere() for _ in range(others))]
        found: list[Change] = []
        for i, start in enumerate([*known, *fresh]):
            prices = _Prices(self.graph, rival, denied, visits, self.epsilon * (1.0 + _BEYOND))
            values = prices.minimise(start)
            change = prices.at(values)
            least = min((other.cost for other in found), default=math.inf)
            if i >= old and change.cost >= (1.0 - 1e-6) * least:
                continue
            worth = self.graph.values(change.laws, values.tolist())
            if worth[rival] - max(worth[a] for a in denied) > self.epsilon:
                found.append(change)
                if i >= old:
                    known.append(values)
        return found

    def _nodes(self, laws: dict[int, list[float]]) -> Floats:
        """The values of all nodes."""
        values = self.graph.values(laws)
        return np.array([max(values[e] for e in node.pairs) for node in self.graph.nodes])

    def _elsewhere(self) -> Floats:
        """Values of a problem in which every node is moved some way up or down."""
        laws = {}
        for node in self.graph.nodes:
            part, side = self._rng.uniform(0.0, 0.7), self._rng.choice([-1.0, 1.0])
            for e in node.pairs:
                farthest = int(np.argmax(side * np.array(self.graph.scores(e, list(self._truth)))))
                laws[e] = [(1.0 - part) * p for p in self.graph.pairs[e].chances]
                laws[e][farthest] += part
        return self._nodes(laws)


class _Tilt(NamedTuple):
    """Another law of a pair and its cost. The derivative of that by the scores is slope times law."""

    pair: int
    law: list[float]
    cost: float
    slope: float


class _Prices:
    """Costs of values if a rival is to be best and denied actions are to be `wanted` below it."""

    def __init__(
        self, graph: Graph, rival: int, denied: tuple[int, ...], visits: Floats, wanted: float
    ) -> None:
        self.graph = graph
        self.rivals = [(rival,), *(node.pairs for node in graph.nodes[1:])]
        self.below = {e: wanted if e in denied else 0.0 for node in graph.nodes for e in node.pairs}
        self.visits = visits
        self.unit = wanted
        self._last: tuple[bytes, Change] | None = None

    def at(self, values: Floats) -> Change:
        """The last answer is kept: costs and their derivatives are asked apart."""
        asked = values.tobytes()
        if self._last is None or self._last[0] != asked:
            self._last = asked, self._price(values)
        return self._last[1]

    def _price(self, values: Floats) -> Change:
        cost, slopes, laws = 0.0, np.zeros(len(values)), {}
        for k in range(len(values)):
            for tilt in self._tilts(k, values.tolist()):
                cost += tilt.cost
                laws[tilt.pair] = tilt.law
                slopes[k] -= tilt.slope
                for p, after in zip(tilt.law, self.graph.pairs[tilt.pair].nodes, strict=True):
                    if after >= 0:
                        slopes[after] += self.graph.gamma * tilt.slope * p
        return Change(laws, cost, slopes)

    def _tilts(self, k: int, values: list[float]) -> Iterator[_Tilt]:
        """Lower the pairs of a node that are worth too much; raise one if none is worth enough."""
        scores = {e: self.graph.scores(e, values) for e in self.graph.nodes[k].pairs}
        means = {e: sum(map(mul, self.graph.pairs[e].chances, found)) for e, found in scores.items()}
        for e, found in scores.items():
            if means[e] > values[k] - self.below[e]:
                yield self._tilt(e, found, values[k] - self.below[e], 1.0)
        if all(means[e] < values[k] for e in self.rivals[k]):
            raised = (self._tilt(e, scores[e], values[k], -1.0) for e in self.rivals[k])
            yield min(raised, key=lambda tilt: tilt.cost)

    def _tilt(self, e: int, scores: list[float], target: float, sign: float) -> _Tilt:
        """To the target from above, or with sign -1 from below."""
        signed = [sign * score for score in scores]
        floor = min(signed)
        within = max(sign * target, floor + _FARTHEST * (max(signed) - floor))
        chances = self.graph.pairs[e].chances
        slope, law = nearest_below(chances, signed, within)
        weight = float(self.visits[e])
        return _Tilt(e, law, weight * divergence(chances, law), weight * sign * slope)

    def _room(self, values: Floats) -> tuple[Floats, Floats]:
        """How far values are within what laws could give, and the derivatives of that."""
        given, room, slopes = values.tolist(), [], []

        def within(k: int, sign: float, score: float, after: int, target: float) -> None:
            slope = np.zeros(len(values))
            slope[k] = sign
            if after >= 0:
                slope[after] -= sign * self.graph.gamma
            room.append(sign * (target - score))
            slopes.append(slope)

        for k, node in enumerate(self.graph.nodes):
            outcomes = {
                e: list(zip(self.graph.scores(e, given), self.graph.pairs[e].nodes, strict=True))
                for e in node.pairs
            }
            for e, found in outcomes.items():
                within(k, 1.0, *min(found), given[k] - self.below[e])
            within(k, -1.0, *max(max(outcomes[e]) for e in self.rivals[k]), given[k])
        return np.array(room), np.array(slopes)

    def minimise(self, start: Floats) -> Floats:
        """Values of least cost, near the start."""
        scale = self.at(start).cost or 1.0
        found = optimize.minimize(
            lambda x: self.at(x * self.unit).cost / scale,
            start / self.unit,
            jac=lambda x: self.at(x * self.unit).slopes * self.unit / scale,
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda x: self._room(x * self.unit)[0] / self.unit,
                "jac": lambda x: self._room(x * self.unit)[1],
            },
            options={"ftol": 1e-7, "maxiter": 50},
        )
        return np.asarray(found.x * self.unit)


def subsets(actions: Sequence[int]) -> list[tuple[int, ...]]:
    """All sets of actions but the empty one; if they are many, each action, and all of them."""
    sizes = range(1, len(actions) + 1) if len(actions) <= 4 else (1, len(actions))
    return [chosen for size in sizes for chosen in itertools.combinations(actions, size)]
