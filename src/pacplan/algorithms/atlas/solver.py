"""Solving the charted model: optimal values, values of a policy, visits."""

import numpy as np
from scipy import sparse

from pacplan.algorithms.atlas.estimate import Estimate, Flags, Numbers, Values
from pacplan.algorithms.value_iteration import solving
from pacplan.algorithms.value_iteration.chart import Rows
from pacplan.compiled.jit import kernel
from pacplan.compiled.tiered import run

# Charts of up to so many states are solved with full matrices.
_SMALL = 300
# Improvements of a policy that are rounding, in parts of the largest value; and most of them.
_ROUNDING, _MOST = 1e-9, 60
# Visits are summed up until this part is left, and over so many steps at most.
_VISITS_LEFT, _STEPS = 1e-2, 3000


def solved(matrix: Values, right: Values) -> Values:
    """The solution x of a system, which is overwritten, by elimination without pivots.

    It takes matrices that are diagonally dominant, or positive definite. Unlike LAPACK's its answer
    depends on no number of threads, and it waits for none where other programs keep them busy.
    """
    x = right.copy()
    run(_eliminate, len(x) ** 3 // 3, np.ascontiguousarray(matrix), x)
    return x


@kernel
def _eliminate(matrix: Values, x: Values) -> None:
    for k in range(x.size):
        for i in range(k + 1, x.size):
            part = matrix[i, k] / matrix[k, k]
            if part != 0.0:
                for j in range(k + 1, x.size):
                    matrix[i, j] -= part * matrix[k, j]
                x[i] -= part * x[k]
    for k in range(x.size - 1, -1, -1):
        x[k] /= matrix[k, k]
        for i in range(k):
            x[i] -= x[k] * matrix[i, k]


class Solver:
    """Solves an estimated model over an infinite horizon."""

    def __init__(self, found: Estimate, gamma: float) -> None:
        self._gamma = gamma
        self._states, self._state = found.states, found.state
        self._small = found.states <= _SMALL
        self.transitions, self._backwards = found.transitions, found.transitions.T.tocsr()
        self._all = np.arange(len(found.state))
        self.begins = np.searchsorted(found.state, np.arange(found.states))

    def greedy(self, worth: Values) -> Numbers:
        """By state: the pair that is worth most, the first of several."""
        best = np.maximum.reduceat(worth, self.begins)
        candidates = np.where(worth == best[self._state], self._all, len(worth))
        return np.asarray(np.minimum.reduceat(candidates, self.begins))

    def worth(self, reward: Values, values: Values) -> Values:
        """What each pair is worth, if states are worth `values`."""
        return np.asarray(reward + self._gamma * (self.transitions @ values))

    def optimal(self, reward: Values, values: Values, policy: Numbers, fixed: Flags) -> Numbers:
        """Policy iteration (Howard 1960) from a policy on; returns the last one.

        It writes to `values`, but not those that are fixed.
        """
        policy = np.where(fixed, self.begins, policy)
        for _ in range(_MOST):
            self.evaluate(reward, values, policy, fixed)
            worth = self.worth(reward, values)
            better = self.greedy(worth)
            slack = _ROUNDING * (1.0 + float(np.abs(values).max()))
            improved = (worth[better] > worth[policy] + slack) & ~fixed
            if not improved.any():
                break
            policy = np.where(improved, better, policy)
        return policy

    def evaluate(self, reward: Values, values: Values, policy: Numbers, fixed: Flags) -> None:
        """Write the values of a policy to `values`, but not those that are fixed."""
        free = np.flatnonzero(~fixed)
        pairs = policy[free]
        if self._small:
            outside = np.where(fixed, values, 0.0)
            system = -self._gamma * self.transitions[pairs].toarray()[:, free]
            system[np.diag_indices(len(free))] += 1.0
            values[free] = solved(system, self.worth(reward, outside)[pairs])
        else:
            rows = Rows(free, np.arange(len(free) + 1), reward[pairs], self.transitions[pairs])
            solving.evaluate(rows, values, self._gamma, 0.0)

    def visits(self, taken: Values, start: Values) -> Values:
        """Discounted visits of each state from some on; `taken` is the part that takes each pair."""
        gamma = self._gamma
        if self._small:
            following = sparse.csr_array(
                (taken, (self._state, self._all)), shape=(self._states, len(self._all))
            )
            system = np.eye(self._states) - gamma * (following @ self.transitions).toarray().T
            return solved(system, start)
        now, total = start.copy(), np.zeros(self._states)
        for _ in range(_STEPS):
            total += now
            if now.sum() * gamma < _VISITS_LEFT * (1.0 - gamma) * start.sum():
                break
            now = self.next_visits(taken, now)
        return total

    def next_visits(self, taken: Values, now: Values) -> Values:
        """Discounted visits of each state in the next step."""
        return np.asarray(self._gamma * (self._backwards @ (taken * now[self._state])))
