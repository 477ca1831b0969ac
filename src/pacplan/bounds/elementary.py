"""Powers, logarithms and exponentials of many numbers, as the C library computes them one by one.

NumPy's own differ in the last bit from one of its versions to another, where processors have wide
vectors. What a search goes by is made with these instead, so that its plans do not depend on that.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def powers(base: float, count: int) -> NDArray[np.float64]:
    """1, base, base^2, ..., as many as that."""
    return np.array([float(base) ** k for k in range(count)])


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The natural logarithm of each number, which must be positive."""
    return _of_each(math.log, x)


def log1p(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(1 + x) of each number, which must exceed -1."""
    return _of_each(math.log1p, x)


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exponential of each number."""
    return _of_each(math.exp, x)


def _of_each(function: Callable[[float], float], x: NDArray[np.float64]) -> NDArray[np.float64]:
    numbers = np.asarray(x, np.float64)
    return np.array([function(number) for number in numbers.ravel().tolist()]).reshape(numbers.shape)
