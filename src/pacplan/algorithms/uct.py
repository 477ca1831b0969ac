"""UCT (Kocsis, Szepesvári 2006): UCB1 at every depth of the tree."""

from typing import Any, Literal

from pacplan import _checks
from pacplan._jit import inlined, kernel
from pacplan.algorithms.base import Planner, Query, check_stationary
from pacplan.algorithms.episodes import estimates_plan
from pacplan.algorithms.horizons import check_gamma_and_horizon, horizon_for
from pacplan.algorithms.mean_kernel import (
    Search,
    best_bound,
    count_return,
    plant,
    play_on,
)
from pacplan.algorithms.mean_search import MeanSearch, check_anytime
from pacplan.models.protocol import Model, Session
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
from pacplan.search.tree import NONE, add_pair, untried_action


@inlined
def _episode(search: Search, model: Any, most: int, rng: Any, ties: Any) -> tuple[int, int, float, int]:
    """Play one episode: (steps in the tree, calls, return below the tree, status)."""
    tree, rules, path = search.tree, search.rules[0], search.path
    at = 0
    for h in range(min(rules.horizon, most)):
        node = tree.nodes[at]
        if node.tried < node.actions:
            link = add_pair(tree, at, untried_action(tree, at, ties))
        else:
            link = best_bound(tree, at, rules.exploration * search.sigma[rules.horizon - h], ties)
        action = tree.pairs[link].action
        successor, reward, ended, status = call_model(
            search.promises, search.report, model, node.state, action, h, rng
        )
        if status != CHUNK_DONE:
            return h, h, 0.0, status
        step = path[h]
        step.node = at
        step.pair = link
        step.child = NONE
        step.reward = reward
        if h + 1 == rules.horizon:
            break
        child, new, status = follow(
            tree, search.promises, search.report, model, at, link, successor, ended, h, 0.0, 0.0
        )
        if status != CHUNK_DONE:
            return h, h, 0.0, status
        step.child = child
        if ended:
            return h + 1, h + 1, 0.0, CHUNK_DONE
        if new and rules.rollout:
            below, calls, status = play_on(search, model, successor, h + 1, most - h - 1, rng, ties)
            return h + 1, h + 1 + calls, below, status
        at = child
    length = min(rules.horizon, most)
    return length, length, 0.0, out_of_steps(rules.horizon, most)


@kernel
def run(
    search: Search, model: Any, state: int, most_episodes: int, most_calls: int, rng: Any, ties: Any
) -> int:
    """Play episodes from `state` until one of the reasons in `pacplan.search.kernel` to return."""
    tree, rules, promise = search.tree, search.rules[0], search.promises[0]
    plant(search, state)
    for _ in range(most_episodes):
        status = must_return(tree, search.report, search.rules[0].horizon, most_calls)
        if status != CHUNK_DONE:
            return status
        length, calls, value, status = _episode(
            search, model, most_calls - search.report[0].calls, rng, ties
        )
        if status == BROKEN:
            return status
        if calls > 0:
            note_episode(search.report, search.calls, tree.pairs[search.path[0].pair].action, calls)
        if status != CHUNK_DONE:
            return status
        for h in range(length - 1, -1, -1):
            step = search.path[h]
            value = promise.lowest + promise.width * step.reward + rules.gamma * value
            count_return(tree.pairs[step.pair], value)
            if step.child != NONE:
                tree.nodes[step.child].count += 1
        tree.nodes[0].count += 1
    return CHUNK_DONE


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
            node an episode, below which actions are uniformly random.
        recommend: "value": the largest mean; "visits": the most tried action, of several the one with
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
            _checks.choice("exploration", exploration, ("ucb1",))
            exploration = 2.0**0.5
        self.exploration = _checks.real("exploration", exploration)
        if self.exploration < 0.0:
            raise ValueError(f"exploration must be at least 0, got {exploration}")
        self.rollout = _checks.choice("rollout", rollout, ("tree", "random"))
        self.recommend = _checks.choice("recommend", recommend, ("value", "visits"))

    def _check_reuse(self, model: Model) -> None:
        check_stationary(model)

    def _check_query(self, query: Query, limits: Limits) -> None:
        check_anytime(self, query, limits, horizon_for(self.horizon, self.gamma, limits.budget))

    def _start(self, query: Query, session: Session) -> MeanSearch:
        return MeanSearch(
            run,
            query,
            session,
            gamma=self.gamma,
            horizon=horizon_for(self.horizon, self.gamma, query.budget),
            exploration=self.exploration,
            rollout=self.rollout == "random",
            by_visits=self.recommend == "visits",
        )

    def _finish(self, query: Query, search: MeanSearch, stopped_by: str, seconds: float) -> Plan:
        return estimates_plan(self, query, search, stopped_by, seconds)
