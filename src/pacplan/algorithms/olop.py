"""OLOP (Bubeck, Munos 2010) and KL-OLOP (Leurent, Maillard 2019): optimism over action sequences."""

from collections.abc import Sequence
from functools import partial
from math import log, sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_gamma_and_horizon, split
from pacplan.algorithms.common.plans import EstimateSearch, best_estimate
from pacplan.algorithms.means import check_anytime
from pacplan.bounds.bernoulli import kl_upper
from pacplan.bounds.elementary import powers
from pacplan.compiled.jit import inlined
from pacplan.core import checks
from pacplan.engine import episodes
from pacplan.engine.calls import CHUNK_DONE
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.engine.search import kernel_arrays
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.engine.tree import (
    LINKS,
    NODE_FIELDS,
    NONE,
    add_node,
    add_pair,
    link_child,
    set_bounds,
    untried_action,
)
from pacplan.engine.values import step_range
from pacplan.models.protocol import Session

# A sequence of actions that was played. Its `upper` is the largest B-value, from the next step on, of
# the sequences that begin with it.
# Of the most played pair (`popular`) a visit keeps track, as counts only grow.
NODE = np.dtype([*NODE_FIELDS, ("popular", np.int32)], align=True)

PAIR = np.dtype(
    [
        ("reward", np.float64),  # sum of the rewards at the sequence's last step, scaled to [0, 1]
        ("bound", np.float64),  # the same from this step on, not cut to the tail
        *LINKS,
    ],
    align=True,
)

# B-values that differ by less than this part of the largest value are tied.
_TIE = 1e-12


@kernel_arrays
class Search:
    """What the episodes of OLOP and KL-OLOP work on. A node is a sequence, whatever its states."""

    lowest: float  # of the rewards, and of 0 if episodes may end
    width: float
    tail: float  # 1 / (1 - gamma): the most that can be earned from a step on
    level: float  # the threshold, over T visits
    kl: bool


@inlined
def _add_node(search: Any, state: int) -> int:
    """A sequence that was never played. At most the tail can be earned from there on."""
    node = add_node(search.tree, state, search.calls.size)
    set_bounds(search.tree, node, search.tail, 0.0)
    search.tree.nodes[node].popular = NONE
    return node


@episodes.make_root.register(Search)
def _make_root(search: Any, model: Any, state: int, ties: Any) -> int:
    _add_node(search, state)
    return CHUNK_DONE


@inlined
def _next_sequence(search: Any, link: int, h: int) -> int:
    """The node of the sequence that a pair ends; NONE after the last step."""
    child = search.tree.pairs[link].child
    if child == NONE and h + 1 < search.problem[0].horizon:
        child = _add_node(search, 0)
        link_child(search.tree, link, child)
    return int(child)


@episodes.select.register(Search)
def _select(search: Any, at: int, h: int, ties: Any) -> int:
    """The pair of the sequence with the largest B-value."""
    link = search.tree.nodes[at].favourite
    if link == NONE:
        link = add_pair(search.tree, at, untried_action(search.tree, at, ties))
    return int(link)


@episodes.transition.register(Search)
def _transition(
    search: Any, model: Any, h: int, successor: int, ended: bool, ties: Any
) -> tuple[int, int]:
    return _next_sequence(search, search.path[h].pair, h), CHUNK_DONE


@episodes.backup.register(Search)
def _backup(search: Any, length: int, rest: float, ties: Any) -> None:
    """Renew B-values on the path, from the last step to the first.

    B(a_h ..) = u_h + gamma min( 1/(1-gamma), max_a B(a ..) ) is the smallest over depths of the
    bounds to that depth, so only the sequences that begin like the one played change.
    """
    tree, problem = search.tree, search.problem[0]
    # After the end of an episode the rest of its sequence earns nothing and makes no calls.
    for h in range(length, problem.horizon):
        step = search.path[h]
        step.node = search.path[h - 1].child
        step.pair = episodes.select(search, step.node, h, ties)
        step.child = _next_sequence(search, step.pair, h)
    for h in range(problem.horizon - 1, -1, -1):
        step = search.path[h]
        earned = problem.lowest + problem.width * step.reward if h < length else 0.0
        pair = tree.pairs[step.pair]
        pair.n += 1
        pair.reward += min(1.0, max(0.0, (earned - search.lowest) / search.width))
        mean = pair.reward / pair.n
        if search.kl:
            upper = kl_upper(min(1.0, mean), search.level / pair.n)
        else:
            upper = mean + sqrt(search.level / pair.n)
        below = search.tail
        if step.child != NONE:
            below = tree.nodes[step.child].upper
            tree.nodes[step.child].count += 1
        pair.bound = upper + problem.gamma * below
        node = tree.nodes[step.node]
        if node.popular == NONE or pair.n > tree.pairs[node.popular].n:
            node.popular = step.pair
        _refresh_node(search, step.node, np.inf if h == 0 else search.tail, ties)


@inlined
def _refresh_node(search: Any, at: int, most: float, ties: Any) -> None:
    """Renew the largest B-value of a node's actions and which to play next, ties at random.

    No bound to a larger depth may exceed `most`, the one to this depth: infinite at the root,
    so that every first action is played once, and the tail below it. There an action never played has
    no other bound, so it is tied with those whose own bounds reach the tail.
    """
    tree, node = search.tree, search.tree.nodes[at]
    tie = _TIE * search.tail
    tied = node.actions - node.tried
    top = most if tied > 0 else -np.inf
    favourite = NONE
    link = node.first
    while link != NONE:
        bound = min(tree.pairs[link].bound, most)
        if bound > top + tie:
            top = bound
            favourite = link
            tied = 1
        elif bound >= top - tie:
            top = max(top, bound)
            tied += 1
            if ties.random() * tied < 1.0:
                favourite = link
        link = tree.pairs[link].sibling
    node.upper, node.favourite = top, favourite


