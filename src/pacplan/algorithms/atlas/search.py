"""The algorithm: chart, design, prove."""

import math
from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.atlas.chart import Chart, make_calls
from pacplan.algorithms.atlas.claims import by_pair, stakes
from pacplan.algorithms.atlas.design import Designer
from pacplan.algorithms.atlas.estimate import Values
from pacplan.algorithms.atlas.problem import Design, Problem
from pacplan.algorithms.atlas.records import Records
from pacplan.algorithms.common.plans import best_estimate
from pacplan.engine.calls import ABORTED, CHUNK_DONE, FULL, RULE
from pacplan.engine.driver import Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.tree import LINKS
from pacplan.models.knowledge import bounds_of
from pacplan.models.protocol import Session
from pacplan.policy import Policy

# First calls of each pair.
_FIRST = 4
# Calls before a round: of what the margins say, so many times, and of what the bets need, this part.
_LEARN, _PART = 8.0, 0.1
# Coarser accuracies are proven by this part of all calls, and of those that are wanted anyway; they are
# looked for again when there are so many times the calls, at least and at most.
_CHEAP, _SHARED = 0.2, 0.5
_AT_LEAST, _AT_MOST = 1.3, 2.0
# They are not worth while unless the plan seems to take so many times the calls.
_FAR = 4.0
# Reference states are compared again whenever there are so many times the calls.
_AGAIN = 1.5
# So much may be short of that, in parts of all calls.
_SHORT = 0.02
# After a round that failed, more is learnt: by this factor, and of its hard pairs by that part.
_MORE, _HARDER = 1.4, 0.7
# What rounds take of what is left of delta: at the accuracy asked for, and at coarser ones.
_TAKEN, _COARSE = 0.7, 0.05
# More than rounding can add to the logarithm of a wealth.
_ADDED = 1e-6
# A round is given up if it seems to take so many times the calls that were planned, or so many more.
_TOO_MANY, _SLACK = 2.5, 2000.0
# Calls of a batch: parts of what was planned, of what was called, and of what remains; and the least.
_BATCH, _GROWTH, _REST, _LEAST = 0.25, 0.2, 0.5, 4.0
# A pair is called so often before that, times the square of the number of rounds.
_PATIENCE = 8
# Pairs are hard that still take so many times their plan, and so many calls.
_HARD, _MANY = 3.0, 50.0

# New states keep coming if there are so many times those there were after half of the calls.
_KEEP_COMING = 1.5

Work = Generator[None, None, Any]


class GrowingError(Exception):
    """The chart keeps growing: Atlas is not for this problem. No delta was spent."""

    def __init__(self, states: int, calls: int) -> None:
        super().__init__(f"after {calls:,} calls there are {states:,} states, and new ones keep coming")
        self.states, self.calls = states, calls


