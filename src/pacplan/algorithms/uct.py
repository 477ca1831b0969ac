"""UCT (Kocsis, Szepesvári 2006): UCB1 at every depth of the tree."""

from math import log, sqrt
from typing import Any, Literal

import numpy as np

from pacplan.algorithms.means import MeanPlanner, best_bound, count_return
from pacplan.bounds.elementary import powers
from pacplan.core import checks
from pacplan.engine import episodes
from pacplan.engine.search import kernel_arrays
from pacplan.engine.tree import NONE, add_pair, untried_action
from pacplan.models.protocol import Model


@kernel_arrays
class UCTArrays:
    """What UCT's episodes work on."""

    scales: Any  # by step: C times the width of what can be earned from there on
    rollout: bool  # play at random from a new node


@episodes.select.register(UCTArrays)
def _select(search: Any, at: int, h: int, ties: Any) -> int:
    node = search.tree.nodes[at]
    if search.rollout and h > 0 and node.count == 0:
        return NONE
    if node.tried < node.actions:
        return add_pair(search.tree, at, untried_action(search.tree, at, ties))
    return best_bound(search.tree, at, search.scales[h] * sqrt(log(max(node.count, 1))), np.inf, ties)


@episodes.backup.register(UCTArrays)
def _backup(search: Any, length: int, rest: float, ties: Any) -> None:
    tree, problem, value = search.tree, search.problem[0], rest
    for h in range(length - 1, -1, -1):
        step = search.path[h]
        value = problem.lowest + problem.width * step.reward + problem.gamma * value
        count_return(tree.pairs[step.pair], value)
        if step.child != NONE:
            tree.nodes[step.child].count += 1
    tree.nodes[0].count += 1


class UCT(MeanPlanner):
    """UCB1 at every depth of a closed-loop tree: anytime, without a guarantee.

    In a node, plays the actions never tried first, in random order, then the one with the largest
    mean + C w sigma_(H-h) sqrt(log N / n). The mean is of the discounted returns from that step on, N
    counts arrivals at the node, w is the width of the reward range and sigma_k = 1 + ... + gamma^(k-1).

    Args:
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: steps of an episode; by default that of section 5 of the MDP-GapE paper for the budget.
        exploration: C; the textbook's is 2**0.5, but 0.5 errs less (benchmarks/uct_constant.py).
        rollout: "random": play at random below the tree, which then grows by a node per episode.
    """

    name = "uct"
    kind = UCTArrays

    def __init__(
        self,
        *,
        gamma: float,
        horizon: int | None = None,
        exploration: float = 0.5,
        rollout: Literal["tree", "random"] = "tree",
    ) -> None:
        super().__init__(gamma=gamma, horizon=horizon)
        self.exploration = checks.at_least_zero("exploration", exploration)
        self.rollout = checks.choice("rollout", rollout, ("tree", "random"))

    def arrays(self, model: Model, horizon: int) -> dict[str, Any]:
        low, high = model.reward_range
        scales = self.exploration * (high - low) * np.cumsum(powers(self.gamma, horizon))[::-1]
        return {"scales": scales, "rollout": self.rollout == "random"}
