"""The cheapest problem in which given answers are wrong, if a call of pair e costs N_e KL(P_e, P'_e).

In such a problem a rival is best at the root, and worth more than every denied action by more than
epsilon. Given the values v of all nodes there, each law can be chosen by itself: a pair whose mean
score r + gamma v is above the value of its node is lowered to it; if the means of all pairs of a node
are below its value, the one for which that is cheapest is raised to it. The cheapest law with a given
mean is known (`nearest_below`). So what is searched for is v.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from pacplan.theory.histories import Floats, Graph

# How near to the farthest value that any law could give: beyond, divergences are infinite.
_FARTHEST = 1e-7
# An alternative must deny answers by more than epsilon, so it does by this part of it more.
_BEYOND = 1e-7
# Other places at which a thorough search starts.
_STARTS = 4
# Newton's method doubles its digits; halving alone would take 60 steps.
_STEPS = 100


class Change(NamedTuple):
    """Laws of all pairs, their divergences, the cost, and its derivatives by the values of nodes."""

    laws: Floats
    divergences: Floats
    cost: float
    slopes: Floats


def nearest_below(chances: Floats, scores: Floats, targets: Floats) -> tuple[Floats, Floats, Floats]:
    """In every row the P' nearest to P, by KL(P, P'), whose mean score is at most the target.

    In its dual form, with the target t above the lowest score,

        min KL(P, P') = max over 0 <= eta <= 1 / (t - min s) of  sum_j P_j log(1 + eta (s_j - t))

    and P'_j = P_j / (1 + eta (s_j - t)) for all but the lowest scores, which share what is missing to 1
    as they share their probability under P. Targets too near the lowest score, or below, are raised.

    Returns:
        The P', their divergences from P, and the derivatives of these by minus the targets.
    """
    floor = scores.min(1)
    target = np.maximum(targets, floor + _FARTHEST * (scores.max(1) - floor))
    width = target - floor
    x = (scores - target[:, None]) / width[:, None]
    u = _steepest(chances, np.where(chances > 0.0, x, 0.0))
    lowest = x <= -1.0
    laws = np.where(lowest, 0.0, chances / np.where(lowest, 1.0, 1.0 + u[:, None] * x))
    # What is missing to 1 is better known than a quotient near 0/0.
    before = np.where(lowest, chances, 0.0)
    never = before.sum(1) <= 0.0
    before[never, lowest[never].argmax(1)] = 1.0
    rest = np.maximum(0.0, 1.0 - laws.sum(1)) / before.sum(1)
    laws += rest[:, None] * before
    laws = np.where(u[:, None] > 0.0, laws / laws.sum(1, keepdims=True), chances)
    ratios = np.divide(chances, laws, out=np.ones_like(laws), where=chances > 0.0)
    return laws, (chances * np.log(ratios)).sum(1), u / width


def _steepest(p: Floats, x: Floats) -> Floats:
    """In every row the u in [0, 1] at which sum p log(1 + u x) is largest; x >= -1.

    It is eta as a part of the largest one. The derivative has a pole at 1 if P ever gives the lowest
    score. Times 1 - u it has none, and is nearly a straight line for Newton's method.
    """
    with np.errstate(divide="ignore"):
        one = (p * x / (1.0 + x)).sum(1) >= 0.0
    inside = ((p * x).sum(1) > 0.0) & ~one
    low, high = np.zeros(len(p)), np.ones(len(p))
    u = np.where(inside, 0.5, 0.0)
    for _ in range(_STEPS):
        y = x / (1.0 + u[:, None] * x)
        slope, curvature = (p * y).sum(1), (p * y * y).sum(1)
        low, high = np.where(slope > 0.0, u, low), np.where(slope > 0.0, high, u)
        bent = curvature * (1.0 - u) + slope
        following = u + slope * (1.0 - u) / np.where(bent == 0.0, 1.0, bent)
        following = np.where((low < following) & (following < high), following, 0.5 * (low + high))
        done = ~inside | (abs(following - u) <= 1e-12 * u)
        u = np.where(done, u, following)
        if done.all():
            break
    return np.where(one & ((p * x).sum(1) > 0.0), 1.0, u)


class Denial:
    """Looks for cheap problems in which one action of the root, the rival, denies some answers.

    In these no denied action is epsilon-optimal.
    """

    def __init__(self, graph: Graph, rival: int, denied: tuple[int, ...], epsilon: float) -> None:
        self.graph, self.rival, self.denied = graph, rival, denied
        self._epsilon, self._wanted = epsilon, epsilon * (1.0 + _BEYOND)
        # Which pairs may be as good as their nodes, and by how much the others must be worse.
        pairs = np.arange(len(graph.nodes))
        self._able = (graph.nodes > 0) | (pairs == rival)
        self._below = np.where(np.isin(pairs, denied), self._wanted, 0.0)
        self._truth = graph.best(graph.solve(graph.chances))
        self._known: list[Floats] = []
        self._rng = np.random.default_rng(0)

    def cheap(self, visits: Floats, *, thorough: bool) -> list[Change]:
        """Alternatives that are cheap for these calls; none if values cannot be that far apart.

        A search starts where others ended; a thorough one starts in other places, too, and keeps what
        is cheaper than all before.
        """
        known, fresh = len(self._known), list[Floats]()
        if thorough or not known:
            others = min(_STARTS, len(self._truth) - 1)
            fresh = [self._truth, *(self._elsewhere() for _ in range(others))]
        found: list[Change] = []
        for i, start in enumerate([*self._known, *fresh]):
            values = self._minimise(start, visits)
            change = self._at(values, visits)
            if i >= known and any(change.cost >= (1.0 - 1e-6) * other.cost for other in found):
                continue
            worth = self.graph.solve(change.laws, values)
            if worth[self.rival] - worth[list(self.denied)].max() > self._epsilon:
                found.append(change)
                if i >= known:
                    self._known.append(values)
        return found

    def _elsewhere(self) -> Floats:
        """Values of a problem in which every node is moved some way up or down."""
        graph, nodes = self.graph, len(self._truth)
        part = self._rng.uniform(0.0, 0.7, nodes)[graph.nodes]
        side = self._rng.choice([-1.0, 1.0], nodes)[graph.nodes]
        farthest = (side[:, None] * graph.scores(self._truth)).argmax(1)
        laws = (1.0 - part[:, None]) * graph.chances
        laws[np.arange(len(laws)), farthest] += part
        return graph.best(graph.solve(laws))

    def _minimise(self, start: Floats, visits: Floats) -> Floats:
        """Values of least cost, near the start."""
        scale, unit = self._at(start, visits).cost or 1.0, self._wanted

        def cost(x: Floats) -> tuple[float, Floats]:
            change = self._at(x * unit, visits)
            return change.cost / scale, change.slopes * unit / scale

        found = optimize.minimize(
            cost,
            start / unit,
            jac=True,
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda x: self._room(x * unit)[0] / unit,
                "jac": lambda x: self._room(x * unit)[1],
            },
            options={"ftol": 1e-7, "maxiter": 50},
        )
        return np.asarray(found.x * unit)

    def _at(self, values: Floats, visits: Floats) -> Change:
        """The laws that the values ask for, and what they cost."""
        graph, scores = self.graph, self.graph.scores(values)
        wanted = values[graph.nodes]
        laws, divergences, slopes = nearest_below(graph.chances, scores, wanted - self._below)
        raised, costs, rises = nearest_below(graph.chances, -scores, -wanted)
        # A pair that is good enough need not be raised, however little its calls cost.
        chosen = self._one_each(costs, visits * costs)
        chosen = chosen[costs[chosen] > 0.0]
        laws[chosen], divergences[chosen] = raised[chosen], costs[chosen]
        slopes[chosen] = -rises[chosen]
        slopes *= visits
        later = (graph.gamma * slopes[:, None] * laws).ravel()
        by_node = np.bincount(graph.successors.ravel(), later, len(values) + 1)[:-1]
        slopes = np.asarray(by_node - np.bincount(graph.nodes, slopes))
        return Change(laws, divergences, float(visits @ divergences), slopes)

    def _room(self, values: Floats) -> tuple[Floats, Floats]:
        """How far values are within what laws could give, and the derivatives of that."""
        graph, scores = self.graph, self.graph.scores(values)
        unit = np.eye(len(values) + 1)
        pairs, worst = np.arange(len(scores)), scores.argmin(1)
        best = self._one_each(-scores.max(1))
        first = scores[best].argmax(1)
        room = values[graph.nodes] - self._below - scores[pairs, worst], scores[best, first] - values
        slopes = (
            unit[graph.nodes] - graph.gamma * unit[graph.successors[pairs, worst]],
            graph.gamma * unit[graph.successors[best, first]] - unit[:-1],
        )
        return np.concatenate(room), np.concatenate(slopes)[:, :-1]

    def _one_each(self, *keys: Floats) -> NDArray[np.int64]:
        """Of each node's pairs that are able, the one where the last key is smallest."""
        keys = (*keys[:-1], np.where(self._able, keys[-1], np.inf))
        return np.lexsort((*keys, self.graph.nodes))[self.graph.first]
