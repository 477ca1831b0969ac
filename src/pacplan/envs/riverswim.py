"""A swimmer against the current: a small problem that is hard to explore."""

import numpy as np

from pacplan.core import checks
from pacplan.models.tabular import TabularMDP

LEFT, RIGHT = range(2)


def riverswim(states: int = 6) -> TabularMDP:
    """Swim upstream for a large reward, or drift down to a tiny one that is always there.

    The problem of Strehl and Littman ("An analysis of model-based interval estimation for Markov
    decision processes", Journal of Computer and System Sciences, 2008), with their rewards of 5 and
    10,000 divided by 10,000. Going left (action 0) always succeeds, and pays 0.0005 in the leftmost
    state, 0. Going right (action 1) advances with probability 0.3, stays with 0.6 and drifts back
    with 0.1; in the leftmost state it stays with 0.7, and in the rightmost it stays with 0.3, which
    pays 1, and drifts back with 0.7. There they start in one of the states 1 and 2 at random; the
    default initial state is 1.

    Args:
        states: places along the river, 6 in the paper.
    """
    n = checks.integer("states", states, least=2, most=checks.LARGEST)
    last = n - 1
    place = np.arange(n)
    back, ahead = np.maximum(place - 1, 0), np.minimum(place + 1, last)
    successors = np.stack([back, place, ahead], axis=-1)[:, np.newaxis].repeat(2, axis=1)
    probabilities = np.zeros((n, 2, 3))
    probabilities[:, LEFT] = [1.0, 0.0, 0.0]
    probabilities[:, RIGHT] = [0.1, 0.6, 0.3]
    probabilities[0, RIGHT] = [0.0, 0.7, 0.3]
    probabilities[last, RIGHT] = [0.7, 0.3, 0.0]
    rewards = np.zeros((n, 2, 3))
    rewards[0, LEFT] = 0.0005
    rewards[last, RIGHT, 1] = 1.0
    return TabularMDP(probabilities, rewards, successors=successors, initial=1)
