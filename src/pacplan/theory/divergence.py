"""The law nearest to a given one among those with another mean, and how far away it is."""

import math
from collections.abc import Sequence
from operator import mul

# Newton's method doubles its digits; halving alone would take 60 steps.
_STEPS = 100


def bernoulli(p: float, q: float) -> float:
    """kl(p, q) = p log(p/q) + (1-p) log((1-p)/(1-q)), the divergence of two coins."""
    heads = p * math.log(p / q) if p > 0.0 else 0.0
    tails = (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0
    return heads + tails


def divergence(chances: Sequence[float], law: Sequence[float]) -> float:
    """KL(P, P') = sum_j P_j log(P_j / P'_j); finite only if P' gives all that P gives."""
    pairs = zip(chances, law, strict=True)
    return sum(p * math.log(p / q) if q > 0.0 else math.inf for p, q in pairs if p > 0.0)


def nearest_below(
    chances: Sequence[float], scores: Sequence[float], target: float
) -> tuple[float, list[float]]:
    """The P' nearest to P, by KL(P, P'), under which the mean score is at most `target`.

    In its dual form, with the target t above the lowest score,

        min KL(P, P') = max over 0 <= eta <= 1 / (t - min s) of  sum_j P_j log(1 + eta (s_j - t))

    and P'_j = P_j / (1 + eta (s_j - t)) for all but the lowest scores, which share what is missing to 1
    as they share their probability under P.

    Returns:
        eta, which is also the derivative of the divergence by -t, and P'. 0 and P itself if its mean
        is no larger than the target.
    """
    if sum(map(mul, chances, scores)) <= target:
        return 0.0, list(chances)
    floor = min(scores)
    width = target - floor
    if width <= 0.0:
        raise ValueError(f"no law has a mean of {target}: the lowest score is {floor}")
    outcomes = list(zip(chances, scores, strict=True))
    share = _steepest([(p, (s - target) / width) for p, s in outcomes if p > 0.0])
    law = [
        p / (1.0 + share * (s - target) / width) if p > 0.0 and s > floor else 0.0 for p, s in outcomes
    ]
    # What is missing to 1 is better known than a quotient near 0/0.
    rest = max(0.0, 1.0 - sum(law))
    lowest = [j for j, s in enumerate(scores) if s == floor]
    before = sum(chances[j] for j in lowest)
    for j in lowest:
        law[j] = rest * (chances[j] / before if before > 0.0 else 1.0 / len(lowest))
    total = sum(law)
    return share / width, [q / total for q in law]


def _steepest(given: Sequence[tuple[float, float]]) -> float:
    """The u in [0, 1] at which sum p log(1 + u x) is largest, for pairs (p, x) with x >= -1.

    It is eta as a part of the largest one. The derivative has a pole at 1 if P ever gives the lowest
    score. Times 1 - u it has none, and is nearly a straight line for Newton's method.
    """
    if min(x for _, x in given) > -1.0 and sum(p * x / (1.0 + x) for p, x in given) >= 0.0:
        return 1.0
    low, high, u = 0.0, 1.0, 0.5
    for _ in range(_STEPS):
        slope = curvature = 0.0
        for p, x in given:
            y = x / (1.0 + u * x)
            slope += p * y
            curvature += p * y * y
        if slope > 0.0:
            low = u
        else:
            high = u
        following = u + slope * (1.0 - u) / (curvature * (1.0 - u) + slope)
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - u) <= 1e-14 * u:
            break
        u = following
    return u
