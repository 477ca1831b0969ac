"""A search for the largest mean of returns: what UCT and BRUE share, and planners like them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_steps
from pacplan.algorithms.common.plans import best_estimate
from pacplan.algorithms.means.pairs import PAIR
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.tree import BARE_NODE, Evidence, Reader
from pacplan.models.protocol import Session


class MeanSearch(KernelSearch):
    """A search whose estimates are the means of its pairs.

    Args:
        kind: the class of named tuples that the kernel works on.
        query: what is asked.
        session: the model, ready.
        gamma: discount.
        horizon: steps of an episode.
        nodes: about how many the tree will have, if that is known.
        pairs_a_step: most pairs that one step adds to the tree, all to one node.
        arrays: the planner's own arrays in that tuple.
    """

    notes = False

    def __init__(
        self,
        kind: Any,
        query: Query,
        session: Session,
        *,
        gamma: float,
        horizon: int,
        nodes: int = 0,
        pairs_a_step: int = 1,
        **arrays: Any,
    ) -> None:
        super().__init__(
            query,
            session,
            PAIR,
            BARE_NODE,
            kind=kind,
            arrays=arrays,
            gamma=gamma,
            horizon=horizon,
            nodes=nodes,
            pairs_a_step=pairs_a_step,
        )
        # This order breaks ties between estimates, and decides if there are no estimates at all.
        self._order = query.ties.permutation(len(query.actions))

    @property
    def values(self) -> NDArray[np.float64]:
        """Means of the root's actions; NaN for those never counted."""
        means = np.full(len(self.actions), np.nan)
        if len(self.tree) > 0:
            tried = self.tree.pairs[list(self.tree.tried(0))]
            counted = tried[tried["n"] > 0]
            means[counted["action"]] = counted["average"]
        return means

    def recommended(self) -> int:
        """Index of the action to take now."""
        return best_estimate(self.values, self._order)

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands."""
        return self.standing(self.recommended(), seconds)

    def reader(self) -> Reader:
        """Pairs hold the mean of their returns."""
        return _read


def _read(pair: Any, offered: Sequence[int]) -> Evidence:
    return Evidence(value=float(pair["average"]) if pair["n"] > 0 else None)


def check_anytime(planner: Planner, query: Query, limits: Limits, horizon: int) -> None:
    """Refuse a search that nothing would end, and horizons that the model is not defined for."""
    if not limits.any:
        raise ValueError(f"{type(planner).__name__} never stops by itself; pass budget= or time_limit=")
    check_steps(query.model, horizon)
