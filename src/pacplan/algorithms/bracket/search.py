"""A Bracket search as the driver sees it: its arrays, how they grow, and how it is read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.allocation import FIRST_BET
from pacplan.algorithms.betting.plans import RootReader
from pacplan.algorithms.betting.returns import check_returns, open_accounts
from pacplan.algorithms.betting.settings import Scale
from pacplan.algorithms.bracket.constants import EXPECTED_ACTIONS, SMALL_COUNTS
from pacplan.algorithms.bracket.records import ARM, DECISION, NODE, PAIR, SCRATCH, Search
from pacplan.algorithms.bracket.settings import setup_of
from pacplan.algorithms.bracket.state_model import empty_pool, grown_pool
from pacplan.algorithms.common.plans import within
from pacplan.engine.driver import Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.models.knowledge import attach
from pacplan.models.protocol import Session

if TYPE_CHECKING:
    from pacplan.algorithms.bracket.bracket import Bracket


class BracketSearch(KernelSearch):
    """One search: the tree with its bets, the root's accounts, and the pool."""

    notes = False
    grows = {"bets": "pairs"}  # noqa: RUF012
    derived = frozenset({"opening", "stakes", "entropies", "levels"})

    def __init__(self, planner: "Bracket", query: Query, session: Session) -> None:
        model, actions = query.model, len(query.actions)
        horizon = planner.horizon_for(model, query.budget)
        attach(session, planner.value_bounds, planner.policy, planner.value)
        self._value_range = planner.value_range
        gap = planner.gap_for(model, horizon)
        self.target = gap if planner.goal == "action" else None
        setup = setup_of(planner, model, horizon, gap, actions)
        self._scale = setup.scale
        self.units = setup.scale.units
        settings, self.root = setup.settings, np.zeros(actions, ARM)
        most = max(actions, model.max_actions or EXPECTED_ACTIONS)
        settings["most_actions"], settings["same_actions"] = most, model.same_actions
        arrays: dict[str, Any] = {
            "bets": np.zeros((0, len(setup.opening))),
            "opening": setup.opening,
            "stakes": setup.stakes,
            "pool": empty_pool(horizon, planner.value is not None),
            "settings": settings,
            "levels": setup.levels,
            "steps": setup.steps,
            "entropies": _entropies(),
            "root": self.root,
            "moments": setup.moments,
            "wealth": setup.grid.accounts(0),
            "gaps": np.zeros((0, actions)),
            "forced_wealth": setup.grid.forced_accounts(0),
            "decision": np.zeros(1, DECISION),
            "scratch": np.zeros(max(most, len(setup.opening), horizon), SCRATCH),
        }
        super().__init__(
            query,
            session,
            PAIR,
            NODE,
            kind=Search,
            arrays=arrays,
            gamma=planner.gamma,
            horizon=horizon,
            deterministic=planner.transitions == "deterministic",
        )

    def make_room(self, episodes: int) -> None:
        """Make room in the pool, for wider pairs and for another account."""
        arrays, settings = self.arrays, self.arrays["settings"][0]
        arrays["pool"] = grown_pool(arrays["pool"], int(settings["most_actions"]), self.memory)
        # An episode can find a new outcome of the same pair at every step.
        self.extend("scratch", int(settings["widest"]) + self.horizon + 1)
        open_accounts(self)
        if settings["joint"]:
            self.extend("gaps", len(arrays["wealth"]))

    def estimates(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN for those never tried, whose estimates are a prior."""
        return np.where(self.calls > 0, self.in_units(self.root["estimate"]), np.nan)

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands.

        Raises:
            BrokenPromiseError: a return lay outside the range that the user gave.
        """
        arrays = self.arrays
        check_returns(arrays["settings"][0], self.in_units, self._value_range)
        lower, upper = self.in_units(self.root["lower"]), self.in_units(self.root["upper"])
        best = int(arrays["decision"][0]["best"])
        return self.standing(best, seconds, lower, upper, self.losses(best))

    def losses(self, action: int) -> NDArray[np.float64]:
        """By how much each other action may be better than this one, at most."""
        arm = self.root[action]
        apart: NDArray[np.float64] = self.root["upper"] - arm["lower"]
        if self.arrays["settings"][0]["joint"] and arm["exploits"] > FIRST_BET:
            apart = np.minimum(apart, self.arrays["gaps"][arm["account"]])
        return np.multiply(self._scale.width, apart)

    def verdicts(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Accounts that count for both sides know more of pairs of actions than the bounds do."""
        gaps, ruled_out = super().verdicts(self.root["lower"], self.root["upper"])
        gaps *= self._scale.width
        if self.arrays["settings"][0]["joint"] and len(gaps) > 1:
            for action in np.flatnonzero(self.root["exploits"] > FIRST_BET).tolist():
                losses = self.losses(action)
                losses[action] = -np.inf
                gaps[action] = losses.max()
                losses[action] = np.inf
                ruled_out |= losses < 0.0
        return gaps, ruled_out

    def reader(self) -> Reader:
        """Pairs hold the sum of their rewards, or the reward that was revealed, and an estimate."""
        settings = self.arrays["settings"][0]
        lower, upper = self.in_units(self.root["lower"]), self.in_units(self.root["upper"])
        return _Reader(
            root=RootReader(lower, upper, within(self.estimates(), lower, upper)),
            scale=self._scale,
            told=bool(settings["told"]),
        )


@cache
def _entropies() -> NDArray[np.float64]:
    """The table of n log n for small n. Plans share it: it must not be written to."""
    return np.array([0.0] + [n * math.log(n) for n in range(1, SMALL_COUNTS)])


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads a pair's record. Only the root's actions have bounds.

    Attributes:
        root: reads those.
        scale: the units.
        told: whether one visit reveals a reward.
    """

    root: RootReader
    scale: Scale
    told: bool

    def __call__(self, pair: Any, offered: Sequence[int]) -> Evidence:
        scale, n, total = self.scale, int(pair["n"]), float(pair["reward"])
        reward = None if n == 0 else scale.low + scale.width * (total if self.told else total / n)
        interval = (reward, reward) if self.told and reward is not None else None
        value = None
        if n > 0:
            rest = scale.low * float(scale.sigma[-len(offered)])
            value = rest + scale.width * float(pair["estimate"])
        seen = self.root(pair, offered) if len(offered) == 1 else Evidence(value=value)
        return replace(seen, reward=reward, reward_interval=interval)
