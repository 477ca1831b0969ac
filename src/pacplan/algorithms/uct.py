"""UCT (Kocsis, Szepesvári 2006): UCB1 at every depth of the tree."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner, check_stationary
from pacplan.algorithms.common.horizons import check_gamma_and_horizon, horizon_for
from pacplan.algorithms.common.plans import estimates_plan
from pacplan.algorithms.means.pairs import best_bound, count_return
from pacplan.algorithms.means.search import MeanSearch, check_anytime
from pacplan.bounds.elementary import powers
from pacplan.core import checks
from pacplan.engine import episodes
from pacplan.engine.calls import CHUNK_DONE, follow
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.engine.tree import NONE, TreeArrays, add_pair, untried_action
from pacplan.models.protocol import Model, Session
from pacplan.result import Plan


class Search(NamedTuple):
    """What UCT's episodes work on."""

    tree: TreeArrays
    problem: Any
    path: Any
    calls: NDArray[np.int64]
    report: Any
    scales: NDArray[np.float64]  # by step: C times the width of what can be earned from there on
    rollout: bool  # play at random below the tree, which grows by one node per episode


@episodes.select.register(Search)
def _select(search: Search, at: int, h: int, ties: Any) -> int:
    node = search.tree.nodes[at]
    if node.tried < node.actions:
        return add_pair(search.tree, at, untried_action(search.tree, at, ties))
    return best_bound(search.tree, at, search.scales[h], ties)


@episodes.transition.register(Search)
def _transition(
    search: Search, model: Any, h: int, successor: int, ended: bool, ties: Any
) -> tuple[int, int]:
    if h + 1 == search.problem[0].horizon:
        return NONE, CHUNK_DONE
    step = search.path[h]
    child, new, status = follow(search, model, step.node, step.pair, successor, ended, h, 0.0, 0.0)
    if new and search.rollout and status == CHUNK_DONE:
        status = episodes.LEAVE
    return child, status


@episodes.backup.register(Search)
def _backup(search: Search, length: int, rest: float, ties: Any) -> None:
    tree, problem = search.tree, search.problem[0]
    value = rest
    for h in range(length - 1, -1, -1):
        step = search.path[h]
        value = problem.lowest + problem.width * step.reward + problem.gamma * value
        count_return(tree.pairs[step.pair], value)
        if step.child != NONE:
            tree.nodes[step.child].count += 1
    tree.nodes[0].count += 1


class _UCTSearch(MeanSearch):
    derived = frozenset({"scales"})


class UCT(Planner):
    """UCB1 at every depth of a closed-loop tree: anytime, without a guarantee.

    An action that was never tried in a node comes first, in random order; then the one with the
    largest  mean + C w sigma_(H-h+1) sqrt( log N(s) / n(s, a) ),  where the mean is of the discounted
    returns from that step on, N(s) counts arrivals at the node, w is the width of the reward range
    and sigma_k = 1 + gamma + ... + gamma^(k-1). C = sqrt(2) makes this UCB1. The default C = 0.5 errs
    less on most problems (benchmarks/uct_constant.py, where it was chosen). An episode that the budget
    or a deadline cut off counts nowhere but in `plan.calls`: its return lacks its tail.

    Args:
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: steps of an episode. By default it follows from the budget, as in section 5 of the
            MDP-GapE paper, and without one is the smallest H with gamma^H <= 1/100.
        exploration: C, at least 0, or "ucb1" for the textbook's sqrt(2).
        rollout: "tree": every state of an episode enters the tree; "random": the tree grows by one
            node per episode, below which actions are uniformly random.
        recommend: "value": the largest mean; "visits": the most tried action, on a tie the one with
            the largest mean.
        chunk: see `Planner`.
    """

    name = "uct"

    def __init__(
        self,
        *,
        gamma: float,
        horizon: int | None = None,
        exploration: float | Literal["ucb1"] = 0.5,
        rollout: Literal["tree", "random"] = "tree",
        recommend: Literal["value", "visits"] = "value",
        chunk: int | None = None,
    ) -> None:
        super().__init__(chunk=chunk)
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)
        if isinstance(exploration, str):
            checks.choice("exploration", exploration, ("ucb1",))
            exploration = 2.0**0.5
        self.exploration = checks.real("exploration", exploration)
        if self.exploration < 0.0:
            raise ValueError(f"exploration must be at least 0, got {exploration}")
        self.rollout = checks.choice("rollout", rollout, ("tree", "random"))
        self.recommend = checks.choice("recommend", recommend, ("value", "visits"))

    def check_reuse(self, model: Model) -> None:
        check_stationary(model)

    def check_query(self, query: Query, limits: Limits) -> None:
        check_anytime(self, query, limits, horizon_for(self.horizon, self.gamma, limits.budget))

    def start(self, query: Query, session: Session) -> MeanSearch:
        horizon = horizon_for(self.horizon, self.gamma, query.budget)
        low, high = query.model.reward_range
        earned = np.cumsum(powers(self.gamma, horizon))[::-1]
        random = self.rollout == "random"
        # Of the calls within a tree, about every other one makes a node.
        nodes = (query.budget or 0) // (horizon if random else 2)
        return _UCTSearch(
            Search,
            query,
            session,
            gamma=self.gamma,
            horizon=horizon,
            nodes=nodes,
            by_visits=self.recommend == "visits",
            scales=self.exploration * (high - low) * earned,
            rollout=random,
        )

    def finish(self, query: Query, search: MeanSearch, stopped_by: str, seconds: float) -> Plan:
        return estimates_plan(self, query, search, stopped_by, seconds)
