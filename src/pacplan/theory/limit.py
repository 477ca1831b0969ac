"""What any rule needs that is right with probability 1 - delta: a lower bound on its expected calls."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from pacplan import exact
from pacplan.core import checks
from pacplan.models.protocol import Table
from pacplan.theory.alternatives import Change, Search, subsets
from pacplan.theory.divergence import bernoulli, divergence
from pacplan.theory.histories import Graph, History, histories, recurring

_ROUNDS = 200
# Of values: closer than this to epsilon counts as epsilon-optimal.
_ROUNDING = 1e-12

Floats = NDArray[np.float64]


class Outcome(NamedTuple):
    """What a law gives with some probability; the successor is None if nothing follows."""

    probability: float
    reward: float
    successor: int | None


@dataclass(frozen=True)
class Alternative:
    """A problem that must be told apart from the true one.

    Attributes:
        rival: an action of the root that is better there than each of `denied` by more than epsilon.
        denied: actions that are epsilon-optimal in truth, and not there.
        laws: the laws that are different, by the history (a_0, s_1, a_1, ..., a_h) of the pair, or by
            (s, a) without a horizon.
        divergences: KL(P, P') of these laws.
    """

    rival: int
    denied: tuple[int, ...]
    laws: dict[History, tuple[Outcome, ...]]
    divergences: dict[History, float]


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the expected calls.

    Attributes:
        calls: the bound.
        time: calls / kl(delta, 1 - delta). If a single action is epsilon-optimal, this is the
            characteristic time T*, which does not depend on delta.
        answers: the actions that are epsilon-optimal.
        alternatives: the problems that the bound was made from.
        at_most: what the bound would be at most if all alternatives of the class were taken, not only
            those found; for H > 1 as far as a local search can tell.
        visits: the calls of each pair, named as in `Alternative.laws`, with which `at_most` of them are
            enough.
    """

    calls: float
    time: float
    answers: tuple[int, ...]
    alternatives: tuple[Alternative, ...]
    at_most: float
    visits: dict[History, float]


def lower_bound(
    model: Table,
    state: int | None = None,
    *,
    epsilon: float,
    delta: float,
    gamma: float,
    horizon: int | None = None,
    tolerance: float = 1e-4,
) -> LowerBound:
    """The calls that any rule needs in expectation if its answers are right with probability 1 - delta.

    *Which rules.* Those that call the model along episodes from the root, stop when they like, and
    return an epsilon-optimal action of the root with probability at least 1 - delta in *every* problem
    of a class: the trees with the histories of this one, in which a pair may have any joint law of
    rewards in `reward_range` and of the successors that it has here. `Bracket` is such a rule if
    nothing is declared and nodes are not merged. A rule that is told more (that rewards are
    deterministic, or that equal states are equal) may need less.

    Without a horizon the rules are those that call any pair (s, a) at any time, as `Atlas` does, and
    the class is all problems with these states and actions: a pair may have any joint law of rewards in
    `reward_range` and of all the states, and of the end if the model may end.

    *Why.* N_e is the expected number of calls of pair e, q(A) the probability of an answer in A, both
    in the true problem. In an alternative in which no action of A is epsilon-optimal, an answer in A
    has probability at most delta. By the chain rule and the data-processing inequality

        sum_e N_e KL(P_e, P'_e) >= kl(q(A), delta)    if q(A) >= delta

    and with a horizon, as a node is visited at most once for each call of its parent that led to it,

        sum over pairs e' of a child of N_e' <= p(child | e) N_e

    Together with q(answers) >= 1 - delta this is a convex problem in N and q. Its least sum of all N_e
    is the bound. If one action alone is epsilon-optimal, q(A) is at least 1 - delta, and the bound is
    T* kl(delta, 1 - delta) with the characteristic time T* of Garivier and Kaufmann (2016). If there
    are several, it is at most that with the T* of the answer that is easiest to prove, which is known
    to be a bound only in the limit of small delta (Degenne and Koolen 2019, for bandits).

    *How.* By cutting planes: linear programs over N and q, with the alternatives found so far and
    tangents of kl. Fewer constraints give a smaller minimum, so each of these programs gives a valid
    bound, up to the solver's rounding of about 1e-7, whatever alternatives were missed. Where H > 1 or
    more than four actions are epsilon-optimal, some may be.

    Args:
        model: the problem.
        state: to plan from.
        epsilon: accuracy.
        delta: probability of a wrong answer.
        gamma: discount; below 1 without a horizon.
        horizon: steps, H; None: infinitely many, in states that recur. The tree of histories may have
            1000 pairs, but expect seconds for 10 pairs and many minutes for 40.
        tolerance: stop when the bound cannot grow by more than this part of itself.
    """
    exact.check_tables(model)
    accuracy = checks.positive("epsilon", epsilon)
    chance = checks.probability("delta", delta)
    stop = checks.positive("tolerance", tolerance)
    root = model.initial_state() if state is None else state
    model.actions(root)  # Raises if there is no such state, or nothing to decide in it.
    if horizon is None:
        graph = recurring(model, root, gamma=gamma)
    else:
        graph = histories(model, root, gamma=gamma, horizon=horizon)
    return _Program(graph, accuracy, chance).solve(stop)


class _Cut(NamedTuple):
    """sum_e N_e K_e >= kl(q(A), delta), K those of an alternative."""

    rival: int
    denied: tuple[int, ...]
    change: Change
    divergences: Floats


class _Program:
    """The linear program over N and q, and what makes it grow."""

    def __init__(self, graph: Graph, epsilon: float, delta: float) -> None:
        self.graph = graph
        self.pairs = len(graph.pairs)
        self.delta = delta
        values = graph.values({})
        self.actions = graph.nodes[0].pairs
        best = max(values[a] for a in self.actions)
        self.answers = [a for a in self.actions if best - values[a] <= epsilon + _ROUNDING]
        self.search = Search(graph, epsilon)
        self.cuts: list[_Cut] = []
        self.rows: list[Floats] = []
        self.sides: list[float] = []
        self._flow()

    def _flow(self) -> None:
        """No node is visited more often than its parent leads to it; an answer is likely right."""
        width = self.pairs + len(self.answers)
        for node in self.graph.nodes:
            if node.parent >= 0:
                row = np.zeros(width)
                row[list(node.pairs)] = 1.0
                row[node.parent] = -node.chance
                self._add(row, 0.0)
        row = np.zeros(width)
        row[self.pairs :] = -1.0
        self._add(row, self.delta - 1.0)

    def _add(self, row: Floats, side: float) -> None:
        self.rows.append(row)
        self.sides.append(side)

    def solve(self, tolerance: float) -> LowerBound:
        """Cut until the bound has come close to what a feasible point needs.

        Asked for are the alternatives that are cheapest half way between a feasible point and the
        program's: corners of the program alone would be followed to and fro for long.
        """
        inside, calls, at_most = self._even(), 0.0, math.inf
        point, thorough = inside, True
        for _ in range(_ROUNDS):
            asked = inside.copy() if thorough else 0.5 * (inside + point)
            needed = self._cut(asked, thorough=thorough)
            total = float(needed * asked[: self.pairs].sum())
            if thorough or total < at_most:
                asked[: self.pairs] *= needed
                inside, at_most = asked, total
            point, calls = self._least()
            close = calls >= (1.0 - tolerance) * at_most
            if close and thorough:
                break
            # A thorough search may find what is cheaper, and then the point inside was not feasible.
            thorough = close
        return self._result(inside, calls, max(at_most, calls))

    def _even(self) -> Floats:
        """Every action of a node as often as the others, every answer as likely."""
        visits = np.zeros(self.pairs)
        for node in self.graph.nodes:
            arrivals = 1.0 if node.parent < 0 else node.chance * visits[node.parent]
            visits[list(node.pairs)] = arrivals / len(node.pairs)
        likely = np.full(len(self.answers), (1.0 - self.delta) / len(self.answers))
        return np.concatenate([visits, likely])

    def _cut(self, point: Floats, *, thorough: bool) -> float:
        """Add alternatives that are cheap for N and q; N must be multiplied by the result for them."""
        visits = point[: self.pairs]
        needed = 0.0
        for denied, rival in self._questions():
            places = [self.pairs + self.answers.index(a) for a in denied]
            # No more than 1 - delta is ever needed of q.
            at = max(self.delta, min(1.0 - self.delta, float(point[places].sum())))
            price, slope = bernoulli(at, self.delta), _slope(at, self.delta)
            for change in self.search.cheap(rival, denied, visits, thorough=thorough):
                cut = _Cut(rival, denied, change, self._divergences(change))
                self.cuts.append(cut)
                row = np.zeros(len(point))
                row[: self.pairs] = -cut.divergences
                row[places] = slope
                self._add(row, slope * at - price)
                if price > 0.0:
                    needed = max(needed, price / change.cost)
        return needed

    def _divergences(self, change: Change) -> Floats:
        divergences = np.zeros(self.pairs)
        for e, law in change.laws.items():
            divergences[e] = divergence(self.graph.pairs[e].chances, law)
        return divergences

    def _questions(self) -> Iterator[tuple[tuple[int, ...], int]]:
        for denied in subsets(self.answers):
            for rival in self.actions:
                if rival not in denied:
                    yield denied, rival

    def _least(self) -> tuple[Floats, float]:
        """The N and q of least calls, and these."""
        pairs, answers = self.pairs, len(self.answers)
        found = optimize.linprog(
            np.concatenate([np.ones(pairs), np.zeros(answers)]),
            A_ub=np.array(self.rows),
            b_ub=np.array(self.sides),
            bounds=[(0.0, None)] * pairs + [(0.0, 1.0)] * answers,
            method="highs",
        )
        if found.status != 0:
            raise ArithmeticError(f"the linear program of the lower bound failed: {found.message}")
        return np.maximum(found.x, 0.0), float(found.fun)

    def _result(self, point: Floats, calls: float, at_most: float) -> LowerBound:
        pairs = self.graph.pairs
        price = bernoulli(1.0 - self.delta, self.delta)
        return LowerBound(
            calls=calls,
            time=calls / price if price > 0.0 else math.nan,
            answers=tuple(self._action(a) for a in self.answers),
            alternatives=tuple(self._alternative(cut) for cut in self.cuts),
            at_most=at_most,
            visits={pair.history: float(n) for pair, n in zip(pairs, point, strict=False)},
        )

    def _action(self, pair: int) -> int:
        """The action of a pair."""
        return self.graph.pairs[pair].history[-1]

    def _alternative(self, cut: _Cut) -> Alternative:
        pairs = self.graph.pairs
        return Alternative(
            rival=self._action(cut.rival),
            denied=tuple(self._action(a) for a in cut.denied),
            laws={pairs[e].history: self._outcomes(e, law) for e, law in cut.change.laws.items()},
            divergences={pairs[e].history: float(cut.divergences[e]) for e in cut.change.laws},
        )

    def _outcomes(self, e: int, law: Sequence[float]) -> tuple[Outcome, ...]:
        pair = self.graph.pairs[e]
        return tuple(
            Outcome(p, reward, self._state(node))
            for p, reward, node in zip(law, pair.rewards, pair.nodes, strict=True)
            if p > 0.0
        )

    def _state(self, node: int) -> int | None:
        """The state of a node: what any of its pairs has before the action."""
        return self.graph.pairs[self.graph.nodes[node].pairs[0]].history[-2] if node >= 0 else None


def _slope(p: float, q: float) -> float:
    """The derivative of kl(p, q) by p."""
    return math.log(p / q) - math.log((1.0 - p) / (1.0 - q))
