"""Bounds on the values of an explored model, from any function that is nearly a solution.

Let W be a function of the nodes, at leaves no less than their value, and T one step of value iteration.
If c >= 0 is at least the largest TW - W, then W + c / (1 - gamma) does not grow under T, so no value is
larger, and no pair is worth more than

    Q_W + gamma c / (1 - gamma).

Likewise from below, with the smallest TW - W. So the bounds are certain however W was found, and the
closer it is to the solution, the closer they are. It is found by policy iteration.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from scipy.sparse.linalg import LinearOperator, bicgstab

from pacplan.algorithms.value_iteration.chart import Numbers, Rows, Values

_UNIT = float(np.finfo(np.float64).eps)
# How exactly a policy is evaluated, beside how much it improves on the one before, and how long.
_FORCING, _MOST_STEPS = 0.2, 200
# Evaluations of one policy that bring it no closer to its values, after which there is no other.
_PATIENCE = 20
# Visits that may be left out, of one.
_NEGLIGIBLE = 1e-3


def rounding(rows: Rows, values: Values) -> float:
    """The most that rounding can change in a step of value iteration."""
    terms = 6.0 + float(np.diff(rows.transitions.indptr).max())
    largest = float(np.abs(values).max(initial=0.0) + np.abs(rows.reward).max())
    return _UNIT * terms * largest


def policy_iteration(
    rows: Rows, values: Values, gamma: float, enough: float
) -> Iterator[tuple[Values, float, float, Numbers]]:
    """Policy iteration (Howard 1960), each policy evaluated as exactly as it is worth.

    It changes `values` at the explored nodes. Yields, with every policy, what pairs are worth, by how
    much more they may be worth, by how much less, and the policy. Ends when these two add up to no more
    than `enough`, or nothing improves.
    """
    policy, closest, vain = np.zeros(0, np.int64), np.inf, 0
    while True:
        worth = rows.worth(values, gamma)
        best = rows.best(worth)
        change = best - values[rows.node]
        slack = rounding(rows, values)
        scale = gamma / (1.0 - gamma)
        above = scale * (max(0.0, float(change.max())) + slack) + slack
        below = scale * (max(0.0, -float(change.min())) + slack) + slack
        better = rows.greedy(worth)
        if policy.size:
            better = np.where(worth[better] - worth[policy] > 4.0 * slack, better, policy)
        yield worth, above, below, better
        off = float(np.abs(change).max())
        same = np.array_equal(better, policy)
        vain = vain + 1 if same and off > 0.5 * closest else 0
        closest = min(closest, off)
        if above + below <= enough or (same and off <= 4.0 * slack) or vain > _PATIENCE:
            return
        policy = better
        values[rows.node] = best
        evaluate(rows.following(policy), values, gamma, 0.0 if same else _FORCING * off)


def evaluate(policy: Rows, values: Values, gamma: float, goal: float) -> None:
    """Solve for the values of a policy: BiCGSTAB (van der Vorst 1992), from the values given.

    It stops when no equation is off by more than the goal, or rounding. Its answer need not be exact,
    since bounds follow from any.
    """
    step, size = np.zeros_like(values), len(policy.node)

    def apply(x: Values) -> Values:
        step[policy.node] = x
        return np.asarray(x - gamma * (policy.transitions @ step)[: len(x)])

    x = values[policy.node].copy()
    rest = policy.worth(values, gamma) - x
    goal = max(goal, rounding(policy, values))
    if float(np.abs(rest).max()) <= goal:
        return
    equations = LinearOperator((size, size), matvec=apply, dtype=np.float64)
    change, _ = bicgstab(equations, rest, rtol=0.0, atol=goal, maxiter=_MOST_STEPS)
    if np.isfinite(change).all():
        values[policy.node] = x + change


def stakes(
    policy: Iterable[Rows], leaves: Numbers, nodes: int, gamma: float, open_by: Iterable[float]
) -> Values:
    """What is at stake at each leaf: its discounted visits from the root, times what is open then.

    `policy` has the pair that is taken in each row, step by step, and `open_by` by how much the bounds
    of a leaf are apart. Late visits are left out if there are earlier ones.
    """
    total, now = np.zeros(nodes), np.zeros(nodes)
    now[0] = 1.0
    for rows, width in zip(policy, open_by, strict=False):
        total += width * now
        left = float(now[rows.node].sum())
        if left < (_NEGLIGIBLE if total[leaves].any() else _UNIT):
            break
        now = gamma * (now[rows.node] @ rows.transitions)
    return np.asarray(total[leaves])
