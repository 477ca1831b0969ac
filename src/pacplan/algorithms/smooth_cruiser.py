"""SmoothCruiser (Grill, Darwiche Domingues, Ménard, Munos, Valko 2019): a smooth maximum is cheaper."""

import math
import sys
from functools import cache
from typing import Any

import numpy as np

from pacplan.algorithms.common.horizons import most_actions
from pacplan.algorithms.common.recursion import (
    BLOCK,
    END,
    Draws,
    Recursion,
    RecursivePlanner,
    RecursiveSearch,
)
from pacplan.core import checks
from pacplan.core.words import exactly
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.engine.values import step_width
from pacplan.models.protocol import Model, Session

_MOST_DRAWS = 2.0**62
# Every frame multiplies the calls by 36 or more, so a recursion of this depth takes infinitely many.
_ENDLESS = 250


class SmoothCruiser(RecursivePlanner):
    """Estimates a state's value in the entropy-regularised problem.

    There V(s) = F(Q(s, .)) with F(Q) = lambda log sum_a exp(Q_a / lambda), a smooth maximum. It can be
    expanded around a rough estimate of Q, and the first-order term sampled with a single action, which
    makes the number of calls polynomial in 1/epsilon, whatever the number of successors. With rewards
    in [0, 1], M = lambda log K and kappa = (1 - sqrt(gamma)) lambda / K:

        sampleV(s, e):   0 if e >= (1 + M) / (1 - gamma); F(Q), Q = estimateQ(s, e), if e >= kappa;
                         otherwise with Q = estimateQ(s, sqrt(kappa e)) and an action a drawn from
                         grad F(Q): F(Q) - Q . grad F(Q) + r + gamma sampleV(s', e / sqrt(gamma))
        estimateQ(s, e): for every action, the mean of N(e) draws of r + gamma sampleV(s', e /
                         sqrt(gamma)), clipped to [0, (1 + M) / (1 - gamma)]
        N(e) = 18 (1 + M)^2 / ((1 - gamma)^4 (1 - sqrt(gamma))^2) log(2 K / delta') / e^2

    By the paper's theorem F(estimateQ(s, epsilon)), `plan.value`, is within epsilon of V(s) with
    probability at least 1 - delta if delta' is delta over the number of its estimates. That number, and
    that of the calls, `calls(model)`, are known beforehand; they are large for all but rough accuracies
    and small discounts. An episode that ended earns nothing more, and no entropy either.
    `plan.values` are the estimated (regularised) Q; nothing is claimed about the action recommended.

    Args:
        epsilon: accuracy of the value, in the model's reward units.
        delta: probability with which it may be missed.
        gamma: discount in (0, 1).
        temperature: lambda, in the model's reward units.
    """

    name = "smooth-cruiser"
    reference = "Grill et al. 2019"

    def __init__(self, *, epsilon: float, delta: float, gamma: float, temperature: float = 0.5) -> None:
        super().__init__(epsilon=epsilon, delta=delta, gamma=gamma)
        self.temperature = checks.positive("temperature", temperature)
        said = exactly(self.temperature)
        self.estimated = f"The state's value, regularised by the entropy at temperature {said},"

    def calls(self, model: Model) -> float:
        """Calls that a plan in `model` takes; fewer only if episodes end. May be infinite."""
        return self._shape(model)[-1]

    def _shape(self, model: Model) -> tuple[float, float, float, float]:
        width = step_width(model.reward_range, model.may_end)
        epsilon, temperature = self.epsilon / width, self.temperature / width
        if 0.0 in (epsilon, temperature):
            small = f"epsilon={self.epsilon} or temperature={self.temperature} is too small"
            raise ValueError(f"{small} to compute with beside the width of the rewards")
        return _shape(epsilon, self.delta, self.gamma, temperature, most_actions(self, model))

    def check_query(self, query: Query, limits: Limits) -> None:
        super().check_query(query, limits)
        calls = self.calls(query.model)
        if not calls < _MOST_DRAWS and limits.budget is None and limits.time_limit is None:
            says = f"SmoothCruiser would take {calls:.3g} calls here"
            raise ValueError(f"{says}; raise epsilon, or pass budget= or time_limit=")

    def start(self, query: Query, session: Session) -> "_SmoothSearch":
        return _SmoothSearch(self, query, session)


