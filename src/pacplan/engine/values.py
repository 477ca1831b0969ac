"""How large and how small a value can be before anything is known of it."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bounds on what can still be earned with k steps to go, record k = 0..H, in the user's units. A
# *node* is a state in which an action is still to be taken; an *outcome* may also be the end of the
# episode, after which nothing is earned. With rewards in [0, 1] both lie in [0, sigma_k],
# sigma_k = 1 + gamma + ... + gamma^(k-1).
VALUE_RANGE = np.dtype(
    [
        ("node_upper", np.float64),
        ("node_lower", np.float64),
        ("outcome_upper", np.float64),
        ("outcome_lower", np.float64),
    ]
)


@lru_cache(maxsize=64)
def value_range(
    reward_range: tuple[float, float], may_end: bool, gamma: float, horizon: int
) -> NDArray[Any]:
    """The range of values of a model with these rewards: records of `VALUE_RANGE`.

    Plans with the same settings share it, so it must not be written to.
    """
    low, high = reward_range
    ups, downs = [0.0], [0.0]
    up = down = 0.0
    for _ in range(horizon):
        up, down = high + gamma * up, low + gamma * down
        ups.append(up)
        downs.append(down)
        if may_end:
            up, down = max(up, 0.0), min(down, 0.0)
    ranges = np.zeros(horizon + 1, VALUE_RANGE)
    ranges["node_upper"] = ranges["outcome_upper"] = ups
    ranges["node_lower"] = ranges["outcome_lower"] = downs
    if may_end:
        ranges["outcome_upper"] = np.maximum(ranges["outcome_upper"], 0.0)
        ranges["outcome_lower"] = np.minimum(ranges["outcome_lower"], 0.0)
    return ranges


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
