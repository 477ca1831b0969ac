"""Choices among the actions of the root, by their bounds: the best, its challenger, the gap between."""

from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined
from pacplan.engine.tree import NONE


@inlined
def argmax_at_random(values: Any, skip: int, tie: float, rng: Any) -> int:
    """Index of the largest value, ties within `tie` broken uniformly at random, one index left out."""
    best = NONE
    ties = 0
    top = -np.inf
    for i in range(values.size):
        if i == skip:
            continue
        if best == NONE or values[i] > top + tie:
            best = i
            top = values[i]
            ties = 1
        elif values[i] >= top - tie:
            top = max(top, values[i])
            ties += 1
            if rng.random() * ties < 1.0:
                best = i
    return best


@inlined
def largest(values: Any) -> float:
    """The largest of some numbers."""
    top = values[0]
    for value in values:
        top = max(top, value)
    return float(top)


@inlined
def _rivals(upper: Any) -> tuple[int, float, float]:
    """The action with the largest U, that U, and the largest of the others (-inf: there are none)."""
    first, top, second = 0, -np.inf, -np.inf
    for a in range(upper.size):
        if upper[a] > top:
            second = top
            first = a
            top = upper[a]
        elif upper[a] > second:
            second = upper[a]
    return first, top, second


@inlined
def gap_of(upper: Any, lower: Any, b: int) -> float:
    """max_{a != b} U(a) - L(b): of the largest rival, not of the challenger, which is nearly tied."""
    first, top, second = _rivals(upper)
    return float((second if b == first else top) - lower[b])


@inlined
def least_gap(upper: Any, lower: Any) -> tuple[int, float]:
    """The action with the least max_{a != b} U(a) - L(b), the first of several, and that gap."""
    first, top, second = _rivals(upper)
    best, least = 0, np.inf
    for b in range(upper.size):
        gap = (second if b == first else top) - lower[b]
        if gap < least:
            best = b
            least = gap
    return best, least


@inlined
def best_and_challenger(upper: Any, lower: Any, tie: float, rng: Any) -> tuple[int, int]:
    """UGapE's choice: b has the smallest bound on its gap, c is its challenger (NONE for one action).

    b = argmin_b [ max_{a != b} U(a) - L(b) ],  c = argmax_{c != b} U(c), ties within `tie` broken
    uniformly at random.
    """
    first, top, second = _rivals(upper)
    best, least, ties = 0, np.inf, 0
    for b in range(upper.size):
        gap = (second if b == first else top) - lower[b]
        if gap < least - tie:
            best = b
            least = gap
            ties = 1
        elif gap <= least + tie:
            least = min(least, gap)
            ties += 1
            if rng.random() * ties < 1.0:
                best = b
    return best, argmax_at_random(upper, best, tie, rng)


@inlined
def wider(upper: Any, lower: Any, best: int, challenger: int, tie: float, rng: Any) -> int:
    """Whichever of b and c has the wider interval."""
    if challenger == NONE:
        return best
    excess = (upper[challenger] - lower[challenger]) - (upper[best] - lower[best])
    if excess > tie or (excess >= -tie and rng.random() < 0.5):
        return challenger
    return best
