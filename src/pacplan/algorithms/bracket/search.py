"""A Bracket search: its arrays, how they grow, and what the tree's pairs tell."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.bracket import episode  # noqa: F401  (answers the engine's questions)
from pacplan.algorithms.bracket.constants import (
    ANYTIME_CUT,
    BELOW,
    CUT,
    EXPECTED_ACTIONS,
    EXPLOIT_SHARE,
    FINE,
    FINEST,
    FIRST_SPREAD,
    FORCED_GRID,
    GRID,
    LARGEST_FRACTION,
    LEAST_FRACTION,
    MOST_POINTS,
    NEWEST,
    PRIOR,
    SMALL_COUNTS,
)
from pacplan.algorithms.bracket.pool import PoolArrays
from pacplan.algorithms.bracket.prices import prices
from pacplan.algorithms.bracket.records import (
    ARM,
    DECISION,
    MOMENTS,
    NODE,
    PAIR,
    RULES,
    SCRATCH,
    STEPS,
    Bounds,
    Search,
)
from pacplan.algorithms.common.confidence import tail
from pacplan.algorithms.common.plans import within
from pacplan.compiled.jit import records
from pacplan.core.words import at_most, exactly
from pacplan.engine.driver import Snapshot
from pacplan.engine.graph import empty_graph, grown_graph
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.tree import Evidence, Reader
from pacplan.engine.values import step_range
from pacplan.models.bounded import ValueBounds
from pacplan.models.protocol import Session
from pacplan.models.tabular import TabularMDP

if TYPE_CHECKING:
    from pacplan.algorithms.bracket.planner import Bracket


class BracketSearch(KernelSearch):
    """One search: the tree with its bets, the root's accounts, and the pool."""

    def __init__(self, planner: "Bracket", query: Query, session: Session) -> None:
        model, gamma = query.model, planner.gamma
        # Nothing after the first step counts where gamma is 0.
        horizon = 1 if gamma == 0.0 else planner.horizon_for(model, query.budget)
        super().__init__(
            query,
            session,
            PAIR,
            NODE,
            gamma=gamma,
            horizon=horizon,
            deterministic=planner.transitions == "deterministic",
            pairs_a_step=model.max_actions or 1 if planner.rewards == "known" else 1,
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
        if planner.epsilon > 0.0 and span > FINEST * epsilon:
            raise ValueError(
                f"epsilon={exactly(planner.epsilon)} is too small for values in a range of "
                f"{at_most(span * self._width)}; give at least "
                f"{at_most(span * self._width / FINEST)}, or 0"
            )
        # An epsilon beyond the range of values is met before the first call.
        resolution = min(epsilon, span) if epsilon > 0.0 else FINE * span
        b = self.successors
        # At the root of one step nothing can recur.
        merge = planner.merge if horizon > 1 else "tree"
        cost = prices(
            (1.0 - BELOW) * planner.delta,
            gamma,
            horizon,
            resolution,
            merge=merge,
            successors=b,
            states=model.states if isinstance(model, TabularMDP) else math.inf,
            random_next=b > 1 and planner.transitions == "unknown" and horizon > 1,
            random_rewards=planner.rewards == "unknown",
        )
        coarse = FORCED_GRID * resolution
        step = max(resolution / GRID, min(coarse, span / MOST_POINTS))
        stride = max(1, int(coarse / step + 1e-9))
        points = int(span / step) + 2
        least = min(0.5, LEAST_FRACTION * resolution / span)
        # Halves of the largest fraction, until one is small enough.
        fractions = 1 + max(0, math.ceil(math.log2(LARGEST_FRACTION / least)))
        nothing = -low / self._width
        rules = np.zeros(1, RULES)
        rules["gamma"], rules["epsilon"], rules["resolution"] = gamma, epsilon, resolution
        rules["low"], rules["width"] = low, self._width
        rules["offset"] = (lowest - low) / self._width
        rules["slope"] = (highest - lowest) / self._width
        rules["kappa"], rules["least"] = cost.kappa, cost.kappa * resolution
        rules["log_share"] = cost.log_share
        below = BELOW * planner.delta
        rules["delta_exploit"], rules["delta_forced"] = (
            EXPLOIT_SHARE * below,
            (1.0 - EXPLOIT_SHARE) * below,
        )
        rules["step"], rules["stride"], rules["horizon"] = step, stride, horizon
        rules["normaliser"] = math.lgamma(0.5 * b) - b * math.lgamma(0.5)
        rules["cut"] = CUT if epsilon > 0.0 else ANYTIME_CUT
        rules["value_goal"] = planner.goal == "value"
        rules["fixed_rewards"] = planner.rewards == "deterministic"
        rules["known_rewards"] = planner.rewards == "known"
        rules["known_transitions"] = planner.transitions == "known"
        rules["told"] = planner.rewards != "unknown"
        rules["learns"] = b > 1 and planner.transitions == "unknown"
        rules["swept"] = -1
        rules["same_actions"] = model.same_actions
        actions = len(query.actions)
        self.root = records(np.zeros(actions, ARM))
        self._decision = records(np.zeros(1, DECISION))
        bettors = len(NEWEST)
        room = max(actions, model.max_actions or EXPECTED_ACTIONS)
        steps = np.zeros(horizon + 1, STEPS)
        steps["sigma"] = self._sigma
        steps["prior"] = PRIOR * self._sigma
        steps["ended"] = nothing * self._sigma
        moments = np.zeros((actions, bettors), MOMENTS)
        moments["spread"] = (FIRST_SPREAD * span) ** 2
        self._pool = PoolArrays(room, horizon)
        rules["most_actions"] = room
        # Accounts are opened with the first bet of an action; few actions ever bet.
        self._wealth = np.zeros((0, points, bettors))
        self._forced_wealth = np.zeros((0, points // stride + 2, fractions))
        self._opening = cost.opening
        self._bets = np.zeros((0, len(cost.opening)))
        # Where evidence is pooled, a column for every depth, and one for what is after the last step.
        columns = horizon + 1 if merge == "stationary" else 1
        self._bounds = Bounds(*(np.zeros((0, columns)) for _ in range(3)))
        self._graph = empty_graph(horizon, merge == "stationary") if merge != "tree" else None
        self._fixed: dict[str, Any] = {
            "stakes": cost.stakes,
            "rules": records(rules),
            "levels": records(cost.levels),
            "steps": records(steps),
            "entropies": _entropies(),
            "root": self.root,
            "moments": records(moments),
            "decision": self._decision,
            "scratch": records(np.zeros(max(room, b, len(cost.opening)), SCRATCH)),
        }
        self.reserve()

    def kernel_state(self) -> Search:
        """What the kernels work on."""
        return Search(
            **self.engine_fields(),
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
        if self._graph is not None:
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
            pooled=self._graph is not None and self._graph.pooled,
            lower=lower,
            upper=upper,
            values=within(self.estimates(), lower, upper),
        )


@cache
def _entropies() -> NDArray[np.float64]:
    """The table of n log n - lgamma(n + 1/2) for small n. Plans share it; nobody writes to it."""
    first = -math.lgamma(0.5)
    return np.array([first] + [n * math.log(n) - math.lgamma(n + 0.5) for n in range(1, SMALL_COUNTS)])


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
