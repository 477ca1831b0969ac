"""TrailBlazer (Grill, Valko, Munos 2016): a value, with few calls off the nearly optimal paths."""

import math
from functools import lru_cache

import numpy as np

from pacplan.algorithms.common.horizons import most_actions
from pacplan.algorithms.common.plans import best_estimate
from pacplan.algorithms.common.recursion import Node, Pair, Recursion, RecursivePlanner, RecursiveSearch
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.engine.values import step_width
from pacplan.models.protocol import Model, Session

# More samples than this cannot be counted.
_MOST_SAMPLES = 2.0**61
# Rounds between two comparisons, as a part of those before.
_GROWTH = 0.02


def _root(level: float, stage: int) -> float:
    return math.sqrt(max(level + math.log(stage), 0.0) / stage)


@lru_cache(1024)
def _first_below(limit: float, level: float) -> int:
    """The smallest l with sqrt( (level + log l) / l ) < limit."""
    low, high = 0, 1
    while _root(level, high) >= limit and high < _MOST_SAMPLES:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _root(level, middle) >= limit else (low, middle)
    return high


class TrailBlazer(RecursivePlanner):
    """Estimates the optimal value of a state, with few calls off the nearly optimal paths.

    Two kinds of nodes call each other with a number of samples m and an accuracy. An AVG node (a state
    and an action) returns 0 if the accuracy is 1/(1 - gamma) or more; otherwise the mean reward plus
    gamma times the mean of its first m sampled successors' values, each distinct one called with its
    multiplicity and accuracy / gamma. A MAX node (a state) compares its actions in rounds l = 1, 2, ...

        U = 2/(1-gamma) sqrt( (log(K l / (delta accuracy)) + gamma/(eta-gamma) + lambda + 1) / l )

    calls each candidate with (l, U eta / (1 - eta)), drops those more than 4 U / (1 - eta) below the
    best, until U < (1 - eta) accuracy, and returns the best estimate; or, once a single candidate is
    left, that one's value, called with (m, eta accuracy). Here eta = gamma^(1 / max(2, log 1/epsilon)),

        lambda = 2 (log(epsilon (1-gamma)))^2 log( log(K) / (1-eta) ) / log(eta / gamma)

    (not below 0), and the root is called with m = (log(1/delta) + lambda) / ((1-gamma)^2 epsilon^2) and
    epsilon / 2. Rewards are scaled to [0, 1]. The intervals hold for all l at once, so it takes only
    some of the rounds that can drop an action, 2 % apart.

    By the paper's Theorem 1 the value, `plan.value`, is within epsilon with probability at least
    1 - delta. Nothing is claimed about the action recommended, the one with the largest estimate.
    Expect an answer for rough accuracies and small discounts only.

    Args:
        epsilon: accuracy of the value, in the model's reward units.
        delta: probability with which it may be missed.
        gamma: discount in (0, 1).
    """

    name = "trailblazer"
    reference = "Grill, Valko, Munos 2016"

    def constants(self, model: Model) -> tuple[float, float, int]:
        """Eta, log(K / delta) + gamma / (eta - gamma) + lambda + 1, and the root's m."""
        gamma, rest, count = self.gamma, 1.0 / (1.0 - self.gamma), most_actions(self, model)
        epsilon = self.epsilon / step_width(model.reward_range, model.may_end)
        eta = gamma ** (1.0 / max(2.0, -math.log(epsilon))) if epsilon > 0.0 else 1.0
        if not gamma < eta < 1.0:
            raise ValueError(
                f"TrailBlazer cannot compute with gamma={gamma} and epsilon={self.epsilon}: its eta "
                "must lie between gamma and 1; give a gamma above 0, a smaller one or a larger epsilon"
            )
        extra = 0.0  # lambda
        if count > 1:
            distance = math.log(epsilon) - math.log(rest)
            extra = 2.0 * distance * distance / math.log(eta / gamma)
            extra *= max(0.0, math.log(math.log(count) / (1.0 - eta)))
        level = math.log(count) - math.log(self.delta) + gamma / (eta - gamma) + extra + 1.0
        # Rounds of fewer samples have no effect: U eta / (1 - eta) is not below 1/(1 - gamma).
        spread = 2.0 * eta / (1.0 - eta)
        least = (level + math.log(_MOST_SAMPLES) - math.log(0.5 * epsilon)) * spread * spread
        if count > 1 and least > _MOST_SAMPLES:
            raise ValueError(
                f"TrailBlazer with gamma={gamma} and epsilon={self.epsilon} would need {least:.3g} "
                "samples of every action before it looks further ahead; give a smaller gamma"
            )
        ratio = rest / epsilon
        samples = (extra - math.log(self.delta)) * ratio * ratio
        return eta, level, max(1, math.ceil(min(samples, 2.0**62)))

    def check_query(self, query: Query, limits: Limits) -> None:
        super().check_query(query, limits)
        self.constants(query.model)

    def start(self, query: Query, session: Session) -> "_TrailSearch":
        return _TrailSearch(self, query, session)


