"""OPD (Hren, Munos 2008): optimistic planning of deterministic systems."""

from typing import Literal

from pacplan.algorithms.common.base import Planner, check_stationary
from pacplan.algorithms.common.certainty import certain_plan, check_limits, left_to_chance
from pacplan.algorithms.common.confidence import check_accuracy, check_known
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.opd.search import SequenceSearch
from pacplan.core import checks
from pacplan.core.words import exactly
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.models.knowledge import Bounds, check_bounds
from pacplan.models.protocol import Session
from pacplan.result import Plan

_DECLARED = ("unknown", "deterministic")


class OPD(Planner):
    """Optimistic planning if nothing is random: extend the most promising sequence of actions.

    A sequence of d actions that has earned u (discounted) can earn at most
    b = u + gamma^d / (1 - gamma) in all, for rewards in [0, 1] (with a finite horizon,
    u + gamma^d sigma_(H-d)). The one with the largest b is extended by every action; of several, the
    longest. Its bounds are certain, not merely probable: U(a) is the largest b of the sequences that
    begin with a, L(a) the largest that one of them is surely worth.

    With an accuracy epsilon it stops when max_{a != b} U(a) - L(b) <= epsilon for some b, which it
    returns: the action is epsilon-optimal for certain, in the problem of H steps if there is a horizon,
    else in the infinite-horizon discounted problem. Without one it recommends the first action of the
    sequence that is surely worth most, and stops by itself only when all values are known.

    The accuracy also changes what is extended, since bounds are needed only where they decide: of b
    and its strongest rival the action with the larger U - L, by its most promising sequence; and every
    other time the sequence of b that is surely worth most. If the value is asked for, it is the most
    promising sequence of all, and the one that is surely worth most.

    That nothing is random is what a `TabularMDP` shows by itself. Of any other model you declare it: of
    transitions by successors=1 of the model or by `transitions` below, of rewards by `rewards`. It is
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
            all depths, so the model is not called for it again (but for one call in ten, to see whether
            it keeps its promise).
        rewards: "deterministic" declares that a state and action always pay the same; "unknown" leaves
            it to the model to show that, as tables do.
        transitions: "deterministic" declares that a state and action always lead to the same state, or
            always to an end; "unknown" leaves it to the model to promise that, by successors=1.
        value_bounds: what you know: (lower, upper), functions of a state and the number h of steps
            taken, or numbers, that bound its optimal value over the steps left, in the model's units:
            what an end of a sequence is worth. The answer depends on it; bounds that what is found
            contradicts end the plan with an error.
        value_range: (low, high), bounds on every discounted return from any state on, if you
            know them. The answer depends on them, too.
    """

    name = "opd"

    def __init__(
        self,
        *,
        gamma: float,
        epsilon: float | None = None,
        horizon: int | None = None,
        goal: Literal["action", "value"] = "action",
        merge: Literal["tree", "depth", "stationary"] = "tree",
        rewards: Literal["unknown", "deterministic"] = "unknown",
        transitions: Literal["unknown", "deterministic"] = "unknown",
        value_bounds: Bounds | None = None,
        value_range: tuple[float, float] | None = None,
    ) -> None:
        self.epsilon = None if epsilon is None else check_accuracy(epsilon)
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)
        self.goal = checks.choice("goal", goal, ("action", "value"))
        if self.goal == "value" and self.epsilon is None:
            raise ValueError('goal="value" needs epsilon, the accuracy of the value')
        self.merge = checks.choice("merge", merge, ("tree", "depth", "stationary"))
        self.rewards = checks.choice("rewards", rewards, _DECLARED)
        self.transitions = checks.choice("transitions", transitions, _DECLARED)
        self.value_bounds = check_bounds(value_bounds)
        self.value_range = (
            None if value_range is None else checks.interval("value_range", value_range, "return")
        )

    def check_query(self, query: Query, limits: Limits) -> None:
        model = query.model
        check_known(self, model)
        reasons = left_to_chance(model, self.transitions, self.rewards)
        if reasons:
            raise ValueError(f"OPD needs a problem without randomness, but {', and '.join(reasons)}")
        if self.merge == "stationary":
            check_stationary(model, "what follows a state depends on the step; use merge='depth'")
        check_limits(self, limits, model, ends=bool(self.epsilon))

    def start(self, query: Query, session: Session) -> SequenceSearch:
        return SequenceSearch(self, query, session)

    def finish(self, query: Query, search: SequenceSearch, stopped_by: str, seconds: float) -> Plan:
        low, high = query.model.reward_range
        assumed = [
            "every state and action has one successor",
            "rewards are deterministic",
            f"rewards lie in [{exactly(low)}, {exactly(high)}]",
        ]
        if self.value_bounds is not None:
            assumed.append("value_bounds bound the values")
        if self.value_range is not None:
            least, most = self.value_range
            assumed.append(f"returns lie in [{exactly(least)}, {exactly(most)}]")
        if self.merge != "tree":
            assumed.append("equal states have equal futures")
        if self.merge == "stationary":
            assumed.append("a state and action do the same at every step")
        return certain_plan(
            self,
            query,
            search,
            stopped_by,
            seconds,
            horizon=self.horizon,
            surely="That is certain, given that nothing is random.",
            assumed=tuple(assumed),
        )
