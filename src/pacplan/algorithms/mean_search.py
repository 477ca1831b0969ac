"""The Python half of the planners that estimate values by the mean of returns: UCT and BRUE."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan._jit import records
from pacplan.algorithms import mean_kernel as kernels
from pacplan.algorithms.base import Planner, Query
from pacplan.algorithms.episodes import EpisodeSearch, best_estimate
from pacplan.algorithms.horizons import check_steps
from pacplan.models.protocol import Session
from pacplan.search.driver import Limits, Snapshot
from pacplan.search.tree import Evidence, Reader


class MeanSearch(EpisodeSearch):
    """One search: rules, the calls of each root action, the estimates."""

    def __init__(
        self,
        run: Callable[..., int],
        query: Query,
        session: Session,
        *,
        gamma: float,
        horizon: int,
        exploration: float = 0.0,
        rollout: bool = False,
        by_visits: bool = False,
    ) -> None:
        super().__init__(run, query, session, kernels.PAIR, gamma=gamma, horizon=horizon)
        low, high = query.model.reward_range
        rules = (gamma, exploration * (high - low), horizon, rollout)
        self.calls = np.zeros(len(query.actions), np.int64)
        self._by_visits = by_visits
        self._fixed = {
            "rules": records(np.array([rules], kernels.RULES)),
            "promises": self.promises,
            "sigma": np.concatenate([[0.0], np.cumsum(gamma ** np.arange(horizon))]),
            "path": self.path,
            "calls": self.calls,
            "report": self.reports,
        }
        # Ties between estimates, and no estimates at all, are broken by this order.
        self._order = query.ties.permutation(len(query.actions))
        self.reserve()

    def kernel_state(self) -> kernels.Search:
        """What the kernel works on."""
        return kernels.Search(tree=self.tree.arrays(), **self._fixed)

    @property
    def values(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN for those never counted."""
        return self.estimates()[0]

    def estimates(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Means and counts of the root's actions; the mean of an action never counted is NaN."""
        means = np.full(len(self.actions), np.nan)
        counts = np.zeros(len(self.actions), np.int64)
        if len(self.tree) > 0:
            for link in self.tree.tried(0):
                pair = self.tree.pairs[link]
                if pair["n"] > 0:
                    means[pair["action"]], counts[pair["action"]] = pair["average"], pair["n"]
        return means, counts

    def recommended(self) -> int:
        """Index of the action to take now."""
        means, counts = self.estimates()
        if self._by_visits:
            means = np.where(counts == counts.max(), means, np.nan)
        return best_estimate(means, self._order)

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
    if limits.budget is None and limits.time_limit is None and limits.callback is None:
        raise ValueError(
            f"{type(planner).__name__} never stops by itself; give plan() a budget or a time_limit"
        )
    check_steps(query.model, horizon)
