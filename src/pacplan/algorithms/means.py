"""What planners by mean returns share: pairs that hold a mean, and a search for the largest."""

from abc import abstractmethod
from collections.abc import Sequence
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_gamma_and_horizon, check_steps, horizon_for
from pacplan.algorithms.common.plans import EstimateSearch
from pacplan.compiled.jit import inlined
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.engine.tree import BARE_NODE, LINKS, MOST_COUNTED, NONE, TreeArrays
from pacplan.models.protocol import Model, Session

# What the search knows of an action that was tried.
PAIR = np.dtype(
    [
        ("average", np.float64),  # of the returns counted, in the user's units
        ("spread", np.float64),  # 1 / sqrt(n)
        *LINKS,
    ],
    align=True,
)


@inlined
def best_bound(tree: TreeArrays, at: int, scale: float, untried: float, ties: Any) -> int:
    """The pair with the largest mean + scale / sqrt(n), ties at random; NONE if all are -infinite.

    `untried` stands for the bound of pairs without a return, made by an episode that was cut off.
    """
    best, top, tied = NONE, -np.inf, 0
    link = tree.nodes[at].first
    while link != NONE:
        pair = tree.pairs[link]
        bound = pair.average + scale * pair.spread if pair.n > 0 else untried
        if bound > top:
            best = link
            top = bound
            tied = 1
        elif bound == top and best != NONE:
            tied += 1
            if ties.random() * tied < 1.0:
                best = link
        link = pair.sibling
    return best


@inlined
def count_return(pair: Any, value: float) -> None:
    """Let a return enter the mean of a pair."""
    pair.n += 1
    pair.average += (value - pair.average) / pair.n
    pair.spread = 1.0 / sqrt(pair.n)


class MeanSearch(EstimateSearch):
    """A search whose estimates are the means of its pairs; see `KernelSearch`."""

    def __init__(
        self, kind: Any, query: Query, session: Session, *, gamma: float, horizon: int, **arrays: Any
    ) -> None:
        settings: Any = {"kind": kind, "arrays": arrays, "gamma": gamma, "horizon": horizon}
        super().__init__(query, session, PAIR, BARE_NODE, **settings)
        self.mark = MOST_COUNTED  # Without bounds there is no curve.

    @property
    def values(self) -> NDArray[np.float64]:
        """Means of the root's actions; NaN for those never counted."""
        means = np.full(len(self.actions), np.nan)
        if len(self.tree) > 0:
            tried = self.tree.pairs[list(self.tree.tried(0))]
            counted = tried[tried["n"] > 0]
            means[counted["action"]] = counted["average"]
        return means

    def reader(self) -> Reader:
        return _read


def _read(pair: Any, offered: Sequence[int]) -> Evidence:
    return Evidence(value=float(pair["average"]) if pair["n"] > 0 else None)


class MeanPlanner(Planner):
    """A planner with a discount and a horizon that recommends the largest mean return."""

    kind: ClassVar[Any]
    """What its episodes work on (`kernel_arrays`)."""

    def __init__(self, *, gamma: float, horizon: int | None = None) -> None:
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)

    def steps(self, budget: int | None) -> int:
        """The horizon of a plan."""
        return horizon_for(self.horizon, self.gamma, budget)

    @abstractmethod
    def arrays(self, model: Model, horizon: int) -> dict[str, Any]:
        """The planner's own arrays in `kind`."""

    def check_query(self, query: Query, limits: Limits) -> None:
        check_anytime(self, query, limits, self.steps(limits.budget))

    def start(self, query: Query, session: Session) -> MeanSearch:
        horizon = self.steps(query.budget)
        arrays = self.arrays(query.model, horizon)
        return MeanSearch(self.kind, query, session, gamma=self.gamma, horizon=horizon, **arrays)


def check_anytime(planner: Planner, query: Query, limits: Limits, horizon: int) -> None:
    """Refuse a search that nothing would end, and horizons that the model is not defined for."""
    if not limits.any:
        raise ValueError(f"{type(planner).__name__} never stops by itself; pass budget= or time_limit=")
    check_steps(query.model, horizon)
