"""Solutions that are found once and looked up afterwards.

A search asks for the same intervals over and over: of k draws out of n, for small n, and of the same
mean reward after the same number of visits in other parts of the tree. What is stored is a function of
its question alone, so no result depends on what was asked before.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.bounds.bernoulli import kl_upper
from pacplan.compiled.jit import inlined

# Intervals of more visits than this are not kept: then the last solution is a good start.
MOST_VISITS = 128
_MEANS = 2048

MEAN = np.dtype([("mean", np.float64), ("upper", np.float64), ("lower", np.float64), ("n", np.int64)])


class Memo(NamedTuple):
    """Known solutions, for one table of radii.

    `shares` holds the upper end for k of n draws at place n (n - 1) / 2 + k, 0 if it is not known yet.
    `means` holds intervals of real means, each in the one place that its question hashes to.
    """

    shares: NDArray[np.float64]
    means: NDArray[Any]


def new_memo() -> Memo:
    """An empty memo."""
    return Memo(np.zeros(MOST_VISITS * (MOST_VISITS + 1) // 2), np.zeros(_MEANS, MEAN))


@inlined
def share_upper(memo: Memo, k: int, n: int, c: float) -> float:
    """max{ q : kl(k/n, q) <= c } for 0 < k < n <= MOST_VISITS, c being the radius of n."""
    place = n * (n - 1) // 2 + k
    q = memo.shares[place]
    if q == 0.0:
        q = kl_upper(k / n, c)
        memo.shares[place] = q
    return float(q)


@inlined
def mean_bounds(memo: Memo, mean: float, n: int, c: float) -> tuple[float, float]:
    """Both ends of the interval of a mean in (0, 1) after n visits, c being the radius of n."""
    entry = memo.means[(int(mean * 4294967296.0) * 40503 + int(n) * 977) & (_MEANS - 1)]
    if entry.mean != mean or entry.n != n:
        entry.upper = kl_upper(mean, c)
        entry.lower = 1.0 - kl_upper(1.0 - mean, c)
        entry.mean = mean
        entry.n = n
    return entry.upper, entry.lower
