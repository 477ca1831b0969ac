"""Canopy: proven answers for simulators in which every successor may be new."""

from typing import Literal

from pacplan.algorithms.canopy.search import CanopySearch
from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.confidence import (
    Targeted,
    certificate,
    check_accuracy,
    check_stops,
)
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.plans import bounded_plan
from pacplan.core import checks
from pacplan.core.words import exactly
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.models.knowledge import Bounds, Function, check_bounds, check_guidance
from pacplan.models.protocol import Session
from pacplan.result import Plan


class Canopy(Targeted, Planner):
    """Proven answers where every successor may be new: averages of sampled trees bound from above.

    The best policy of a *sampled* tree does too well on average, since it knows the draws. So with C
    successors drawn for every pair, the value of such a tree has a mean of at least Q, and bets on the
    values of many trees prove upper bounds. That needs neither the number of successors nor states that
    recur; noise may be continuous. Learnt values of states take most of the noise out of the trees and
    keep them small, and no bound depends on them. Below, L(a) comes from bets on returns of episodes
    declared beforehand to do what seems best, as in `Bracket`. The search stops when
    max_{a != b} U(a) - L(b) <= epsilon for some b, which it returns. The documentation has the proof.

    Where successors recur, `Bracket` mostly needs fewer calls; and where states never do, the number of
    calls grows by a factor with every step of the horizon.

    **What is guaranteed.** With probability at least 1 - delta, at all times, L(a) <= Q(a) for every
    action of the state, and Q(a*) <= U(a*) for an optimal one (the upper bound of another action may
    lie below its value). So max L <= V <= max U, and whenever the search ends, the action returned is
    `plan.gap`-optimal in the problem of H steps. For the infinite horizon add w gamma^H / (1 - gamma),
    w the width of the rewards; `target="infinite"` does so and stops at epsilon in all.

    Args:
        epsilon: how far from optimal the answer may be, in the model's reward units. 0 never stops
            before the action is known to be optimal, so it needs a budget or a deadline.
        delta: probability with which the guarantee may fail.
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: number of steps H; by default as for `Bracket`.
        target: "horizon": epsilon-optimal in the problem of H steps; "infinite": in the
            infinite-horizon discounted problem.
        value_bounds: what you know: (lower, upper), functions of a state and the number h of steps
            taken that bound its optimal value over the H - h steps left, in the model's units. (Only
            the upper one helps Canopy: it is what a leaf of a tree is worth.) The guarantee depends on
            it.
        value_range: (low, high), if you know that what an episode earns from any state on, discounted
            from there, lies between them, whatever is done; as for `Bracket`.
        policy: a policy that may be good, a function of a state, or of a state and the number h of
            steps taken, as for `Bracket`. Guidance only.
        value: guesses of optimal values over the H - h steps left, a function like `policy`. What is
            learnt of states is then by how much it errs; the better it is, the smaller the trees.
            Guidance only.
        chunk: see `Planner`; here in calls.
    """

    name = "canopy"
    goal = "action"
    kind_matters = True

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        gamma: float,
        horizon: int | None = None,
        target: Literal["horizon", "infinite"] = "horizon",
        value_bounds: Bounds | None = None,
        value_range: tuple[float, float] | None = None,
        policy: Function | None = None,
        value: Function | None = None,
        chunk: int | None = None,
    ) -> None:
        super().__init__(chunk=chunk)
        self.epsilon = check_accuracy(epsilon)
        self.delta = checks.probability("delta", delta)
        self.gamma, self._horizon = check_gamma_and_horizon(gamma, horizon)
        self.target = checks.choice("target", target, ("horizon", "infinite"))
        self.value_bounds = check_bounds(value_bounds)
        self.value_range = (
            None if value_range is None else checks.interval("value_range", value_range, "return")
        )
        self.policy = check_guidance("policy", policy)
        self.value = check_guidance("value", value)
        self.check_target()

    def check_query(self, query: Query, limits: Limits) -> None:
        model = query.model
        check_stops(self.epsilon, limits)
        self.check_reach(model, limits.budget)

    def start(self, query: Query, session: Session) -> "CanopySearch":
        return CanopySearch(self, query, session)

    def finish(self, query: Query, search: "CanopySearch", stopped_by: str, seconds: float) -> Plan:
        low, high = query.model.reward_range
        assumptions = [
            f"rewards lie in [{exactly(low)}, {exactly(high)}]",
            "equal states have equal futures",
        ]
        if self.value_bounds is not None:
            assumptions.append("value_bounds bound the values")
        if self.value_range is not None:
            low, high = self.value_range
            assumptions.append(f"returns lie in [{exactly(low)}, {exactly(high)}]")
        snapshot = search.snapshot(seconds)
        return bounded_plan(
            self,
            query,
            search,
            snapshot,
            stopped_by,
            guarantee=(
                f"{certificate(self, query.model, search.horizon, snapshot)} "
                "Of the upper bounds, only that of the best action is guaranteed."
            ),
            assumptions=tuple(assumptions),
            values=search.estimates(),
        )
