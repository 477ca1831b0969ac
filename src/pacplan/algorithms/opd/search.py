"""An OPD search: its arrays, and how they grow."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.certainty import read_certain, tails_of
from pacplan.algorithms.common.plans import best_estimate
from pacplan.algorithms.opd import expansion
from pacplan.engine import steps
from pacplan.engine.driver import Snapshot
from pacplan.engine.graph import empty_table, grown
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch, losses
from pacplan.engine.search_tree import Reader
from pacplan.engine.tree import NONE
from pacplan.models.knowledge import attach
from pacplan.models.protocol import Session

if TYPE_CHECKING:
    from pacplan.algorithms.opd.planner import OPD

# Rounding, as a part of the largest value; and what rounding may explain, if bounds that the user gave
# contradict what was found.
_ROUNDING = 1e-13
_SLACK = 1e-9


class SequenceSearch(KernelSearch):
    """The tree of what can be done; an episode is an expansion."""

    derived = frozenset({"tails"})

    def __init__(self, planner: "OPD", query: Query, session: Session) -> None:
        model = query.model
        self._accurate = planner.epsilon is not None
        self.target = planner.epsilon if planner.goal == "action" else None
        self.order = query.ties.permutation(len(query.actions))
        attach(session, planner.value_bounds)
        known = planner.value_range or (-math.inf, math.inf)
        tails = tails_of(planner.gamma, planner.horizon, model, known)
        start = tails[0]
        largest = max(abs(start["upper"]), abs(start["lower"]))
        self._most_actions = max(model.max_actions or 0, len(query.actions))
        arrays: dict[str, Any] = {
            "merged": empty_table(16),
            "known": empty_table(16),
            "dues": np.full(64, NONE, np.int32),
            "tails": tails,
            "epsilon": -1.0 if planner.epsilon is None else planner.epsilon,
            "tie": float(_ROUNDING * largest),
            "slack": float(_SLACK * largest),
            "floor": float(known[0]),
            "last": planner.horizon or 0,
            "value_goal": planner.goal == "value",
            "merges": planner.merge != "tree",
            "remembers": planner.merge == "stationary",
            "per_step": not model.stationary,
            "counts": np.zeros(1, expansion.COUNTS),
            "lower": np.full(len(query.actions), start["lower"]),
            "upper": np.full(len(query.actions), start["upper"]),
        }
        super().__init__(
            query,
            session,
            expansion.PAIR,
            expansion.NODE,
            kind=expansion.Search,
            arrays=arrays,
            gamma=planner.gamma,
            horizon=1,
            deterministic=True,
            run=steps.work,
        )

    def reserve(self) -> int:
        """Make room for some expansions, and for a longer sequence."""
        widest = max(self._most_actions, int(self.tree.nodes["actions"].max(initial=0)))
        expansions = max(1, 4096 // widest, len(self.tree) // (4 * widest))
        more = expansions * widest
        self.tree.reserve(more, more, self.memory)
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
        return int(self.arrays["counts"][0]["deepest"])

    def recommended(self) -> int:
        """Index of the action that is surely worth most; given an accuracy, of the least gap."""
        lower, upper = self.arrays["lower"], self.arrays["upper"]
        if not self._accurate:
            return best_estimate(lower, self.order)
        return best_estimate(-losses(lower, upper), self.order)

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands."""
        return self.standing(
            self.recommended(), seconds, self.arrays["lower"].copy(), self.arrays["upper"].copy()
        )

    def acting_nodes(self) -> NDArray[np.int32]:
        """By node, the one that holds its state's actions."""
        return self.tree.nodes["same"]

    def reader(self) -> Reader:
        """Pairs hold their reward, and bounds."""
        return read_certain
