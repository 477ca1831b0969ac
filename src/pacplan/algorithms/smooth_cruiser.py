"""SmoothCruiser (Grill, Darwiche Domingues, Ménard, Munos, Valko 2019): a smooth maximum is cheaper."""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_endless, check_gamma_below_one, most_actions
from pacplan.algorithms.common.plans import estimates_plan
from pacplan.algorithms.common.stepwise import StepSearch
from pacplan.algorithms.common.units import units
from pacplan.compiled.jit import inlined
from pacplan.core import checks
from pacplan.core.words import at_most, complement, exactly
from pacplan.engine import steps
from pacplan.engine.calls import CHUNK_DONE, NO_ROOM, RULE, count_actions, draw_counted
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.models.protocol import Model, Session
from pacplan.result import Plan

# A sampleV and the estimateQ that it waits for. sampleV adds up terms along one trajectory, so it is
# a loop; only estimateQ makes the recursion deeper.
FRAME = np.dtype(
    [
        ("accuracy", np.float64),  # of sampleV from here on
        ("total", np.float64),  # its terms so far
        ("discount", np.float64),  # of its next term
        ("state", np.int64),
        ("actions", np.int64),
        ("h", np.int64),  # steps taken to `state`
        ("level", np.float64),  # accuracy of estimateQ
        ("width", np.int64),  # N, draws of every action
        ("draws", np.int64),  # complete rounds over the actions
        ("action", np.int64),  # whose turn it is, or the one that sampleV has chosen
        ("chosen", np.int64),  # whether it has
        ("rest", np.float64),  # F(Q) - Q . grad F(Q), if so
        ("reward", np.float64),  # of the draw whose successor is being valued
    ]
)

RULES = np.dtype(
    [
        ("gamma", np.float64),
        ("root", np.float64),  # square root of gamma
        ("top", np.float64),  # largest value; the accuracy of 0 as an estimate
        ("kappa", np.float64),
        ("temperature", np.float64),
        ("constant", np.float64),  # N(level) = ceil(constant / level^2)
        ("accuracy", np.float64),
        ("offset", np.float64),
        ("slope", np.float64),
        ("ended", np.float64),
    ]
)

_MOST_DRAWS = 2.0**62
# Every frame multiplies the calls by 36 or more, so a recursion of this depth takes infinitely many.
_ENDLESS = 250
_FIRST_FRAMES = 32


class Search(NamedTuple):
    """The recursion as it stands."""

    rules: Any  # one record of RULES
    problem: Any  # one record of PROBLEM
    frames: Any  # records of FRAME
    depth: NDArray[np.int64]  # [the frame being worked on; -1 before the start]
    sums: NDArray[np.float64]  # of the draws of each action of each frame
    calls: NDArray[np.int64]  # by the root's actions
    report: Any  # one record of REPORT


@inlined
def _begin_q(search: Search, at: int, state: int, actions: int, h: int, level: float) -> None:
    """Begin estimateQ in a frame."""
    search.depth[0] = at
    frame = search.frames[at]
    frame.state = state
    frame.actions = actions
    frame.h = h
    frame.level = level
    frame.width = int(min(np.ceil(search.rules[0].constant / (level * level)), _MOST_DRAWS))
    frame.draws = 0
    frame.action = 0
    frame.chosen = 0
    search.sums[at, :actions] = 0.0


@inlined
def _begin_v(search: Search, model: Any, at: int, state: int, h: int) -> int:
    """Begin a term of sampleV: by the estimateQ that it needs. Returns a status."""
    kappa, accuracy = search.rules[0].kappa, search.frames[at].accuracy
    level = accuracy if accuracy >= kappa else np.sqrt(kappa * accuracy)
    actions, status = count_actions(search, model, state, h)
    if status == CHUNK_DONE:
        _begin_q(search, at, state, actions, h, level)
    return int(status)


@inlined
def _add_draw(search: Search, at: int, value: float) -> None:
    """Add a draw to estimateQ; go on to the next action, and after the last one to the next round."""
    frame = search.frames[at]
    search.sums[at, frame.action] += value
    frame.action += 1
    if frame.action == frame.actions:
        frame.action = 0
        frame.draws += 1
    search.depth[0] = at


@inlined
def _return_v(search: Search, at: int) -> None:
    """The value of a sampleV completes a draw of the estimateQ above."""
    value = search.rules[0].gamma * search.frames[at].total
    _add_draw(search, at - 1, search.frames[at - 1].reward + value)


