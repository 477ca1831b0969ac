"""What any rule needs that is right with probability 1 - delta: a lower bound on its expected calls."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from pacplan import exact
from pacplan.core import checks
from pacplan.models.protocol import Table
from pacplan.theory.alternatives import Denial
from pacplan.theory.histories import Floats, Graph, History, histories, recurring

_ROUNDS = 200
# Of values: closer than this to epsilon counts as epsilon-optimal.
_ROUNDING = 1e-12
# All sets of so many answers are denied; of more, only single ones and all together.
_MANY = 4


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the expected calls.

    Attributes:
        calls: the bound.
        time: calls / kl(delta, 1 - delta). If a single action is epsilon-optimal, this is the
            characteristic time T*, which does not depend on delta.
        answers: the actions that are epsilon-optimal.
        at_most: what the bound would be at most if all alternatives of the class were taken, not only
            those found; for H > 1 as far as a local search can tell.
        visits: the calls of each pair with which `at_most` of them are enough, by its history
            (a_0, s_1, a_1, ..., a_h), or by (s, a) without a horizon.
    """

    calls: float
    time: float
    answers: tuple[int, ...]
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
    rewards in `reward_range` and of the successors that it has here. Without a horizon: those that call
    any pair (s, a) at any time, and a pair may have any joint law of rewards and of all the states, and
    of the end if the model may end. A rule that is told more may need less.

    docs/limit.md has the theorem, and how the bound is computed: by cutting planes, each of which gives
    a valid bound, up to the solver's rounding of about 1e-7, whatever alternatives were missed. Where
    H > 1 or more than four actions are epsilon-optimal, some may be.

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


class _Program:
    """The linear program over N and q, and what makes it grow."""

    def __init__(self, graph: Graph, epsilon: float, delta: float) -> None:
        self.graph, self.delta, self.pairs = graph, delta, len(graph.nodes)
        actions = np.flatnonzero(graph.nodes == 0).tolist()
        values = graph.solve(graph.chances)[actions]
        self.answers = np.flatnonzero(values.max() - values <= epsilon + _ROUNDING).tolist()
        # All sets of answers; if these are many, each answer, and all of them.
        many = len(self.answers)
        sizes = range(1, many + 1) if many <= _MANY else (1, many)
        sets = itertools.chain.from_iterable(itertools.combinations(self.answers, k) for k in sizes)
        self.denials = [
            Denial(graph, rival, denied, epsilon)
            for denied, rival in itertools.product(sets, actions)
            if rival not in denied
        ]
        # Each row is at most its side; a row of an alternative says sum_e N_e K_e >= kl(q(A), delta).
        self.rows: list[Floats] = []
        self.sides: list[float] = []
        # No node is visited more often than its parent leads to it; an answer is likely right.
        for node, (parent, p) in enumerate(graph.parents):
            if parent >= 0:
                row = np.append(graph.nodes == node, np.zeros(many))
                row[parent] = -p
                self._add(row, 0.0)
        self._add(np.repeat([0.0, -1.0], [self.pairs, many]), delta - 1.0)

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
        price = kl(1.0 - self.delta, self.delta)
        return LowerBound(
            calls=calls,
            time=calls / price if price > 0.0 else math.nan,
            answers=tuple(self.graph.histories[a][-1] for a in self.answers),
            at_most=max(at_most, calls),
            visits=dict(zip(self.graph.histories, inside.tolist(), strict=False)),
        )

    def _even(self) -> Floats:
        """Every action of a node as often as the others, every answer as likely."""
        visits = np.zeros(self.pairs)
        for node, (parent, p) in enumerate(self.graph.parents):
            pairs = self.graph.nodes == node
            visits[pairs] = (1.0 if parent < 0 else p * visits[parent]) / pairs.sum()
        answers = len(self.answers)
        return np.append(visits, np.full(answers, (1.0 - self.delta) / answers))

    def _cut(self, point: Floats, *, thorough: bool) -> float:
        """Add alternatives that are cheap for N and q; N must be multiplied by the result for them."""
        needed = 0.0
        for denial in self.denials:
            places = [self.pairs + self.answers.index(a) for a in denial.denied]
            # No more than 1 - delta is ever needed of q.
            at = max(self.delta, min(1.0 - self.delta, float(point[places].sum())))
            price = kl(at, self.delta)
            slope = math.log(at / self.delta) - math.log((1.0 - at) / (1.0 - self.delta))
            for change in denial.cheap(point[: self.pairs], thorough=thorough):
                row = np.append(-change.divergences, np.zeros(len(self.answers)))
                row[places] = slope
                self._add(row, slope * at - price)
                if price > 0.0:
                    needed = max(needed, price / change.cost)
        return needed

    def _least(self) -> tuple[Floats, float]:
        """The N and q of least calls, and these."""
        pairs, answers = self.pairs, len(self.answers)
        found = optimize.linprog(
            np.repeat([1.0, 0.0], [pairs, answers]),
            A_ub=np.array(self.rows),
            b_ub=np.array(self.sides),
            bounds=[(0.0, None)] * pairs + [(0.0, 1.0)] * answers,
            method="highs",
        )
        if found.status != 0:
            raise ArithmeticError(f"the linear program of the lower bound failed: {found.message}")
        return np.maximum(found.x, 0.0), float(found.fun)


def kl(p: float, q: float) -> float:
    """The divergence of two coins, p log(p/q) + (1-p) log((1-p)/(1-q))."""
    return float(special.rel_entr(p, q) + special.rel_entr(1.0 - p, 1.0 - q))
