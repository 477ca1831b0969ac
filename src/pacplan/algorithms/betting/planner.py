"""Planners whose bounds are proven by bets: what Bracket and Canopy share, and so do their searches."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.setup import Scale
from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.confidence import Targeted, certificate, check_accuracy, check_stops
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.plans import within
from pacplan.core import checks
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.models.knowledge import Bounds, Function, attach, check_bounds, check_guidance
from pacplan.models.protocol import BrokenPromiseError, Model, Session


class BettingPlanner(Targeted, Planner):
    """Its settings are those of `Bracket`."""

    goal: str = "action"

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        gamma: float,
        horizon: int | None = None,
        target: Literal["horizon", "infinite"] = "horizon",
        value_bounds: Bounds | None = None,
        value_range: tuple[float, float] | None = None,
        policy: Function | None = None,
        value: Function | None = None,
    ) -> None:
        self.epsilon = check_accuracy(epsilon)
        self.delta = checks.probability("delta", delta)
        self.gamma, self._horizon = check_gamma_and_horizon(gamma, horizon)
        self.target = checks.choice("target", target, ("horizon", "infinite"))
        self.value_bounds = check_bounds(value_bounds)
        self.value_range = checks.value_range(value_range)
        self.policy = check_guidance("policy", policy)
        self.value = check_guidance("value", value)
        self.check_target()

    def check_query(self, query: Query, limits: Limits) -> None:
        check_stops(self.epsilon, limits)
        self.check_reach(query.model, limits.budget)

    def guarantee(self, model: Model, search: Any, snapshot: Snapshot) -> str:
        proven = certificate(self, model, search.horizon, snapshot)
        return f"{proven} Only the best action's upper bound is guaranteed."


class BettingSearch(KernelSearch):
    """A search with what `betting_arrays` made among its `arrays`; `engine` goes to `KernelSearch`."""

    def __init__(
        self,
        planner: BettingPlanner,
        query: Query,
        session: Session,
        scale: Scale,
        arrays: dict[str, Any],
        **engine: Any,
    ) -> None:
        attach(session, planner.value_bounds, planner.policy, planner.value)
        horizon, self.root = len(scale.sigma) - 1, arrays["root"]
        self.units = scale.low * scale.span, scale.width
        self.target = planner.gap_for(query.model, horizon) if planner.goal == "action" else None
        self._value_range = planner.value_range
        super().__init__(query, session, arrays=arrays, gamma=planner.gamma, horizon=horizon, **engine)

    def make_room(self, episodes: int) -> None:
        """Make room for another action to begin to bet on its returns."""
        accounts = int(self.arrays["settings"]["accounts"][0])
        for name in ("wealth", "forced_wealth"):
            self.extend(name, min(accounts + 1, len(self.actions)))

    @property
    def values(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN for those never tried, whose estimates are a prior."""
        return np.where(self.calls > 0, self.in_units(self.root["estimate"]), np.nan)

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands.

        Raises:
            BrokenPromiseError: a return lay outside the range that the user gave.
        """
        if self._value_range is not None:
            low, high = self._value_range
            settings = self.arrays["settings"][0]
            least, most = (self.in_units(float(settings[f"{end}_return"])) for end in ("least", "most"))
            slack = 1e-9 * (1.0 + abs(low) + abs(high))
            if least < low - slack or most > high + slack:
                raise BrokenPromiseError(
                    f"an episode had a return of {least if least < low else most}, outside the "
                    f"promised value_range=({low}, {high})"
                )
        lower, upper = self.in_units(self.root["lower"]), self.in_units(self.root["upper"])
        return self.standing(self.best, seconds, lower, upper, self.losses(self.best))

    @property
    def best(self) -> int:
        """Index of the action to recommend."""
        return int(self.arrays["decision"]["best"][0])

    def losses(self, action: int) -> NDArray[np.float64] | None:
        """By how much each other action may be better, at most; None: what their bounds say."""
        return None

    def reader(self) -> Reader:
        """Reads the root's actions: their bounds and estimates, as the plan has them."""
        lower, upper = self.in_units(self.root["lower"]), self.in_units(self.root["upper"])
        return partial(_read, within(self.values, lower, upper), lower, upper)


def _read(values: Any, lower: Any, upper: Any, pair: Any, offered: Sequence[int]) -> Evidence:
    action = int(pair["action"])
    value, low, high = (float(numbers[action]) for numbers in (values, lower, upper))
    return Evidence(value=None if math.isnan(value) else value, lower=low, upper=high)