@inlined
def _smooth_max(search: Search, at: int, pick: float) -> tuple[float, float, int]:
    """F(Q) = lambda log sum exp(Q / lambda), Q . grad F(Q), and an action drawn from grad F(Q)."""
    frame, rules = search.frames[at], search.rules[0]
    sums, count = search.sums[at], frame.actions
    top = -np.inf
    for a in range(count):
        sums[a] = min(max(sums[a] / frame.width, 0.0), rules.top)
        top = max(top, sums[a])
    mass = 0.0
    inner = 0.0
    for a in range(count):
        weight = np.exp((sums[a] - top) / rules.temperature)
        mass += weight
        inner += weight * sums[a]
    left = pick * mass
    chosen = 0
    while chosen < count - 1:
        left -= np.exp((sums[chosen] - top) / rules.temperature)
        if left < 0.0:
            break
        chosen += 1
    return top + rules.temperature * np.log(mass), inner / mass, chosen


@steps.make_root.register(Search)
def _make_root(search: Search, model: Any, state: int) -> int:
    if search.depth[0] < 0:
        _begin_q(search, 0, state, search.calls.size, 0, search.rules[0].accuracy)
    return CHUNK_DONE


@steps.compute.register(Search)
def _compute(search: Search, model: Any, ties: Any) -> int:
    """Once there is an estimate of Q, go on with the sampleV that waits for it."""
    at = search.depth[0]
    frame = search.frames[at]
    if frame.draws < frame.width or frame.chosen:
        return steps.CALL
    if at == 0:
        return RULE
    if frame.accuracy < search.rules[0].kappa:
        smooth, inner, action = _smooth_max(search, at, ties.random())
        frame.rest = smooth - inner
        frame.action = action
        frame.chosen = 1
    else:
        smooth, inner, action = _smooth_max(search, at, 0.0)
        frame.total += frame.discount * smooth
        _return_v(search, at)
    return CHUNK_DONE


@steps.call.register(Search)
def _call(search: Search, model: Any, most: int, rng: Any) -> int:
    rules, at = search.rules[0], search.depth[0]
    if at + 1 == search.frames.size:
        return NO_ROOM
    frame, first = search.frames[at], search.frames[0].action
    successor, reward, ended, status = draw_counted(
        search, model, frame.state, frame.action, frame.h, first, rng
    )
    if status != CHUNK_DONE:
        return status
    x = rules.offset + rules.slope * reward
    if frame.chosen:
        return _sample_v(search, model, at, successor, x, ended)
    return _sample_q(search, model, at, successor, x, ended)


@inlined
def _sample_q(search: Search, model: Any, at: int, successor: int, x: float, ended: bool) -> int:
    """A draw of estimateQ: its successor needs its own sampleV, unless 0 is accurate enough."""
    rules, frame, below = search.rules[0], search.frames[at], search.frames[at + 1]
    accuracy = frame.level / rules.root
    if ended or accuracy >= rules.top:
        _add_draw(search, at, x + (rules.gamma * rules.ended if ended else 0.0))
        return CHUNK_DONE
    frame.reward = x
    below.accuracy = accuracy
    below.total = 0.0
    below.discount = 1.0
    return _begin_v(search, model, at + 1, successor, frame.h + 1)


@inlined
def _sample_v(search: Search, model: Any, at: int, successor: int, x: float, ended: bool) -> int:
    """A draw of sampleV's own: add its term, and go on from the successor."""
    rules, frame = search.rules[0], search.frames[at]
    frame.total += frame.discount * (frame.rest + x)
    frame.discount *= rules.gamma
    frame.accuracy /= rules.root
    if ended:
        frame.total += frame.discount * rules.ended
    if ended or frame.accuracy >= rules.top:
        _return_v(search, at)
        return CHUNK_DONE
    return _begin_v(search, model, at, successor, frame.h + 1)


