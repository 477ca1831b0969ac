"""The design of a round: functions above the values and below them whose claims take few calls.

F lies a little above the values of the estimated model, f a little below those of our policy there. One
step lifts F nowhere, and lowers f nowhere, by margins to spare: these are the claims. The wider the
margins, the fewer calls the claims take, and the wider the gap at the root. With a reference state z
there are two more functions, which count from z on (docs/atlas.md).
"""

from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np

from pacplan.algorithms.atlas.chart import NONE
from pacplan.algorithms.atlas.claims import Functions, claims_of, needs
from pacplan.algorithms.atlas.estimate import Estimate, Flags, Numbers, Values
from pacplan.algorithms.atlas.newton import cheapest
from pacplan.algorithms.atlas.problem import Design, Problem
from pacplan.algorithms.atlas.solver import Solver
from pacplan.algorithms.atlas.system import ABOVE, BELOW, Sides, System

# States that are tried as references: visited this often at least.
_REFERENCES, _OFTEN = 3, 0.5
# Equal margins to begin with, in parts of what takes up the accuracy; rounding makes some worthless,
# in parts of the range of values.
_BEGINS, _WORTHLESS = tuple(0.8 * 0.5**i for i in range(1, 9)), 1e-8
# States outside are explored until they matter less than this part of the accuracy; each time those
# that make up this part of what they matter, and at least so many for each state explored.
_OUTSIDE, _HALF, _MORE = 0.15, 0.5, 0.25
# Calls of every pair, times the evidence, at least: estimates by fewer mean little.
_FEW = 4.0

_ROUNDS = 2
Part = tuple[Numbers, Numbers, Values, float]


