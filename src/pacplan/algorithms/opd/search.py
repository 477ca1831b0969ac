"""An OPD search: its arrays, and how they grow."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.certainty import tails_of
from pacplan.algorithms.common.plans import best_estimate
from pacplan.algorithms.opd import expansion
from pacplan.algorithms.opd.records import COUNTS, NODE, PAIR, RULES, Search, Task
from pacplan.engine import steps
from pacplan.engine.driver import Snapshot
from pacplan.engine.graph import empty_table, grown
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.tree import NONE, Evidence, Reader
from pacplan.models.knowledge import attach
from pacplan.models.protocol import Session

# Rounding, as a part of the largest value; and what rounding may explain, if bounds that the user gave
# contradict what was found.
_ROUNDING = 1e-13
_SLACK = 1e-9


class SequenceSearch(KernelSearch):
    """The tree of what can be done; an episode is an expansion."""

    kernels = expansion
    derived = frozenset({"rules", "tails", "table"})

    def __init__(self, task: Task, query: Query, session: Session) -> None:
        model = query.model
        super().__init__(
            query,
            session,
            PAIR,
            NODE,
            gamma=task.gamma,
            horizon=1,
            deterministic=task.deterministic,
            run=steps.work,
        )
        self.task = task
        self.target = task.epsilon if task.goal == "action" else None
        self.order = query.ties.permutation(len(query.actions))
        self._outcomes = session.handle.table.outcomes.shape[-1] if task.reads else 1
        attach(session, task.value_bounds)
        self._tails = tails_of(task.gamma, task.horizon, model, task.value_range)
        start = self._tails[0]
        largest = max(abs(start["upper"]), abs(start["lower"]))
        rules = np.zeros(1, RULES)
        rules["epsilon"] = -1.0 if task.epsilon is None else task.epsilon
        rules["tie"], rules["slack"] = _ROUNDING * largest, _SLACK * largest
        rules["floor"] = task.value_range[0]
        rules["horizon"] = task.horizon or 0
        rules["value_goal"] = task.goal == "value"
        rules["merged"] = task.merge != "tree"
        rules["remembers"] = task.merge == "stationary"
        rules["reads"] = task.reads
        rules["per_step"] = not model.stationary
        self._rules = rules
        self._counts = np.zeros(1, COUNTS)
        self._lower = np.full(len(query.actions), start["lower"])
        self._upper = np.full(len(query.actions), start["upper"])
        self._merged, self._known = empty_table(16), empty_table(16)
        self._dues = np.full(64, NONE, np.int32)
        self._most_actions = max(model.max_actions or 0, len(query.actions))
        self.reserve()

    def kernel_state(self) -> Search:
        """What the kernels work on."""
        return Search(
            tree=self.tree.arrays(),
            merged=self._merged,
            known=self._known,
            dues=self._dues,
            tails=self._tails,
            problem=self.problem,
            rules=self._rules,
            counts=self._counts,
            lower=self._lower,
            upper=self._upper,
            calls=self.calls,
            report=self.reports,
        )

    def reserve(self) -> int:
        """Make room for some expansions, and for a longer sequence."""
        widest = max(self._most_actions, int(self.tree.nodes["actions"].max(initial=0)))
        expansions = max(1, 4096 // widest, len(self.tree) // (4 * widest))
        pairs = expansions * widest
        more = pairs * self._outcomes
        self.tree.reserve(more, pairs, self.memory)
        self._known = grown(self._known, expansions, self.memory)
        if self._rules[0]["merged"]:
            self._merged = grown(self._merged, more + 1, self.memory)
        used = int(self._counts[0]["deepest"]) + 2
        if used >= len(self._dues):
            old = len(self._dues)
            self.memory.extend(self._dues, used + 1)
            self._dues[old:] = NONE
        return expansions

    def deepest(self) -> int:
        """Length of the longest sequence played."""
        return int(self._counts[0]["deepest"])

    def recommended(self) -> int:
        """Index of the action that is surely worth most; given an accuracy, of the least gap."""
        if self.task.epsilon is None:
            return best_estimate(self._lower, self.order)
        top = int(np.argmax(self._upper))
        rivals = np.full(len(self._upper), self._upper[top])
        rivals[top] = np.delete(self._upper, top).max(initial=-np.inf)
        return best_estimate(self._lower - rivals, self.order)

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands."""
        return self.standing(self.recommended(), seconds, self._lower.copy(), self._upper.copy())

    def acting_nodes(self) -> NDArray[np.int32]:
        """By node, the one that holds its state's actions."""
        return self.tree.nodes["same"]

    def reader(self) -> Reader:
        """Pairs hold their reward, and bounds."""
        return _read


def _read(pair: Any, offered: Sequence[int]) -> Evidence:
    reward = float(pair["reward"])
    return Evidence(reward, (reward, reward), lower=float(pair["lower"]), upper=float(pair["upper"]))