class AtlasSearch(KernelSearch):
    """The chart, and what was proven so far. It begins with an empty chart."""

    policy: Policy | None = None
    """Of the last accepted round, once the search is over."""

    def __init__(
        self, planner: Any, query: Query, session: Session, problem: Problem, records: Records
    ) -> None:
        super().__init__(
            query, session, np.dtype(LINKS), gamma=planner.gamma, horizon=1, run=make_calls
        )
        self.target = self._epsilon = planner.epsilon
        self._delta, self._problem, self._bounds = planner.delta, problem, planner.bounds
        self.records, actions = records, len(query.actions)
        self._order = query.ties.permutation(actions)
        self.values = np.full(actions, np.nan)
        self.lower = np.full(actions, problem.least)
        self.upper = np.full(actions, problem.top[0])
        self.losses = self.upper - self.lower
        self.proven: Design | None = None
        # Calls in all, by the round that is planned; None before there is one.
        self.needed: float | None = None
        self._rounds = 0
        self._patience, self._grown = planner.patience, [(0, 1)]
        self._work = self._plan()

    # The algorithm. Its parts yield whenever there are calls to be made, or something took time.

    def _plan(self) -> Work:
        """Prove finer and finer accuracies, until the one asked for."""
        if len(self.actions) == 1 and not self._problem.by_value:
            self.losses[:] = 0.0
            return
        learn, left, due = _LEARN, 1.0, 0.0
        references, chosen = None, 0.0
        while self.gap > self._epsilon:
            designer = yield from self._chart()
            found = designer.found
            calls = float(found.calls.sum())
            if calls > _AGAIN * chosen:
                references, chosen = None, calls
            evidence = -math.log(_TAKEN * left * self._delta)
            tried = references or designer.references()
            design = yield from designer.best_design(self._epsilon, evidence, tried)
            short, missing = 0.5 * found.calls, calls
            if design is not None:
                wanted = learn * design.learn + _PART * design.need + _FIRST
                short = np.maximum(wanted - found.calls, 0.0)
                if self._problem.horizon is not None:
                    short *= found.near(self._problem.horizon - 1)[found.state]
                missing = float(short.sum())
                self.needed = calls + missing + design.cost
                short = np.minimum(short, found.calls + _FIRST)
                if short.sum() <= _SHORT * calls:
                    if references is not None and calls > chosen:
                        chosen = 0.0
                        continue
                    left *= 1.0 - _TAKEN
                    accepted = yield from self._prove(design, evidence)
                    if not accepted:
                        learn *= _MORE
                    continue
                references = [design.reference]
            if calls > due and (self.needed is None or self.needed > _FAR * calls):
                evidence = -math.log(_COARSE * left * self._delta)
                most = min(calls, _CHEAP * calls + _SHARED * missing)
                tried = references or [None]
                coarse, due = yield from self._coarse_design(designer, evidence, most, tried)
                due = calls * float(np.clip(due / most, _AT_LEAST, _AT_MOST))
                if coarse is not None:
                    left *= 1.0 - _COARSE
                    yield from self._prove(coarse, evidence)
                    continue
            yield from self._call(short)

    def _coarse_design(
        self, designer: Designer, evidence: float, most: float, references: list[int | None]
    ) -> Work:
        """Returns the finest round of at most so many calls, so that a plan that is stopped has a gap.

        Also returned is what the next finer one would take.
        """
        accuracy, found = 0.5 * self.gap, None
        while accuracy > self._epsilon:
            design = yield from designer.best_design(accuracy, evidence, references)
            if design is None:
                break
            if design.cost > most:
                return found, design.cost
            found, accuracy = design, 0.5 * accuracy
        return found, most

    def _give_up(self, states: int) -> None:
        """Raise GrowingError if new states keep coming, where that is wanted and no round was begun."""
        calls = int(self.records.calls.sum())
        self._grown.append((calls, states))
        if self._patience is None or self._rounds > 0 or calls < self._patience:
            return
        before = max(then for made, then in self._grown if 2 * made <= calls)
        if states > _KEEP_COMING * before:
            raise GrowingError(states, calls)

    def _chart(self) -> Work:
        """Explore states until those outside hardly matter; returns a designer of rounds."""
        low, high = self._problem.rewards
        while True:
            while not self.records.called:
                yield
            found = self.records.estimate(low, high - low)
            if not found.inside[0]:
                yield from self._call(np.full(len(self.actions), float(_FIRST)))
                continue
            designer = Designer(self._problem, found, self._caps(), self.records.closed)
            explored = designer.to_explore(self._epsilon)
            if not explored.any():
                break
            self._give_up(found.states)
            yield from self._call(_FIRST * explored[found.state].astype(np.float64))
        self.values = designer.worth[0, found.state == 0]
        return designer

    def _prove(self, design: Design, evidence: float) -> Work:
        """Bet on the claims of a design until all are accepted, or give up; returns whether so."""
        evidence += _ADDED
        chart, claims, gamma = self.records, design.claims, self._problem.gamma
        chart.begin(design, self.memory)
        low, high = self._problem.rewards
        pairs, before = len(chart.calls), chart.calls.copy()
        self._rounds += 1
        patience = _PATIENCE * self._rounds**2
        while True:
            wealth = chart.claims["wealth"]
            left = wealth < evidence
            if not left.any():
                break
            found = chart.estimate(low, high - low)
            stake, rate = stakes(claims, chart.functions, left, found, (low, high), gamma)
            chart.claims["stake"] = stake
            rest = np.where(left, (evidence - wealth) / np.maximum(rate, 1e-12), 0.0)
            rest = by_pair(rest, claims, pairs)
            called = chart.calls[:pairs] - before
            hopeless = called.sum() + rest.sum() > _TOO_MANY * design.cost + _SLACK
            # (Without patience, the round that would be accepted might always be given up.)
            if hopeless and called[rest > 0.0].min(initial=patience) >= patience:
                hard = rest > _HARD * design.need + _MANY
                chart.end()
                yield from self._call(np.where(hard, _HARDER * chart.calls[:pairs], 0.0))
                return False
            batch = np.minimum(_BATCH * design.need + _GROWTH * called, _REST * rest)
            chart.order(np.where(rest > 0.0, np.maximum(batch, _LEAST), 0.0))
            yield
        chart.end()
        self._accept(design)
        return True

    def _accept(self, design: Design) -> None:
        """Take over what follows from claims that were all accepted."""
        self.proven, self.losses = design, design.losses
        self.upper = np.minimum(self.upper, design.highest)
        self.lower = self.lower.copy()
        self.lower[design.best] = max(self.lower[design.best], design.lower)

    def _call(self, todo: Values) -> Work:
        """Have the first pairs called so often, rounded up."""
        self.records.order(todo)
        yield

    def _caps(self) -> tuple[Values, Values]:
        """Bounds on the values of the charted states, [step, state]."""
        problem, keys = self._problem, self.records.keys
        top, bottom = (
            np.repeat(bound[: len(problem.steps), np.newaxis], len(keys), 1)
            for bound in (problem.top, problem.bottom)
        )
        if self._bounds is not None:
            states = self.session.states
            for number, key in enumerate(keys.tolist()):
                state = key if states is None else states[key]
                for h in problem.steps:
                    low, high = bounds_of(self._bounds, state, h)
                    bottom[h, number] = max(bottom[h, number], low)
                    top[h, number] = min(top[h, number], high)
        # What is known of the optimal value is not known of our action.
        bottom[0, 0] = problem.least
        return top, bottom

    # What the engine asks.

    @property
    def gap(self) -> float:
        """How much worse than the best the action can be at most; or half the interval of the value."""
        if self._problem.by_value:
            return 0.5 * float(self.upper.max() - self.lower.max())
        return float(np.delete(self.losses, self.recommended()).max(initial=0.0))

    def recommended(self) -> int:
        """Index of the action that was proven to be good; before that, the best by its estimate."""
        return self.proven.best if self.proven else best_estimate(self.values, self._order)

    def kernel_state(self) -> Chart:
        return Chart(problem=self.problem, report=self.reports, calls=self.calls, **vars(self.records))

    def reserve(self) -> int:
        """Make room for more of everything; returns for how many calls."""
        self.records.reserve(self.memory, int(self.report["action"]))
        return 1

    def advance(self, episodes: int, calls: int) -> int:
        """Make calls, and go on with the algorithm where none is left to make."""
        last = int(self.report["episodes"]) + episodes
        while True:
            status = super().advance(last - int(self.report["episodes"]), calls)
            if status != CHUNK_DONE or not self.records.called or calls == 0:
                return status
            if self.report["halt"]:
                self.report["refused"] = 1
                return ABORTED
            try:
                if next(self._work, RULE) is not None:
                    return RULE
            except MemoryError:
                return FULL

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands."""
        best = self.recommended()
        return self.standing(best, seconds, self.lower.copy(), self.upper.copy(), self.losses)

    def verdicts(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """By action: its gap, were it taken, and whether it is ruled out."""
        gaps, ruled_out = super().verdicts(lower, upper)
        if self.proven is not None and len(gaps) > 1:
            best, others = self.proven.best, np.arange(len(gaps)) != self.proven.best
            gaps[best] = min(gaps[best], self.losses[others].max())
            ruled_out |= others & (self.losses <= 0.0)
        return gaps, ruled_out