class SmoothCruiser(Planner):
    """Estimates a state's value in the entropy-regularised problem.

    There V(s) = F(Q(s, .)) with F(Q) = lambda log sum_a exp(Q_a / lambda), a smooth maximum, whose
    gradient is the softmax policy. A smooth F can be expanded around a rough estimate of Q, and the
    first-order term sampled with a single action, which makes the number of calls polynomial in
    1/epsilon, whatever the number of successors. With rewards in [0, 1], M = lambda log K and
    kappa = (1 - sqrt(gamma)) lambda / K:

        sampleV(s, e):   0 if e >= (1 + M) / (1 - gamma); F(Q), Q = estimateQ(s, e), if e >= kappa;
                         otherwise with Q = estimateQ(s, sqrt(kappa e)) and an action a drawn from
                         grad F(Q): F(Q) - Q . grad F(Q) + r + gamma sampleV(s', e / sqrt(gamma))
        estimateQ(s, e): for every action, the mean of N(e) draws of r + gamma sampleV(s', e /
                         sqrt(gamma)), clipped to [0, (1 + M) / (1 - gamma)]
        N(e) = 18 (1 + M)^2 / ((1 - gamma)^4 (1 - sqrt(gamma))^2) log(2 K / delta') / e^2

    The paper's theorem says that F(estimateQ(s, epsilon)) is within epsilon of V(s) with probability
    at least 1 - delta if delta' is delta over the number of its estimates. That number is known
    beforehand, so delta' is computed from delta. So is the number of calls, `calls(model)`, which is
    large for all but rough accuracies and small discounts. An episode that ended earns nothing more,
    and no entropy either.

    `plan.value` is the answer, `plan.values` the estimated (regularised) Q, whose largest is the action
    recommended; nothing is claimed about that action.

    Args:
        epsilon: accuracy of the value, in the model's reward units.
        delta: probability with which it may be missed.
        gamma: discount in [0, 1).
        temperature: lambda, in the model's reward units.
        chunk: see `Planner`; here in calls.
    """

    name = "smooth-cruiser"
    keeps_checkpoints = False
    keeps_tree = False

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        gamma: float,
        temperature: float = 0.5,
        chunk: int | None = None,
    ) -> None:
        super().__init__(chunk=chunk)
        self.epsilon = checks.positive("epsilon", epsilon)
        self.delta = checks.probability("delta", delta)
        self.gamma = check_gamma_below_one(gamma)
        self.temperature = checks.positive("temperature", temperature)

    def calls(self, model: Model) -> float:
        """Calls that a plan in `model` takes; fewer only if episodes end. May be infinite."""
        return self._shape(model).calls

    def _shape(self, model: Model) -> "_Shape":
        scale = units(model, self.gamma)
        epsilon, temperature = self.epsilon / scale.width, self.temperature / scale.width
        if 0.0 in (epsilon, temperature):
            raise ValueError(
                f"epsilon={self.epsilon} or temperature={self.temperature} is too small to compute "
                "with beside the width of the rewards"
            )
        return _shape(epsilon, self.delta, self.gamma, temperature, most_actions(self, model))

    def check_query(self, query: Query, limits: Limits) -> None:
        check_endless(query.model)
        shape = self._shape(query.model)
        if not shape.calls < _MOST_DRAWS and limits.budget is None and limits.time_limit is None:
            raise ValueError(
                f"SmoothCruiser would take {shape.calls:.3g} calls here; raise epsilon, or pass "
                "budget= or time_limit="
            )

    def start(self, query: Query, session: Session) -> "_SmoothSearch":
        return _SmoothSearch(self, query, session)

    def finish(self, query: Query, search: "_SmoothSearch", stopped_by: str, seconds: float) -> Plan:
        value = search.smooth_value()
        guarantee = "The recursion was not finished, so nothing is known about its value."
        if stopped_by == "rule":
            guarantee = (
                f"The state's value in the problem regularised by the entropy at temperature "
                f"{exactly(self.temperature)} is within {at_most(self.epsilon)} of {exactly(value)}, "
                f"with probability at least {complement(self.delta)} (Grill et al. 2019)."
            )
        return estimates_plan(
            self, query, search, stopped_by, seconds, guarantee=guarantee, value=value
        )


class _Shape(NamedTuple):
    top: float
    kappa: float
    constant: float
    calls: float


