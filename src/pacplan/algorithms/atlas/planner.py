"""Atlas: chart the states, solve the chart, and prove the solution with fresh calls."""

import copy
import math
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from pacplan.algorithms.atlas.problem import Problem
from pacplan.algorithms.atlas.records import Records
from pacplan.algorithms.atlas.search import AtlasSearch
from pacplan.algorithms.common.base import Planner, check_stationary
from pacplan.algorithms.common.certainty import tails_of
from pacplan.algorithms.common.confidence import check_accuracy, check_stops, ranges_assumed
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.plans import nearly_optimal, value_said
from pacplan.algorithms.value_iteration.chart import TableChart
from pacplan.core import checks
from pacplan.core.words import at_least, complement
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.models.knowledge import Constant, bounds_of, check_bounds
from pacplan.models.protocol import Model, Session, Table
from pacplan.policy import NONE, Charted, Policy
from pacplan.result import Plan

# What the value of a policy depends on, where bounds on optimal values were passed.
_GIVEN = "if one goes on optimally where it says nothing, or proves no more than value_bounds"


class Atlas(Planner):
    """Charts the states, solves the charted model, and proves the solution. For states that recur.

    The planner calls any pair (state, action) that it has seen. It estimates the model, and solves it
    for a function F a little above the optimal values, and f a little below those of a policy. If no
    pair lifts F by a step, and the policy lowers f nowhere, then V* <= F and V^policy >= f. Each of
    these is a claim about one pair, on which it bets with fresh calls; it answers when all bets are
    won. The answer can be wrong only if a claim is false, so each is tested at the full delta, whatever
    the number of states, actions and steps (docs/atlas.md).

    It proves coarse accuracies first, so that a plan that is stopped has a valid gap.

    Args:
        epsilon: how far from optimal the action may be, in the model's reward units.
        delta: probability with which the guarantee may fail.
        gamma: discount in [0, 1]; 1 with a horizon.
        horizon: number of steps; later rewards do not count. None: the infinite-horizon problem.
        goal: "action", or "value": the state's value is within epsilon of `plan.value`.
        value_bounds: (lower, upper), numbers or functions of the state (and of the steps taken), if you
            know that optimal values lie between them. The guarantee then depends on them.
        value_range: (low, high), bounds on every discounted return from any state on, if you
            know them. The guarantee then depends on them.
    """

    name = "atlas"
    keeps_checkpoints = False
    parallel_calls = False
    kind_matters = True
    patience: int | None = None

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        gamma: float,
        horizon: int | None = None,
        goal: Literal["action", "value"] = "action",
        value_bounds: Any = None,
        value_range: tuple[float, float] | None = None,
    ) -> None:
        self.epsilon = check_accuracy(epsilon)
        self.delta = checks.probability("delta", delta)
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)
        self.goal = checks.choice("goal", goal, ("action", "value"))
        self.value_bounds = value_bounds
        self.bounds = check_bounds(value_bounds)
        self.value_range = checks.value_range(value_range)

    def giving_up(self, calls: int) -> "Atlas":
        """The planner that raises `GrowingError` if new states keep coming after so many calls."""
        found = copy.copy(self)
        found.patience = calls
        return found

    def check_query(self, query: Query, limits: Limits) -> None:
        check_stops(self.epsilon, limits)
        check_stationary(query.model, "Atlas calls a state as if no step was taken before")
        self._problem(query.model)
        known = query.model.listed
        if known is not None and query.state not in known:
            raise ValueError(f"the state {query.state!r} is not among states=")

    def _problem(self, model: Model) -> Problem:
        """The question in numbers."""
        range_ = (-math.inf, math.inf) if self.value_range is None else self.value_range
        tails = tails_of(self.gamma, self.horizon, model, range_)
        least = float(tails["lower"][0])
        if self.bounds is not None and all(isinstance(bound, Constant) for bound in self.bounds):
            low, high = bounds_of(self.bounds, "any", 0)
            range_ = max(range_[0], low), min(range_[1], high)
            tails = tails_of(self.gamma, self.horizon, model, range_, "value_bounds")
        top, bottom = tails["upper"].copy(), tails["lower"].copy()
        asked = self.gamma, self.horizon, self.goal == "value"
        return Problem(*asked, model.reward_range, model.may_end, top, bottom, least)

    def start(self, query: Query, session: Session) -> AtlasSearch:
        model = query.model
        if model.known:
            keys = TableChart(cast(Table, model), query.state, None).states
        else:
            keys = np.array([session.encode(state) for state in model.listed or ()], np.int64)
        most = len(keys) or model.states or checks.LARGEST
        return AtlasSearch(self, query, session, self._problem(model), Records(keys, most))

    def finish(self, query: Query, search: AtlasSearch, stopped_by: str, seconds: float) -> Plan:
        search.policy, search.horizon = self._policy(query.model, search), self.horizon or 1
        plan = super().finish(query, search, stopped_by, seconds)
        return replace(plan, horizon=self.horizon, policy=search.policy)

    def guarantee(self, model: Model, search: Any, snapshot: Snapshot) -> str:
        policy, proven = search.policy, nearly_optimal(snapshot, self.horizon)
        if self.goal == "value":
            proven += f", and {value_said(snapshot)}"
        if policy is not None and policy.value > self._problem(model).least:
            given = policy.given and f", {policy.given}"
            proven += f", and the policy earns at least {at_least(policy.value)}{given}"
        if search.proven is None and len(search.actions) > 1:
            return f"{proven}: nothing is proven yet but the range of values."
        return f"{proven}, with probability at least {complement(self.delta)}."

    def _policy(self, model: Model, search: AtlasSearch) -> Policy | None:
        """The policy of the last accepted round, with what that round proves; None: there was none."""
        design, session = search.proven, search.session
        if design is None:
            return None
        low, high = model.reward_range
        found = search.records.estimate(low, high - low)
        steps, size = design.policy.shape
        policy = design.policy.copy()
        if self.horizon is not None:
            policy[0, 1:] = NONE  # Of the first step no more is proven than of the state planned from.
        pairs = np.unique(policy[policy != NONE])
        keys = search.records.keys[:size].tolist()
        charted = (
            tuple(keys if session.states is None else map(session.states.__getitem__, keys)),
            self.horizon,
            np.where(policy == NONE, NONE, np.searchsorted(pairs, policy)),
        )
        # The functions of either side are those of the steps and, with a horizon, one for its end.
        functions, last = design.functions.values[:, 1:], steps + (self.horizon is not None)
        above, below = functions[:steps].copy(), functions[last : last + steps].copy()
        value, given = design.lower, ""
        if self.bounds is not None:
            # Where a bound of the user's stood for the rest, the policy itself need not earn what was
            # proven around a reference state.
            given = _GIVEN
            value = value if design.reference is None else float(below[0, 0])
        above[0, 0], below[0, 0] = design.highest.max(), value
        owner = found.state[pairs]
        action = pairs - np.searchsorted(found.state, owner)
        return Policy(
            *charted,
            tuple(session.label(keys[s], a) for s, a in zip(owner, action.tolist(), strict=True)),
            value=value,
            given=given,
            lower=Charted(*charted, below),
            upper=Charted(*charted, above),
            calls=found.calls[pairs],
            spent=np.bincount(found.state, found.calls)[:size].astype(np.int64),
            transitions=found.transitions[pairs][:, :size],
        )

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        nothing_else = "what follows a state and action depends on nothing else"
        assumed = [*ranges_assumed(self, model), nothing_else]
        if model.states is not None and not model.known:
            assumed.append(f"there are no more than {model.states} states")
        return tuple(assumed)
