"""BRUE (Feldman, Domshlak 2014): uniform exploration, and estimates that it does not spoil."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.means import MeanPlanner, best_bound, count_return
from pacplan.compiled.jit import inlined
from pacplan.engine import episodes
from pacplan.engine.calls import CHUNK_DONE, follow
from pacplan.engine.search import kernel_arrays
from pacplan.engine.tree import NONE, add_pair, find_child
from pacplan.models.protocol import Model


@kernel_arrays
class BRUEArrays:
    """What BRUE's iterations work on."""

    switch: NDArray[np.int64]  # one number: the step up to which this iteration explores


@inlined
def _pair_of(tree: Any, at: int, action: int) -> int:
    """The pair of an action, made if it is new."""
    link = tree.nodes[at].first
    while link != NONE:
        if tree.pairs[link].action == action:
            return int(link)
        link = tree.pairs[link].sibling
    return add_pair(tree, at, action)


@episodes.begin_episode.register(BRUEArrays)
def _begin_episode(search: Any, model: Any, ties: Any) -> None:
    horizon = search.problem[0].horizon
    search.switch[0] = horizon - search.report[0].episodes % horizon


@episodes.select.register(BRUEArrays)
def _select(search: Any, at: int, h: int, ties: Any) -> int:
    """Explore uniformly, then follow the estimates; if there are none, leave the tree."""
    if h < search.switch[0]:
        return _pair_of(search.tree, at, int(ties.random() * search.tree.nodes[at].actions))
    return best_bound(search.tree, at, 0.0, -np.inf, ties)


@episodes.transition.register(BRUEArrays)
def _transition(
    search: Any, model: Any, h: int, successor: int, ended: bool, ties: Any
) -> tuple[int, int]:
    """Only exploring steps make nodes."""
    if h + 1 == search.problem[0].horizon:
        return NONE, CHUNK_DONE
    at, link = search.path[h].node, search.path[h].pair
    if h < search.switch[0]:
        child, _, status = follow(search, model, at, link, successor, ended, h)
        if status == CHUNK_DONE:
            search.tree.nodes[child].count += 1
        return child, status
    child, _ = find_child(search.tree, link, successor, ended)
    return child, CHUNK_DONE if child != NONE else episodes.LEAVE


@episodes.backup.register(BRUEArrays)
def _backup(search: Any, length: int, rest: float, ties: Any) -> None:
    """Learn about the pair at the switching step from the return, unless the episode ended before."""
    problem, start = search.problem[0], search.switch[0]
    if length < start:
        return
    below, discount = 0.0, 1.0
    for h in range(start, length):
        below += discount * (problem.lowest + problem.width * search.path[h].reward)
        discount *= problem.gamma
    below += discount * rest
    step = search.path[start - 1]
    value = problem.lowest + problem.width * step.reward + problem.gamma * below
    count_return(search.tree.pairs[step.pair], value)


class BRUE(MeanPlanner):
    """Uniform exploration with a switching step: anytime, without a certificate.

    Iteration i has the switching step s = H - ((i - 1) mod H). Its steps 1 .. s are uniformly random,
    its steps s + 1 .. H follow the current estimates greedily, and only the estimate of the pair at
    step s is updated, with the discounted return from step s on. Recommends the largest estimate.

    Args:
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: steps of an episode. By default a third of the H that section 5 of the MDP-GapE
            paper gives for the budget, since only one iteration in H informs the root.
    """

    name = "brue"
    kind = BRUEArrays

    def steps(self, budget: int | None) -> int:
        steps = super().steps(budget)
        return max(1, steps // 3) if self.horizon is None and budget is not None else steps

    def arrays(self, model: Model, horizon: int) -> dict[str, Any]:
        return {"switch": np.zeros(1, np.int64)}
