"""An MDP-GapE search: its arrays, how the tree's pairs are read, and estimates at the end."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.horizons import split
from pacplan.algorithms.mdp_gape import episode
from pacplan.algorithms.mdp_gape.graph import MERGED_NODE, Graph, acting
from pacplan.bounds.intervals import mean_interval
from pacplan.bounds.thresholds import REWARD, Setting, for_a_budget, radii_of
from pacplan.compiled.jit import kernel
from pacplan.compiled.tiered import run
from pacplan.engine.merge_table import empty_table, grown
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.engine.tree import LINKS, MOST_COUNTED, NODE, NONE, TreeArrays
from pacplan.engine.values import value_range
from pacplan.models.knowledge import attach
from pacplan.models.protocol import Session

if TYPE_CHECKING:
    from pacplan.algorithms.mdp_gape.planner import MDPGapE

# What the search knows of an action that was tried.
PAIR = np.dtype(
    [
        ("reward", np.float64),  # sum of those scaled to [0, 1]; the mean itself if one visit tells
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

ROOT = np.dtype([("upper", np.float64), ("lower", np.float64), ("pair", np.int64)])

# What will be played next: decided once after every episode, however these are divided into chunks.
DECISION = np.dtype(
    [
        ("stands", np.int64),
        ("best", np.int64),
        ("play", np.int64),
        ("due", np.int64),  # calls at the next sweep, if nodes are merged ...
        ("swept", np.int64),  # ... and episodes at the last one
    ]
)

# Workspace for a KL ball of more than two outcomes; the lower bounds are negated.
BALL = np.dtype([("p", np.float64), ("upper", np.float64), ("fallen", np.float64)])


class GapSearch(KernelSearch):
    """One search: the radii, the root's actions and the next decision."""

    seconds_a_node = 2e-7
    derived = frozenset({"values", "radii", "shares", "ball"})

    def __init__(self, planner: "MDPGapE", query: Query, session: Session) -> None:
        model, merges = query.model, planner.merge == "depth"
        self.target = planner.epsilon if planner.goal == "action" else None
        horizon = planner.horizon_for(model, query.budget)
        deterministic = planner.transitions == "deterministic"
        successors = 1 if deterministic else model.successors or MOST_COUNTED
        attach(session, planner.value_bounds)
        setting = Setting(planner.delta, successors, model.max_actions, horizon, None)
        if for_a_budget(planner.thresholds):
            episodes, _ = split(planner._horizon, planner.gamma, query.budget)
            setting = setting._replace(episodes=episodes)
        if merges and model.states is not None and model.max_actions is not None:
            pairs = _merged_pairs(model.states, model.max_actions, successors, horizon)
            setting = setting._replace(pairs=pairs)
        self.radii = radii_of(planner.thresholds, setting)
        self.thresholds = self.radii.thresholds
        self.certifies = self.thresholds.proven
        values = value_range(model.reward_range, model.may_end, planner.gamma, horizon)
        last = values[-1].tolist()  # node_upper, node_lower, outcome_upper, outcome_lower
        arrays: dict[str, Any] = {
            "graph": empty_table(16) if merges else None,
            "epsilon": planner.epsilon,
            "tie": 1e-10 * (last[0] - last[1]),
            "slack": 1e-14 * max(map(abs, last)),
            "value_goal": planner.goal == "value",
            "fixed_rewards": planner.rewards == "deterministic",
            "bounded": planner.value_bounds is not None,
            "values": values,
            "radii": self.radii.rows,
            "shares": self.radii.shares,
            "root": np.zeros(len(query.actions), ROOT),
            "decision": np.zeros(1, DECISION),
            "ball": np.zeros(model.successors or 1, BALL),
        }
        kinds = PAIR, MERGED_NODE if merges else NODE
        settings: Any = {"kind": episode.Search, "arrays": arrays, "deterministic": deterministic}
        super().__init__(query, session, *kinds, gamma=planner.gamma, horizon=horizon, **settings)

    def make_room(self, episodes: int) -> None:
        """Make room for more visits to a pair, and for more merged nodes."""
        self.radii.extend(int(self.report["episodes"]) + episodes + 2)
        self.arrays["radii"] = self.radii.rows
        if self.arrays["graph"] is not None:
            more = episodes * self.horizon + 1
            self.arrays["graph"] = grown(self.arrays["graph"], more, self.memory)

    @property
    def values(self) -> NDArray[np.float64]:
        """Estimates of the root's Q by dynamic programming on what was seen, NaN where nothing was.

        A node is worth the best estimate among the actions tried, or else the middle of its bounds.
        """
        nodes, graph, fixed = self.tree.nodes, self.arrays["graph"], self.arrays["fixed_rewards"]
        best, found = 0.5 * (nodes["upper"] + nodes["lower"]), np.full(len(self.actions), np.nan)
        order = np.arange(len(nodes))[::-1] if graph is None else np.argsort(-nodes["depth"])
        run(_estimate, len(nodes), self.tree.arrays, graph, self.problem, fixed, order, best, found)
        return found

    def reader(self) -> Reader:
        """Pairs hold the sum of their rewards, or the mean if it was revealed, and bounds."""
        low, width = float(self.problem[0]["lowest"]), float(self.problem[0]["width"])
        fixed = self.arrays["fixed_rewards"]
        most = int(self.tree.pairs["n"].max(initial=0))
        return partial(_read, low, width, fixed, self.arrays["radii"][: most + 1, REWARD].copy())


@kernel
def _estimate(
    tree: TreeArrays, graph: Graph, problem: Any, fixed: bool, order: Any, best: Any, found: Any
) -> None:
    """Write estimates of the nodes to `best`, the deepest first, and those of the root's actions."""
    for at in order:
        top, link = -np.inf, tree.nodes[at].first
        while link != NONE:
            pair = tree.pairs[link]
            if pair.n > 0:
                mean = pair.reward if fixed else pair.reward / pair.n
                value, child = problem[0].lowest + problem[0].width * mean, pair.child
                while child != NONE:
                    node = tree.nodes[child]
                    value += problem[0].gamma * node.count / pair.n * best[acting(graph, tree, child)]
                    child = node.sibling
                value = min(max(value, pair.lower), pair.upper)
                top = max(top, value)
                if at == 0:
                    found[pair.action] = value
            link = pair.sibling
        if top > -np.inf:
            best[at] = top


def _read(
    low: float, width: float, fixed: bool, radii: NDArray[np.float64], pair: Any, offered: Sequence[int]
) -> Evidence:
    n, total = int(pair["n"]), float(pair["reward"])
    lower, upper = float(pair["lower"]), float(pair["upper"])
    if n == 0:
        return Evidence(lower=lower, upper=upper)
    if fixed:
        reward = low + width * total
        return Evidence(reward, (reward, reward), lower=lower, upper=upper)
    mean = min(total / n, 1.0)
    down, up = mean_interval(mean, float(radii[n]))
    interval = low + width * down, low + width * up
    return Evidence(low + width * mean, interval, lower=lower, upper=upper)


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
