"""Sparse Sampling (Kearns, Mansour, Ng 2002): a tree of fixed width and depth."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.confidence import size_assumptions
from pacplan.algorithms.common.horizons import check_gamma_and_horizon, check_steps, default_horizon
from pacplan.algorithms.common.plans import bounded_plan, estimates_plan
from pacplan.algorithms.common.stepwise import StepSearch
from pacplan.bounds.elementary import powers
from pacplan.compiled.jit import inlined
from pacplan.core import checks
from pacplan.core.words import at_most, complement
from pacplan.engine import steps
from pacplan.engine.calls import CHUNK_DONE, NO_ROOM, RULE, break_promise, count_actions, draw_counted
from pacplan.engine.driver import Limits
from pacplan.engine.promises import TOO_MANY_SUCCESSORS
from pacplan.engine.query import Query
from pacplan.engine.values import step_width, value_range
from pacplan.models.protocol import Model, Session
from pacplan.result import Plan

# The recursion's frame at one depth: a state, and the action of it that is being estimated.
FRAME = np.dtype(
    [
        ("state", np.int64),
        ("actions", np.int64),
        ("action", np.int64),
        ("best", np.float64),  # largest estimate among the earlier actions
        ("draws", np.int64),
        ("rewards", np.float64),  # sum over the draws
        ("after", np.float64),  # gamma times the mean value of the successors estimated so far
        ("seen", np.int64),  # distinct successors
        ("done", np.int64),  # how many of these are estimated
    ]
)

# More draws or calls than this are out of reach.
_MOST = 2**62
# Room for distinct successors of a pair at first.
_FIRST_ROOM = 8


class Search(NamedTuple):
    """The recursion as it stands."""

    problem: Any  # one record of PROBLEM
    width: int  # C
    frames: Any  # records of FRAME, one per depth
    depth: NDArray[np.int64]  # [the frame being worked on; -1 before the start]
    successors: NDArray[np.int64]  # distinct ones of each frame's pair, as far as there is room
    counts: NDArray[np.int64]  # how often each was drawn
    values: NDArray[np.float64]  # estimates of the root's actions
    calls: NDArray[np.int64]  # spent on each of them
    report: Any  # one record of REPORT


@inlined
def _enter(search: Search, h: int, state: int, actions: int) -> None:
    """Begin to estimate V_h of a state."""
    search.depth[0] = h
    frame = search.frames[h]
    frame.state = state
    frame.actions = actions
    frame.action = 0
    frame.best = -np.inf


@steps.make_root.register(Search)
def _make_root(search: Search, model: Any, state: int) -> int:
    if search.depth[0] < 0:
        _enter(search, 0, state, search.values.size)
    return CHUNK_DONE


@steps.compute.register(Search)
def _compute(search: Search, model: Any, ties: Any) -> int:
    h = search.depth[0]
    frame = search.frames[h]
    if frame.action == frame.actions:
        if h == 0:
            return RULE
        # V_h of this state is known; it counts in the mean of the pair above.
        above = search.frames[h - 1]
        share = search.counts[above.done, h - 1] / search.width
        above.after += search.problem[0].gamma * share * frame.best
        above.done += 1
        search.depth[0] = h - 1
    elif frame.draws < search.width:
        return steps.CALL
    elif frame.done < frame.seen:
        successor = search.successors[frame.done, h]
        actions, status = count_actions(search, model, successor, h + 1)
        if status != CHUNK_DONE:
            return status
        _enter(search, h + 1, successor, actions)
    else:
        # Q_h of this state and action is known.
        value = frame.rewards / search.width + frame.after
        frame.best = max(frame.best, value)
        if h == 0:
            search.values[frame.action] = value
        frame.action += 1
        frame.draws = 0
        frame.rewards = 0.0
        frame.after = 0.0
        frame.seen = 0
        frame.done = 0
    return CHUNK_DONE


@steps.call.register(Search)
def _call(search: Search, model: Any, most: int, rng: Any) -> int:
    """Draw a successor; equal ones are counted together."""
    problem, h = search.problem[0], search.depth[0]
    frame = search.frames[h]
    if frame.seen == search.counts.shape[0] and frame.seen < problem.successors:
        return NO_ROOM
    first = search.frames[0].action
    successor, reward, ended, status = draw_counted(
        search, model, frame.state, frame.action, h, first, rng
    )
    if status != CHUNK_DONE:
        return status
    frame.draws += 1
    frame.rewards += problem.lowest + problem.width * reward
    if ended or h + 1 == problem.horizon:
        return CHUNK_DONE
    k = 0
    while k < frame.seen and search.successors[k, h] != successor:
        k += 1
    if k == problem.successors:
        return break_promise(search, TOO_MANY_SUCCESSORS, frame.state, frame.action, h, reward)
    if k == frame.seen:
        frame.seen += 1
        search.successors[k, h] = successor
        search.counts[k, h] = 0
    search.counts[k, h] += 1
    return CHUNK_DONE


class SparseSampling(Planner):
    """Draw C successors of every pair, H steps deep, and average.

    Q_h(s, a) is the mean over C draws of r + gamma V_{h+1}(s'), V the largest Q. Equal successors of
    one pair share one estimate. The largest number of calls is known before the first one.

    Give either `width` (C), or `epsilon` and `delta`, from which C follows by the argument of Lemma 1
    of the MDP-GapE paper with its constants written out: with N = sum_h K^h B^(h-1) pairs, rewards of
    width w and E = w sum_h gamma^(h-1) sigma_(H-h+1),

        C = ceil( 2 log(2 N / delta) (E / epsilon)^2 )

    keeps all root estimates within epsilon / 2 of the truth with probability at least 1 - delta
    (Hoeffding's inequality for every pair), so that the action with the largest is epsilon-optimal in
    the problem of H steps. That takes very many calls for all but the shortest horizons.

    Args:
        gamma: discount in [0, 1].
        horizon: H; by default as for `MDPGapE` if epsilon is given.
        width: draws of each action, C.
        epsilon: how far from optimal the action may be, in the model's reward units.
        delta: probability with which the guarantee may fail.
        chunk: see `Planner`; here in calls.
    """

    name = "sparse-sampling"
    keeps_checkpoints = False
    keeps_tree = False

    def __init__(
        self,
        *,
        gamma: float,
        horizon: int | None = None,
        width: int | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        chunk: int | None = None,
    ) -> None:
        super().__init__(chunk=chunk)
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)
        self.width, self.epsilon, self.delta = width, epsilon, delta
        if width is not None:
            if epsilon is not None or delta is not None:
                raise ValueError("give either width, or epsilon and delta, not both")
            self.width = checks.integer("width", width, least=1)
            if horizon is None:
                raise ValueError("width needs a horizon: SparseSampling(..., horizon=H)")
            return
        if epsilon is None or delta is None:
            raise ValueError("give either width, or epsilon and delta")
        self.epsilon = checks.real("epsilon", epsilon)
        if self.epsilon <= 0.0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")
        self.delta = checks.probability("delta", delta)

    def shape(self, model: Model) -> tuple[int, int]:
        """Width C and depth H in a model.

        Raises:
            ValueError: the model does not say how large it is, or the width is out of reach.
        """
        horizon = self.horizon
        if horizon is None:
            assert self.epsilon is not None
            spread = step_width(model.reward_range, model.may_end)
            horizon = default_horizon(self.epsilon / spread, self.gamma)
        if self.width is not None:
            return self.width, horizon
        assert self.epsilon is not None and self.delta is not None
        k, b = model.max_actions, model.successors
        if k is None or b is None:
            raise ValueError(
                "the width that epsilon and delta need depends on the largest numbers of actions and "
                "of successors: pass max_actions= and successors= to the model, or give a width"
            )
        ranges = value_range(model.reward_range, model.may_end, self.gamma, horizon)
        spans = (ranges["node_upper"] - ranges["node_lower"])[:0:-1]
        total = float((powers(self.gamma, horizon) * spans).sum())
        # log N, N = K (1 + BK + ... + (BK)^(H-1)), without overflow.
        log_pairs = math.log(k) + np.logaddexp.reduce(np.arange(horizon) * math.log(b * k))
        level = math.log(2.0) - math.log(self.delta) + float(log_pairs)
        ratio = total / self.epsilon
        width = 2.0 * level * ratio * ratio
        if not width <= _MOST:
            raise ValueError(
                f"epsilon={self.epsilon} with a horizon of {horizon} would need a width of {width:.3g} "
                "draws; raise epsilon, or give a shorter horizon or a width"
            )
        return math.ceil(width), horizon

    def calls(self, model: Model) -> float:
        """Most calls that a plan in `model` can take: K C (1 + BK + ... + (BK)^(H-1)).

        B is replaced by C if it is larger or not known. More than 2^62 count as infinitely many.
        """
        width, horizon = self.shape(model)
        if model.max_actions is None:
            raise ValueError("the number of calls needs K: pass max_actions= to the model")
        branching = model.max_actions * min(width, model.successors or width)
        calls, at_depth = 0, model.max_actions * width
        if branching == 1:
            return at_depth * horizon
        for _ in range(horizon):
            calls += at_depth
            if calls > _MOST:
                return math.inf
            at_depth *= branching
        return calls

    def check_query(self, query: Query, limits: Limits) -> None:
        _, horizon = self.shape(query.model)
        check_steps(query.model, horizon)
        if query.model.max_actions is None:
            return
        needed = self.calls(query.model)
        if limits.budget is not None and needed > limits.budget:
            raise ValueError(
                f"SparseSampling may take {at_most(needed)} calls here, more than the budget of "
                f"{limits.budget}; give a smaller horizon or width"
            )
        endless = limits.time_limit is None and limits.callback is None
        if needed == math.inf and endless:
            raise ValueError(
                f"SparseSampling may take more than {_MOST} calls here; give a smaller horizon or "
                "width, or pass time_limit="
            )

    def start(self, query: Query, session: Session) -> "_SparseSearch":
        return _SparseSearch(self, query, session)

    def finish(self, query: Query, search: "_SparseSearch", stopped_by: str, seconds: float) -> Plan:
        if stopped_by != "rule" or self.epsilon is None or self.delta is None:
            guarantee = "With a width of the user's choice, nothing is proven."
            if stopped_by != "rule":
                guarantee = "The recursion was not finished, so nothing is known about it."
            return estimates_plan(self, query, search, stopped_by, seconds, guarantee=guarantee)
        model = query.model
        ends = value_range(model.reward_range, model.may_end, self.gamma, search.horizon)[-1]
        lower = np.maximum(search.values - 0.5 * self.epsilon, ends["node_lower"])
        upper = np.minimum(search.values + 0.5 * self.epsilon, ends["node_upper"])
        snapshot = search.standing(search.recommended(), seconds, lower, upper)
        assert snapshot.gap is not None
        return bounded_plan(
            self,
            query,
            search,
            snapshot,
            stopped_by,
            guarantee=(
                f"Action {snapshot.action!r} is within {at_most(max(0.0, snapshot.gap))} of optimal in "
                f"the {search.horizon}-step problem, with probability at least "
                f"{complement(self.delta)}."
            ),
            assumptions=size_assumptions(model),
            values=search.values.copy(),
        )


class _SparseSearch(StepSearch):
    """The recursion's frames; an episode is one call."""

    def __init__(self, planner: SparseSampling, query: Query, session: Session) -> None:
        width, horizon = planner.shape(query.model)
        super().__init__(planner, query, session, horizon=horizon)
        distinct = min(width, self.successors, _FIRST_ROOM)
        self._search = Search(
            problem=self.problem,
            width=width,
            frames=np.zeros(horizon, FRAME),
            depth=np.full(1, -1),
            successors=np.zeros((distinct, horizon), np.int64),
            counts=np.zeros((distinct, horizon), np.int64),
            values=np.full(len(query.actions), np.nan),
            calls=self.calls,
            report=self.reports,
        )

    def kernel_state(self) -> Search:
        return self._search

    @property
    def values(self) -> NDArray[np.float64]:
        return self._search.values

    def reserve(self) -> int:
        """Make room for twice as many distinct successors of a pair."""
        wider = min(2 * len(self._search.counts), int(self.successors))
        self.memory.extend(self._search.successors, wider)
        self.memory.extend(self._search.counts, wider)
        return wider