class _TrailSearch(RecursiveSearch):
    """The recursion."""

    def __init__(self, planner: TrailBlazer, query: Query, session: Session) -> None:
        super().__init__(planner, query, session)
        self.values = np.full(len(query.actions), np.nan)  # so far
        self._gamma, self._epsilon = planner.gamma, planner.epsilon / self.width
        self._eta, self._level, self._samples = planner.constants(query.model)
        self.root = Node(self.root_state, 0, len(query.actions))
        self._candidates = self.root.pairs
        self._answer = math.nan

    def recurse(self) -> Recursion:
        self._answer = yield self._max(self.root, self._samples, 0.5 * self._epsilon)

    def _max(self, node: Node, samples: int, accuracy: float) -> Recursion:
        """A MAX node."""
        is_root, level = node is self.root, self._level - math.log(accuracy)
        last = self._first_round((1.0 - self._eta) * accuracy, level)
        if not is_root and self._compare(level, last)[1] >= self.rest:
            return 0.0  # Its AVG nodes return 0 even in the last round.
        self.horizon = max(self.horizon, node.h + 1)
        candidates, best, stage = node.pairs, math.nan, 0
        while len(candidates) > 1:
            if stage == last:
                return best
            stage = self._next_round(stage, last, level, is_root)
            values, (spread, below) = [], self._compare(level, stage)
            if below < self.rest:
                yield self.draw(candidates, stage)
            for pair in candidates:
                values.append((yield self._avg(pair, stage, below)))
            best = max(values)
            least = best - 4.0 * spread / (1.0 - self._eta)
            candidates = [p for p, v in zip(candidates, values, strict=True) if v >= least]
            if is_root:
                self._candidates = candidates
        return (yield self._avg(candidates[0], samples, self._eta * accuracy))

    def _avg(self, pair: Pair, samples: int, accuracy: float) -> Recursion:
        """An AVG node."""
        if accuracy >= self.rest:
            return 0.0
        yield self.draw([pair], samples)
        total, left = 0.0, samples
        for _, child, count in pair.visits(samples):
            left -= count
            total += count * (yield self._max(child, count, accuracy / self._gamma))
        total += left * self.ended
        mean = self.scaled(pair.earned[len(pair)] / len(pair))
        value = float(mean) + self._gamma * total / samples
        if pair.node is self.root:
            self.values[pair.action] = self.in_units(value)
        return value

    def _compare(self, level: float, stage: int) -> tuple[float, float]:
        """U of a round, and the accuracy with which its candidates are called."""
        spread = 2.0 * self.rest * _root(level, stage)
        return spread, spread * self._eta / (1.0 - self._eta)

    def _first_round(self, limit: float, level: float) -> int:
        """The first round with U < limit."""
        return _first_below(limit / (2.0 * self.rest), level)

    def _next_round(self, stage: int, last: int, level: float, is_root: bool) -> int:
        """The next round to compare in, at most the last.

        Estimates lie in [0, 1/(1-gamma)], and a candidate is dropped if it is 4 U / (1 - eta) below the
        best: none is in earlier rounds than the first here. But the root's rounds double until then, so
        that there are estimates to show.
        """
        first = self._first_round(0.25 * (1.0 - self._eta) * self.rest, level)
        if stage < first:
            return min(first, last, 2 * stage + 1 if is_root else first)
        return min(last, stage + max(1, int(_GROWTH * stage)))

    def recommended(self) -> int:
        """Index of the largest estimate among the candidates."""
        scores = np.full(len(self.actions), -np.inf)
        for pair in self._candidates:
            scores[pair.action] = self.values[pair.action]
        return best_estimate(scores, self.order)

    def value(self) -> float:
        """The answer, or the largest estimate while there is none, in the user's units."""
        if math.isnan(self._answer):
            return float(self.values[self.recommended()])
        return float(self.in_units(self._answer))
