"""Choices among the actions of the root, by their bounds: the best, its challenger, the gap between."""

from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined
from pacplan.engine.tree import NONE


@inlined
def argmax_at_random(values: Any, skip: int, tie: float, rng: Any) -> int:
    """Index of the largest value, ties within `tie` broken uniformly at random, one index left out."""
    best = -1
    ties = 0
    top = -np.inf
    for i in range(values.size):
        if i == skip:
            continue
        if best < 0 or values[i] > top + tie:
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
def _two_largest(values: Any) -> tuple[int, int]:
    """Indices of the largest value and of the next; there are at least two."""
    first = 0 if values[0] >= values[1] else 1
    second = 1 - first
    for a in range(2, values.size):
        if values[a] > values[first]:
            second = first
            first = a
        elif values[a] > values[second]:
            second = a
    return first, second


@inlined
def least_gap(upper: Any, lower: Any) -> tuple[int, float]:
    """The action with the least max_{a != b} U(a) - L(b), the first of several, and that gap."""
    best = 0
    if upper.size == 1:
        return best, -np.inf
    first, second = _two_largest(upper)
    least = np.inf
    for a in range(upper.size):
        gap = (upper[second] if a == first else upper[first]) - lower[a]
        if gap < least:
            best = a
            least = gap
    return best, least


@inlined
def best_and_challenger(upper: Any, lower: Any, tie: float, rng: Any) -> tuple[int, int]:
    """UGapE's choice: b has the smallest bound on its gap, c is its challenger (NONE for one action).

    b = argmin_b [ max_{a != b} U(a) - L(b) ],  c = argmax_{c != b} U(c), ties within `tie` broken
    uniformly at random.
    """
    best = 0
    if upper.size == 1:
        return best, NONE
    first, second = _two_largest(upper)
    least = np.inf
    ties = 0
    for a in range(upper.size):
        gap = (upper[second] if a == first else upper[first]) - lower[a]
        if gap < least - tie:
            best = a
            least = gap
            ties = 1
        elif gap <= least + tie:
            least = min(least, gap)
            ties += 1
            if rng.random() * ties < 1.0:
                best = a
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


@inlined
def gap_of(upper: Any, lower: Any, best: int) -> float:
    """max_{a != b} U(a) - L(b), at most 0 for a single action.

    The largest rival, not the challenger: that may be any of those that are nearly tied.
    """
    rival = -np.inf
    for a in range(upper.size):
        if a != best:
            rival = max(rival, upper[a])
    return float(rival - lower[best])
