"""The unknowns for which claims take the fewest calls, by Newton's method.

The margins of claims are linear in the unknowns, M = A x + c. A claim needs about 2 v / M^2 + R / M
calls of its pair, and a pair as many as the claim that needs most: a convex function of x wherever all
M > 0.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from pacplan.algorithms.atlas.estimate import Numbers, Values
from pacplan.algorithms.atlas.solver import solved

# The largest of some numbers is taken for their norm of this power.
_POWER = 4.0
# Up to so many unknowns a step is solved for directly, and with more roughly.
_DIRECT, _ROUGH, _ROUNDS = 500, 0.1, 100
# Newton's steps: at most so many, and no more once less than this part of the calls seems to be left.
_STEPS, _ENOUGH = 100, 0.01
# How much of the way to where a margin is 0 a step goes, and what keeps a system from being singular.
_WAY, _RIDGE = 0.9, 1e-10


@dataclass(frozen=True)
class Margins:
    """Margins of claims, as functions of unknowns."""

    matrix: Any  # A, [claim, unknown]
    constant: Values  # c
    pair: Numbers  # of each claim
    variance: Values  # v
    risk: Values  # R: how far the worst outcome is from the mean
    function: Numbers  # what each claim is about, as the system numbers it

    def at(self, x: Values) -> Values:
        """The margins."""
        return np.asarray(self.matrix @ x + self.constant)

    def calls(self, margins: Values) -> tuple[Values, Values]:
        """What each claim needs, and the same summed up by pair, as a norm."""
        calls = 2.0 * self.variance / margins**2 + self.risk / margins
        return calls, np.asarray(np.bincount(self.pair, calls**_POWER) ** (1.0 / _POWER))


def cheapest(margins: Margins, x: Values) -> Generator[None, None, Values]:
    """The unknowns that need the fewest calls, from some with positive margins on.

    A step may take long: a plan that is stopped is stopped before one.
    """
    matrix = margins.matrix
    m = margins.at(x)
    total = margins.calls(m)[1].sum()
    for _ in range(_STEPS):
        yield
        slope, curve = _derivatives(margins, m)
        gradient = matrix.T @ slope
        direction = -_solved(matrix, curve, gradient)
        change = matrix @ direction
        shrinks = change < 0.0
        step = min(1.0, _WAY * float((m[shrinks] / -change[shrinks]).min(initial=np.inf)))
        hoped, before = float(gradient @ direction), total
        while (total := margins.calls(m + step * change)[1].sum()) > before + 0.1 * step * hoped:
            step *= 0.5
            if step < 1e-6:
                return x
        x = x + step * direction
        m = margins.at(x)
        # Half of what a full step promises is about what is left; a short one may save little for long.
        if -0.5 * hoped <= _ENOUGH * before:
            break
    return x


def _derivatives(margins: Margins, m: Values) -> tuple[Values, Values]:
    """Of the sum over pairs by each margin: first ones, and second ones that are not mixed."""
    v, risk = margins.variance, margins.risk
    calls, norm = margins.calls(m)
    part = calls / np.maximum(norm[margins.pair], 1e-300)
    first = -(4.0 * v / m + risk) / m**2
    weight = part ** (_POWER - 1.0)
    bend = (_POWER - 1.0) * (1.0 - part**_POWER) * first**2 / np.maximum(calls, 1e-300)
    return weight * first, weight * ((12.0 * v / m + 2.0 * risk) / m**3 + bend)


def _solved(matrix: Any, curve: Values, right: Values) -> Values:
    """The solution x of A' C A x = right, C being diagonal, after scaling to a diagonal of ones."""
    if matrix.shape[1] <= _DIRECT:
        full: Values = ((matrix.T * curve) @ matrix).toarray()
        scale = 1.0 / np.sqrt(np.diagonal(full))
        full *= scale[:, np.newaxis] * scale
        full[np.diag_indices(len(scale))] += _RIDGE
        return np.asarray(scale * solved(full, scale * right))
    squares = matrix.copy()
    squares.data **= 2
    scale = 1.0 / np.sqrt(squares.T @ curve)
    times = LinearOperator(
        (len(right), len(right)),
        matvec=lambda x: scale * (matrix.T @ (curve * (matrix @ (scale * x)))),
        dtype=np.float64,
    )
    return np.asarray(scale * cg(times, scale * right, rtol=_ROUGH, maxiter=_ROUNDS)[0])
