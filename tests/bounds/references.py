"""References for confidence sets that share nothing with the solvers, and random questions."""

import math
from decimal import Decimal, localcontext

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

ACCURACY = 1e-9
# Digits of the high-precision references, and what they may be wrong by.
DIGITS = 40
REFERENCE_ERROR = Decimal("1e-22")
# Derandomised, so that a failure does not come and go.
PROPERTY = settings(derandomize=True, deadline=None, max_examples=300)

# Smaller radii than 1e-18 would make intervals that are narrower than the distance of two floats.
radii = st.one_of(st.just(0.0), st.floats(-18, 2).map(lambda x: 10.0**x), st.floats(1e-9, 60))
means = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5]),
    st.floats(0, 1),
    st.floats(-17, 0).map(lambda x: 10.0**x),
    st.floats(-16, 0).map(lambda x: 1.0 - 10.0**x),
)


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
    kind = rng.integers(6)
    if kind == 0:
        return float(rng.choice([0.0, 1.0, 0.5]))
    if kind == 1:
        return float(10 ** -rng.uniform(0, 17))
    if kind == 2:
        return float(1 - 10 ** -rng.uniform(0, 16))
    if kind == 3:
        n = rng.integers(1, 50)
        return float(rng.integers(0, n + 1) / n)
    return float(rng.random())


def random_radius(rng: np.random.Generator, least: float) -> float:
    kind = rng.integers(4)
    if kind == 0:
        return float(rng.choice([0.0, 1e-12, 50.0]))
    if kind == 1:
        return float(10 ** rng.uniform(math.log10(least), 0))
    return float(rng.random() if kind == 2 else 10 ** rng.uniform(-2, 2))
