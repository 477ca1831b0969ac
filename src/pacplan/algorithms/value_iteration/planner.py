"""ValueIteration: certain answers where all probabilities are known."""

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Any, Literal, cast

import numpy as np

from pacplan.algorithms.common.certainty import CertainPlanner, check_limits, tails_of
from pacplan.algorithms.common.confidence import check_accuracy, ranges_assumed
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.plans import EstimateSearch, best_estimate
from pacplan.algorithms.value_iteration import solving
from pacplan.algorithms.value_iteration.chart import Numbers, OutcomesChart, TableChart, Values
from pacplan.core import checks
from pacplan.engine.calls import ABORTED, CHUNK_DONE, RULE, SPENT
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import losses
from pacplan.engine.tree import LINKS
from pacplan.models.outcomes import Outcomes
from pacplan.models.protocol import Model, Session, Table

# The leaves that are explored at a time: those with this part of what may still be gained, and at most
# this part of what was explored, but a few at least.
_PART, _GROWTH, _FEW = 0.5, 0.25, 16
# How exactly the rest is solved while there are leaves, as a part of epsilon.
_ENOUGH = 0.1
_SIDES = "lower", "upper"


class ValueIteration(CertainPlanner):
    """Value iteration with certain bounds, if all probabilities are known.

    Plans in a `TabularMDP`, in an environment that publishes its table, and in `Outcomes`. What can be
    reached in a table is solved. A model by outcomes is explored from the state planned from: leaves
    are worth the range of values, and those where the optimistic policy leaves most open are explored
    next (as in LAO* and bounded real-time dynamic programming). It stops when the gap is at most
    epsilon, or when everything is explored and solved up to rounding. Nothing is sampled: a call is one
    question for the outcomes of a state and action.

    Args:
        gamma: discount in [0, 1]; 1 with a horizon.
        epsilon: how far from optimal the action may be, in the model's reward units. A table is solved
            as exactly as rounding allows all the same.
        horizon: number of steps; later rewards do not count. None: the infinite-horizon problem.
        goal: "action", or "value": the state's value is within epsilon of `plan.value`.
        value_range: (low, high), bounds on every discounted return from any state on, if you
            know them. The answer depends on them.
    """

    name = "value-iteration"
    keeps_checkpoints = False
    parallel_calls = False
    reads = True
    surely = "That is certain: every probability is known, and nothing was sampled."

    def __init__(
        self,
        *,
        gamma: float,
        epsilon: float = 0.0,
        horizon: int | None = None,
        goal: Literal["action", "value"] = "action",
        value_range: tuple[float, float] | None = None,
    ) -> None:
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)
        self.epsilon = check_accuracy(epsilon)
        self.goal = checks.choice("goal", goal, ("action", "value"))
        self.value_range = checks.value_range(value_range)

    def check_query(self, query: Query, limits: Limits) -> None:
        model = query.model
        if not (model.known or isinstance(model, Outcomes)):
            kinds = "a TabularMDP, an environment that publishes its table, or Outcomes"
            says = f"ValueIteration reads probabilities: the model must be {kinds}"
            raise ValueError(f"{says}; got {type(model).__name__}")
        check_limits(self, limits, model, ends=True)

    def start(self, query: Query, session: Session) -> "_Search":
        return _Search(self, query, session)

    def guarantee(self, model: Model, search: Any, snapshot: Snapshot) -> str:
        if snapshot.lower is None:
            return "It has no bounds before all states are explored, unless you pass reward_range=."
        return super().guarantee(model, search, snapshot)

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        right = "the probabilities and rewards of the listed outcomes are right"
        if model.known:
            right = "the table's probabilities and rewards are right"
        ranges = ranges_assumed(self, model)
        return (right, *(ranges if search.chart.leaves(self.horizon).size else ranges[1:]))

    def value_estimate(self, search: Any, snapshot: Snapshot) -> float | None:
        if self.goal == "action" and snapshot.lower is not None:
            return float(snapshot.lower.max())
        return super().value_estimate(search, snapshot)


