"""A Bracket search as the driver sees it: its arrays, how they grow, and how it is read."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.planner import BettingSearch
from pacplan.algorithms.betting.returns import FIRST_BET
from pacplan.algorithms.betting.setup import Scale
from pacplan.algorithms.bracket.constants import EXPECTED_ACTIONS
from pacplan.algorithms.bracket.pool import empty_pool, grown_pool
from pacplan.algorithms.bracket.records import DECISION, NODE, PAIR, SCRATCH, Search
from pacplan.algorithms.bracket.setup import setup_of
from pacplan.engine.query import Query
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.models.protocol import Session

if TYPE_CHECKING:
    from pacplan.algorithms.bracket.bracket import Bracket


class BracketSearch(BettingSearch):
    """One search: the tree with its bets, the root's accounts, and the pool."""

    derived = frozenset({"opening", "stakes"})

    def __init__(self, planner: "Bracket", query: Query, session: Session) -> None:
        model, actions = query.model, len(query.actions)
        horizon = planner.horizon_for(model, query.budget)
        self._scale, arrays = setup_of(planner, model, horizon, actions)
        stakes = len(arrays["opening"])
        most = max(actions, model.max_actions or EXPECTED_ACTIONS)
        arrays["settings"]["most_actions"] = most
        own: dict[str, Any] = {
            "bets": np.zeros((0, stakes)),
            "pool": empty_pool(horizon, planner.value is not None),
            "gaps": np.zeros((0, actions)),
            "decision": np.zeros(1, DECISION),
            "scratch": np.zeros(max(most, stakes, horizon), SCRATCH),
        }
        kinds: Any = {"pair": PAIR, "node": NODE, "kind": Search}
        kinds["deterministic"] = planner.transitions == "deterministic"
        super().__init__(planner, query, session, self._scale, arrays | own, **kinds)

    def make_room(self, episodes: int) -> None:
        """Make room for bets, in the pool, for wider pairs and for another account."""
        self.extend("bets", len(self.tree.arrays.pairs))
        super().make_room(episodes)
        arrays, settings = self.arrays, self.arrays["settings"][0]
        arrays["pool"] = grown_pool(arrays["pool"], settings, self.memory)
        # An episode can find a new outcome of the same pair at every step.
        self.extend("scratch", int(settings["widest"]) + self.horizon + 1)
        self.extend("gaps", len(arrays["wealth"]))

    def losses(self, action: int) -> NDArray[np.float64]:
        """By how much each other action may be better than this one, at most."""
        arm = self.root[action]
        apart: NDArray[np.float64] = self.root["upper"] - arm["lower"]
        if arm["exploits"] > FIRST_BET:
            apart = np.minimum(apart, self.arrays["gaps"][arm["account"]])
        return np.multiply(self._scale.width, apart)

    def verdicts(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Accounts that count for both sides know more of pairs of actions than the bounds do."""
        gaps, ruled_out = super().verdicts(self.root["lower"], self.root["upper"])
        if len(gaps) == 1:
            return gaps, ruled_out
        gaps *= self._scale.width
        for action in np.flatnonzero(self.root["exploits"] > FIRST_BET).tolist():
            losses = self.losses(action)
            losses[action] = -np.inf
            gaps[action] = losses.max()
            losses[action] = np.inf
            ruled_out |= losses < 0.0
        return gaps, ruled_out

    def reader(self) -> Reader:
        """Pairs hold the sum of their rewards, or the reward that was revealed, and an estimate."""
        return partial(_read, super().reader(), self._scale, bool(self.arrays["settings"]["told"][0]))


def _read(root: Reader, scale: Scale, told: bool, pair: Any, offered: Sequence[int]) -> Evidence:
    """What is known of a pair. Only those of the root have bounds."""
    n, total, depth = int(pair["n"]), float(pair["reward"]), len(offered) - 1
    seen = root(pair, offered) if depth == 0 else Evidence()
    if n == 0:
        return seen
    value = seen.value
    if depth > 0:
        value = scale.low * float(scale.sigma[~depth]) + scale.width * float(pair["estimate"])
    reward = scale.low + scale.width * (total if told else total / n)
    return replace(seen, value=value, reward=reward, reward_interval=(reward, reward) if told else None)
