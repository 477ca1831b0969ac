"""OPD (Hren, Munos 2008): optimistic planning of deterministic systems."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_gamma_and_horizon, check_steps
from pacplan.algorithms.common.plans import best_estimate, bounded_plan
from pacplan.algorithms.common.stepwise import StepSearch
from pacplan.compiled.jit import records
from pacplan.compiled.questions import answers
from pacplan.core.words import at_most
from pacplan.engine import steps
from pacplan.engine.calls import CHUNK_DONE, NO_ROOM, RULE, SPENT, count_actions, draw_counted
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.heap import pop, push
from pacplan.engine.query import Query
from pacplan.engine.values import value_range
from pacplan.models.protocol import Model, Session
from pacplan.result import Plan

# A sequence of actions that was played, by its last state.
LEAF = np.dtype(
    [
        ("state", np.int64),
        ("earned", np.float64),  # discounted rewards on the way
        ("discount", np.float64),  # gamma^depth
        ("depth", np.int32),
        ("first", np.int32),  # its first action
        ("open", np.int32),  # 1 if it can still be extended
    ],
    align=True,
)

# Time to look at a leaf when the search is over.
_SECONDS_A_LEAF = 6e-8

# Bounds on what an open leaf of each depth can still earn, before discounting.
TAIL = np.dtype([("upper", np.float64), ("lower", np.float64)])


class Search(NamedTuple):
    """The sequences played, and those that can be extended on a heap."""

    leaves: Any  # records of LEAF
    keys: NDArray[np.float64]  # the heap: earned + discount * upper tail ...
    items: NDArray[np.int64]  # ... and which leaf
    sizes: NDArray[np.int64]  # [leaves, heap, next action of the expansion under way]
    tails: Any  # records of TAIL, one per depth; the last serves all deeper ones
    terms: Any  # one record of TERMS
    horizon: int  # 0: no end
    lower: NDArray[np.float64]  # of the root's actions: best sequence so far
    calls: NDArray[np.int64]
    report: Any  # one record of REPORT


@answers(steps.begin, Search)
def _begin(search: Search, state: int) -> None:
    """Make the empty sequence."""
    if search.sizes[0] == 0:
        root = search.leaves[0]
        root.state = state
        root.discount = 1.0
        root.open = 1
        search.sizes[0] = 1
        search.sizes[1] = push(search.keys, search.items, 0, search.tails[0].upper, 0)


@answers(steps.advance, Search)
def _advance(search: Search, model: Any, ties: Any) -> int:
    return RULE if search.sizes[1] == 0 else steps.CALL


@answers(steps.call, Search)
def _expand(search: Search, model: Any, most: int, rng: Any) -> int:
    """Extend the most promising sequence by every action."""
    leaves, sizes, tails, terms = search.leaves, search.sizes, search.tails, search.terms[0]
    leaf = leaves[search.items[0]]
    actions = search.calls.size
    if leaf.depth > 0:
        actions, status = count_actions(search, model, leaf.state, leaf.depth)
        if status != CHUNK_DONE:
            return status
    # An expansion that was cut short goes on where it was.
    begun = sizes[2]
    if sizes[0] + actions - begun > leaves.size:
        return NO_ROOM
    depth = leaf.depth + 1
    tail = tails[min(depth, tails.size - 1)]
    for action in range(begun, actions):
        if action - begun == most:
            return SPENT
        first = action if leaf.depth == 0 else leaf.first
        successor, reward, ended, status = draw_counted(
            search, model, leaf.state, action, leaf.depth, first, rng
        )
        if status != CHUNK_DONE:
            return status
        new = leaves[sizes[0]]
        sizes[0] += 1
        sizes[2] = action + 1
        new.state = successor
        new.earned = leaf.earned + leaf.discount * (terms.lowest + terms.width * reward)
        new.discount = leaf.discount * terms.gamma
        new.depth = depth
        new.first = first
        value = new.earned
        if not ended and depth != search.horizon:
            new.open = 1
            value += new.discount * tail.lower
        search.lower[first] = max(search.lower[first], value)
    leaf.open = 0
    sizes[1] = pop(search.keys, search.items, sizes[1])
    for index in range(sizes[0] - actions, sizes[0]):
        new = leaves[index]
        if new.open:
            key = new.earned + new.discount * tail.upper
            sizes[1] = push(search.keys, search.items, sizes[1], key, index)
    sizes[2] = 0
    return CHUNK_DONE


class OPD(Planner):
    """Optimistic planning if nothing is random: extend the most promising sequence of actions.

    A sequence of d actions that has earned u (discounted) can earn at most
    b = u + gamma^d / (1 - gamma) in all, for rewards in [0, 1] (with a finite horizon,
    u + gamma^d sigma_(H-d)). The one with the largest b is extended by every action. Recommends the
    first action of the sequence that is surely worth most, which for rewards in [0, 1] is the one with
    the largest u.

    The bounds of the plan are certain, not merely probable: each Q lies between the worth of the best
    sequence so far and the largest b of those that can still be extended. It stops by itself only when
    nothing is left to extend.

    Args:
        gamma: discount in [0, 1); 1 with a horizon.
        horizon: steps after which nothing counts; None: the infinite-horizon problem.
        chunk: see `Planner`; here in expansions.
    """

    name = "opd"
    keeps_tree = False

    def __init__(self, *, gamma: float, horizon: int | None = None, chunk: int | None = None) -> None:
        super().__init__(chunk=chunk)
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)

    def check_query(self, query: Query, limits: Limits) -> None:
        model = query.model
        if model.successors != 1:
            raise ValueError(
                "OPD plans where every state and action has one successor; this model promises "
                f"{'no such number' if model.successors is None else model.successors}"
            )
        if model.random_rewards:
            raise ValueError("OPD plans where nothing is random, and this model's rewards are")
        check_limits(self, limits, model)

    def start(self, query: Query, session: Session) -> "_LeafSearch":
        return _LeafSearch(self, query, session)

    def finish(self, query: Query, search: "_LeafSearch", stopped_by: str, seconds: float) -> Plan:
        assumed = ("every state and action has one successor", "rewards are deterministic")
        return certain_plan(self, query, search, stopped_by, seconds, assumed)


def check_limits(planner: Any, limits: Limits, model: Model) -> None:
    """Refuse a search that nothing would end, and steps that the model is not defined for."""
    if limits.budget is None and limits.time_limit is None and limits.callback is None:
        name = type(planner).__name__
        raise ValueError(f"{name} rarely stops by itself; give plan() a budget or a time_limit")
    if planner.horizon is not None:
        check_steps(model, planner.horizon)
    elif model.steps is not None:
        raise ValueError(f"the model is defined for {model.steps} steps: pass a horizon")


def certain_plan(
    planner: Any, query: Query, search: Any, stopped_by: str, seconds: float, assumed: tuple[str, ...]
) -> Plan:
    """The plan of a planner whose bounds are certain."""
    snapshot: Snapshot = search.snapshot(seconds)
    assert snapshot.lower is not None and snapshot.upper is not None and snapshot.gap is not None
    best = search.recommended()
    problem = "" if planner.horizon is None else f" in the {planner.horizon}-step problem"
    search.horizon = search.deepest()
    return bounded_plan(
        planner,
        query,
        search,
        snapshot,
        stopped_by,
        guarantee=(
            f"Action {snapshot.action!r} is within {at_most(max(0.0, snapshot.gap))} of "
            f"optimal{problem}, for certain."
        ),
        assumptions=assumed,
        values=np.where(search.calls > 0, snapshot.lower, np.nan),
        value=float(snapshot.lower[best]),
    )


class _LeafSearch(StepSearch):
    """The sequences played; an episode is an expansion."""

    def __init__(self, planner: OPD, query: Query, session: Session) -> None:
        super().__init__(planner, query, session)
        self._tails = tails_of(planner.gamma, planner.horizon, query.model)
        self._lower = np.full(len(query.actions), self._tails["lower"][0])
        self._most_actions = query.model.max_actions or len(query.actions)
        self._sizes = np.zeros(3, np.int64)
        self._leaves = np.zeros(1024, LEAF)
        self._keys = np.zeros(1024)
        self._items = np.zeros(1024, np.int64)
        self._steps = planner.horizon or 0
        self.reserve()

    def kernel_state(self) -> Search:
        return Search(
            leaves=records(self._leaves),
            keys=self._keys,
            items=self._items,
            sizes=self._sizes,
            tails=records(self._tails),
            terms=self.terms,
            horizon=self._steps,
            lower=self._lower,
            calls=self.calls,
            report=self.reports,
        )

    def reserve(self) -> int:
        """Make room for half as many leaves again."""
        used = int(self._sizes[0])
        needed = used + max(512, 2 * self._most_actions)
        for array in (self._leaves, self._keys, self._items):
            self.room.extend(array, needed)
        return needed - used

    def finishing(self) -> float:
        """Seconds, at most, that the bounds of the plan take to make."""
        return _SECONDS_A_LEAF * float(self._sizes[0])

    def _upper(self) -> NDArray[np.float64]:
        """Upper bounds of the root's actions."""
        leaves = self._leaves[: int(self._sizes[0])]
        if len(leaves) == 0 or leaves[0]["open"]:
            return np.full(len(self.actions), self._tails["upper"][0])
        upper = self._lower.copy()
        waiting = leaves[leaves["open"] == 1]
        tails = self._tails["upper"][np.minimum(waiting["depth"], len(self._tails) - 1)]
        np.maximum.at(upper, waiting["first"], waiting["earned"] + waiting["discount"] * tails)
        return upper

    def deepest(self) -> int:
        """Length of the longest sequence played."""
        return int(self._leaves["depth"][: int(self._sizes[0])].max(initial=0))

    def recommended(self) -> int:
        """Index of the action that is surely worth most."""
        return best_estimate(self._lower, self.order)

    def snapshot(self, seconds: float) -> Snapshot:
        return self.standing(self.recommended(), seconds, self._lower.copy(), self._upper())


def tails_of(gamma: float, horizon: int | None, model: Model) -> NDArray[Any]:
    """What can still be earned after d steps, d = 0, 1, ..."""
    if horizon is not None:
        ranges = value_range(model.reward_range, model.may_end, gamma, horizon)[::-1]
        rows = list(zip(ranges["node_upper"], ranges["node_lower"], strict=True))
        return np.array(rows, TAIL)
    low, high = model.reward_range
    rest = 1.0 / (1.0 - gamma)
    if not model.may_end:
        return np.array([(high * rest, low * rest)], TAIL)
    # One reward at least, after which the episode may end.
    most = high + gamma * max(high * rest, 0.0)
    least = low + gamma * min(low * rest, 0.0)
    return np.array([(most, least)], TAIL)
