"""Exact dynamic programming for tabular models: the independent check for everything else."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core import checks
from pacplan.models.protocol import Model, Table


def finite_horizon(model: Table, *, gamma: float, horizon: int) -> NDArray[np.float64]:
    """Optimal action values of the problem of H steps, the paper's Q_h (section 2).

        Q_h(s, a) = r_h(s, a) + gamma sum_s' p_h(s' | s, a) max_a' Q_{h+1}(s', a'),   Q_{H+1} = 0

    Returns:
        Array of shape (H, S, A); entry 0 is Q_1. Terminal states have value 0, and actions that a
        state does not offer minus infinity.

    Raises:
        TypeError: the model publishes no table. (All functions of this module raise it.)
        ValueError: an argument out of range, or a model of two players.
    """
    check_tables(model)
    discount = checks.within_one("gamma", gamma)
    steps = checks.integer("horizon", horizon, least=1)
    if model.steps is not None and steps > model.steps:
        raise ValueError(f"horizon must be at most the model's {model.steps} steps, got {steps}")
    rewards, probabilities, successors = model.sparse()
    values = np.zeros(model.states)
    result = np.empty((steps, *rewards.shape[-2:]))
    for h in range(steps - 1, -1, -1):
        at = ... if model.steps is None else h
        expected = (probabilities[at] * values[successors[at]]).sum(-1)
        result[h] = rewards[at] + discount * expected
        values = result[h].max(-1)
    return result


def discounted(model: Table, *, gamma: float, tolerance: float = 1e-12) -> NDArray[np.float64]:
    """Optimal action values of the infinite-horizon discounted problem, (S, A), by value iteration.

    Args:
        model: a stationary model.
        gamma: discount, in [0, 1).
        tolerance: largest error of the result, up to rounding.
    """
    return _iterate(model, gamma, tolerance, lambda values: np.asarray(values.max(-1)))


def entropy_regularised(
    model: Table, *, gamma: float, temperature: float, tolerance: float = 1e-12
) -> NDArray[np.float64]:
    """Action values of the discounted problem with an entropy bonus, (S, A), by soft value iteration.

        Q(s, a) = r(s, a) + gamma sum_s' p(s' | s, a) V(s')
        V(s) = lambda log sum_a exp(Q(s, a) / lambda)

    This is what `SmoothCruiser` estimates (Grill et al. 2019). After the end nothing is earned.

    Args:
        model: a stationary model.
        gamma: discount, in [0, 1).
        temperature: lambda, in the model's reward units.
        tolerance: largest error of the result, up to rounding.
    """
    scale = checks.positive("temperature", temperature)

    def smooth_max(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(scale * np.logaddexp.reduce(values / scale, axis=-1))

    return _iterate(model, gamma, tolerance, smooth_max)


def gaps(model: Table, *, gamma: float, horizon: int) -> NDArray[np.float64]:
    """Suboptimality gaps Delta_h(s, a) = max_b Q_h(s, b) - Q_h(s, a) (section 4), (H, S, A)."""
    values = finite_horizon(model, gamma=gamma, horizon=horizon)
    return np.asarray(values.max(-1, keepdims=True) - values)


def check_tables(model: Any) -> None:
    """Raise unless the model has tables, and a single player."""
    if not (isinstance(model, Model) and model.known):
        raise TypeError(
            "exact values need a table: the model must be a TabularMDP, or publish its table like one; "
            f"got {model!r:.120}"
        )
    if model.two_player:
        raise ValueError("exact values need a model with one player, but this one is a game of two")


def _iterate(
    model: Table,
    gamma: float,
    tolerance: float,
    best: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """The fixed point of Q = r + gamma P best(Q), for a `best` that changes by no more than Q does."""
    check_tables(model)
    discount = checks.within_one("gamma", gamma)
    if discount == 1.0:
        raise ValueError("the infinite-horizon problem needs gamma < 1; use finite_horizon")
    if model.steps is not None:
        raise ValueError("the model is not stationary; use finite_horizon")
    checks.at_least_zero("tolerance", tolerance)
    rewards, probabilities, successors = model.sparse()
    values = np.zeros(model.states)
    while True:
        # Terminal states are never entered: their transitions have probability 0 here.
        result = rewards + discount * (probabilities * values[successors]).sum(-1)
        change = np.abs(best(result) - values).max()
        values = best(result)
        # The error is at most gamma / (1 - gamma) times the last change; rounding sets a floor to both.
        rounding = 4.0 * np.finfo(np.float64).eps * np.abs(values).max()
        if discount * change <= max(tolerance * (1.0 - discount), rounding):
            return np.asarray(result)
