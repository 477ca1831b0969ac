"""How large and how small a value can be before anything was seen of it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class ValueRange(NamedTuple):
    """Bounds on what can still be earned with k steps to go, entries k = 0..H, in the user's units.

    A *node* is a state in which an action is still to be taken. An *outcome* may also be the end of
    the episode, after which nothing is earned. With rewards in [0, 1] both lie in [0, sigma_k],
    sigma_k = 1 + gamma + ... + gamma^(k-1).
    """

    node_upper: NDArray[np.float64]
    node_lower: NDArray[np.float64]
    outcome_upper: NDArray[np.float64]
    outcome_lower: NDArray[np.float64]


def value_range(
    reward_range: tuple[float, float], may_end: bool, gamma: float, horizon: int
) -> ValueRange:
    """The range of values of a model with these rewards."""
    low, high = reward_range
    end = 0.0 if may_end else None
    node_upper, node_lower, outcome_upper, outcome_lower = [0.0], [0.0], [0.0], [0.0]
    for _ in range(horizon):
        up = high + gamma * outcome_upper[-1]
        down = low + gamma * outcome_lower[-1]
        node_upper.append(up)
        node_lower.append(down)
        outcome_upper.append(up if end is None else max(up, end))
        outcome_lower.append(down if end is None else min(down, end))
    return ValueRange(*map(np.array, (node_upper, node_lower, outcome_upper, outcome_lower)))


def step_width(reward_range: tuple[float, float], may_end: bool) -> float:
    """By how much two policies can differ in one step.

    It is the width of the rewards, 0 counting as one of them if the episode may have ended.
    """
    low, high = reward_range
    return max(high, 0.0) - min(low, 0.0) if may_end else high - low
