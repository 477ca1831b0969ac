"""Sparse Sampling (Kearns, Mansour, Ng 2002): a tree of fixed width and depth."""

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.confidence import declared
from pacplan.algorithms.common.horizons import (
    check_gamma_and_horizon,
    check_steps,
    default_horizon,
    most_actions,
    most_successors,
)
from pacplan.algorithms.common.plans import nearly_optimal
from pacplan.algorithms.common.recursion import BLOCK, END, Draws, Recursion, RecursiveSearch
from pacplan.bounds.elementary import powers
from pacplan.core import checks
from pacplan.core.words import at_most, complement
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.values import step_width, value_range
from pacplan.models.protocol import Model, Session

Ints = NDArray[np.int64]

# More draws or calls than this are out of reach.
_MOST = 2**62


class SparseSampling(Planner):
    """Draw C successors of every pair, H steps deep, and average.

    Q_h(s, a) is the mean over C draws of r + gamma V_{h+1}(s'), V the largest Q. Equal successors of
    one pair share one estimate. The largest number of calls is known before the first one.

    Give either `width` (C), or `epsilon` and `delta`. Then, with N = sum_h K^h B^(h-1) pairs, rewards
    of width w and E = w sum_h gamma^(h-1) sigma_(H-h+1),

        C = ceil( 2 log(2 N / delta) (E / epsilon)^2 )

    keeps all root estimates within epsilon / 2 of the truth with probability at least 1 - delta
    (Hoeffding's inequality for every pair, as in Lemma 1 of the MDP-GapE paper), so that the action
    with the largest is epsilon-optimal in the problem of H steps.

    Args:
        gamma: discount in [0, 1].
        horizon: H; by default as for `MDPGapE` if epsilon is given.
        width: draws of each action, C.
        epsilon: how far from optimal the action may be, in the model's reward units.
        delta: probability with which the guarantee may fail.
    """

    name = "sparse-sampling"
    keeps_checkpoints = False

    def __init__(
        self,
        *,
        gamma: float,
        horizon: int | None = None,
        width: int | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> None:
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)
        self.width, self.epsilon, self.delta = width, epsilon, delta
        given = [setting is not None for setting in (width, epsilon, delta)]
        if given not in ([True, False, False], [False, True, True]):
            raise ValueError("give either width, or epsilon and delta")
        if width is None:
            self.epsilon = checks.positive("epsilon", epsilon)
            self.delta = checks.probability("delta", delta)
            return
        self.width = checks.integer("width", width, least=1)
        if horizon is None:
            raise ValueError("width needs a horizon: SparseSampling(..., horizon=H)")

    def shape(self, model: Model) -> tuple[int, int]:
        """Width C and depth H in a model.

        Raises:
            ValueError: the model does not say how large it is, or the width is out of reach.
        """
        if self.width is not None:
            return self.width, cast(int, self.horizon)
        assert self.epsilon is not None and self.delta is not None
        spread = step_width(model.reward_range, model.may_end)
        horizon = self.horizon or default_horizon(self.epsilon / spread, self.gamma)
        k, b = most_actions(self, model), most_successors(self, model)
        ranges = value_range(model.reward_range, model.may_end, self.gamma, horizon)
        spans = (ranges["node_upper"] - ranges["node_lower"])[:0:-1]
        ratio = float((powers(self.gamma, horizon) * spans).sum()) / self.epsilon
        # log N, N = K (1 + BK + ... + (BK)^(H-1)), without overflow.
        log_pairs = math.log(k) + np.logaddexp.reduce(np.arange(horizon) * math.log(b * k))
        width = 2.0 * (math.log(2.0) - math.log(self.delta) + float(log_pairs)) * ratio * ratio
        if not width <= _MOST:
            raise ValueError(
                f"epsilon={self.epsilon} with a horizon of {horizon} would need a width of {width:.3g} "
                "draws; raise epsilon, or give a shorter horizon or a width"
            )
        return max(1, math.ceil(width)), horizon

    def calls(self, model: Model) -> float:
        """Most calls that a plan in `model` can take: K C (1 + BK + ... + (BK)^(H-1)).

        B is replaced by C if it is larger or not known. More than 2^62 count as infinitely many.
        """
        width, horizon = self.shape(model)
        k = most_actions(self, model)
        branching = float(k * min(width, model.successors or width))
        try:
            pairs = horizon if branching == 1.0 else (branching**horizon - 1.0) / (branching - 1.0)
        except OverflowError:
            pairs = math.inf
        return k * width * pairs if k * width * pairs <= _MOST else math.inf

    def check_query(self, query: Query, limits: Limits) -> None:
        check_steps(query.model, self.shape(query.model)[1])
        if query.model.max_actions is None:
            return
        needed, most, what = self.calls(query.model), limits.budget, "the budget of"
        if most is None and limits.time_limit is None and limits.callback is None:
            most, what = _MOST, "any plan can make,"
        if most is not None and needed > most:
            raise ValueError(
                f"SparseSampling may take {at_most(needed)} calls here, more than {what} {most}; "
                "give a smaller horizon or width"
            )

    def start(self, query: Query, session: Session) -> "_SparseSearch":
        return _SparseSearch(self, query, session)

    def guarantee(self, model: Model, search: Any, snapshot: Snapshot) -> str:
        if not search.over:
            return "The recursion was not finished, so nothing is known about it."
        if self.epsilon is None or self.delta is None:
            return "With a width of the user's choice, nothing is proven."
        chance = complement(self.delta)
        return f"{nearly_optimal(snapshot, search.horizon)}, with probability at least {chance}."

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        return (*declared(self, model), f"no state has more than {model.max_actions} actions")