@cache
def _shape(
    epsilon: float, delta: float, gamma: float, temperature: float, actions: int
) -> tuple[float, float, float, float]:
    """(1 + M) / (1 - gamma), kappa, N(e) e^2 and the calls, for rewards in [0, 1]."""
    entropy = temperature * math.log(actions)
    root = math.sqrt(gamma)
    rest = -math.expm1(0.5 * math.log(gamma))  # 1 - sqrt(gamma), even if the root is rounded to 1
    top = (1.0 + entropy) / (1.0 - gamma)
    kappa = rest * temperature / actions
    scale = (1.0 + entropy) / ((1.0 - gamma) * (1.0 - gamma) * rest)
    factor = 18.0 * scale * scale

    def sizes(log_share: float) -> tuple[float, float]:
        """Calls, and estimates of Q, of the whole recursion, if log(1/delta') is this."""
        constant = factor * (math.log(2.0 * actions) + log_share)

        @cache
        def of_q(level: float) -> tuple[float, float]:
            draws = actions * float(np.ceil(constant / level / level))
            calls, estimates = of_v(level / root)
            return draws * (1.0 + calls), 1.0 + draws * estimates

        @cache
        def of_v(accuracy: float) -> tuple[float, float]:
            if accuracy >= top:
                return 0.0, 0.0
            if accuracy >= kappa:
                return of_q(accuracy)
            calls, estimates = of_q(math.sqrt(kappa * accuracy))
            more_calls, more_estimates = of_v(accuracy / root)
            return calls + 1.0 + more_calls, estimates + more_estimates

        return of_q(epsilon)

    log_share, calls = -math.log(delta), math.inf
    # A recursion of more than so many levels takes infinitely many calls.
    finite = math.log(top) - math.log(epsilon) < -_ENDLESS * math.log(root)
    while finite:
        # The more estimates there are, the smaller is each one's share of delta, and the more calls it
        # takes. The shares decrease to a fixed point, which the last step makes sure of.
        calls, estimates = sizes(log_share)
        needed = math.log(estimates) - math.log(delta)
        if not math.isfinite(calls) or needed <= log_share:
            break
        log_share = needed + 1e-3
    return top, kappa, factor * (math.log(2.0 * actions) + log_share), calls


class _SmoothSearch(RecursiveSearch):
    """The recursion."""

    def __init__(self, planner: SmoothCruiser, query: Query, session: Session) -> None:
        super().__init__(planner, query, session)
        # Of the root's actions so far, scaled and in the user's units.
        self._means, self.values = np.full((2, len(query.actions)), np.nan)
        self._gamma, self._root = planner.gamma, math.sqrt(planner.gamma)
        self._epsilon, self._temperature = (
            planner.epsilon / self.width,
            planner.temperature / self.width,
        )
        self._top, self._kappa, self._constant, _ = planner._shape(query.model)

    def recurse(self) -> Recursion:
        yield self._estimate_q(self.root_state, len(self.actions), 0, None, self._epsilon)

    def _estimate_q(
        self, state: int, actions: int, h: int, first: int | None, accuracy: float
    ) -> Recursion:
        """estimateQ: the means of N draws of every action, one by one if each needs a sampleV."""
        level = max(accuracy, sys.float_info.min)  # An accuracy may underflow.
        wanted = max(1, math.ceil(min(self._constant / level / level, _MOST_DRAWS)))
        below = accuracy / self._root
        leaf = below >= self._top
        sums, draws = np.zeros(actions), 0
        while draws < wanted:
            # The root's estimates are there from the beginning.
            more = max(1, draws) if first is None else BLOCK
            more = min(wanted - draws, more, BLOCK) if leaf else 1
            draws += more
            for a in range(actions):
                of = a if first is None else first
                successors, rewards, offered = yield Draws([state], [a], more, h, of, offered=not leaf)
                ends = np.count_nonzero(successors == END)
                sums[a] += self.scaled(rewards).sum() + self._gamma * ends * self.ended
                if not leaf and not ends:
                    child, count = int(successors[0, 0]), int(offered[0, 0])
                    value = yield self._sample_v(child, count, h + 1, of, below)
                    sums[a] += self._gamma * value
                if first is None:
                    self._means[a] = np.clip(sums[a] / draws, 0.0, self._top)
                    self.values[a] = self.in_units(self._means[a])
        return np.clip(sums / wanted, 0.0, self._top)

    def _sample_v(self, state: int, actions: int, h: int, first: int, accuracy: float) -> Recursion:
        """sampleV, whose terms along a trajectory are added up from the first to the last."""
        total, discount = 0.0, 1.0
        while accuracy < self._top:
            level = accuracy if accuracy >= self._kappa else math.sqrt(self._kappa * accuracy)
            q = yield self._estimate_q(state, actions, h, first, level)
            smooth, policy = self._smooth_max(q)
            if accuracy >= self._kappa:
                return total + discount * smooth
            action = int(np.searchsorted(np.cumsum(policy)[:-1], self.ties.random(), side="right"))
            successors, rewards, offered = yield Draws([state], [action], 1, h, first)
            x = self.scaled(float(rewards[0, 0]))
            total += discount * (smooth - float(policy @ q) + x)
            discount *= self._gamma
            accuracy /= self._root
            state, actions, h = int(successors[0, 0]), int(offered[0, 0]), h + 1
            if state == END:
                return total + discount * self.ended
        return total

    def _smooth_max(self, q: Any) -> tuple[float, Any]:
        """F(Q) = lambda log sum exp(Q / lambda), and its gradient."""
        weights = np.exp((q - q.max()) / self._temperature)
        mass = weights.sum()
        return float(q.max() + self._temperature * np.log(mass)), weights / mass

    def value(self) -> float:
        """F of the estimates of the root's actions so far, in the user's units; NaN: there are none."""
        means = self._means[~np.isnan(self._means)]
        return float(self.in_units(self._smooth_max(means)[0])) if len(means) else math.nan