class Designer:
    """Designs rounds for one estimate.

    `caps` are bounds on the values of states, above and below, [step, state]. `closed`: whether there
    are no states but those charted.
    """

    def __init__(
        self, problem: Problem, found: Estimate, caps: tuple[Values, Values], closed: bool
    ) -> None:
        self.problem, self.found, self.closed = problem, found, closed
        self._ceiling, self._ground = caps
        self._root = np.flatnonzero(found.state == 0)
        self._solver, self._reward = Solver(found, problem.gamma), found.mean(found.reward)
        self._out, steps = ~found.inside, len(problem.steps)
        # Our policy is the one that is best if all that is outside is as bad as it can be.
        self.values = self._bounded(self._ground)
        self.policy = np.tile(self._solver.begins, (steps, 1))
        self._solve(self._reward, self.values, self.policy)
        after = [self.values[problem.after(h)] for h in problem.steps]
        self.worth = np.array([self._solver.worth(self._reward, values) for values in after])
        self.best = int(self.policy[0, 0] - self._root[0])
        self._system = System(problem, found, self.values, self.policy, self.worth, closed)

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

    def _bounded(self, bounds: Values) -> Values:
        """Values that are a bound outside, and 0 after the last step."""
        values = np.zeros((len(bounds) + (self.problem.horizon is not None), self.found.states))
        values[: len(bounds), self._out] = bounds[:, self._out]
        return values

    def to_explore(self, accuracy: float) -> Flags:
        """The states outside that matter most, if those outside matter to the accuracy."""
        values, policy = self._bounded(self._ceiling), self.policy.copy()
        self._solve(self._reward, values, policy)
        arrivals = self._arrivals(self.policy) + self._arrivals(policy)
        matter = (arrivals * (self._ceiling - self._ground)).sum(0) * self._out
        order = np.argsort(-matter)
        left = matter.sum() - np.cumsum(matter[order])
        chosen = np.zeros(self.found.states, bool)
        if matter.sum() > _OUTSIDE * accuracy:
            count = 1 + int(np.searchsorted(-left, -_HALF * matter.sum()))
            chosen[order[: max(count, int(_MORE * self.found.inside.sum()))]] = True
        return np.asarray(chosen & (matter > 0.0))

    def _arrivals(self, policy: Numbers) -> Values:
        """Discounted probability of each state at each step; summed up over an infinite horizon."""
        now = np.zeros(self.found.states)
        now[0] = 1.0
        arrivals = []
        for pairs in policy:
            taken = np.zeros(len(self.found.state))
            taken[pairs[~self._out]] = 1.0
            if self.problem.horizon is None:
                return self._solver.visits(taken, now)[np.newaxis]
            arrivals.append(now)
            now = self._solver.next_visits(taken, now)
        return np.array(arrivals)

    def best_design(
        self, accuracy: float, evidence: float, references: Sequence[int | None]
    ) -> Generator[None, None, Design | None]:
        """The design that proves an accuracy and seems to take the fewest calls; None: none does."""
        found = []
        for z in references:
            found.append((yield from self._design(accuracy, evidence, z)))
        return min(filter(None, found), key=lambda design: design.cost, default=None)

    def references(self) -> list[int | None]:
        """The reference states that are worth trying, and None."""
        if self.problem.horizon is not None or self.problem.by_value:
            return [None]
        visits = self._arrivals(self.policy)[0]
        often = np.argsort(-visits)[:_REFERENCES]
        return [None, *(int(s) for s in often if visits[s] > _OFTEN and self.found.inside[s])]

    def _design(
        self, accuracy: float, evidence: float, z: int | None
    ) -> Generator[None, None, Design | None]:
        """A design whose claims take the fewest calls for an accuracy."""
        target = 2.0 * accuracy if self.problem.by_value else accuracy
        # Without margins, the gap is not 0, but below it by how far our action is ahead.
        ahead = 0.0
        if not self.problem.by_value:
            others = np.delete(self.worth[0, self._root], self.best)
            ahead = float(self.worth[0, self._root[self.best]] - others.max())
        steps = self.problem.horizon or 1.0 / (1.0 - self.problem.gamma)
        range_ = float((self.problem.top - self.problem.bottom).max())
        free = np.flatnonzero(self._system.free(z))
        for part in _BEGINS:
            margin = part * (target + ahead) / steps
            if margin <= _WORTHLESS * range_:
                return None
            sides = self._evenly(margin, z, target)
            margins, vector = self._system.margins(z, accuracy, sides.vector()), sides.vector()
            if margins.at(vector[free]).min() > 0.0:
                break
        else:
            return None
        found: list[Design] = []
        for _ in range(_ROUNDS):
            gain = loss = 0.0
            if z is not None:
                v = self.values[0, z]
                gain, loss = sides.above[0, z] - v, v - sides.below[0, z]
            margins = replace(margins, variance=self._system.variance(margins, sides, gain, loss))
            vector[free] = yield from cheapest(margins, vector[free])
            sides = sides.replaced(vector)
            found.append(self._claimed(sides, evidence, z, accuracy))
        return min(found, key=lambda design: design.cost)

    # -- functions -------------------------------------------------------------------------------

    def _evenly(self, margin: float, z: int | None, target: float) -> Sides:
        """Functions of which all claims about pairs have the same margin."""
        problem, solver, out = self.problem, self._solver, self._out
        up, down = self._reward + margin, self._reward - margin
        above, below = self._bounded(self._ceiling), self.values.copy()
        steps = len(problem.steps)
        above[:steps, ~out] = self.values[:steps, ~out]
        self._solve(up, above, self.policy.copy())
        if problem.horizon is None:
            solver.evaluate(down, below[0], self.policy[0], out)
        else:
            for h in reversed(problem.steps):
                worth = solver.worth(down, below[h + 1])
                below[h, ~out] = worth[self.policy[h, ~out]]
        over, under = above[0].copy(), below[0].copy()
        loss = gain = 0.0
        if z is not None:
            v = float(self.values[0, z])
            loss, gain = v - float(below[0, z]), float(above[0, z]) - v
            fixed = out.copy()
            fixed[z] = True
            over[z] = under[z] = v
            lost = self._system.lost
            solver.optimal(up + lost * loss, over, self.policy[0], fixed)
            solver.evaluate(down - lost * gain, under, self.policy[0], fixed)
        low = float(self.values[0, 0])
        if not problem.by_value:
            after, root = problem.after(0), self._root
            lost = self._system.lost[root] - (1.0 - problem.gamma)
            high = solver.worth(self._reward, above[after] if z is None else over)[root] + lost * loss
            own = solver.worth(self._reward, below[after] if z is None else under)[root] - lost * gain
            low = float(own[self.best])
            # What is left of the accuracy is shared by the two sides.
            low -= 0.5 * (target + low - float(np.delete(high, self.best).max()))
        return Sides(above[:steps], below[:steps], over, under, low)

    # -- claims ----------------------------------------------------------------------------------
    # What is proven follows from what is claimed here and from nothing above.

    def _claimed(self, sides: Sides, evidence: float, z: int | None, accuracy: float) -> Design:
        """The claims from which an accuracy follows."""
        problem, found = self.problem, self.found
        above, below = self._capped(sides.above, sides.below, 0.0, 0.0)
        kinds, gain, loss = [(above, 0.0, problem.top), (below, 0.0, problem.bottom)], 0.0, 0.0
        if z is not None:
            v = float(self.values[0, z])
            gain, loss = max(float(above[0, z]) - v, 0.0), max(v - float(below[0, z]), 0.0)
            over, under = self._capped(sides.over[np.newaxis], sides.under[np.newaxis], loss, gain)
            over[0, z] = under[0, z] = v
            kinds += [(over, loss, problem.top + loss), (under, -gain, problem.bottom - gain)]
        functions = self._functions(kinds)
        size = len(self.values)  # functions of a kind: with H steps, one for what follows the last
        parts = [self._part(above, 0, 0.0, ABOVE, None), self._part(below, size, 0.0, BELOW, None)]
        if z is not None:
            parts += [self._part(over, 2, loss, ABOVE, z), self._part(under, 3, gain, BELOW, z)]
        if problem.by_value:
            high, low = float(above[0, 0]), float(below[0, 0])
            highest = np.full(len(self._root), high)
            losses = np.full(len(self._root), high - low)
        else:
            first = (problem.after(0), size + problem.after(0)) if z is None else (2, 3)
            # (With a horizon nothing is claimed of F and f at the first step.)
            high = float((above if problem.horizon is None else self._ceiling)[0, 0])
            at_root, losses, highest = self._rooted(first, functions, sides.low, high, accuracy, gain)
            parts += at_root
            low = sides.low - problem.gamma * loss
            if problem.horizon is None:
                low = max(low, float(below[0, 0]))
        claims = claims_of(parts, functions, problem.rewards, problem.gamma)
        need, learn = needs(claims, functions, found, problem.gamma, evidence)
        need[found.pairs] = np.maximum(need[found.pairs], _FEW * evidence)
        policy = np.where(self._out, NONE, self.policy)
        return Design(claims, functions, need, learn, policy, self.best, losses, highest, low, z)

    def _rooted(
        self,
        first: tuple[int, int],
        functions: Functions,
        low: float,
        high: float,
        accuracy: float,
        gain: float,
    ) -> tuple[list[Part], Values, Values]:
        """The claims about the root's actions, how much better than ours each may be, and their bounds.

        `first` are the functions after the first step.
        """
        gamma, root, best = self.problem.gamma, self._root, self.best
        others = np.delete(np.arange(len(root)), best)
        worth = self.found.moments(functions.values[first[0]], gamma, root)[0]
        losses, highest = np.zeros(len(root)), np.full(len(root), high)
        # Where that costs little, an action is claimed to be no better than ours at all.
        losses[others] = np.where(low - worth[others] >= accuracy, 0.0, accuracy)
        losses[best] = accuracy
        claimed = others
        if self.problem.horizon is not None:
            # With H steps nothing else bounds what our own action is worth.
            claimed, losses[best] = np.arange(len(root)), worth[best] + accuracy - low
        theta = low + losses[claimed]
        # Values may be off by what the reference state's is, from the next step on.
        highest[claimed] = np.minimum(high, theta + gamma * gain)
        parts = [
            (root[claimed], np.full(len(claimed), first[0]), theta, ABOVE),
            (root[[best]], np.array([first[1]]), np.array([low]), BELOW),
        ]
        return parts, losses, highest

    def _capped(self, above: Values, below: Values, loss: float, gain: float) -> tuple[Values, Values]:
        """Functions within what is known of values, and what is known for states outside."""
        ceiling, ground = self._ceiling + loss, self._ground - gain
        return (
            np.where(self._out, ceiling, np.minimum(above, ceiling)),
            np.where(self._out, ground, np.maximum(below, ground)),
        )

    def _functions(self, kinds: list[tuple[Values, float, Values]]) -> Functions:
        """Functions one after the other: values at states, at the end, and at states never seen.

        With H steps, what is known after the last one is 0 at all states.
        """
        rows, outside = [], []
        for values, end, beyond in kinds:
            last = [np.zeros(self.found.states)] * (self.problem.horizon is not None)
            rows += [np.concatenate([[end], row]) for row in (*values, *last)]
            outside.append(beyond[: len(values) + len(last)])
        stacked, outer = np.array(rows), np.concatenate(outside)
        known = stacked[:, 0 if self.problem.may_end else 1 :]
        largest, smallest = known.max(1), known.min(1)
        if not self.closed:
            largest, smallest = np.maximum(largest, outer), np.minimum(smallest, outer)
        return Functions(stacked, outer, largest, smallest)

    def _part(self, function: Values, first: int, shift: float, sign: float, z: int | None) -> Part:
        """That no pair lifts a function, or our policy lowers it nowhere, where it is within its cap.

        `first` is the number of the function of the first step, `shift` the reference state's c.
        """
        h, pairs = self._system.rows(sign, z)
        value = function[h, self.found.state[pairs]]
        cap = (self._ceiling if sign == ABOVE else self._ground)[h, self.found.state[pairs]]
        claimed = sign * (cap + sign * shift - value) > 0.0
        after = h[claimed] + 1 if self.problem.horizon is not None else h[claimed]
        theta = value[claimed] - sign * (1.0 - self.problem.gamma) * shift
        return pairs[claimed], first + after, theta, sign
