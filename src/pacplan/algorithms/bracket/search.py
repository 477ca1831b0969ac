"""A Bracket search: its arrays, how they grow, and how the tree's pairs are read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.allocation import FIRST_BET
from pacplan.algorithms.betting.bets import NEWEST
from pacplan.algorithms.betting.returns import check_returns
from pacplan.algorithms.betting.settings import ANYTHING
from pacplan.algorithms.bracket import episode
from pacplan.algorithms.bracket.constants import (
    EXPECTED_ACTIONS,
    FIRST_ACCOUNTS,
    SMALL_COUNTS,
)
from pacplan.algorithms.bracket.pool import PoolArrays
from pacplan.algorithms.bracket.records import (
    ARM,
    DECISION,
    NODE,
    PAIR,
    SCRATCH,
    Bounds,
    Search,
)
from pacplan.algorithms.bracket.setting import Task, setting_of
from pacplan.algorithms.common.confidence import tail
from pacplan.algorithms.common.plans import within
from pacplan.engine.curve import Points
from pacplan.engine.driver import Snapshot
from pacplan.engine.graph import empty_graph, grown_graph
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.tree import Evidence, Reader
from pacplan.models.knowledge import attach
from pacplan.models.protocol import Session

if TYPE_CHECKING:
    from pacplan.algorithms.bracket.planner import Bracket


class BracketSearch(KernelSearch):
    """One search: the tree with its bets, the root's accounts, and the pool."""

    kernels = episode
    notes = False
    derived = frozenset({"opening", "stakes", "entropies", "predictors", "levels"})

    def __init__(self, planner: "Bracket", query: Query, session: Session) -> None:
        model, gamma = query.model, planner.gamma
        # If gamma is 0, nothing after the first step counts.
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
        attach(session, planner.value_bounds, planner.policy, planner.value)
        self._value_range = planner.value_range
        target = planner.epsilon
        if planner.target == "infinite":
            target -= tail(model, gamma, horizon)
        self.target = target if planner.goal == "action" else None
        # In a single step no state can recur.
        merge = planner.merge if horizon > 1 else "tree"
        actions = len(query.actions)
        room = max(actions, model.max_actions or EXPECTED_ACTIONS)
        self._setting = setting = setting_of(
            Task(
                epsilon=target,
                delta=planner.delta,
                gamma=gamma,
                horizon=horizon,
                value_goal=planner.goal == "value",
                merge=merge,
                rewards=planner.rewards,
                transitions=planner.transitions,
                reward_range=model.reward_range,
                value_range=planner.value_range or ANYTHING,
                may_end=model.may_end,
                successors=1
                if planner.transitions == "deterministic"
                else model.successors or math.inf,
                states=model.states or math.inf,
                same_actions=model.same_actions,
                most_actions=room,
                choices=actions,
                guided=planner.policy is not None,
            )
        )
        cost = setting.prices
        self.root = np.zeros(actions, ARM)
        self._decision = np.zeros(1, DECISION)
        self._pool = PoolArrays(room, horizon, planner.value is not None)
        self._wealth = np.zeros((0, setting.grid.points, len(NEWEST)))
        self._forced_wealth = np.zeros((0, setting.grid.forced_points, setting.grid.fractions))
        self._gaps = np.zeros((0, actions))
        self._bets = np.zeros((0, len(cost.opening)))
        self._predicted = np.zeros((0, len(setting.predictors)))
        self._scratch = np.zeros(max(room, len(cost.opening), horizon), SCRATCH)
        # If evidence is pooled, one column per depth, and one for what follows the last step.
        columns = horizon + 1 if merge == "stationary" else 1
        self._bounds = Bounds(*(np.zeros((0, columns)) for _ in range(3)))
        self._graph = empty_graph(horizon, merge == "stationary") if merge != "tree" else None
        self._settings = setting.settings.copy()
        self._fixed: dict[str, Any] = {
            "opening": cost.opening,
            "stakes": cost.stakes,
            "settings": self._settings,
            "levels": cost.levels.copy(),
            "steps": setting.steps.copy(),
            "entropies": _entropies(),
            "root": self.root,
            "moments": np.repeat(setting.moments[np.newaxis], actions, 0),
            "decision": self._decision,
            "predictors": setting.predictors,
        }
        self.reserve()

    def kernel_state(self) -> Search:
        """What the kernels work on."""
        return Search(
            **self.engine_fields(),
            points=self.points,
            bounds=self._bounds,
            bets=self._bets,
            predicted=self._predicted,
            scratch=self._scratch,
            pool=self._pool.arrays(),
            graph=self._graph,
            wealth=self._wealth,
            gaps=self._gaps,
            forced_wealth=self._forced_wealth,
            **self._fixed,
        )

    def reserve(self) -> int:
        """Make room, also for the bets on new pairs and on returns, and for new states in the pool."""
        episodes = super().reserve()
        tree, room = self.tree.arrays(), self.room
        nodes, pairs = len(tree.nodes), len(tree.pairs)
        self._bets = room.extend(self._bets, pairs)
        self._predicted = room.extend(self._predicted, pairs)
        self._bounds = Bounds(*map(room.extend, self._bounds, (nodes, nodes, pairs)))
        self._pool.reserve(room)
        settings = self._settings[0]
        # An episode can find a new outcome of the same pair at every step.
        room.extend(self._scratch, int(settings["widest"]) + self.horizon + 1)
        # With each account that counts for both sides go its gaps to all actions.
        beside = self._gaps.itemsize * len(self.actions) if settings["joint"] else 0
        self._wealth = self._opened(self._wealth, int(settings["bettors"]), beside)
        if settings["joint"]:
            self._gaps = room.extend(self._gaps, len(self._wealth))
        self._forced_wealth = self._opened(self._forced_wealth, int(settings["forcers"]))
        if self._graph is not None:
            self._graph = grown_graph(self._graph, nodes, episodes * self.horizon + 1, room)
        return episodes

    def _opened(self, accounts: NDArray[np.float64], used: int, beside: int = 0) -> NDArray[np.float64]:
        """Room for an action to begin betting, or for some, and for twice as many once all bet.

        `beside` has the bytes that an account takes elsewhere.
        """
        if used < len(accounts):
            return accounts
        first = max(1, FIRST_ACCOUNTS // (accounts.itemsize * math.prod(accounts.shape[1:]) + beside))
        return self.room.extend(accounts, min(max(2 * used, first), len(self.actions)))

    def in_units(self, scaled: Any) -> Any:
        """Values of H steps in the user's units."""
        return self._setting.low * self._setting.sigma[-1] + self._setting.width * scaled

    def estimates(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN for those never tried, whose estimates are a prior."""
        return np.where(self.calls > 0, self.in_units(self.root["estimate"]), np.nan)

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands.

        Raises:
            BrokenPromiseError: a return lay outside the range that the user gave.
        """
        check_returns(self._settings[0], self.in_units, self._value_range)
        lower, upper = self.in_units(self.root["lower"]), self.in_units(self.root["upper"])
        best = int(self._decision[0]["best"])
        return self.standing(best, seconds, lower, upper, self.losses(best))

    def curve(self) -> Points:
        """How the bounds have closed in, in the user's units."""
        setting = self._setting
        return super().curve().scaled(setting.low * setting.sigma[-1], setting.width)

    def losses(self, action: int) -> NDArray[np.float64]:
        """By how much each other action may be better than this one, at most."""
        arm = self.root[action]
        apart: NDArray[np.float64] = self.root["upper"] - arm["lower"]
        if self._settings[0]["joint"] and arm["exploits"] > FIRST_BET:
            apart = np.minimum(apart, self._gaps[arm["account"]])
        return np.multiply(self._setting.width, apart)

    def verdicts(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Accounts that count for both sides know more of pairs of actions than the bounds do."""
        gaps, ruled_out = super().verdicts(self.root["lower"], self.root["upper"])
        gaps *= self._setting.width
        if self._settings[0]["joint"] and len(gaps) > 1:
            for action in np.flatnonzero(self.root["exploits"] > FIRST_BET).tolist():
                losses = self.losses(action)
                losses[action] = -np.inf
                gaps[action] = losses.max()
                losses[action] = np.inf
                ruled_out |= losses < 0.0
        return gaps, ruled_out

    def acting_nodes(self) -> NDArray[np.int32] | None:
        """By node, the one that holds its state's actions, if equal states are merged."""
        return None if self._graph is None else self._graph.canonical

    def reader(self) -> Reader:
        """Pairs hold the sum of their rewards, or the reward that was revealed, and an estimate."""
        settings, setting = self._settings[0], self._setting
        lower, upper = self.in_units(self.root["lower"]), self.in_units(self.root["upper"])
        return _Reader(
            low=setting.low,
            width=setting.width,
            sigma=setting.sigma,
            known=bool(settings["known_rewards"]),
            fixed=bool(settings["fixed_rewards"]),
            pooled=self._graph is not None and self._graph.pooled,
            lower=lower,
            upper=upper,
            values=within(self.estimates(), lower, upper),
        )


@cache
def _entropies() -> NDArray[np.float64]:
    """The table of n log n for small n. Plans share it: it must not be written to."""
    return np.array([0.0] + [n * math.log(n) for n in range(1, SMALL_COUNTS)])


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads a pair's record. Only the root's actions have bounds.

    Attributes:
        low: the least that a step pays.
        width: of what a step pays.
        sigma: 1 + gamma + ... + gamma^(k-1), by k.
        known: whether the model revealed the mean reward.
        fixed: whether one visit reveals it.
        pooled: whether a pair stands for all depths, and so has no value of its own.
        lower: lower bounds of the root's actions.
        upper: their upper bounds.
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
