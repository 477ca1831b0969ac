"""Flat Monte-Carlo: every action in turn, random play after it, the largest mean return wins."""

from typing import Any

import pacplan
from pacplan import extending as ext


@ext.kernel_arrays
class Search:
    """What the episodes work on: what the engine has, and any arrays of your own."""


@ext.select.register(Search)
def select(search: Any, at: int, h: int, ties: Any) -> int:
    """At the root, an action that was not tried yet, or the one tried least; then leave the tree."""
    tree, node = search.tree, search.tree.nodes[at]
    if h > 0:
        return ext.NONE
    if node.tried < node.actions:
        return ext.add_pair(tree, at, ext.untried_action(tree, at, ties))
    least = link = node.first
    while link != ext.NONE:
        if tree.pairs[link].n < tree.pairs[least].n:
            least = link
        link = tree.pairs[link].sibling
    return least


@ext.backup.register(Search)
def backup(search: Any, length: int, rest: float, ties: Any) -> None:
    """A whole episode: one step in the tree, and the return after it."""
    problem, step = search.problem[0], search.path[0]
    value = problem.lowest + problem.width * step.reward + problem.gamma * rest
    ext.count_return(search.tree.pairs[step.pair], value)


@pacplan.register
class FlatMonteCarlo(ext.Planner):
    """Every action in turn, random play after it, the largest mean return wins."""

    name = "flat"

    def __init__(self, *, gamma: float, horizon: int | None = None) -> None:
        self.gamma, self.horizon = ext.check_gamma_and_horizon(gamma, horizon)

    def check_query(self, query: ext.Query, limits: ext.Limits) -> None:
        """Refuse what would never end, or looks further ahead than the model goes."""
        ext.check_anytime(self, query, limits, self._steps(query))

    def start(self, query: ext.Query, session: ext.Session) -> ext.MeanSearch:
        """Set up the search, without a call to the model."""
        return ext.MeanSearch(Search, query, session, gamma=self.gamma, horizon=self._steps(query))

    def _steps(self, query: ext.Query) -> int:
        return ext.horizon_for(self.horizon, self.gamma, query.budget)


if __name__ == "__main__":
    print(FlatMonteCarlo(gamma=0.7).plan(pacplan.envs.garnet(seed=0), seed=0, budget=10_000))
