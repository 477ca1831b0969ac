"""Powers, logarithms and exponentials of many numbers, as the C library computes them one by one.

NumPy's own differ in the last bit from one of its versions to another, where processors have wide
vectors. What a search goes by is made with these instead, so that its plans do not depend on that.
"""

# Under names that are not those of the functions below: a kernel's place in the cache depends on all
# that its names can mean here.
from math import exp as _exp
from math import log as _log
from math import log1p as _log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import kernel
from pacplan.compiled.tiered import ready

# Fewer numbers do not pay for a kernel. No search waits for it.
_MANY = 2_000


def powers(base: float, count: int) -> NDArray[np.float64]:
    """1, base, base^2, ..., as many as that."""
    return np.array([float(base) ** k for k in range(count)])


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The natural logarithm of each number, which must be positive."""
    return _of_each(0, x)


def log1p(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(1 + x) of each number, which must exceed -1."""
    return _of_each(1, x)


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exponential of each number."""
    return _of_each(2, x)


def _of_each(which: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    numbers = np.array(x, np.float64)
    flat = numbers.reshape(-1)
    if numbers.size > _MANY and ready(_replace, (which, flat), late=True):
        _replace(which, flat)
    else:
        flat[:] = list(map((_log, _log1p, _exp)[which], flat.tolist()))
    return numbers


@kernel
def _replace(which: int, numbers: Any) -> None:
    """Replace each number by its log, log1p or exp."""
    for i in range(numbers.size):
        if which == 0:
            numbers[i] = _log(numbers[i])
        elif which == 1:
            numbers[i] = _log1p(numbers[i])
        else:
            numbers[i] = _exp(numbers[i])
