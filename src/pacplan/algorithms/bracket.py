"""Bracket: proven answers from optimism along one policy above and bets on returns below."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacplan import _checks
from pacplan._jit import records
from pacplan.algorithms import bracket_bets as bets
from pacplan.algorithms import bracket_kernel as kernels
from pacplan.algorithms.base import Planner, Query, check_stationary
from pacplan.algorithms.bracket_pool import PoolArrays
from pacplan.algorithms.bracket_prices import prices
from pacplan.algorithms.confidence import (
    certificate,
    check_accuracy,
    check_stops,
    check_successors,
    declared,
    planned_steps,
    tail,
)
from pacplan.algorithms.episodes import EpisodeSearch, bounded_plan, within
from pacplan.algorithms.horizons import (
    check_endless,
    check_gamma_and_horizon,
    check_steps,
    default_horizon,
)
from pacplan.algorithms.knowledge import KNOWLEDGE, Knowledge, check_known
from pacplan.models.bounded import Bounds, ValueBounds, check_bounds
from pacplan.models.protocol import Model, Session
from pacplan.models.tabular import TabularMDP
from pacplan.result import Plan
from pacplan.search.driver import Limits, Snapshot
from pacplan.search.merging import empty_graph, grown_graph
from pacplan.search.tree import Evidence, Reader
from pacplan.search.values import step_range, step_width
from pacplan.words import at_most, exactly

# Share of delta for the bounds from below, and of that for exploit episodes.
_BELOW = 0.5
_EXPLOIT = 0.9
# Part of epsilon that the tail may take, where the answer is for the infinite horizon.
_TAIL = 0.15
# Part of the range of values that stands for epsilon = 0.
_FINE = 1.0 / 64.0
# Largest range of values relative to epsilon: a grid of bounds must fit into memory.
_FINEST = 1e5
_GRID = 32
# The grid of forced bets and their least fraction, relative to epsilon: small enough for the search to
# end (docs/bracket.md).
_FORCED_GRID = 0.125
_LEAST_FRACTION = 1.0 / 24.0
# Least discount that numbers of this size can do with.
_LEAST_DISCOUNT = 1e-150
_MOST_POINTS = 4096
_SMALL_COUNTS = 4096


class Bracket(Planner):
    """Proven for a fraction of the calls: bounds only where a proof needs them.

    Above, U(a) holds for the optimal action because the evidence holds along one optimal policy,
    whichever it is: that of all its pairs is one product of bets, each raised to the probability of
    reaching it, so that there is no union over the tree. Below, L(a) comes from bets on the returns
    of episodes that were declared beforehand to do what seems best. The search stops when
    max_{a != b} U(a) - L(b) <= epsilon for some b, which it returns. The documentation has the proof.

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
        horizon: number of steps H; by default as for `MDPGapE`, and for `target="infinite"` the least
            whose tail is at most 15 % of epsilon. With epsilon = 0 it follows from the budget.
        goal: "action", or "value": stops when the interval of the state's value is at most 2 epsilon
            wide, so that its middle, `plan.value`, is within epsilon.
        merge: "tree": a node for every history; "depth": one for all histories that lead to the same
            state after as many steps; "stationary": one for each state, and what is seen of it after
            any number of steps is evidence for all (so actions and `value_bounds` are asked for every
            state seen, also after the last step, and for every number of steps). The upper bounds of
            merged nodes are renewed at intervals only, whenever the calls have grown by 5 %, and by a
            sweep over the whole graph.
        rewards: "unknown"; "deterministic": a pair always pays the same reward, so one visit tells it
            (checked on every visit); "known": taken from the model's table.
        transitions: "unknown"; "deterministic": every pair has one successor (checked); "known": taken
            from the model's table.
        target: "horizon": epsilon-optimal in the problem of H steps; "infinite": in the
            infinite-horizon discounted problem.
        value_bounds: what you know: (lower, upper), functions of a state and the number h of steps
            taken that bound its optimal value over the H - h steps left, in the model's units. A state
            is then worth no more than that, whatever was tried in it. (Only the upper one helps
            Bracket.) The guarantee rests on it.
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
        chunk: int | None = None,
    ) -> None:
        super().__init__(chunk=chunk)
        self.epsilon = check_accuracy(epsilon)
        self.delta = _checks.probability("delta", delta)
        self.gamma, self._horizon = check_gamma_and_horizon(gamma, horizon)
        self.goal = _checks.choice("goal", goal, ("action", "value"))
        self.merge = _checks.choice("merge", merge, ("tree", "depth", "stationary"))
        self.rewards = _checks.choice("rewards", rewards, KNOWLEDGE)
        self.transitions = _checks.choice("transitions", transitions, KNOWLEDGE)
        self.target = _checks.choice("target", target, ("horizon", "infinite"))
        self.value_bounds = check_bounds(value_bounds)
        if self.target == "infinite" and self.gamma == 1.0:
            raise ValueError('target="infinite" needs gamma < 1')
        if self.target == "infinite" and self.goal == "value":
            raise ValueError(
                'goal="value" is for the problem of H steps; for an infinite horizon use '
                'target="horizon" and add what the tail can be worth'
            )
        if self.target == "infinite" and self.epsilon == 0.0:
            raise ValueError('target="infinite" needs epsilon > 0: a horizon cuts off something')
        if horizon is None:
            _ = self.horizon  # Raises where the default would be out of reach.

    @property
    def horizon(self) -> int | None:
        """The number of steps it will plan; None where that follows from the budget.

        For rewards of another width than 1 the default is `horizon_for(model)`.
        """
        return self._horizon if self._horizon is not None else self._default_horizon(1.0)

    def horizon_for(self, model: Model, budget: int | None = None) -> int:
        """The number of steps it will plan in `model`.

        Raises:
            ValueError: the horizon follows from the budget, and there is none.
        """
        if self._horizon is not None:
            return self._horizon
        default = self._default_horizon(step_width(model.reward_range, model.may_end))
        without = "epsilon=0"
        return planned_steps(default, self.gamma, budget, without)

    def _default_horizon(self, width: float) -> int | None:
        if self.epsilon == 0.0:
            return None
        # The paper's default leaves a tail of epsilon / 2.
        part = 2.0 * _TAIL if self.target == "infinite" else 1.0
        return default_horizon(part * self.epsilon / width, self.gamma)

    def _check_query(self, query: Query, limits: Limits) -> None:
        model = query.model
        check_stops(self.epsilon, limits)
        check_successors(self, model)
        check_known(model, self.rewards, self.transitions)
        if self.merge == "stationary":
            check_stationary(
                model, "a state and action may have another law at every step; use merge='depth'"
            )
        horizon = self.horizon_for(model, limits.budget)
        if self.target == "infinite":
            check_endless(model)
            rest = tail(model, self.gamma, horizon)
            if rest >= self.epsilon:
                raise ValueError(
                    f"horizon={horizon} cuts off up to {at_most(rest)}, not less than epsilon; "
                    "give a longer horizon, or none"
                )
        check_steps(model, horizon)
        if self.gamma > 0.0 and self.gamma ** (horizon - 1) < _LEAST_DISCOUNT:
            most = 1 + int(math.log(_LEAST_DISCOUNT) / math.log(self.gamma))
            raise ValueError(
                f"horizon={horizon} with gamma={exactly(self.gamma)} has steps that count for less "
                f"than {_LEAST_DISCOUNT:g}; give a horizon of at most {most}"
            )

    def _start(self, query: Query, session: Session) -> "_BracketSearch":
        return _BracketSearch(self, query, session)

    def _finish(self, query: Query, search: "_BracketSearch", stopped_by: str, seconds: float) -> Plan:
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
                "Of the upper bounds only that of the best action is sure."
            ),
            assumptions=declared(self, query.model),
            values=search.estimates(),
            value=middle if self.goal == "value" else None,
        )


