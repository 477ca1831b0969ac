"""Bracket: proven answers from optimism along one policy above and bets on returns below."""

from typing import Literal

from pacplan.algorithms.betting.settings import ANYTHING
from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.algorithms.common.base import Planner, check_stationary
from pacplan.algorithms.common.certainty import certain_plan
from pacplan.algorithms.common.confidence import (
    KNOWLEDGE,
    Knowledge,
    Targeted,
    certificate,
    check_accuracy,
    check_known,
    check_stops,
    declared,
    tail,
)
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.plans import bounded_plan
from pacplan.algorithms.opd.records import Task
from pacplan.algorithms.opd.search import SequenceSearch
from pacplan.core import checks
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.models.knowledge import Bounds, Function, check_bounds, check_guidance
from pacplan.models.protocol import Session
from pacplan.result import Plan


class Bracket(Targeted, Planner):
    """Proven answers for a fraction of the calls: bounds only where a proof needs them.

    Above, U(a) holds for the optimal action because the evidence holds along one optimal policy,
    whichever it is: the evidence on all its pairs is one product of bets, each raised to the
    probability of reaching its pair, so there is no union bound over the tree. Below, L(a) comes from
    bets on returns of episodes declared beforehand to do what seems best. In a tree the two may be
    multiplied, which bounds how much better a may be than b by less than U(a) - L(b). The search stops
    when that bound, for all a != b, is at most epsilon for some b, which it returns. The documentation
    has the proof.

    **What is guaranteed.** With probability at least 1 - delta, at all times, L(a) <= Q(a) for every
    action of the state, and Q(a*) <= U(a*) for an optimal one (the upper bound of another action may
    lie below its value). So max L <= V <= max U, and whenever the search ends, the action returned is
    `plan.gap`-optimal in the problem of H steps (`plan.gap` may be less than U - L). For the infinite
    horizon add w gamma^H / (1 - gamma), w the width of the rewards; `target="infinite"` does so and
    stops at epsilon in all.

    Args:
        epsilon: how far from optimal the answer may be, in the model's reward units. 0 never stops
            before the action is known to be optimal, so it needs a budget or a deadline.
        delta: probability with which the guarantee may fail.
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: number of steps H; by default as for `MDPGapE`, and for `target="infinite"` the least
            whose tail is at most 15 % of epsilon. With epsilon = 0 it follows from the budget; with a
            time limit alone, it is the smallest H with gamma^H <= 1/100.
        goal: "action", or "value": stops when the interval of the state's value is at most 2 epsilon
            wide, so that its middle, `plan.value`, is within epsilon.
        merge: "tree": a node for every history; "depth": one for all histories that lead to the same
            state at the same depth; "stationary": one for each state, and what is seen of it at any
            depth is evidence for all depths (so the model is asked for the actions of every state seen,
            and your `value_bounds` for every state and number of steps, even after the last step). The
            upper bounds of merged nodes are renewed only at intervals, by a sweep over the whole graph
            whenever the calls have grown by 5 %. Exploring then calls one pair at a time, in any state
            seen so far, since the way to it is mostly known.
        rewards: "unknown"; "deterministic": a pair always pays the same reward, so one visit reveals it
            (checked on every visit); "known": taken from the model's table.
        transitions: "unknown"; "deterministic": every pair has one successor (checked); "known": taken
            from the model's table. If nothing is left to be learnt by chance, because both are declared
            one way or another, or rewards alone if H = 1, then bounds are certain and come from the
            search of `OPD`; if something is known, it reads the table, a state and action at a time,
            each of which counts as a call.
        target: "horizon": epsilon-optimal in the problem of H steps; "infinite": in the
            infinite-horizon discounted problem.
        value_bounds: what you know: (lower, upper), functions of a state and the number h of steps
            taken, or numbers, that bound its optimal value over the H - h steps left, in the model's
            units. A state is then worth no more than that, whatever was tried in it. (Only the upper
            one helps Bracket.) The guarantee depends on it.
        value_range: (low, high), if you know that what an episode earns from any state on, discounted
            from there, lies between them, whatever is done. It helps above and below: a game that is
            won or lost once has returns between -1 and 1, however many steps it may take. Checked on
            the returns of whole episodes; the guarantee depends on it.
        policy: a policy that may be good: a function of a state, or of a state and the number h of
            steps taken, that gives an action, or None for no advice. Episodes that are to earn much
            follow it as long as it earns more than what the search finds by itself. Guidance only: the
            guarantee holds whatever it advises.
        value: guesses of optimal values over the H - h steps left, in the model's units, a function
            like `policy`; they stand for what was never tried. Guidance only.
        chunk: see `Planner`.
    """

    name = "bracket"

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        gamma: float,
        horizon: int | None = None,
        goal: Literal["action", "value"] = "action",
        merge: Literal["tree", "depth", "stationary"] = "tree",
        rewards: Knowledge = "unknown",
        transitions: Knowledge = "unknown",
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
        self.goal = checks.choice("goal", goal, ("action", "value"))
        self.merge = checks.choice("merge", merge, ("tree", "depth", "stationary"))
        self.rewards = checks.choice("rewards", rewards, KNOWLEDGE)
        self.transitions = checks.choice("transitions", transitions, KNOWLEDGE)
        self.target = checks.choice("target", target, ("horizon", "infinite"))
        self.value_bounds = check_bounds(value_bounds)
        self.value_range = (
            None if value_range is None else checks.interval("value_range", value_range, "return")
        )
        self.policy = check_guidance("policy", policy)
        self.value = check_guidance("value", value)
        if self.target == "infinite" and self.goal == "value":
            raise ValueError(
                'goal="value" is for the problem of H steps; for an infinite horizon use '
                'target="horizon" and add what the tail can be worth'
            )
        self.check_target()

    def check_query(self, query: Query, limits: Limits) -> None:
        model = query.model
        check_stops(self.epsilon, limits)
        check_known(self, model)
        if self.merge == "stationary":
            check_stationary(
                model, "a state and action may have another law at every step; use merge='depth'"
            )
        self.check_reach(model, limits.budget)

    def _certain(self, query: Query) -> Task | None:
        """What is searched if all that is random is known, so that no bet is needed; else None."""
        model = query.model
        # If gamma is 0, nothing after the first step counts.
        horizon = 1 if self.gamma == 0.0 else self.horizon_for(model, query.budget)
        no_chance = self.transitions != "unknown" or model.successors == 1
        if self.rewards == "unknown" or not (no_chance or horizon == 1):
            return None
        reads = "known" in (self.rewards, self.transitions)
        bounded = reads or self.value_bounds is not None or self.value_range is not None
        endless = self.target == "infinite" and no_chance and not bounded
        cut_off = 0.0 if endless or self.target == "horizon" else tail(model, self.gamma, horizon)
        return Task(
            gamma=self.gamma,
            epsilon=self.epsilon - cut_off,
            horizon=None if endless else horizon,
            merge=self.merge,
            goal=self.goal,
            value_bounds=self.value_bounds,
            value_range=self.value_range or ANYTHING,
            deterministic=self.transitions == "deterministic",
            reads=reads,
        )

    def start(self, query: Query, session: Session) -> BracketSearch | SequenceSearch:
        task = self._certain(query)
        if task is None:
            return BracketSearch(self, query, session)
        return SequenceSearch(task, query, session)

    def finish(
        self, query: Query, search: BracketSearch | SequenceSearch, stopped_by: str, seconds: float
    ) -> Plan:
        if isinstance(search, SequenceSearch):
            task = search.task
            return certain_plan(
                self,
                query,
                search,
                stopped_by,
                seconds,
                horizon=task.horizon,
                surely="That is certain, given what was declared.",
                assumed=declared(self, query.model),
                rest=self.epsilon - (task.epsilon or 0.0),
            )
        snapshot = search.snapshot(seconds)
        assert snapshot.lower is not None and snapshot.upper is not None
        middle = 0.5 * float(snapshot.lower.max() + snapshot.upper.max())
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
            assumptions=declared(self, query.model),
            values=search.estimates(),
            value=middle if self.goal == "value" else None,
        )
