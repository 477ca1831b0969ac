"""OPD (Hren, Munos 2008): optimistic planning of deterministic systems."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import check_stationary
from pacplan.algorithms.common.certainty import (
    CertainPlanner,
    check_limits,
    left_to_chance,
    read_certain,
    tails_of,
)
from pacplan.algorithms.common.confidence import (
    DECLARED,
    Declared,
    check_accuracy,
    check_known,
    ranges_assumed,
)
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.plans import EstimateSearch, best_estimate
from pacplan.algorithms.opd import expansion
from pacplan.core import checks
from pacplan.engine import steps
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.merge_table import empty_table, grown
from pacplan.engine.query import Query
from pacplan.engine.search import losses
from pacplan.engine.search_tree import Reader
from pacplan.engine.tree import NONE
from pacplan.models.knowledge import Bounds, attach, check_bounds
from pacplan.models.protocol import Model, Session

# Rounding, as a part of the largest value; and what rounding may explain, if bounds that the user gave
# contradict what was found.
_ROUNDING = 1e-13
_SLACK = 1e-9


class OPD(CertainPlanner):
    """Optimistic planning if nothing is random: extend the most promising sequence of actions.

    A sequence of d actions that has earned u (discounted) can earn at most
    b = u + gamma^d / (1 - gamma) in all, for rewards in [0, 1] (with a finite horizon,
    u + gamma^d sigma_(H-d)). The one with the largest b is extended by every action; of several, the
    longest. Its bounds are certain, not merely probable: U(a) is the largest b of the sequences that
    begin with a, L(a) the largest that one of them is surely worth.

    With an accuracy epsilon it stops when max_{a != b} U(a) - L(b) <= epsilon for some b, which it
    returns, and extends what decides that: of b and its strongest rival the action with the larger
    U - L, by its most promising sequence; and every other time the sequence of b that is surely worth
    most. Without one it recommends the first action of the sequence that is surely worth most, and
    stops by itself only when all values are known.

    That nothing is random is what a `TabularMDP` shows by itself. Of any other model you declare it: of
    transitions by successors=1 of the model or by `transitions`, of rewards by `rewards`. It is
    checked where it can be: a state and action that is called again must do what it did before.

    Args:
        gamma: discount in [0, 1); 1 with a horizon.
        epsilon: how far from optimal the action may be, in the model's reward units; None: as close as
            a budget or a deadline allows.
        horizon: number of steps; later rewards do not count. None: the infinite-horizon problem.
        goal: "action", or "value": stops when the interval of the state's value is at most 2 epsilon
            wide, so that its middle, `plan.value`, is within epsilon.
        merge: "tree": a node for every sequence; "depth": one for all sequences that lead to the same
            state after as many steps; "stationary": the same, and what is known of a state is known at
            all depths, so the model is not called for it again (but for one call in ten, as a check).
        rewards: "deterministic" declares that a state and action always pay the same.
        transitions: "deterministic" declares that a state and action always lead to the same state, or
            always to an end.
        value_bounds: (lower, upper), functions of a state and the number h of steps taken, or numbers,
            that bound its optimal value over the steps left, in the model's units. The answer depends
            on it; bounds that what is found contradicts end the plan with an error.
        value_range: (low, high), bounds on every discounted return from any state on. The answer
            depends on them, too.
    """

    name = "opd"
    surely = "That is certain, given that nothing is random."

    def __init__(
        self,
        *,
        gamma: float,
        epsilon: float | None = None,
        horizon: int | None = None,
        goal: Literal["action", "value"] = "action",
        merge: Literal["tree", "depth", "stationary"] = "tree",
        rewards: Declared = "unknown",
        transitions: Declared = "unknown",
        value_bounds: Bounds | None = None,
        value_range: tuple[float, float] | None = None,
    ) -> None:
        self.epsilon = None if epsilon is None else check_accuracy(epsilon)
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)
        self.goal = checks.choice("goal", goal, ("action", "value"))
        if self.goal == "value" and self.epsilon is None:
            raise ValueError('goal="value" needs epsilon, the accuracy of the value')
        self.merge = checks.choice("merge", merge, ("tree", "depth", "stationary"))
        self.rewards = checks.choice("rewards", rewards, DECLARED)
        self.transitions = checks.choice("transitions", transitions, DECLARED)
        self.value_bounds = check_bounds(value_bounds)
        self.value_range = checks.value_range(value_range)

    def check_query(self, query: Query, limits: Limits) -> None:
        model = query.model
        check_known(self, model)
        reasons = left_to_chance(model, self.transitions, self.rewards)
        if reasons:
            raise ValueError(f"OPD needs a problem without randomness, but {', and '.join(reasons)}")
        if self.merge == "stationary":
            check_stationary(model, "what follows a state depends on the step; use merge='depth'")
        check_limits(self, limits, model, ends=bool(self.epsilon))

    def start(self, query: Query, session: Session) -> "SequenceSearch":
        return SequenceSearch(self, query, session)

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        assumed = ["every state and action has one successor", "rewards are deterministic"]
        assumed += ranges_assumed(self, model)
        if self.merge != "tree":
            assumed.append("equal states have equal futures")
        if self.merge == "stationary":
            assumed.append("a state and action do the same at every step")
        return tuple(assumed)


class SequenceSearch(EstimateSearch):
    """The tree of what can be done; an episode is an expansion."""

    derived = frozenset({"tails"})

    def __init__(self, planner: OPD, query: Query, session: Session) -> None:
        model = query.model
        self._accurate = planner.epsilon is not None
        self.target = planner.epsilon if planner.goal == "action" else None
        attach(session, planner.value_bounds)
        known = planner.value_range or (-math.inf, math.inf)
        tails = tails_of(planner.gamma, planner.horizon, model, known)
        largest = float(max(abs(tails[0]["upper"]), abs(tails[0]["lower"])))
        self._most_actions = max(model.max_actions or 0, len(query.actions))
        arrays: dict[str, Any] = {
            "merged": empty_table(16),
            "known": empty_table(16),
            "dues": np.full(64, NONE, np.int32),
            "tails": tails,
            "epsilon": -1.0 if planner.epsilon is None else planner.epsilon,
            "tie": _ROUNDING * largest,
            "slack": _SLACK * largest,
            "last": planner.horizon or 0,
            "value_goal": planner.goal == "value",
            "merges": planner.merge != "tree",
            "remembers": planner.merge == "stationary",
            "per_step": not model.stationary,
            "checks": np.zeros(1, np.int64),
            "lower": np.full(len(query.actions), tails[0]["lower"]),
            "upper": np.full(len(query.actions), tails[0]["upper"]),
        }
        settings: Any = {"gamma": planner.gamma, "horizon": 1, "deterministic": True, "arrays": arrays}
        kinds = expansion.PAIR, expansion.NODE
        super().__init__(query, session, *kinds, kind=expansion.Search, run=steps.work, **settings)

    def reserve(self) -> int:
        """Make room for some expansions, and for a longer sequence."""
        widest = max(self._most_actions, int(self.tree.nodes["actions"].max(initial=0)))
        expansions = max(1, 4096 // widest, len(self.tree) // (4 * widest))
        more = expansions * widest
        self.grow_tree(more, more)
        arrays = self.arrays
        arrays["known"] = grown(arrays["known"], expansions, self.memory)
        if arrays["merges"]:
            arrays["merged"] = grown(arrays["merged"], more + 1, self.memory)
        old, used = len(arrays["dues"]), self.deepest() + 2
        if used >= old:
            self.extend("dues", used + 1)
            arrays["dues"][old:] = NONE
        return expansions

    def deepest(self) -> int:
        """Length of the longest sequence played."""
        return int(self.tree.nodes["depth"].max(initial=0))

    def recommended(self) -> int:
        """Index of the action that is surely worth most; given an accuracy, of the least gap."""
        lower, upper = self.arrays["lower"], self.arrays["upper"]
        return best_estimate(-losses(lower, upper) if self._accurate else lower, self.order)

    @property
    def values(self) -> NDArray[np.float64]:
        """Lower bounds of the root's actions that were tried."""
        return np.where(self.calls > 0, self.arrays["lower"], np.nan)

    def snapshot(self, seconds: float) -> Snapshot:
        bounds = self.arrays["lower"].copy(), self.arrays["upper"].copy()
        return self.standing(self.recommended(), seconds, *bounds)

    def reader(self) -> Reader:
        return read_certain