@cache
def _shape(epsilon: float, delta: float, gamma: float, temperature: float, actions: int) -> _Shape:
    """What follows from the settings for rewards in [0, 1]."""
    entropy = temperature * math.log(actions)
    root = math.sqrt(gamma)
    # 1 - sqrt(gamma), even if the root is rounded to 1.
    rest = -math.expm1(0.5 * math.log(gamma)) if gamma > 0.0 else 1.0
    top = (1.0 + entropy) / (1.0 - gamma)
    kappa = rest * temperature / actions
    scale = (1.0 + entropy) / ((1.0 - gamma) * (1.0 - gamma) * rest)
    factor = 18.0 * scale * scale

    def below(accuracy: float) -> float:
        return accuracy / root if root > 0.0 else math.inf

    def sizes(log_share: float) -> tuple[float, float]:
        """Calls, and estimates of Q, of the whole recursion, if log(1/delta') is this."""
        constant = factor * (math.log(2.0 * actions) + log_share)

        @cache
        def of_q(level: float) -> tuple[float, float]:
            draws = actions * float(np.ceil(constant / level / level))
            calls, estimates = of_v(below(level))
            return draws * (1.0 + calls), 1.0 + draws * estimates

        @cache
        def of_v(accuracy: float) -> tuple[float, float]:
            if accuracy >= top:
                return 0.0, 0.0
            if accuracy >= kappa:
                return of_q(accuracy)
            calls, estimates = of_q(math.sqrt(kappa * accuracy))
            more_calls, more_estimates = of_v(below(accuracy))
            return calls + 1.0 + more_calls, estimates + more_estimates

        return of_q(epsilon)

    frames = 2
    accuracy = epsilon
    while accuracy < top and frames < _ENDLESS:
        accuracy = below(accuracy)
        frames += 1
    log_share = -math.log(delta)
    calls = math.inf
    while frames < _ENDLESS:
        # The more estimates there are, the smaller is each one's share of delta, and the more calls it
        # takes. The shares decrease to a fixed point, which the last step makes sure of.
        calls, estimates = sizes(log_share)
        if not math.isfinite(calls):
            break
        needed = math.log(estimates) - math.log(delta)
        if needed <= log_share:
            break
        log_share = needed + 1e-3
    return _Shape(top, kappa, factor * (math.log(2.0 * actions) + log_share), calls)


class _SmoothSearch(StepSearch):
    """The recursion's frames; an episode is one call."""

    def __init__(self, planner: SmoothCruiser, query: Query, session: Session) -> None:
        super().__init__(planner, query, session)
        shape = planner._shape(query.model)
        self._units = scale = units(query.model, planner.gamma)
        self._temperature = planner.temperature / scale.width
        self._top = shape.top
        settings = (self._temperature, shape.constant, planner.epsilon / scale.width)
        scaling = (scale.offset, scale.slope, scale.ended)
        root = math.sqrt(planner.gamma)
        rules = (planner.gamma, root, shape.top, shape.kappa, *settings, *scaling)
        most = max(most_actions(planner, query.model), len(query.actions))
        self._frames = np.zeros(_FIRST_FRAMES, FRAME)
        self._sums = np.zeros((_FIRST_FRAMES, most))
        self._fixed = {
            "rules": np.array([rules], RULES),
            "problem": self.problem,
            "depth": np.full(1, -1),
            "calls": self.calls,
            "report": self.reports,
        }

    def kernel_state(self) -> Search:
        return Search(frames=self._frames, sums=self._sums, **self._fixed)

    def reserve(self) -> int:
        """Make room for a recursion of twice the depth."""
        more, most = self._sums.shape
        # Nothing else refers to these arrays while a search runs, so moving them is safe.
        self._frames.resize(2 * more, refcheck=False)
        self._sums.resize((2 * more, most), refcheck=False)
        return more

    def _scaled(self) -> NDArray[np.float64]:
        """Means of the draws of the root's actions so far, NaN if there are none."""
        count = len(self.actions)
        frame = self._frames[0]
        draws = int(frame["draws"]) + (np.arange(count) < int(frame["action"]))
        means = np.full(count, np.nan)
        np.divide(self._sums[0, :count], draws, out=means, where=draws > 0)
        return np.asarray(np.clip(means, 0.0, self._top))

    @property
    def values(self) -> NDArray[np.float64]:
        """The same in the user's units."""
        return self._units.low * self._units.rest + self._units.width * self._scaled()

    def smooth_value(self) -> float:
        """F of the estimates of the root's actions so far; NaN while there are none."""
        means = self._scaled()
        means = means[~np.isnan(means)]
        if len(means) == 0:
            return math.nan
        scaled = self._temperature * float(np.logaddexp.reduce(means / self._temperature))
        return self._units.value(scaled)
