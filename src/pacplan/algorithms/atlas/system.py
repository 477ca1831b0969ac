"""A round's claims as linear conditions on its functions.

All functions are one vector: F, then f, at every step and state; F' and f' by state, with a reference
state z; and l, what our action is claimed to earn. The margin of each claim is linear in it. Fixed are
the bounds that stand for states outside, F'(z) = f'(z) = v, and l where the state's value is asked for.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from pacplan.algorithms.atlas.estimate import Estimate, Flags, Numbers, Values
from pacplan.algorithms.atlas.newton import Margins
from pacplan.algorithms.atlas.problem import Problem

# Calls beyond what a bet needs on average, for what is lost if the worst happens.
_WORST = 1.1
# A risk of this part of the range of values at least, so that no margin vanishes.
_LEAST_RISK = 1e-3
ABOVE, BELOW = 1.0, -1.0


class Sides(NamedTuple):
    """The functions of a round."""

    above: Values  # F, [step, state]
    below: Values  # f
    over: Values  # F', by state; 0 without a reference state
    under: Values  # f'
    low: float  # l

    def vector(self) -> Values:
        """All in one vector."""
        return np.concatenate(
            [self.above.ravel(), self.below.ravel(), self.over, self.under, [self.low]]
        )

    def replaced(self, vector: Values) -> "Sides":
        """The same functions with the values of a vector."""
        size, states = self.above.size, len(self.over)
        ends = np.cumsum([size, size, states, states])
        above, below, over, under, low = np.split(vector, ends)
        shape = self.above.shape
        return Sides(above.reshape(shape), below.reshape(shape), over, under, float(low[0]))


class System:
    """The claims of all kinds of designs of an estimate.

    `values` and `policy` are [step, state], and `worth`, what pairs are worth, [step, pair]. `closed`:
    whether there are no states but those charted.
    """

    def __init__(
        self,
        problem: Problem,
        found: Estimate,
        values: Values,
        policy: Numbers,
        worth: Values,
        closed: bool,
    ) -> None:
        self._problem, self._found, self._policy = problem, found, policy
        self._least_risk = _LEAST_RISK * float((problem.top - problem.bottom).max())
        self._risk = self._risks(values, worth, closed)
        self._reward = found.mean(found.reward)
        self._pairs, self._states, steps = len(found.state), found.states, len(problem.steps)
        self._below, self._over = steps * self._states, 2 * steps * self._states
        self._under, self._low = self._over + self._states, self._over + 2 * self._states
        arange, ones = np.arange(self._pairs), np.ones(self._pairs)
        own = sparse.csr_array((ones, (arange, found.state)), shape=(self._pairs, self._states))
        self._after = sparse.csr_array(problem.gamma * found.transitions)
        # One step from every pair at every step.
        link = sparse.eye_array(steps, k=problem.after(0))
        self._all = sparse.csr_array(
            sparse.kron(sparse.eye_array(steps), own) - sparse.kron(link, self._after)
        )
        # The part of a unit that is lost in a step, if the reference state may be worth a unit less.
        self.lost = 1.0 - self._after @ found.inside.astype(np.float64)

    def _risks(self, values: Values, worth: Values, closed: bool) -> dict[float, Values]:
        """How far the best and the worst outcome of each pair are from its mean, [step, pair]."""
        problem, after = self._problem, self._problem.after(0)
        high, low = problem.top[after:][: len(worth)], problem.bottom[after:][: len(worth)]
        if closed and self._found.inside.all():
            high, low = values[after:].max(1), values[after:].min(1)
        if problem.may_end:
            high, low = np.maximum(high, 0.0), np.minimum(low, 0.0)
        best = problem.rewards[1] + problem.gamma * high[:, np.newaxis] - worth
        worst = worth - problem.rewards[0] - problem.gamma * low[:, np.newaxis]
        return {ABOVE: np.maximum(best, self._least_risk), BELOW: np.maximum(worst, self._least_risk)}

    def asked(self, h: int) -> Flags:
        """The states for which there are claims at a step."""
        if self._problem.horizon is None or h > 0:
            return self._found.inside
        # The first of H steps matters to the state planned from alone, if its value is asked for.
        return np.asarray((np.arange(self._states) == 0) & self._problem.by_value)

    def rows(self, sign: float, z: int | None) -> tuple[Numbers, Numbers]:
        """What claims are about, of F or f, or of those that count from z on: steps, and pairs."""
        asked, state = np.array([self.asked(h) for h in self._problem.steps]), self._found.state
        if z is not None:
            asked[0, z] = False
        if sign == ABOVE:
            h, pairs = np.nonzero(asked[:, state])
        else:
            h, states = np.nonzero(asked)
            pairs = self._policy[h, states]
            assert np.array_equal(state[pairs], states)
        return h, pairs

    def free(self, z: int | None) -> Flags:
        """Which entries of the vector are unknowns."""
        asked = np.concatenate([self.asked(h) for h in self._problem.steps])
        beside = self._found.inside & (z is not None)
        if z is not None:
            beside[z] = False
        return np.concatenate([asked, asked, beside, beside, [not self._problem.by_value]])

    def margins(self, z: int | None, accuracy: float, fixed: Values) -> Margins:
        """The claims of a design, as they depend on the unknowns, but their variances.

        `fixed` has the rest.
        """
        v = 0.0 if z is None else float(fixed[self._over + z])
        parts = [self._lifts(ABOVE), self._lifts(BELOW)]
        if z is not None:
            parts += [self._lifts(ABOVE, z, v), self._lifts(BELOW, z, v)]
        if self._problem.by_value:
            parts.append(self._width(2.0 * accuracy))
        else:
            root = np.flatnonzero(self._found.state == 0)
            ours = root == self._policy[0, 0]
            parts.append(self._at_root(root[~ours], z, v, accuracy, ABOVE))
            parts.append(self._at_root(root[ours], z, v, 0.0, BELOW))
        matrix = sparse.csc_array(sparse.vstack([part.matrix for part in parts]))
        names, free = ("constant", "pair", "variance", "risk", "function"), self.free(z)
        whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        whole["constant"] = whole["constant"] + matrix @ np.where(free, 0.0, fixed)
        return Margins(sparse.csr_array(matrix[:, np.flatnonzero(free)]), **whole)

    def variance(self, margins: Margins, sides: Sides, gain: float, loss: float) -> Values:
        """Of what each claim is about, with these functions."""
        last = [np.zeros(self._states)] * self._problem.after(0)
        ends = [0.0] * (2 * (len(sides.above) + len(last))) + [loss, -gain]
        rows = [*sides.above, *last, *sides.below, *last, sides.over, sides.under]
        found = margins.variance.copy()
        for number in np.unique(margins.function[margins.function >= 0]):
            chosen = margins.function == number
            columns = np.concatenate([[ends[number]], rows[number]])
            found[chosen] = self._found.moments(columns, self._problem.gamma, margins.pair[chosen])[1]
        return found

    # The parts of the system. What is claimed from below is what is claimed from above with all signs
    # reversed, for the policy's pairs alone.

    def _claims(
        self, matrix: Any, constant: Values, pairs: Numbers, h: Any, sign: float, beside: bool
    ) -> Margins:
        size, after = len(self._policy) + self._problem.after(0), h + self._problem.after(0)
        function = 2 * size if beside else after
        if sign == BELOW:
            function = function + (1 if beside else size)
        variance, about = np.zeros(len(pairs)), np.full(len(pairs), function)
        risk = _WORST * self._risk[sign][h, pairs]
        return Margins(sign * matrix, sign * constant, pairs, variance, risk, about)

    def _lifts(self, sign: float, z: int | None = None, v: float = 0.0) -> Margins:
        """That no pair lifts F, and the policy does not lower f; with z the same of F' and f'."""
        h, pairs = self.rows(sign, z)
        if z is None:
            place = 0 if sign == ABOVE else self._below
        else:
            place = self._over if sign == ABOVE else self._under
        matrix = self._at(place, self._all[h * self._pairs + pairs])
        constant = -self._reward[pairs]
        if z is not None:
            matrix = matrix + self._cross(self.lost[pairs], z, sign)
            constant = constant - self.lost[pairs] * v
        return self._claims(matrix, constant, pairs, h, sign, z is not None)

    def _at_root(self, pairs: Numbers, z: int | None, v: float, beyond: float, sign: float) -> Margins:
        """That other actions earn at most l + beyond, and ours at least l."""
        first = self._problem.after(0) * self._states
        place = first if sign == ABOVE else self._below + first
        lost = self.lost[pairs] - (1.0 - self._problem.gamma)
        if z is not None:
            place = self._over if sign == ABOVE else self._under
        matrix = self._column(np.ones(len(pairs)), self._low)
        if first < self._below:  # (There is no function after the last step.)
            matrix = matrix - self._at(place, self._after[pairs])
        constant = beyond - self._reward[pairs]
        if z is not None:
            matrix = matrix + self._cross(lost, z, sign)
            constant = constant - lost * v
        return self._claims(matrix, constant, pairs, 0, sign, z is not None)

    def _width(self, most: float) -> Margins:
        """That F(s0) - f(s0) is less than so much. It takes no calls."""
        matrix = self._column(np.ones(1), self._below) - self._column(np.ones(1), 0)
        pair, risk = np.array([self._pairs]), np.array([self._least_risk])
        return Margins(matrix, np.array([most]), pair, np.zeros(1), risk, np.array([-1]))

    def _cross(self, lost: Values, z: int, sign: float) -> Any:
        """How much F' loses by f(z), and f' gains by F(z)."""
        return self._column(lost, z + (self._below if sign == ABOVE else 0))

    def _at(self, first: int, matrix: Any) -> Any:
        """A matrix among columns of the vector, from one on."""
        shape = (matrix.shape[0], self._low + 1)
        return sparse.csr_array((matrix.data, matrix.indices + first, matrix.indptr), shape=shape)

    def _column(self, values: Values, column: int) -> Any:
        """A matrix with one column of the vector."""
        rows, columns = np.arange(len(values)), np.full(len(values), column)
        return sparse.csr_array((values, (rows, columns)), shape=(len(values), self._low + 1))
