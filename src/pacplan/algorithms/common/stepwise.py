"""A search in steps (`pacplan.engine.steps`) that recommends the largest estimate."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.plans import best_estimate
from pacplan.engine import steps
from pacplan.engine.driver import Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.tree import LINKS, NODE
from pacplan.models.protocol import Session


class StepSearch(KernelSearch):
    """What planners that work in steps share; `pair` and `node` are for those with a tree."""

    def __init__(
        self,
        planner: Any,
        query: Query,
        session: Session,
        pair: Any = LINKS,
        node: Any = NODE,
        horizon: int = 1,
    ) -> None:
        super().__init__(
            query,
            session,
            np.dtype(pair),
            node,
            gamma=planner.gamma,
            horizon=horizon,
            run=steps.work,
        )
        self.order = query.ties.permutation(len(query.actions))

    @property
    def values(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN if there is none."""
        return np.full(len(self.actions), np.nan)

    def recommended(self) -> int:
        """Index of the largest estimate; ties are broken at random, as is the lack of any estimate."""
        return best_estimate(self.values, self.order)

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands."""
        return self.standing(self.recommended(), seconds)
