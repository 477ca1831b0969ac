"""References for confidence sets that share nothing with the solvers, and random questions."""

import math
from decimal import Decimal, localcontext

import numpy as np

ACCURACY = 1e-9
# Digits of the high-precision references, and what they may be wrong by.
DIGITS = 40
REFERENCE_ERROR = Decimal("1e-22")


def exact_kl(p: Decimal, q: Decimal) -> Decimal:
    total = Decimal(0)
    if p > 0:
        total += p * (p / q).ln()
    if p < 1:
        total += (1 - p) * ((1 - p) / (1 - q)).ln()
    return total


def assert_outer_and_tight(p: float, c: float, upper: float, lower: float | None = None) -> None:
    """Both ends, in exact arithmetic: not inside the interval, and outside it by ACCURACY at most.

    kl(p, .) increases away from p, so comparing it with c tells on which side of the root a point is.
    """
    with localcontext(prec=DIGITS):
        mean, radius, slack = Decimal(p), Decimal(c), Decimal(ACCURACY)
        ends = [(mean, Decimal(upper))]
        if lower is not None:
            ends.append((1 - mean, 1 - Decimal(lower)))  # Mirrored, it is an upper end.
        for centre, end in ends:
            assert centre <= end <= 1
            if end < 1:
                assert exact_kl(centre, end) >= radius
            if end - slack > centre:
                assert exact_kl(centre, end - slack) <= radius


def random_mean(rng: np.random.Generator) -> float:
    n = int(rng.integers(1, 50))
    kinds = rng.choice([0.0, 1.0, 0.5]), 10 ** -rng.uniform(0, 17), 1 - 10 ** -rng.uniform(0, 16)
    return float(rng.choice([*kinds, rng.integers(0, n + 1) / n, rng.random(), rng.random()]))


def random_radius(rng: np.random.Generator, least: float) -> float:
    small, large = 10 ** rng.uniform(math.log10(least), 0), 10 ** rng.uniform(-2, 2)
    return float(rng.choice([rng.choice([0.0, 1e-12, 50.0]), small, rng.random(), large]))
