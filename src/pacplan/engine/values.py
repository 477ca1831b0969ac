"""How large and how small a value can be before anything is known of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bounds on what can still be earned with k steps to go, record k = 0..H, in the user's units. A
# *node* is a state in which an action is still to be taken; an *outcome* may also be the end of the
# episode, after which nothing is earned. With rewards in [0, 1] both lie in [0, sigma_k],
# sigma_k = 1 + gamma + ... + gamma^(k-1).
VALUE_RANGE = np.dtype(
    [(name, np.float64) for name in ("node_upper", "node_lower", "outcome_upper", "outcome_lower")]
)


def value_range(
    reward_range: tuple[float, float], may_end: bool, gamma: float, horizon: int
) -> NDArray[Any]:
    """The range of values of a model with these rewards: records of `VALUE_RANGE`."""
    low, high = reward_range
    up = down = 0.0
    rows = [(0.0, 0.0, 0.0, 0.0)]
    for _ in range(horizon):
        best, worst = high + gamma * up, low + gamma * down
        up, down = (max(best, 0.0), min(worst, 0.0)) if may_end else (best, worst)
        rows.append((best, worst, up, down))
    return np.array(rows, VALUE_RANGE)


def step_range(reward_range: tuple[float, float], may_end: bool) -> tuple[float, float]:
    """What a step can pay: a reward, or 0 if the episode may have ended."""
    low, high = reward_range
    return (min(low, 0.0), max(high, 0.0)) if may_end else (low, high)


def step_width(reward_range: tuple[float, float], may_end: bool) -> float:
    """By how much two policies can differ in one step."""
    low, high = step_range(reward_range, may_end)
    return high - low


def discounted_steps(gamma: float, horizon: int | None) -> float:
    """How many steps count: 1 + gamma + ... + gamma^(H-1), for ever if the horizon is None."""
    if gamma == 1.0:
        assert horizon is not None
        return float(horizon)
    return (1.0 - (0.0 if horizon is None else gamma**horizon)) / (1.0 - gamma)
