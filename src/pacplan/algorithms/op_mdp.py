"""OP-MDP (Buşoniu, Munos 2012): optimistic planning in a known model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.certainty import certain_plan, check_limits, tails_of
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.plans import best_estimate
from pacplan.algorithms.common.stepwise import StepSearch
from pacplan.compiled.jit import inlined, records
from pacplan.compiled.questions import answers
from pacplan.engine import steps
from pacplan.engine.calls import CHUNK_DONE, NO_ROOM, RULE, SPENT
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.tree import (
    LINKS,
    NONE,
    Evidence,
    Reader,
    TreeArrays,
    add_node,
    add_pair,
    link_child,
)
from pacplan.models.protocol import Session, facts
from pacplan.result import Plan

PAIR = np.dtype(
    [
        ("reward", np.float64),  # its mean, in the user's units
        ("upper", np.float64),
        ("lower", np.float64),
        ("spread", np.float64),  # gamma times the largest p * spread of its successors
        *LINKS,
    ],
    align=True,
)

# What a node has besides the tree's own fields.
EXTRA = np.dtype(
    [
        ("p", np.float64),  # probability, given the parent pair
        # Largest reach probability times gamma^d times width of a leaf below the optimistic policy.
        ("spread", np.float64),
    ]
)

RULES = np.dtype(
    [
        ("gamma", np.float64),
        ("horizon", np.int64),  # 0: no end
        ("per_step", np.bool_),
    ],
    align=True,
)


class Search(NamedTuple):
    """The tree of what can happen, with the optimistic policy marked in it."""

    tree: TreeArrays
    extra: Any  # records of EXTRA, one per node
    rules: Any  # one record of RULES
    tails: Any  # records of TAIL, one per depth; the last serves all deeper ones
    path: Any  # [node, pair] of each step on the way to the leaf
    calls: NDArray[np.int64]
    deepest: NDArray[np.int64]
    report: Any  # one record of REPORT


@inlined
def _refresh_pair(search: Search, link: int) -> None:
    """Bounds of a pair from those of its successors."""
    pair = search.tree.pairs[link]
    upper = 0.0
    lower = 0.0
    spread = 0.0
    outcome = pair.child
    while outcome != NONE:
        node = search.tree.nodes[outcome]
        extra = search.extra[outcome]
        upper += extra.p * node.upper
        lower += extra.p * node.lower
        spread = max(spread, extra.p * extra.spread)
        outcome = node.sibling
    gamma = search.rules[0].gamma
    pair.upper = pair.reward + gamma * upper
    pair.lower = pair.reward + gamma * lower
    pair.spread = gamma * spread


@inlined
def _refresh_node(search: Search, at: int) -> None:
    """Bounds of a node from those of its actions, and the optimistic one of them."""
    node = search.tree.nodes[at]
    favourite = node.first
    lower = -np.inf
    link = node.first
    while link != NONE:
        pair = search.tree.pairs[link]
        lower = max(lower, pair.lower)
        if pair.upper >= search.tree.pairs[favourite].upper:
            favourite = link
        link = pair.sibling
    node.favourite = favourite
    node.upper = search.tree.pairs[favourite].upper
    node.lower = lower
    search.extra[at].spread = search.tree.pairs[favourite].spread


@inlined
def _add_child(search: Search, link: int, state: int, actions: int, p: float, tail: Any) -> None:
    """Add an outcome of a pair that can go on, as a leaf; the first of all is the root."""
    child = add_node(search.tree, state, actions, tail.upper, tail.lower)
    search.extra[child].p = p
    search.extra[child].spread = tail.upper - tail.lower
    if link != NONE:
        link_child(search.tree, link, child)


@inlined
def _read_row(search: Search, model: Any, link: int, state: int, h: int) -> None:
    """Give a pair all its outcomes, from the model's table."""
    pair, rules = search.tree.pairs[link], search.rules[0]
    row = model.outcomes[h if rules.per_step else 0, state, pair.action]
    tail = search.tails[min(h + 1, search.tails.size - 1)]
    reward = 0.0
    before = 0.0
    for k in range(row.size):
        outcome = row[k]
        p = outcome.cumulative - before
        before = outcome.cumulative
        if p > 0.0:
            reward += p * outcome.reward
            if not outcome.ended and h + 1 != rules.horizon:
                actions = model.action_counts[outcome.state]
                _add_child(search, link, outcome.state, actions, p, tail)
    pair.reward = reward
    pair.n = 1


@inlined
def _widest_child(search: Search, link: int) -> int:
    """The outcome of a pair through which the widest leaf is reached."""
    extra = search.extra
    widest = search.tree.pairs[link].child
    outcome = widest
    while outcome != NONE:
        if extra[outcome].p * extra[outcome].spread > extra[widest].p * extra[widest].spread:
            widest = outcome
        outcome = search.tree.nodes[outcome].sibling
    return int(widest)


@answers(steps.begin, Search)
def _begin(search: Search, model: Any, state: int) -> int:
    if search.tree.used[0] == 0:
        _add_child(search, NONE, state, search.calls.size, 1.0, search.tails[0])
    return CHUNK_DONE


@answers(steps.advance, Search)
def _advance(search: Search, model: Any, ties: Any) -> int:
    return RULE if search.extra[0].spread <= 0.0 else steps.CALL


