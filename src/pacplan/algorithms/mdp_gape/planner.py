"""MDP-GapE (Jonsson, Kaufmann, Ménard, Darwiche Domingues, Leurent, Valko; NeurIPS 2020)."""

from typing import Literal

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.confidence import (
    DECLARED,
    Declared,
    Targeted,
    certificate,
    check_accuracy,
    check_known,
    check_stops,
    declared,
)
from pacplan.algorithms.common.horizons import (
    check_gamma_and_horizon,
    check_steps,
    most_actions,
    most_successors,
)
from pacplan.algorithms.mdp_gape.search import GapSearch
from pacplan.bounds import thresholds as exploration
from pacplan.bounds.thresholds import Thresholds
from pacplan.core import checks
from pacplan.core.words import at_most
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.models.knowledge import Bounds, check_bounds
from pacplan.models.protocol import Model, Session


class MDPGapE(Targeted, Planner):
    """Optimistic episodes below the root, best-arm identification at it, bounds from both sides.

    The planner keeps confidence bounds L <= Q <= U for every state-action pair of a search tree of
    H steps, takes b, the action with the smallest bound on its gap, and its challenger c, explores
    the one with the wider interval, and stops when U(c) - L(b) <= epsilon (sections 3 and 4).

    With `thresholds="lemma"` all bounds hold at all times with probability at least 1 - delta
    (Lemma 2). So whenever the search ends, the action is `plan.gap`-optimal in the problem of H steps.
    For the infinite-horizon discounted problem the truncation costs at most w gamma^H / (1 - gamma),
    where w is the width of the reward range (of the range and 0, if episodes may end). The default
    horizon makes this at most epsilon / 2. The other thresholds give no guarantee.

    The paper's four settings are a fixed confidence in an action, or in a value (`goal="value"`); a
    fixed budget n (`epsilon=0, thresholds="sharp"`), which is split into tau episodes of H steps, tau
    the largest number with tau H <= n and H = ceil( log tau / (2 log 1/gamma) ), or 10,000 with a time
    limit alone; and anytime (`epsilon=0` with any limit).

    Args:
        epsilon: how far from optimal the answer may be, in the model's reward units. 0 stops only when
            the action is proven optimal, so it needs a budget or a deadline.
        delta: probability with which the guarantee may fail.
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: number of steps H. By default the paper's ceil( log_gamma( epsilon (1-gamma) / 2 ) ),
            with epsilon / w in place of epsilon for rewards of width w. With thresholds for a fixed
            budget, or with epsilon = 0, it follows from the budget; with a time limit alone, it is the
            smallest H with gamma^H <= 1/100.
        thresholds: "lemma" (proven); "paper" (the paper's experiments); for a fixed budget "budget"
            (the paper's text), "published" (its runs) or "sharp" (less regret); or your own
            `bounds.Thresholds`.
        goal: "action", or "value": stops when the interval of the state's value is at most 2 epsilon
            wide, so that its middle, `plan.value`, is within epsilon.
        merge: "tree": a node for every history; "depth": one for all histories that lead to the same
            state at the same depth, so that each learns from the others. All bounds are then renewed
            by a sweep over the whole graph whenever the calls have grown by 5 %, and when the rule or
            the budget ends the search. In a `TabularMDP` of S states, Lemma 2 is then for the
            K sum_{h < H} min((BK)^h, S) pairs that exist instead of (BK)^H, if these are fewer.
        rewards: "unknown"; "deterministic": a pair always pays the same reward, so one visit reveals
            it (checked on every visit).
        transitions: "unknown"; "deterministic": every pair has one successor (checked).
        value_bounds: (lower, upper), functions of a state and the number h of steps taken that bound
            its optimal value over the H - h remaining steps, in the model's units. The guarantee
            depends on them.
    """

    name = "mdp-gape"

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        gamma: float,
        horizon: int | None = None,
        thresholds: str | Thresholds = "lemma",
        goal: Literal["action", "value"] = "action",
        merge: Literal["tree", "depth"] = "tree",
        rewards: Declared = "unknown",
        transitions: Declared = "unknown",
        value_bounds: Bounds | None = None,
    ) -> None:
        self.epsilon = check_accuracy(epsilon)
        self.delta = checks.probability("delta", delta)
        self.gamma, self._horizon = check_gamma_and_horizon(gamma, horizon)
        exploration.check(thresholds)
        self.thresholds = thresholds
        self.check_target()
        self.goal = checks.choice("goal", goal, ("action", "value"))
        self.merge = checks.choice("merge", merge, ("tree", "depth"))
        self.rewards = checks.choice("rewards", rewards, DECLARED)
        self.transitions = checks.choice("transitions", transitions, DECLARED)
        self.value_bounds = check_bounds(value_bounds)

    def _default_horizon(self, width: float) -> int | None:
        fixed_budget = exploration.for_a_budget(self.thresholds)
        return None if fixed_budget else super()._default_horizon(width)

    def check_query(self, query: Query, limits: Limits) -> None:
        model = query.model
        check_stops(self.epsilon, limits)
        if exploration.for_a_budget(self.thresholds) and not limits.any:
            raise ValueError(f"thresholds={self.thresholds!r} needs budget= or time_limit=")
        if self.transitions != "deterministic":
            most_successors(self, model)
        if self.thresholds == "lemma":
            most_actions(self, model)
        check_known(self, model)
        check_steps(model, self.horizon_for(model, limits.budget))

    def start(self, query: Query, session: Session) -> "GapSearch":
        return GapSearch(self, query, session)

    def guarantee(self, model: Model, search: "GapSearch", snapshot: Snapshot) -> str:
        if search.certifies:
            return certificate(self, model, search.horizon, snapshot)
        return (
            f"Action {snapshot.action!r} is the best guess. The thresholds "
            f"{search.thresholds.name!r} are heuristic: nothing is proven, though their bounds put it "
            f"within {at_most(max(0.0, snapshot.gap))} of optimal in the {search.horizon}-step problem."
        )

    def assumptions(self, model: Model, search: "GapSearch") -> tuple[str, ...]:
        assumed = declared(self, model)
        if isinstance(self.thresholds, Thresholds) and search.certifies:
            assumed += (f"the thresholds {self.thresholds.name!r} hold with probability 1 - delta",)
        return assumed
