"""Families of problems over an infinite horizon, in few states that recur."""

from typing import Any

import numpy as np
from numpy.random import Generator

from pacplan import exact
from pacplan.models.protocol import Model
from pacplan.models.tabular import TabularMDP
from pacplan.testing.problems import Case, Family

_DELTA, _STRICTER = 0.3, 0.1
# Calls after which a plan is stopped, whatever it has proven.
_BUDGET = 3000


class Hidden(Model):
    """A table that nobody sees, nor knows more of than how many successors or states there are."""

    compiled = True

    def __init__(
        self, table: TabularMDP, successors: int | None = None, states: int | None = None
    ) -> None:
        names = ("max_actions", "same_actions", "reward_range", "may_end", "steps", "stationary")
        for name in (*names, "two_player", "initial_state", "actions", "open", "fingerprint"):
            setattr(self, name, getattr(table, name))
        self.successors, self.states = successors, states


def _shown(rng: Generator, table: TabularMDP, reached: int) -> Any:
    """A table, or a simulator of which the number of states is known, or nothing."""
    return [table, Hidden(table), Hidden(table, states=reached)][int(rng.integers(3))]


def _case(
    table: TabularMDP, model: Any, epsilon: float, delta: float, gamma: float, **others: Any
) -> Case:
    """A case in state 0 of a table, over an infinite horizon."""
    values = exact.discounted(table, gamma=gamma)[0, list(table.actions(0))]
    others = {"budget": _BUDGET} | others
    return Case(model, 0, values, epsilon, delta, gamma, None, table=table, **others)


def _table(rng: Generator) -> tuple[TabularMDP, float]:
    """Two or three states, and perhaps an end; one of them may be visited again and again."""
    states, actions, ends = int(rng.integers(2, 4)), int(rng.integers(2, 4)), rng.random() < 0.5
    low, high = [(0.0, 1.0), (-1.0, 0.0), (-2.0, 1.0)][int(rng.integers(3))]
    p = rng.dirichlet(np.ones(states + ends), (states + ends, actions))
    if rng.random() < 0.5:
        often = int(rng.integers(states))
        p *= 0.3
        p[..., often] += 0.7
    rewards = low + (high - low) * rng.random(p.shape[:2])
    terminal = [states] if ends else None
    noise = ("none", "bernoulli")[int(rng.integers(2))]
    table = TabularMDP(p, rewards, None, terminal, noise, reward_range=(low, high))  # type: ignore[arg-type]
    return table, high - low


def _close(rng: Generator) -> tuple[TabularMDP, float, float]:
    """A problem whose best actions differ by just more than epsilon, and its discount."""
    while True:
        gamma = (0.5, 0.7, 0.85)[int(rng.integers(3))]
        table, width = _table(rng)
        second, first = np.sort(exact.discounted(table, gamma=gamma)[0])[-2:]
        epsilon = (first - second) / rng.uniform(1.001, 1.3)
        if epsilon * (1.0 - gamma) / width > 0.08:
            return table, float(epsilon), gamma


def _recurring(rng: Generator, delta: float) -> Case:
    table, epsilon, gamma = _close(rng)
    model = _shown(rng, table, table.states - table.may_end)
    adversary = ("nobody", "truth")[int(rng.integers(2))]
    return _case(table, model, epsilon, delta, gamma, adversary=adversary)


def _valued(rng: Generator, delta: float) -> Case:
    gamma = (0.5, 0.7)[int(rng.integers(2))]
    table, width = _table(rng)
    epsilon = float(width / (1.0 - gamma) * rng.uniform(0.05, 0.15))
    model = _shown(rng, table, table.states - table.may_end)
    return _case(table, model, epsilon, delta, gamma, settings={"goal": "value"})


def _late_table(rng: Generator) -> tuple[TabularMDP, float, float]:
    """Action 1 leads to a state that is seen late, for good: a jackpot, or a trap.

    Without that state the other action would be the better one. Returns the largest epsilon that
    does not allow for it, and the discount.
    """
    gamma, rate = rng.uniform(0.8, 0.9), 1.0 / rng.uniform(40.0, 200.0)
    jackpot = rng.random() < 0.5
    # State 1 is a second one like the root, so that there is something to learn.
    p = np.zeros((3, 2, 3))
    p[:2, :, :2] = rng.dirichlet((2.0, 2.0), (2, 2))
    p[0, 1, :2] *= 1.0 - rate
    p[0, 1, 2] = rate
    p[2, :, 2] = 1.0
    rewards = np.full((3, 2), 0.3 if jackpot else 0.7)
    rewards[2] = 1.0 if jackpot else 0.0
    # What the state makes of action 1, half of which it pays less than the other, or more.
    worth = rate * gamma * (rewards[2, 0] - rewards[0, 0]) / (1.0 - gamma)
    rewards[0, 1] -= 0.5 * worth
    table = TabularMDP(p, rewards)
    values = exact.discounted(table, gamma=gamma)
    loss = abs(float(values[0, 1] - values[0, 0]))
    return table, loss / rng.uniform(1.001, 1.2), gamma


def _late(rng: Generator, delta: float) -> Case:
    table, epsilon, gamma = _late_table(rng)
    model = Hidden(table, states=(None, 3)[int(rng.integers(2))])
    return _case(table, model, epsilon, delta, gamma)


def _late_bounded(rng: Generator, delta: float) -> Case:
    """What bounds the values of the states seen at first does not bound that of the late one."""
    table, epsilon, gamma = _late_table(rng)
    values = exact.discounted(table, gamma=gamma).max(1)
    slack = (0.0, 0.1, 1.0)[int(rng.integers(3))]

    def lower(state: int) -> float:
        return float(values[state]) - slack

    def upper(state: int) -> float:
        return float(values[state]) + slack

    settings = {"value_bounds": (lower, upper)}
    return _case(table, Hidden(table), epsilon, delta, gamma, settings=settings)


def _late_steps(rng: Generator, delta: float) -> Case:
    """The same with few steps, each of which counts in full."""
    horizon, rate = int(rng.integers(3, 7)), 1.0 / rng.uniform(10.0, 50.0)
    jackpot = rng.random() < 0.5
    p = np.zeros((3, 2, 3))
    p[0, :, 1] = 1.0
    p[0, 1, 1:] = 1.0 - rate, rate
    p[1, :, 1] = p[2, :, 2] = 1.0
    rewards = np.full((3, 2), 0.3 if jackpot else 0.7)
    rewards[2] = 1.0 if jackpot else 0.0
    worth = rate * (horizon - 1) * (rewards[2, 0] - rewards[0, 0])
    rewards[0, 1] -= 0.5 * worth
    table = TabularMDP(p, rewards)
    values = exact.finite_horizon(table, gamma=1.0, horizon=horizon)[0, 0]
    epsilon = 0.5 * abs(worth) / rng.uniform(1.001, 1.2)
    return Case(Hidden(table), 0, values, epsilon, delta, 1.0, horizon, budget=1500, table=table)


RECURRING = (
    Family("recurring", "few states, for ever", _DELTA, _recurring, endless=True),
    Family(
        "recurring-value",
        "the same, and the goal is the value",
        _DELTA,
        _valued,
        frozenset({"goal"}),
        endless=True,
    ),
    Family("late", "a state that is seen late decides", _STRICTER, _late, endless=True),
    Family(
        "late-bounded",
        "the same, with value bounds",
        _STRICTER,
        _late_bounded,
        frozenset({"value_bounds"}),
        endless=True,
    ),
    Family("late-steps", "the same, with few steps", _STRICTER, _late_steps, untold=True),
)
"""All of them."""
