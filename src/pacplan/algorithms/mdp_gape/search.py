"""An MDP-GapE search: its arrays, the thresholds' table, and how the tree's pairs are read."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.horizons import split
from pacplan.algorithms.mdp_gape import episode
from pacplan.algorithms.mdp_gape.graph import empty_graph, grown_graph
from pacplan.algorithms.mdp_gape.sweep import plug_in, sweep
from pacplan.bounds import thresholds as exploration
from pacplan.bounds.intervals import mean_interval
from pacplan.bounds.thresholds import Setting
from pacplan.compiled.tiered import ready, run
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.engine.tree import LINKS, MOST_COUNTED
from pacplan.engine.values import value_range
from pacplan.models.knowledge import attach
from pacplan.models.protocol import Session

if TYPE_CHECKING:
    from pacplan.algorithms.mdp_gape.planner import MDPGapE


# Arrays of records instead of many arrays, since a kernel unpacks each array of its arguments on
# every call. A field of an array of records is an array.

# What the search knows of an action that was tried.
PAIR = np.dtype(
    [
        # Sum of rewards scaled to [0, 1]; the mean itself if one visit or the model reveals it.
        ("reward", np.float64),
        ("upper", np.float64),
        ("lower", np.float64),
        # Where the last solutions lay, for warm_start: of the reward's and of the transitions' sets.
        ("reward_up", np.float32),
        ("reward_down", np.float32),
        ("next_up", np.float32),
        ("next_down", np.float32),
        *LINKS,
    ],
    align=True,
)

# The root's actions, side by side.
ROOT = np.dtype([("upper", np.float64), ("lower", np.float64), ("pair", np.int64)])

# What will be played next. It is decided once after every episode, so the draws that break ties do
# not depend on how episodes are divided into chunks.
DECISION = np.dtype(
    [
        ("stands", np.int64),
        ("best", np.int64),
        ("play", np.int64),
        ("due", np.int64),  # calls at the next sweep, if nodes are merged ...
        ("swept", np.int64),  # ... and episodes at the last one
    ]
)

# Workspace for a KL ball of more than two outcomes.
BALL = np.dtype(
    [("p", np.float64), ("upper", np.float64), ("lower", np.float64), ("scratch", np.float64)]
)


def _merged_pairs(most: int, actions: int, successors: int, horizon: int) -> int:
    """How many triples of step, state and action there can be within the horizon."""
    states, total = 1, 0
    for h in range(horizon):
        reached = min(states * successors * actions, most)
        if reached == states:  # More cannot be reached.
            return actions * (total + (horizon - h) * states)
        total += states
        states = reached
    return actions * total


class GapSearch(KernelSearch):
    """One search: the thresholds' table, the root's actions and the next decision."""

    seconds_a_node = 8e-8
    derived = frozenset({"values", "radii", "shares", "ball"})

    def __init__(self, planner: "MDPGapE", query: Query, session: Session) -> None:
        model = query.model
        self.target = planner.epsilon if planner.goal == "action" else None
        horizon = planner.horizon_for(model, query.budget)
        deterministic = planner.transitions == "deterministic"
        successors = 1 if deterministic else model.successors or MOST_COUNTED
        attach(session, planner.value_bounds)
        episodes = None
        if exploration.for_a_budget(planner.thresholds):
            episodes, _ = split(planner._horizon, planner.gamma, query.budget)
        merged = planner.merge == "depth"
        states, pairs = model.states, None
        if merged and states is not None and model.max_actions is not None:
            pairs = _merged_pairs(states, model.max_actions, successors, horizon)
        self.table = exploration.table(
            planner.thresholds,
            Setting(planner.delta, successors, model.max_actions, horizon, episodes, pairs),
        )
        self.thresholds = self.table.thresholds
        values = value_range(model.reward_range, model.may_end, planner.gamma, horizon)
        last = values[-1].tolist()  # node_upper, node_lower, outcome_upper, outcome_lower
        arrays: dict[str, Any] = {
            "graph": empty_graph(horizon) if merged else None,
            "epsilon": planner.epsilon,
            "tie": 1e-10 * (last[0] - last[1]),
            "slack": 1e-14 * max(map(abs, last)),
            "value_goal": planner.goal == "value",
            "fixed_rewards": planner.rewards == "deterministic",
            "bounded": planner.value_bounds is not None,
            "values": values,
            "root": np.zeros(len(query.actions), ROOT),
            "decision": np.zeros(1, DECISION),
            "ball": np.zeros(model.successors or 1, BALL),
        }
        super().__init__(
            query,
            session,
            PAIR,
            kind=episode.Search,
            arrays=arrays,
            gamma=planner.gamma,
            horizon=horizon,
            deterministic=deterministic,
        )

    def prepare(self) -> int:
        """Compile the last sweep as well, if there will be one."""
        status = super().prepare()
        self.sweep_now()
        return status

    def sweep_now(self) -> None:
        """Renew all bounds of a merged graph, unless they are up to date."""
        if self.arrays["graph"] is not None and len(self.tree) > 0:
            run(sweep, len(self.tree), self.kernel_state(), self._ties)

    def make_room(self, episodes: int) -> None:
        """Make room, in the table of radii, for as many more visits to a pair, and in the graph."""
        graph = self.arrays["graph"]
        if graph is not None:
            needed = episodes * self.horizon + 1
            self.arrays["graph"] = grown_graph(graph, len(self.tree.arrays.nodes), needed, self.memory)
        self.table.extend(int(self.report["episodes"]) + episodes + 2)
        self.arrays["radii"], self.arrays["shares"] = self.table.rows, self.table.shares
        if self.report["episodes"] > 0:
            # So that estimates need not wait for it when the search is over.
            ready(plug_in, (self._merged_state(), np.empty(0)), late=True)

    def estimates(self) -> NDArray[np.float64]:
        """Plug-in estimates of the root's action values; NaN for actions never tried."""
        nodes = len(self.tree)
        estimates = np.empty(nodes + len(self.actions))
        run(plug_in, nodes, self._merged_state(), estimates)
        return estimates[nodes:].copy()

    def _merged_state(self) -> Any:
        """As `kernel_state`, with an empty graph in place of none."""
        return self.kernel_state()._replace(graph=self.arrays["graph"] or empty_graph(0))

    def acting_nodes(self) -> NDArray[np.int32] | None:
        """By node, the one that holds its state's actions, if equal states are merged."""
        return None if self.arrays["graph"] is None else self.arrays["graph"].canonical

    def reader(self) -> Reader:
        """Pairs hold the sum of their rewards, or the mean if it was revealed, and bounds."""
        low, width = float(self.problem[0]["lowest"]), float(self.problem[0]["width"])
        fixed = self.arrays["fixed_rewards"]
        most = int(self.tree.pairs["n"].max(initial=0))
        radii = self.table.rows[: most + 1, exploration.REWARD].copy()
        return partial(_read, low, width, fixed, radii)


def _read(
    low: float, width: float, fixed: bool, radii: NDArray[np.float64], pair: Any, offered: Sequence[int]
) -> Evidence:
    n, total = int(pair["n"]), float(pair["reward"])
    lower, upper = float(pair["lower"]), float(pair["upper"])
    if fixed and n > 0:
        reward = low + width * total
        return Evidence(reward, (reward, reward), lower=lower, upper=upper)
    if n == 0:
        return Evidence(lower=lower, upper=upper)
    radius = float(radii[n])
    mean = min(total / n, 1.0)
    down, up = mean_interval(mean, radius)
    interval = low + width * down, low + width * up
    return Evidence(low + width * mean, interval, lower=lower, upper=upper)