class _Search(EstimateSearch):
    """The chart of what was explored, and the bounds that follow from it."""

    def __init__(self, planner: ValueIteration, query: Query, session: Session) -> None:
        model, actions = query.model, len(query.actions)
        super().__init__(query, session, np.dtype(LINKS), gamma=planner.gamma, horizon=1)
        self._planner, self.target = planner, planner.epsilon if planner.goal == "action" else None
        self.chart = (
            OutcomesChart(model, query.state)
            if isinstance(model, Outcomes)
            else TableChart(cast(Table, model), query.state, planner.horizon)
        )
        # What can still be earned after so many steps; the last entry serves all later ones.
        range_ = planner.value_range or (-np.inf, np.inf)
        self._tails = tails_of(planner.gamma, planner.horizon, model, range_)
        self.lower, self.upper = (np.full(actions, self._tails[side][0]) for side in _SIDES)
        # What nodes seem to be worth, from below and from above; leaves are worth their bounds.
        self._values = dict.fromkeys(_SIDES, np.zeros(0))
        self._stakes = np.zeros(0)  # of leaves, under the optimistic policy
        self._enough = _ENOUGH * planner.epsilon
        self._most_calls, self._work = 0, self._explore()

    def deepest(self) -> int:
        """Steps to the farthest state that was found."""
        return self.chart.depth

    def advance(self, episodes: int, calls: int) -> int:
        """Explore and solve in small steps, each of them an episode."""
        self._most_calls = calls
        for _ in range(episodes):
            if self.report["halt"]:
                self.report["refused"] = 1
                return ABORTED
            status = next(self._work, RULE)
            self.report["calls"] = getattr(self.chart, "read", 0)
            self.report["episodes"] += 1
            if status != CHUNK_DONE:
                return status
        return CHUNK_DONE

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands; the action with the smallest bound on its loss is recommended."""
        bounds = () if math.isinf(float(self.upper.max())) else (self.lower.copy(), self.upper.copy())
        return self.standing(self.recommended(), seconds, *bounds)

    @property
    def values(self) -> Values:
        """Estimates of the root's actions: the middle of their bounds, NaN where there are none."""
        with np.errstate(invalid="ignore"):
            return np.asarray(0.5 * (self.lower + self.upper))

    def recommended(self) -> int:
        """Index of the action with the smallest bound on its loss."""
        return best_estimate(-losses(self.lower, self.upper), self.order)

    def _explore(self) -> Iterator[int]:
        """The algorithm. It pauses between its steps, and says how the search stands."""
        horizon, chart = self._planner.horizon, self.chart
        solve = self._iterate if horizon is None else self._go_back
        leaves = chart.leaves(horizon)
        while True:
            status = CHUNK_DONE
            for leaf in leaves.tolist():
                assert isinstance(chart, OutcomesChart)
                if chart.read + len(chart.actions(leaf)) > self._most_calls:
                    status = SPENT
                    break
                chart.explore(leaf)
                yield CHUNK_DONE
            leaves = chart.leaves(horizon)
            if not leaves.size:
                yield from solve(leaves, *_SIDES)
                return
            if np.isfinite(self._tails[0].tolist()).all():
                yield from solve(leaves, "lower")
                yield from solve(leaves, "upper")
            if status == SPENT:
                yield SPENT
            if self._is_close():
                return
            leaves = self._most_promising(leaves)
            if not leaves.size:  # The optimistic policy reaches none: solved exactly, the bounds meet.
                if self._enough == 0.0:
                    return
                self._enough = 0.0

    def _is_close(self) -> bool:
        """Whether the bounds are as close as was asked for."""
        if self._planner.goal == "value":
            return bool(self.upper.max() - self.lower.max() <= 2.0 * self._planner.epsilon)
        return bool(losses(self.lower, self.upper).min() <= self._planner.epsilon)

    def _learn(self, sides: tuple[str, ...], worth: Values, below: float, above: float) -> None:
        """Bounds of the root's actions: they are worth this much, at most so much less, and more."""
        own = worth[: len(self.upper)]
        if "lower" in sides:
            self.lower = np.maximum(self.lower, own - below)
        if "upper" in sides:
            self.upper = np.minimum(self.upper, own + above)

    def _iterate(self, leaves: Numbers, *sides: str) -> Iterator[int]:
        """Over an infinite horizon: policy iteration, from where it ended before."""
        gamma, before, worst = self._planner.gamma, self._values[sides[-1]], self._tails[sides[-1]][0]
        values = np.full(len(self.chart.states), worst if leaves.size else 0.0)
        values[: len(before)], values[leaves] = before, worst
        rows, self._values[sides[-1]] = self.chart.rows(), values
        enough = self._enough if leaves.size else 0.0
        for worth, above, below, policy in solving.policy_iteration(rows, values, gamma, enough):
            self._learn(sides, worth, below, above)
            chosen = policy
            yield CHUNK_DONE
        if leaves.size and "upper" in sides:
            follow = repeat(rows.following(chosen))
            self._stakes = solving.stakes(follow, leaves, len(values), gamma, repeat(1.0))

    def _go_back(self, leaves: Numbers, *sides: str) -> Iterator[int]:
        """Over H steps: value iteration from the last step to the first."""
        gamma, bound = self._planner.gamma, self._tails[sides[-1]]
        values, error, policy = np.zeros(len(self.chart.states)), 0.0, []
        for h in reversed(range(cast(int, self._planner.horizon))):
            rows = self.chart.rows(h)
            worth = rows.worth(values, gamma)
            error = gamma * error + solving.rounding(rows, values)
            values[leaves], values[rows.node] = bound[h], rows.best(worth)
            if leaves.size and "upper" in sides:
                policy.append(rows.greedy(worth))
            yield CHUNK_DONE
        self._learn(sides, worth, error, error)
        if policy:
            follow = (rows.following(pairs) for pairs in reversed(policy))
            apart = (self._tails["upper"] - self._tails["lower"]).tolist()
            self._stakes = solving.stakes(follow, leaves, len(values), gamma, apart)

    def _most_promising(self, leaves: Numbers) -> Numbers:
        """The leaves to explore next: those where the optimistic policy leaves most open."""
        if not len(self._stakes):  # Nothing bounds what a leaf is worth, so all have to be explored.
            return leaves
        order = np.argsort(-self._stakes, kind="stable")
        part = np.cumsum(self._stakes[order])
        most = max(_FEW, int(_GROWTH * (len(self.chart.states) - len(leaves))))
        wanted = order[: min(most, 1 + int(np.searchsorted(part, _PART * part[-1])))]
        return leaves[wanted[self._stakes[wanted] > 0.0]]
