"""The intervals for users: the same solvers as in the kernels, with checked arguments.

They are interpreted, which takes some microseconds: a kernel would take a second to compile.
"""

import numpy as np
from numpy.typing import ArrayLike

from pacplan.bounds import bernoulli, simplex
from pacplan.compiled.interpreted import interpreted
from pacplan.core import checks

kl_upper, kl_lower = interpreted(bernoulli.kl_upper), interpreted(bernoulli.kl_lower)
ball_max = interpreted(simplex.ball_max)


def mean_interval(mean: float, radius: float) -> tuple[float, float]:
    """All q with kl(mean, q) <= radius, as (lowest, highest).

    Args:
        mean: a mean of draws in [0, 1].
        radius: threshold / n, at least 0.
    """
    p, c = checks.within_one("mean", mean), checks.at_least_zero("radius", radius)
    return float(kl_lower(p, c)), float(kl_upper(p, c))


def expectation_interval(
    probabilities: ArrayLike,
    values: ArrayLike,
    radius: float,
    unseen: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """Smallest and largest p.values over { p : KL(probabilities, p) <= radius }.

    Args:
        probabilities: empirical ones of the outcomes seen; they sum to 1.
        values: of these outcomes.
        radius: threshold / n, at least 0.
        unseen: lowest and highest value of an unseen outcome; None if all were seen.
    """
    p, f = np.array(probabilities, np.float64), np.array(values, np.float64)
    sums = p.ndim == 1 and p.size > 0 and (p >= 0.0).all() and abs(p.sum() - 1.0) <= 1e-9
    if not sums or p.shape != f.shape or not np.isfinite(f).all():
        raise ValueError(
            "probabilities must be a list of numbers that are at least 0 and sum to 1, and values as "
            f"many finite numbers; got shapes {p.shape}, {f.shape}"
        )
    hidden = f[p == 0.0].tolist()
    f, p = f[p > 0.0].tolist(), p[p > 0.0].tolist()
    if unseen is not None:
        hidden += [checks.real("unseen", value) for value in unseen]
    low, high = min(hidden, default=np.inf), max(hidden, default=-np.inf)
    c = checks.at_least_zero("radius", radius)
    lowest = -ball_max(p, [-x for x in f], len(p), -low, c)
    return float(lowest), float(ball_max(p, f, len(p), high, c))