@answers(steps.call, Search)
def _expand(search: Search, model: Any, most: int, rng: Any) -> int:
    """Give the widest leaf of the optimistic policy all its actions and their outcomes."""
    tree, path = search.tree, search.path
    at = 0
    h = 0
    while tree.nodes[at].first != NONE:
        if h == path.shape[0]:
            return NO_ROOM
        path[h, 0] = at
        path[h, 1] = tree.nodes[at].favourite
        at = _widest_child(search, path[h, 1])
        h += 1
    actions = tree.nodes[at].actions
    if actions > most:
        return SPENT
    nodes = actions * model.outcomes.shape[-1]
    if tree.used[0] + nodes > tree.nodes.size or tree.used[1] + actions > tree.pairs.size:
        return NO_ROOM
    for action in range(actions):
        link = add_pair(tree, at, action)
        _read_row(search, model, link, tree.nodes[at].state, h)
        _refresh_pair(search, link)
        search.calls[action if h == 0 else tree.pairs[path[0, 1]].action] += 1
    search.report[0].calls += actions
    search.deepest[0] = max(search.deepest[0], h + 1)
    _refresh_node(search, at)
    for step in range(h - 1, -1, -1):
        _refresh_pair(search, path[step, 1])
        _refresh_node(search, path[step, 0])
    return CHUNK_DONE


class OPMDP(Planner):
    """Optimistic planning with known probabilities and rewards: no sampling, certain bounds.

    Leaves are worth between 0 and 1/(1-gamma) (for rewards in [0, 1]), inner states the largest over
    their actions of the expectation, for each bound. The optimistic policy takes the action with the
    largest upper bound everywhere. Among its leaves the one with the largest reach probability times
    gamma^d / (1-gamma) is expanded. Recommends the action with the largest lower bound.

    A call to the model reads one state and action from its table, so an expansion takes one call per
    action of the state.

    Args:
        gamma: discount in [0, 1); 1 with a horizon.
        horizon: steps after which nothing counts; None: the infinite-horizon problem.
        chunk: see `Planner`; here in expansions.
    """

    name = "op-mdp"

    def __init__(self, *, gamma: float, horizon: int | None = None, chunk: int | None = None) -> None:
        super().__init__(chunk=chunk)
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)

    def check_query(self, query: Query, limits: Limits) -> None:
        if not facts(query.model).known:
            raise ValueError(
                "OPMDP plans with known probabilities and rewards, so it needs a TabularMDP, or a "
                f"model that publishes its table like one; got {type(query.model).__name__}"
            )
        check_limits(self, limits, query.model)

    def start(self, query: Query, session: Session) -> "_PolicySearch":
        return _PolicySearch(self, query, session)

    def finish(self, query: Query, search: "_PolicySearch", stopped_by: str, seconds: float) -> Plan:
        return certain_plan(
            self,
            query,
            search,
            stopped_by,
            seconds,
            horizon=self.horizon,
            surely="That is certain.",
            assumed=("the tables of the model are true",),
        )


class _PolicySearch(StepSearch):
    """The tree; an episode is an expansion."""

    def __init__(self, planner: OPMDP, query: Query, session: Session) -> None:
        super().__init__(planner, query, session, PAIR)
        model = query.model
        self._rows = int(session.handle.outcomes.shape[-1])
        rules = (planner.gamma, planner.horizon or 0, model.steps is not None)
        self._rules = records(np.array([rules], RULES))
        self._tails = tails_of(planner.gamma, planner.horizon, model)
        self._extra = np.zeros(0, EXTRA)
        self._way = np.zeros((64, 2), np.int64)
        self._deepest = np.zeros(1, np.int64)
        self._most_actions = model.max_actions or len(query.actions)
        self.reserve()

    def kernel_state(self) -> Search:
        return Search(
            tree=self.tree.arrays(),
            extra=records(self._extra),
            rules=self._rules,
            tails=records(self._tails),
            path=self._way,
            calls=self.calls,
            deepest=self._deepest,
            report=self.reports,
        )

    def reserve(self) -> int:
        """Make room for at least one expansion, half as many nodes again, and a longer path."""
        pairs = self._most_actions + len(self.tree.pairs) // 2
        nodes = self._most_actions * self._rows + len(self.tree) // 2
        self.tree.reserve(nodes, pairs, self.room)
        self._extra = self.room.extend(self._extra, self.tree.room)
        if self._deepest[0] + 1 >= len(self._way):
            self._way = np.zeros((2 * len(self._way), 2), np.int64)
        return pairs // self._most_actions

    def _bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds of the root's actions."""
        lower = np.full(len(self.actions), self._tails["lower"][0])
        upper = np.full(len(self.actions), self._tails["upper"][0])
        if len(self.tree) > 0:
            for link in self.tree.tried(0):
                pair = self.tree.pairs[link]
                lower[pair["action"]], upper[pair["action"]] = pair["lower"], pair["upper"]
        return lower, upper

    def deepest(self) -> int:
        """Depth of the tree."""
        return int(self._deepest[0])

    def recommended(self) -> int:
        """Index of the action with the largest lower bound."""
        return best_estimate(self._bounds()[0], self.order)

    def snapshot(self, seconds: float) -> Snapshot:
        return self.standing(self.recommended(), seconds, *self._bounds())

    def reader(self) -> Reader:
        """Pairs hold their mean reward, which is known, and bounds."""
        return _read


def _read(pair: Any, offered: Sequence[int]) -> Evidence:
    reward = float(pair["reward"])
    return Evidence(reward, (reward, reward), lower=float(pair["lower"]), upper=float(pair["upper"]))
