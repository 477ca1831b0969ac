"""A walk with Gaussian noise, in which no state is ever seen twice, and its exact values."""

from math import exp

import numba
import numpy as np

import pacplan

START, GAMMA = 1.3, 0.9
UNIT = 1e-6  # of the states of the jitted walk, which are whole numbers


def step(x, action, rng):
    x += action - 1 + 0.5 * rng.standard_normal()
    return x, exp(-x * x), False


@numba.njit
def jitted_step(state, action, rng):
    x = state * UNIT + action - 1 + 0.5 * rng.standard_normal()
    return np.int64(round(x / UNIT)), np.exp(-x * x), False


def walk(jitted=True):
    """x' = x + a + N(0, 1/4), a in {-1, 0, 1}, paying exp(-x'^2)."""
    return pacplan.Simulator(
        jitted_step if jitted else step,
        actions=3,
        successors=None,
        may_end=False,
        initial=round(START / UNIT) if jitted else START,
    )


def walk_values(horizon):
    """Q of the three actions at the start, by quadrature."""
    x = np.linspace(-8.0, 10.0, 3601)
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    values = np.zeros_like(x)
    for _ in range(horizon):
        q = []
        for move in (-1.0, 0.0, 1.0):
            after = x[:, np.newaxis] + move + 0.5 * nodes
            paid = np.exp(-after * after) + GAMMA * np.interp(after, x, values)
            q.append(paid @ weights / weights.sum())
        values = np.max(q, axis=0)
    return np.array([np.interp(START, x, row) for row in q])
