"""Powers and logarithms of many numbers, as the C library computes them one by one.

NumPy's own differ in the last bit from one of its versions to another, where processors have wide
vectors. What a search goes by is made with these instead, so that its plans do not depend on that.
"""

import math

import numpy as np
from numpy.typing import NDArray


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The natural logarithm of each number, which must be positive."""
    return np.array(list(map(math.log, x.tolist())), np.float64)


def log1p(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(1 + x) of each number, which must exceed -1."""
    return np.array(list(map(math.log1p, x.tolist())), np.float64)


def powers(base: float, count: int) -> NDArray[np.float64]:
    """1, base, base^2, ..., as many as that."""
    return np.array([float(base) ** k for k in range(count)])