class OLOP(Planner):
    """Open-loop optimistic planning within a budget.

    The budget n is split into M episodes of L = ceil( log M / (2 log 1/gamma) ) steps, M the largest
    number with M L <= n; with a time limit alone, M is 10,000. With T visits and mean reward m_t of
    the first t actions of a sequence, the bound of a sequence to depth h is

        sum_{t <= h} gamma^(t-1) ( m_t + sqrt(2 log M / T_t) ) + gamma^h / (1 - gamma)

    (infinite if T_h = 0) and its B-value the smallest of these over h = 1 .. L. Every episode plays
    a sequence with the largest B-value, ties broken at random. Recommends the most played first action
    (on a tie, the one that earned most); `plan.sequence` is the most played sequence. It plans for
    sequences of actions, not for policies that depend on what was observed on the way.

    Args:
        gamma: discount in [0, 1).
        horizon: L, by default as above.
    """

    name = "olop"
    kl: ClassVar[bool] = False

    def __init__(self, *, gamma: float, horizon: int | None = None) -> None:
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)
        if self.gamma == 1.0:
            raise ValueError("open-loop planners need gamma < 1: what follows must be bounded")

    def level(self, episodes: int) -> float:
        """2 log M, the square of the bonus of a sequence played once."""
        return 2.0 * log(episodes)

    def check_query(self, query: Query, limits: Limits) -> None:
        if not query.model.same_actions:
            needs = f"{type(self).__name__} is open-loop: it needs the same actions in every state"
            raise ValueError(f"{needs}, and this model's depend on the state")
        check_anytime(self, query, limits, split(self.horizon, self.gamma, limits.budget)[1])

    def start(self, query: Query, session: Session) -> "_SequenceSearch":
        return _SequenceSearch(self, query, session)


class KLOLOP(OLOP):
    """OLOP with Kullback-Leibler bounds: max{ q : T kl(mean, q) <= f(M) } in place of mean + bonus.

    Args:
        gamma: discount in [0, 1).
        horizon: L, by default as in `OLOP`.
        threshold: f: "theory", 2 log M + 2 log log M, or "log", the log M of the MDP-GapE paper's
            experiments.
    """

    name = "kl-olop"
    kl: ClassVar[bool] = True

    def __init__(
        self,
        *,
        gamma: float,
        horizon: int | None = None,
        threshold: Literal["theory", "log"] = "theory",
    ) -> None:
        super().__init__(gamma=gamma, horizon=horizon)
        self.threshold = checks.choice("threshold", threshold, ("theory", "log"))

    def level(self, episodes: int) -> float:
        """f(M)."""
        theory = 2.0 * log(episodes) + 2.0 * log(max(log(episodes), 1.0))
        return theory if self.threshold == "theory" else log(episodes)


class _SequenceSearch(EstimateSearch):
    """One search: a tree of action sequences."""

    def __init__(self, planner: OLOP, query: Query, session: Session) -> None:
        model, gamma = query.model, planner.gamma
        episodes, horizon = split(planner.horizon, gamma, query.budget)
        low, high = step_range(model.reward_range, model.may_end)
        self._low, self._width, self._tail = low, high - low, 1.0 / (1.0 - gamma)
        self._discounts = powers(gamma, horizon)
        arrays = {
            "lowest": low,
            "width": self._width,
            "tail": self._tail,
            "level": planner.level(episodes),
            "kl": planner.kl,
        }
        settings: Any = {"kind": Search, "arrays": arrays, "gamma": gamma, "horizon": horizon}
        super().__init__(query, session, PAIR, NODE, **settings)
        self.tree.open_loop = True

    def _played(self) -> tuple[NDArray[np.float64], NDArray[np.int64], list[list[int]]]:
        """By first action: mean earnings of its most played sequence, its visits, and that sequence."""
        means, counts = np.full(len(self.actions), np.nan), np.zeros(len(self.actions), np.int64)
        sequences: list[list[int]] = [[] for _ in self.actions]
        pairs, popular = self.tree.pairs, self.tree.nodes["popular"]
        for first in self.tree.tried(0) if len(self.tree) else ():
            links, link = [], first if pairs["n"][first] > 0 else NONE
            while link != NONE:
                links.append(link)
                child = pairs["child"][link]
                link = NONE if child == NONE else int(popular[child])
            if links:
                action, found = int(pairs["action"][first]), pairs[links]
                rewards = self._low + self._width * found["reward"] / found["n"]
                means[action] = (self._discounts[: len(links)] * rewards).sum()
                counts[action], sequences[action] = pairs["n"][first], found["action"].tolist()
        return means, counts, sequences

    @property
    def values(self) -> NDArray[np.float64]:
        """Mean earnings along the most played sequence of each first action; NaN if it has none."""
        return self._played()[0]

    def recommended(self) -> int:
        """Index of the most played first action, on a tie the one with the largest estimate."""
        means, counts, _ = self._played()
        return best_estimate(np.where(counts == counts.max(), means, -np.inf), self.order)

    def sequence(self) -> tuple[Any, ...]:
        """The most played sequence of actions, beginning with the recommended one."""
        return tuple(self.actions[action] for action in self._played()[2][self.recommended()])

    def reader(self) -> Reader:
        """Pairs hold the sum of the rewards at their step, and the B-value from there on."""
        return partial(_read, self._low, self._width, self._tail)


def _read(low: float, width: float, tail: float, pair: Any, offered: Sequence[int]) -> Evidence:
    if pair["n"] == 0:
        return Evidence()
    return Evidence(
        reward=low + width * float(pair["reward"]) / int(pair["n"]),
        upper=low * tail + width * float(pair["bound"]),
    )
