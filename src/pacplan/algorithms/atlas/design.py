"""The design of a round: functions a little above the values, and a little below them.

Every pair has a margin m. F solves the estimated model with margins added to its rewards, f values our
policy there with margins taken off. So one step lifts F nowhere, and lowers f nowhere, by m to spare:
these are the claims. The wider the margins, the fewer calls the claims take, and the wider the gap at
the root, to which a margin contributes by how often its pair is visited. With a reference state z there
are two more functions, which count from z on (docs/atlas.md).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pacplan.algorithms.atlas.chart import NONE
from pacplan.algorithms.atlas.claims import Claims, Functions, claims_of, needs
from pacplan.algorithms.atlas.estimate import Estimate, Numbers, Values
from pacplan.algorithms.atlas.solver import Solver

# How much an action that is nearly as good counts as if it were taken.
_NEARLY = 0.3
# Visits that every pair counts for, in parts of the average.
FLOORS = (0.03, 0.3)
# States that are tried as references: visited this often at least.
_REFERENCES, _OFTEN = 3, 0.5
# Parts of the accuracy that episodes may miss, and where they end that went badly: so many standard
# deviations below the average.
_SHARES, _BARRIER = (0.15, 0.3, 0.5), 6.0
# Terms that an episode adds up, for rounding.
_SUMMED = 1e3
# The smallest margin, in parts of equal ones.
_NARROWEST = 0.01
# Margins that rounding makes worthless, in parts of the range of values.
_TOO_NARROW = 1e-8
# How close the gap of a design is to the accuracy, and how many designs are tried for that.
_CLOSE, _TRIES = 0.03, 8


class Kind(NamedTuple):
    """What designs differ in.

    Attributes:
        reference: the reference state; None: there is none.
        floor: visits that every pair counts for, in parts of the average.
        share: the part of the accuracy that episodes of the policy may miss, instead of claims about it;
            0: there are no episodes.
    """

    reference: int | None
    floor: float
    share: float


@dataclass(frozen=True)
class Walk:
    """Episodes of the policy that are to earn a value, or little less.

    Attributes:
        function: the values that it is compared with, by their number among the functions.
        short: by how much it may miss them on average.
        variance: of an episode, as estimated.
        steps: of an episode, likewise.
        barrier: where episodes end that went badly.
        worst: the least that an episode can earn beyond the values.
        need: episodes that the bet needs on average.
    """

    function: int
    short: float
    variance: float
    steps: float
    barrier: float
    worst: float
    need: float


@dataclass(frozen=True)
class Problem:
    """What is asked.

    Attributes:
        gamma: discount.
        horizon: steps; None: infinitely many.
        by_value: whether the state's value is asked for, not an action.
        rewards: their range.
        may_end: whether episodes may end.
        top: what a state that was never seen is worth at most, by steps taken.
        bottom: what it is worth at least.
    """

    gamma: float
    horizon: int | None
    by_value: bool
    rewards: tuple[float, float]
    may_end: bool
    top: Values
    bottom: Values

    @property
    def steps(self) -> range:
        """The steps that functions are claimed for."""
        return range(self.horizon or 1)

    def after(self, h: int) -> int:
        """The step after a step."""
        return 0 if self.horizon is None else h + 1


@dataclass(frozen=True)
class Design:
    """A round before it begins.

    Attributes:
        claims: what is to be accepted.
        functions: that the claims are about.
        need: calls that this takes, by pair.
        learn: variance over squared margin, by pair, the largest of its claims.
        policy: the pair that is taken, [step, state]; -1 outside.
        best: index of our action.
        losses: of each action, how much better than ours it can be at most.
        highest: bounds on the values of the actions.
        lower: bound on the value of our policy.
        walk: the episodes to play; None: there are none.
        kind: what it differs in from others.
    """

    claims: Claims
    functions: Functions
    need: Values
    learn: Values
    policy: Numbers
    best: int
    losses: Values
    highest: Values
    lower: float
    walk: Walk | None
    kind: Kind

    @property
    def cost(self) -> float:
        """Calls that it seems to take."""
        return float(self.need.sum()) + (self.walk.need * self.walk.steps if self.walk else 0.0)


@dataclass(frozen=True)
class _Bounds:
    """Functions for some margins: columns are the end and the states."""

    above: Values  # [step, column]; so are the others
    below: Values
    high: Values  # of each pair of the root, after its step
    low: float  # of ours
    gap: float
    over: Values | None = None  # F', with a reference state
    under: Values | None = None
    gain: float = 0.0  # kappa+
    loss: float = 0.0  # kappa-
    short: float = 0.0  # by how much episodes may miss `below`; 0: there are none


class Designer:
    """Designs rounds for one estimate.

    Args:
        problem: what is asked.
        found: the estimate.
        caps: bounds on the values of states, above and below, [step, state].
        closed: whether there are no states but those charted.
        chosen: the root's action, if that is decided.
    """

    def __init__(
        self, problem: Problem, found: Estimate, caps: tuple[Values, Values], closed: bool
    ) -> None:
        self.problem, self.found, self.closed = problem, found, closed
        self._ceiling, self._ground = caps
        self._root = np.flatnonzero(found.state == 0)
        self._solver, self._reward = Solver(found, problem.gamma), found.mean(found.reward)
        self._out, steps = ~found.inside, len(problem.steps)
        self.values = np.zeros((steps + (problem.horizon is not None), found.states))
        self.policy = np.tile(self._solver.begins, (steps, 1))
        self.worth = np.zeros((steps, len(found.state)))
        self._solve(self._reward, self.values, self.policy)
        for h in problem.steps:
            self.worth[h] = self._solver.worth(self._reward, self.values[problem.after(h)])
        self.best = int(self.policy[0, 0] - self._root[0])
        self._lag = np.maximum(self.values[:steps, found.state] - self.worth, 0.0)  # behind the best
        every = np.arange(len(found.state))
        after = _columns(self.values[problem.after(0)])
        _, self._variance = found.moments(after, problem.gamma, every)
        self._risk = self._worst_case()
        self._widest = float((problem.top - problem.bottom).max())

    def _solve(self, reward: Values, values: Values, policy: Numbers) -> None:
        """Write the optimal values of the states inside, and a policy that has them."""
        problem, solver, inside = self.problem, self._solver, ~self._out
        if problem.horizon is None:
            policy[0] = solver.optimal(reward, values[0], policy[0], self._out)
            return
        for h in reversed(problem.steps):
            worth = solver.worth(reward, values[h + 1])
            policy[h] = solver.greedy(worth)
            values[h, inside] = worth[policy[h, inside]]

    def _worst_case(self) -> Values:
        """How far the worst outcome of a pair is from its mean."""
        problem, found = self.problem, self.found
        after = self.values[problem.after(0)][found.inside]
        high, low = float(after.max(initial=-np.inf)), float(after.min(initial=np.inf))
        if not self.closed:
            high, low = problem.top[problem.after(0)], problem.bottom[problem.after(0)]
        if problem.may_end:
            high, low = max(high, 0.0), min(low, 0.0)
        mean = self.worth[0]
        risk = problem.rewards[1] + problem.gamma * high - mean
        ours = np.isin(np.arange(len(mean)), self.policy)
        below = mean - problem.rewards[0] - problem.gamma * low
        return np.maximum(np.where(ours, np.maximum(risk, below), risk), 1e-12)

    def best_design(self, accuracy: float, evidence: float, kind: Kind | None = None) -> Design | None:
        """The design that proves an accuracy and seems to take the fewest calls; None: none does."""
        kinds = self._kinds() if kind is None else [kind]
        found = (self._design(accuracy, evidence, each) for each in kinds)
        return min(
            (design for design in found if design is not None),
            key=lambda design: design.cost,
            default=None,
        )

    def _kinds(self) -> Iterator[Kind]:
        """Reference states and floors that are worth trying."""
        references: list[int | None] = [None]
        if self.problem.horizon is None and not self.problem.by_value:
            visits = self._visits(self._mixed(np.full(len(self.found.state), 1e-9)), 0)
            often = np.argsort(-visits)[:_REFERENCES]
            references += [int(s) for s in often if visits[s] > _OFTEN and self.found.inside[s]]
        for floor in FLOORS:
            yield from (Kind(z, floor, 0.0) for z in references)
            yield from (Kind(None, floor, share) for share in _SHARES)

    # -- margins ---------------------------------------------------------------------------------

    def _design(self, accuracy: float, evidence: float, kind: Kind) -> Design | None:
        """A design whose margins take the fewest calls for an accuracy."""
        reference, floor, share = kind
        target = 2.0 * accuracy if self.problem.by_value else accuracy
        # Without margins, the gap is not 0, but below it by how far our action is ahead.
        others = np.delete(self.worth[0, self._root], self.best)
        ahead = 0.0
        if not self.problem.by_value:
            ahead = float(self.worth[0, self._root[self.best]] - others.max(initial=-np.inf))
        even = 0.5 * (target + ahead) * (1.0 - self.problem.gamma)
        if self.problem.horizon is not None:
            even = 0.5 * (target + ahead) / self.problem.horizon
        if even <= _TOO_NARROW * self._widest:
            return None
        weight = self._weights(np.full(len(self.found.state), even), kind)
        worth = 4.0 * self._variance / even**3 + self._risk / even**2
        price, before = (
            math.log(float(np.median((worth / weight)[self.found.pairs]))),
            (math.nan, math.nan),
        )
        for _ in range(_TRIES):
            margins = self._margins(weight, math.exp(price), even)
            bounds = self._bounds(margins, kind, target)
            off = math.log(max(bounds.gap + ahead, 1e-300) / (target + ahead))
            if -_CLOSE <= off <= 0.0:
                break
            slope = (off - before[1]) / (price - before[0])
            slope = slope if -0.6 <= slope <= -0.1 else -0.4  # margins go by a power of the price
            before = price, off
            price -= (off + 0.5 * _CLOSE) / slope
        if off > 0.0:
            bounds = self._bounds(margins * math.exp(-off) * (1.0 - _CLOSE), kind, target)
            if bounds.gap > target:
                return None
        return self._claimed(bounds, evidence, kind, accuracy)

    def _margins(self, weight: Values, price: float, even: float) -> Values:
        """Margins m that minimise the sum of 2 v / m^2 + R / m + price weight m.

        None is much smaller than if they were all the same, `even`: so every round ends.
        """
        slope = np.maximum(price * weight, 1e-100)
        v, risk = self._variance, self._risk
        m = np.maximum(np.sqrt(risk / slope), np.cbrt(4.0 * v / slope))
        # Newton's method from the left of a convex, decreasing function.
        for _ in range(4):
            excess = 4.0 * v / m**3 + risk / m**2 - slope
            m += excess / (12.0 * v / m**4 + 2.0 * risk / m**3)
        return np.clip(m, _NARROWEST * even, self._widest)

    def _weights(self, margins: Values, kind: Kind) -> Values:
        """How much the gap at the root grows with the margin of each pair."""
        reference, floor, _ = kind
        found, solver = self.found, self._solver
        taken = self._mixed(margins)
        visits = self._visits(taken, 0, reference)
        if reference is not None:
            starts = np.asarray(solver.transitions[self._root].mean(0)).ravel()
            visits += solver.visits(taken[0], starts, reference)
            visits[reference] = reference == 0  # the margins of the root's pairs count once more
            visits += visits.sum() * (1.0 - self.problem.gamma) * self._visits(taken, reference)
        return (visits + floor * visits.sum() / found.inside.sum())[found.state]

    def _mixed(self, margins: Values) -> Values:
        """The parts of visits in which pairs are taken, [step, pair]: others than ours a little."""
        state, states = self.found.state, self.found.states
        part = _NEARLY * (margins / (margins + self._lag)) ** 2
        part /= np.bincount(state, minlength=states)[state]
        for row, ours in zip(part, self.policy, strict=True):
            row[ours] = 0.0
            row[ours] = 1.0 - np.bincount(state, row, minlength=states)
        part[:, self._out[state]] = 0.0
        return part

    def _visits(self, taken: Values, start: int, ends_at: int | None = None) -> Values:
        """Discounted visits of each state from one on, until a state is reached again."""
        now = np.zeros(self.found.states)
        now[start] = 1.0
        if self.problem.horizon is None:
            return self._solver.visits(taken[0], now, ends_at)
        total = np.zeros(self.found.states)
        for row in taken:
            total += now
            now = self._solver.next_visits(row, now)
        return total

    # -- functions -------------------------------------------------------------------------------

    def _bounds(self, margins: Values, kind: Kind, target: float) -> _Bounds:
        """The functions for some margins, and the gap at the root that follows."""
        reference = kind.reference
        problem, solver, out = self.problem, self._solver, self._out
        steps = len(problem.steps)
        above, below = self.values.copy(), self.values.copy()
        above[:steps, out], below[:steps, out] = self._ceiling[:, out], self._ground[:, out]
        up, down = self._reward + margins, self._reward - margins
        if problem.horizon is None:
            solver.optimal(up, above[0], self.policy[0], out)
            above[0] = np.minimum(above[0], self._ceiling[0])
            if kind.share == 0.0:
                solver.evaluate(down, below[0], self.policy[0], out)
                below[0] = np.maximum(below[0], self._ground[0])
        else:
            for h in reversed(problem.steps):
                high = np.maximum.reduceat(solver.worth(up, above[h + 1]), solver.begins)
                above[h] = np.where(out, above[h], np.minimum(high, self._ceiling[h]))
                if kind.share == 0.0:
                    low = solver.worth(down, below[h + 1])[self.policy[h]]
                    below[h] = np.where(out, below[h], np.maximum(low, self._ground[h]))
        bounds = _Bounds(above, below, np.zeros(0), 0.0, 0.0, short=kind.share * target)
        return self._at_root(
            margins, bounds if reference is None else self._around(bounds, margins, reference)
        )

    def _around(self, bounds: _Bounds, margins: Values, reference: int) -> _Bounds:
        """The same with the two functions that count from a reference state on."""
        solver, found = self._solver, self.found
        rest = 1.0 / (1.0 - self.problem.gamma)
        v = float(self.values[0, reference])
        gain = max(float(bounds.above[0, reference]) - v, 0.0) / rest
        loss = max(v - float(bounds.below[0, reference]), 0.0) / rest
        fixed = self._out.copy()
        fixed[reference] = True
        ends = self.problem.gamma * rest * found.ends
        over, under = bounds.above[0] + loss * rest, bounds.below[0] - gain * rest
        over[reference] = under[reference] = v
        up = self._reward + margins + loss + ends * loss
        down = self._reward - margins - gain - ends * gain
        solver.optimal(up, over, self.policy[0], fixed)
        solver.evaluate(down, under, self.policy[0], fixed)
        over = np.minimum(over, self._ceiling[0] + loss * rest)
        under = np.maximum(under, self._ground[0] - gain * rest)
        over[reference] = under[reference] = v
        return replace(bounds, over=over[np.newaxis], under=under[np.newaxis], gain=gain, loss=loss)

    def _at_root(self, margins: Values, bounds: _Bounds) -> _Bounds:
        """The same, with what follows for the actions of the root."""
        problem, found, gamma = self.problem, self.found, self.problem.gamma
        rest = 0.0 if bounds.over is None else 1.0 / (1.0 - gamma)
        after = problem.after(0)
        over = bounds.above if bounds.over is None else bounds.over
        under = bounds.below if bounds.under is None else bounds.under
        root = self._root
        ends = gamma * rest * found.ends[root]
        high = self._solver.worth(self._reward + margins, over[after])[root] + ends * bounds.loss
        low = self._solver.worth(self._reward - margins, under[after])[root] - ends * bounds.gain
        ours, value = float(low[self.best]), float(bounds.below[0, 0])
        if bounds.short > 0.0:
            ours = value = value - bounds.short
        gap = float(bounds.above[0, 0]) - value
        if not problem.by_value:
            gap = float(np.delete(high, self.best).max(initial=-np.inf)) - ours
        return replace(bounds, high=high, low=ours, gap=gap)

    # -- claims ----------------------------------------------------------------------------------

    def _claimed(self, bounds: _Bounds, evidence: float, kind: Kind, accuracy: float) -> Design:
        """The claims from which an accuracy follows."""
        problem, found, gamma = self.problem, self.found, self.problem.gamma
        reference = kind.reference
        rest = 0.0 if reference is None else 1.0 / (1.0 - gamma)
        top, bottom = problem.top, problem.bottom
        kinds = [(bounds.above, 0.0, top), (bounds.below, 0.0, bottom)]
        if bounds.over is not None and bounds.under is not None:
            up, down = bounds.loss * rest, bounds.gain * rest
            kinds += [(bounds.over, up, top + up), (bounds.under, -down, bottom - down)]
        functions = self._functions(kinds)
        size = len(bounds.above)
        parts = [self._above(bounds.above, 0, self._ceiling, 0.0, None)]
        walk = self._walk(bounds, functions, size, evidence)
        if walk is None:
            parts.append(self._below(bounds.below, size, self._ground, 0.0, None))
        if bounds.over is not None and bounds.under is not None:
            parts += [
                self._above(bounds.over, 2, self._ceiling + up, bounds.loss, reference),
                self._below(bounds.under, 3, self._ground - down, bounds.gain, reference),
            ]
        root, best = self._root, self.best
        high = float(bounds.above[0, 0])
        low = float(bounds.below[0, 0]) if problem.by_value and walk is None else bounds.low
        low -= gamma * bounds.loss * rest
        losses, highest = np.full(len(root), high - low), np.full(len(root), high)
        if not problem.by_value:
            # With a reference state the last two functions count at the root, else the first two.
            first = (2, 3) if reference is not None else (problem.after(0), size + problem.after(0))
            others = np.delete(np.arange(len(root)), best)
            # Where that costs little, an action is claimed to be no better than ours at all.
            behind = bounds.low - bounds.high[others] >= accuracy
            losses[others] = np.where(behind, 0.0, accuracy)
            theta = bounds.low + losses[others]
            parts.append((root[others], np.full(len(others), first[0]), theta, 1.0))
            if walk is None:
                parts.append((root[[best]], np.array([first[1]]), np.array([bounds.low]), -1.0))
            # Values may be off by what the reference state's is, from the next step on.
            highest[others] = np.minimum(high, theta + gamma * bounds.gain * rest)
        claims = claims_of(parts, functions, problem.rewards, gamma)
        need, learn = needs(claims, functions, found, gamma, evidence)
        need[found.pairs] = np.maximum(need[found.pairs], _FEW * evidence)
        return Design(
            claims=claims,
            functions=functions,
            need=need,
            learn=learn,
            policy=np.where(self._out, NONE, self.policy),
            best=best,
            losses=losses,
            highest=highest,
            lower=low,
            walk=walk,
            kind=kind,
        )

    def _walk(self, bounds: _Bounds, functions: Functions, first: int, evidence: float) -> Walk | None:
        """The episodes that are to earn what `below` says, or little less."""
        if bounds.short == 0.0:
            return None
        problem, found, gamma = self.problem, self.found, self.problem.gamma
        steps, variance = 0.0, 0.0
        now = np.zeros(found.states)
        now[0] = 1.0
        if problem.horizon is None:
            taken = np.zeros(len(found.state))
            taken[self.policy[0]] = ~self._out
            visits = self._solver.visits(taken, now, None)
            steps, variance = float(visits.sum()), float(visits @ self._variance[self.policy[0]])
        else:
            discount = 1.0
            for h in problem.steps:
                after = _columns(self.values[h + 1])
                _, spread = found.moments(after, gamma, self.policy[h])
                steps += float(now.sum())
                variance += discount * discount * float(now @ spread)
                taken = np.zeros(len(found.state))
                taken[self.policy[h]] = ~self._out
                now, discount = (
                    self._solver.next_visits(taken, now) / max(gamma, 1e-300),
                    discount * gamma,
                )
        own = slice(first, first + len(bounds.below))
        highest = float(functions.values[own, 1:].max())
        lowest = min(float(functions.values[own].min()), float(functions.outside[own].min()))
        barrier = _BARRIER * math.sqrt(variance)
        # One step beyond the barrier, and then the least. (Sums of many steps are rounded more.)
        step = highest - problem.rewards[0] - gamma * lowest
        worst = barrier + max(step, 0.0) + highest - float(problem.bottom.min())
        short = bounds.short - _SUMMED * functions.slack(problem.rewards)
        need = evidence * (2.0 * variance / short**2 + 1.1 * worst / short) + 1.0
        return Walk(first, short, variance, steps, -barrier, -worst, need)

    def _functions(self, kinds: list[tuple[Values, float, Values]]) -> Functions:
        """Functions one after the other: values at states, at the end, and at states never seen."""
        values = [_columns(row, end) for rows, end, _ in kinds for row in rows]
        outside = np.concatenate([out[: len(rows)] for rows, _, out in kinds])
        stacked = np.array(values)
        known = stacked[:, 0 if self.problem.may_end else 1 :]
        largest, smallest = known.max(1), known.min(1)
        if not self.closed:
            largest, smallest = np.maximum(largest, outside), np.minimum(smallest, outside)
        return Functions(stacked, outside, largest, smallest)

    def _above(
        self, function: Values, first: int, caps: Values, lift: float, reference: int | None
    ) -> tuple[Numbers, Numbers, Values, float]:
        """That no pair lifts a function, where it is below its cap."""
        found, problem = self.found, self.problem
        pairs, numbers, thetas = [], [], []
        for h in problem.steps:
            state = found.state[found.pairs]
            claimed = (function[h] < caps[h])[state] & (
                state != (-1 if reference is None else reference)
            )
            chosen = found.pairs[claimed]
            pairs.append(chosen)
            numbers.append(np.full(len(chosen), first + problem.after(h)))
            thetas.append(function[h, found.state[chosen]] - lift)
        return np.concatenate(pairs), np.concatenate(numbers), np.concatenate(thetas), 1.0

    def _below(
        self, function: Values, first: int, caps: Values, lift: float, reference: int | None
    ) -> tuple[Numbers, Numbers, Values, float]:
        """That our policy lowers a function nowhere, where it is above its cap."""
        found, problem = self.found, self.problem
        pairs, numbers, thetas = [], [], []
        for h in problem.steps:
            claimed = found.inside & (function[h] > caps[h])
            if reference is not None:
                claimed[reference] = False
            states = np.flatnonzero(claimed)
            pairs.append(self.policy[h, states])
            numbers.append(np.full(len(states), first + problem.after(h)))
            thetas.append(function[h, states] + lift)
        return np.concatenate(pairs), np.concatenate(numbers), np.concatenate(thetas), -1.0


# Calls of every pair, times the evidence, at least: estimates by fewer mean little.
_FEW = 4.0


def _columns(values: Values, end: float = 0.0) -> Values:
    """A function's values at the end and at all states."""
    return np.concatenate([[end], values])
