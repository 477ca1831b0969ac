"""BRUE (Feldman, Domshlak 2014): uniform exploration, and estimates that it does not spoil."""

from typing import Any

from pacplan._jit import inlined, kernel
from pacplan.algorithms.base import Planner, Query
from pacplan.algorithms.episodes import estimates_plan
from pacplan.algorithms.horizons import check_gamma_and_horizon, horizon_for
from pacplan.algorithms.mean_kernel import (
    Search,
    best_mean,
    count_return,
    plant,
    play_on,
)
from pacplan.algorithms.mean_search import MeanSearch, check_anytime
from pacplan.models.protocol import Session
from pacplan.result import Plan
from pacplan.search.driver import Limits
from pacplan.search.kernel import (
    BROKEN,
    CHUNK_DONE,
    call_model,
    follow,
    must_return,
    note_episode,
    out_of_steps,
)
from pacplan.search.tree import NONE, add_pair, find_child


@inlined
def _pair_of(tree: Any, at: int, action: int) -> int:
    """The pair of an action, made if it is new."""
    link = tree.nodes[at].first
    while link != NONE:
        if tree.pairs[link].action == action:
            return int(link)
        link = tree.pairs[link].sibling
    return add_pair(tree, at, action)


@inlined
def _exploit(
    search: Search, model: Any, at: int, h: int, most: int, rng: Any, ties: Any
) -> tuple[float, int, int]:
    """Follow the estimates greedily from node `at` on, at random where there are none.

    Returns:
        The discounted return, the calls it took, and CHUNK_DONE or why it was cut off.
    """
    tree, promise, rules = search.tree, search.promises[0], search.rules[0]
    total = 0.0
    discount = 1.0
    calls = 0
    for step in range(h, min(rules.horizon, h + most)):
        link = best_mean(tree, at, ties)
        if link == NONE:
            rest, more, status = play_on(
                search, model, tree.nodes[at].state, step, most - calls, rng, ties
            )
            return total + discount * rest, calls + more, status
        action = tree.pairs[link].action
        successor, reward, ended, status = call_model(
            search.promises, search.report, model, tree.nodes[at].state, action, step, rng
        )
        if status != CHUNK_DONE:
            return total, calls, status
        calls += 1
        total += discount * (promise.lowest + promise.width * reward)
        discount *= rules.gamma
        if ended:
            return total, calls, CHUNK_DONE
        at, _ = find_child(tree, link, successor, False)
        if at == NONE:
            rest, more, status = play_on(search, model, successor, step + 1, most - calls, rng, ties)
            return total + discount * rest, calls + more, status
    return total, calls, out_of_steps(rules.horizon - h, most)


@inlined
def _iteration(
    search: Search, model: Any, switch: int, most: int, rng: Any, ties: Any
) -> tuple[int, int, float, int]:
    """Explore at random up to and with step `switch`, then exploit.

    Returns:
        The pair at that step (NONE if the episode ended before), the calls, the discounted return
        from that step on, and CHUNK_DONE or why it was cut off.
    """
    tree, promise, rules = search.tree, search.promises[0], search.rules[0]
    at = 0
    for h in range(min(switch, most)):
        node = tree.nodes[at]
        link = _pair_of(tree, at, int(ties.random() * node.actions))
        if h == 0:
            search.path[0].pair = link
        action = tree.pairs[link].action
        successor, reward, ended, status = call_model(
            search.promises, search.report, model, node.state, action, h, rng
        )
        if status != CHUNK_DONE:
            return NONE, h, 0.0, status
        child = NONE
        if h + 1 < rules.horizon:
            child, _, status = follow(
                tree, search.promises, search.report, model, at, link, successor, ended, h, 0.0, 0.0
            )
            if status != CHUNK_DONE:
                return NONE, h, 0.0, status
            tree.nodes[child].count += 1
        if h + 1 == switch:
            value = promise.lowest + promise.width * reward
            if ended or child == NONE:
                return link, h + 1, value, CHUNK_DONE
            below, calls, status = _exploit(search, model, child, h + 1, most - h - 1, rng, ties)
            return link, h + 1 + calls, value + rules.gamma * below, status
        if ended:
            return NONE, h + 1, 0.0, CHUNK_DONE
        at = child
    return NONE, min(switch, most), 0.0, out_of_steps(switch, most)


@kernel
def run(
    search: Search, model: Any, state: int, most_episodes: int, most_calls: int, rng: Any, ties: Any
) -> int:
    """Play iterations from `state` until one of the reasons in `pacplan.search.kernel` to return."""
    tree, report, horizon = search.tree, search.report[0], search.rules[0].horizon
    plant(search, state)
    for _ in range(most_episodes):
        status = must_return(tree, search.report, search.rules[0].horizon, most_calls)
        if status != CHUNK_DONE:
            return status
        switch = horizon - report.episodes % horizon
        link, calls, value, status = _iteration(
            search, model, switch, most_calls - report.calls, rng, ties
        )
        if status == BROKEN:
            return status
        if calls > 0:
            note_episode(search.report, search.calls, tree.pairs[search.path[0].pair].action, calls)
        if status != CHUNK_DONE:
            return status
        if link != NONE:
            count_return(tree.pairs[link], value)
    return CHUNK_DONE


class BRUE(Planner):
    """Uniform exploration with a switching step: anytime, without a certificate.

    Iteration i has the switching step s = H - ((i - 1) mod H). Its steps 1 .. s are uniformly random,
    its steps s + 1 .. H follow the current estimates greedily, and only the estimate of the pair at
    step s is updated, with the discounted return from step s on. Recommends the largest estimate.

    Args:
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: steps of an episode. By default a third of the H that section 5 of the MDP-GapE
            paper gives the other planners for the same budget, since only one iteration in H tells
            of the root; without a budget, the smallest H with gamma^H <= 1/100.
        chunk: see `Planner`.
    """

    name = "brue"

    def __init__(self, *, gamma: float, horizon: int | None = None, chunk: int | None = None) -> None:
        super().__init__(chunk=chunk)
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)

    def _check_query(self, query: Query, limits: Limits) -> None:
        check_anytime(self, query, limits, self._steps(limits.budget))

    def _start(self, query: Query, session: Session) -> MeanSearch:
        horizon = self._steps(query.budget)
        return MeanSearch(run, query, session, gamma=self.gamma, horizon=horizon)

    def _steps(self, budget: int | None) -> int:
        steps = horizon_for(self.horizon, self.gamma, budget)
        return max(1, steps // 3) if self.horizon is None and budget is not None else steps

    def _finish(self, query: Query, search: MeanSearch, stopped_by: str, seconds: float) -> Plan:
        return estimates_plan(self, query, search, stopped_by, seconds)