class _BracketSearch(EpisodeSearch):
    """One search: the tree with its bets, the root's accounts, and the pool."""

    def __init__(self, planner: Bracket, query: Query, session: Session) -> None:
        model, gamma = query.model, planner.gamma
        # Nothing after the first step counts where gamma is 0.
        horizon = 1 if gamma == 0.0 else planner.horizon_for(model, query.budget)
        super().__init__(
            kernels.run,
            query,
            session,
            kernels.PAIR,
            kernels.NODE,
            gamma=gamma,
            horizon=horizon,
            deterministic=planner.transitions == "deterministic",
            pairs_a_node=model.max_actions or 1 if planner.rewards == "known" else 1,
        )
        self._value_bounds = (
            ValueBounds(planner.value_bounds, session) if planner.value_bounds else None
        )
        low, high = step_range(model.reward_range, model.may_end)
        self._sigma = np.concatenate([[0.0], np.cumsum(gamma ** np.arange(horizon))])
        self._low, self._width = low, high - low
        lowest, highest = model.reward_range
        target = planner.epsilon
        if planner.target == "infinite":
            target -= tail(model, planner.gamma, horizon)
        self.target = target if planner.goal == "action" else None
        span = float(self._sigma[-1])
        epsilon = target / self._width
        if planner.epsilon > 0.0 and span > _FINEST * epsilon:
            raise ValueError(
                f"epsilon={exactly(planner.epsilon)} is too small for values in a range of "
                f"{at_most(span * self._width)}; give at least "
                f"{at_most(span * self._width / _FINEST)}, or 0"
            )
        # An epsilon beyond the range of values is met before the first call.
        resolution = min(epsilon, span) if epsilon > 0.0 else _FINE * span
        b = self.successors
        # At the root of one step nothing can recur.
        merge = planner.merge if horizon > 1 else "tree"
        cost = prices(
            (1.0 - _BELOW) * planner.delta,
            gamma,
            horizon,
            resolution,
            merge=merge,
            successors=b,
            states=model.states if isinstance(model, TabularMDP) else math.inf,
            random_next=b > 1 and planner.transitions == "unknown" and horizon > 1,
            random_rewards=planner.rewards == "unknown",
        )
        coarse = _FORCED_GRID * resolution
        step = max(resolution / _GRID, min(coarse, span / _MOST_POINTS))
        stride = max(1, int(coarse / step + 1e-9))
        points = int(span / step) + 2
        least = min(0.5, _LEAST_FRACTION * resolution / span)
        # Halves of the largest fraction, until one is small enough.
        fractions = 1 + max(0, math.ceil(math.log2(bets.LARGEST_FRACTION / least)))
        nothing = -low / self._width
        rules = np.zeros(1, kernels.RULES)
        rules["gamma"], rules["epsilon"], rules["resolution"] = gamma, epsilon, resolution
        rules["low"], rules["width"] = low, self._width
        rules["offset"] = (lowest - low) / self._width
        rules["slope"] = (highest - lowest) / self._width
        rules["kappa"], rules["least"] = cost.kappa, cost.kappa * resolution
        rules["log_share"] = cost.log_share
        below = _BELOW * planner.delta
        rules["delta_exploit"], rules["delta_forced"] = _EXPLOIT * below, (1.0 - _EXPLOIT) * below
        rules["step"], rules["stride"], rules["horizon"] = step, stride, horizon
        rules["normaliser"] = math.lgamma(0.5 * b) - b * math.lgamma(0.5)
        rules["cut"] = kernels.CUT if epsilon > 0.0 else kernels.ANYTIME_CUT
        rules["value_goal"] = planner.goal == "value"
        rules["fixed_rewards"] = planner.rewards == "deterministic"
        rules["known_rewards"] = planner.rewards == "known"
        rules["known_transitions"] = planner.transitions == "known"
        rules["told"] = planner.rewards != "unknown"
        rules["learns"] = b > 1 and planner.transitions == "unknown"
        rules["merged"] = merge != "tree"
        rules["pooled"] = merge == "stationary"
        rules["same_actions"] = model.same_actions
        actions = len(query.actions)
        self.root = records(np.zeros(actions, bets.ARM))
        self.calls = self.root["calls"]
        self._decision = records(np.zeros(1, kernels.DECISION))
        bettors = len(bets.NEWEST)
        room = max(actions, model.max_actions or 256)
        steps = np.zeros(horizon + 1, kernels.STEPS)
        steps["sigma"] = self._sigma
        steps["prior"] = kernels.PRIOR * self._sigma
        steps["ended"] = nothing * self._sigma
        moments = np.zeros((actions, bettors), bets.MOMENTS)
        moments["spread"] = (0.25 * span) ** 2
        self._pool = PoolArrays(room, horizon)
        rules["most_actions"] = room
        # Accounts are opened with the first bet of an action; few actions ever bet.
        self._wealth = np.zeros((0, points, bettors))
        self._forced_wealth = np.zeros((0, points // stride + 2, fractions))
        self._opening = cost.opening
        self._bets = np.zeros((0, len(cost.opening)))
        # Where evidence is pooled, a column for every depth, and one for what is after the last step.
        columns = horizon + 1 if merge == "stationary" else 1
        self._bounds = kernels.Bounds(*(np.zeros((0, columns)) for _ in range(3)))
        self._merged = merge != "tree"
        self._graph = empty_graph(horizon)
        self._fixed = {
            "stakes": cost.stakes,
            "rules": records(rules),
            "levels": records(cost.levels),
            "steps": records(steps),
            "entropies": _entropies(),
            "promises": self.promises,
            "root": self.root,
            "moments": records(moments),
            "decision": self._decision,
            "path": self.path,
            "scratch": records(np.zeros(max(room, b, len(cost.opening)), kernels.SCRATCH)),
            "report": self.reports,
        }
        self.reserve()

    def kernel_state(self) -> kernels.Search:
        """What the kernels work on."""
        return kernels.Search(
            tree=self.tree.arrays(),
            bounds=self._bounds,
            bets=self._bets,
            pool=self._pool.arrays(),
            graph=self._graph,
            wealth=self._wealth,
            forced_wealth=self._forced_wealth,
            **self._fixed,
        )

    def reserve(self) -> int:
        """Make room, also for the bets on new pairs and on returns, and for new states in the pool."""
        episodes = super().reserve()
        nodes, pairs = self.tree.room, len(self.tree.arrays().pairs)
        known = len(self._bets)
        self._bets = self.room.extend(self._bets, pairs)
        self._bets[known:] = self._opening
        for table, rows in zip(self._bounds, (nodes, nodes, pairs), strict=True):
            self.room.extend(table, rows)
        self._pool.reserve(self.room)
        rules = self._fixed["rules"][0]
        self._wealth = self._opened(self._wealth, int(rules["bettors"]))
        self._forced_wealth = self._opened(self._forced_wealth, int(rules["forcers"]))
        if self._merged:
            self._graph = grown_graph(self._graph, nodes, episodes * self.horizon + 1, self.room)
        return episodes

    def _opened(self, accounts: NDArray[np.float64], used: int) -> NDArray[np.float64]:
        """The accounts, or twice as many where all are in use."""
        if used < len(accounts):
            return accounts
        return self.room.extend(accounts, min(max(2 * used, 1), len(self.actions)))

    def in_units(self, scaled: Any) -> Any:
        """Values of H steps in the user's units."""
        return self._low * self._sigma[-1] + self._width * scaled

    def estimates(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN for those never tried, whose estimates are a prior."""
        return np.where(self.calls > 0, self.in_units(self.root["estimate"]), np.nan)

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands."""
        lower, upper = self.in_units(self.root["lower"]), self.in_units(self.root["upper"])
        return self.standing(int(self._decision[0]["best"]), seconds, lower, upper)

    def reader(self) -> Reader:
        """Pairs hold the sum of their rewards, or the reward that was told, and an estimate."""
        rules = self._fixed["rules"][0]
        lower, upper = self.in_units(self.root["lower"]), self.in_units(self.root["upper"])
        return _Reader(
            low=self._low,
            width=self._width,
            sigma=self._sigma,
            known=bool(rules["known_rewards"]),
            fixed=bool(rules["fixed_rewards"]),
            pooled=bool(rules["pooled"]),
            lower=lower,
            upper=upper,
            values=within(self.estimates(), lower, upper),
        )


@cache
def _entropies() -> NDArray[np.float64]:
    """The table of n log n - lgamma(n + 1/2) for small n. Plans share it; nobody writes to it."""
    first = -math.lgamma(0.5)
    return np.array([first] + [n * math.log(n) - math.lgamma(n + 0.5) for n in range(1, _SMALL_COUNTS)])


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads a pair's record. Only the root's actions have bounds.

    Attributes:
        low: the least that a step pays.
        width: of what a step pays.
        sigma: 1 + gamma + ... + gamma^(k-1), by k.
        known: whether the model told the mean reward.
        fixed: whether one visit tells it.
        pooled: whether a pair stands for all depths, and so has no value of its own.
        lower: bounds of the root's actions.
        upper: likewise.
        values: their estimates, as the plan has them.
    """

    low: float
    width: float
    sigma: NDArray[np.float64]
    known: bool
    fixed: bool
    pooled: bool
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    values: NDArray[np.float64]

    def __call__(self, pair: Any, offered: Sequence[int]) -> Evidence:
        n, total, action = int(pair["n"]), float(pair["reward"]), int(pair["action"])
        told = self.known or (self.fixed and n > 0)
        reward = None
        if told or n > 0:
            reward = self.low + self.width * (total if told else total / n)
        known = Evidence(
            reward=reward,
            reward_interval=(reward, reward) if told and reward is not None else None,
        )
        if len(offered) == 1:
            value = float(self.values[action])
            return replace(
                known,
                value=None if math.isnan(value) else value,
                lower=float(self.lower[action]),
                upper=float(self.upper[action]),
            )
        if n == 0 or self.pooled:
            return known
        rest = self.low * float(self.sigma[-len(offered)])
        return replace(known, value=rest + self.width * float(pair["estimate"]))
