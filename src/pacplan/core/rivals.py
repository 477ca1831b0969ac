"""Who stands against the action taken."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def challenger(upper: NDArray[np.float64], best: int) -> int | None:
    """Index of the largest upper bound among the other actions; None if alone."""
    others: list[Any] = [i for i in range(len(upper)) if i != best]
    return max(others, key=lambda i: float(upper[i])) if others else None