class _SparseSearch(RecursiveSearch):
    """The recursion, for many pairs of a state and an action at a time."""

    def __init__(self, planner: SparseSampling, query: Query, session: Session) -> None:
        self._width, horizon = planner.shape(query.model)
        super().__init__(planner, query, session, horizon=horizon)
        self.values = np.full(len(query.actions), np.nan)  # so far
        self._gamma = planner.gamma
        self._error = None if planner.epsilon is None else 0.5 * planner.epsilon
        rewards, may_end = query.model.reward_range, query.model.may_end
        self._ends = value_range(rewards, may_end, planner.gamma, horizon)[-1]
        self._pairs = max(1, BLOCK // self._width)  # of which the draws fit into a block

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands: with bounds if it is over, and the width was chosen for them."""
        if self._error is None or not self.over:
            return super().snapshot(seconds)
        lower = np.maximum(self.values - self._error, self._ends["node_lower"])
        upper = np.minimum(self.values + self._error, self._ends["node_upper"])
        return self.standing(self.recommended(), seconds, lower, upper)

    def recurse(self) -> Recursion:
        root = np.array([self.root_state])
        for first in range(len(self.actions)):
            self.values[first] = (yield self._q(root, np.array([first]), 0, first))[0]

    def _q(self, states: Ints, actions: Ints, h: int, first: int) -> Recursion:
        """Q_h of pairs: the mean of their rewards and of gamma V_{h+1}."""
        last = h + 1 == self.horizon
        drawn = yield Draws(states, actions, self._width, h, first, offered=not last)
        successors, rewards, offered = drawn
        q = rewards.mean(axis=1)
        if last:
            return q
        pairs, children, offered, counts = _distinct(successors, offered)
        seen = np.bincount(pairs, minlength=len(states))
        most = int(seen.argmax())
        self.check_successors(int(seen[most]), int(states[most]), int(actions[most]), h)
        if len(children):
            values = yield self._v(children, offered, h + 1, first)
            after = np.bincount(pairs, counts * values, minlength=len(states))
            q += self._gamma * after / self._width
        return q

    def _v(self, states: Ints, offered: Ints, h: int, first: int) -> Recursion:
        """V_h of states that offer so many actions: the largest Q_h, of a block of pairs at a time."""
        ends = np.cumsum(offered)
        begins = ends - offered
        of, q = np.repeat(states, offered), np.empty(ends[-1])
        actions = np.arange(ends[-1]) - np.repeat(begins, offered)
        for at in range(0, len(q), self._pairs):
            part = slice(at, at + self._pairs)
            q[part] = yield self._q(of[part], actions[part], h, first)
        return np.maximum.reduceat(q, begins)


def _distinct(successors: Ints, offered: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The distinct successors of every row: row, state, how many actions it offers, how often drawn.

    They are in the order of their first draws, which does not depend on the numbers of states.
    """
    order = np.argsort(successors, axis=1, kind="stable")
    states = np.take_along_axis(successors, order, axis=1)
    new = np.ones(states.shape, np.bool_)
    new[:, 1:] = states[:, 1:] != states[:, :-1]
    places = np.flatnonzero(new)
    counts = np.diff(places, append=states.size)
    draws = places - places % states.shape[1] + order.flat[places]
    found = np.argsort(draws)
    found = found[successors.flat[draws[found]] != END]
    draws, counts = draws[found], counts[found]
    return draws // states.shape[1], successors.flat[draws], offered.flat[draws], counts
