"""Families of problems over an infinite horizon, in few states that recur."""

from typing import Any

import numpy as np
from numpy.random import Generator

from pacplan import exact
from pacplan.models.tabular import TabularMDP
from pacplan.testing.problems import Case, Family, Hidden, choose, tabular_case

_BUDGET = 3000


def _seen(rng: Generator, table: TabularMDP) -> Any:
    """A table, or a simulator of which the number of states is known, or nothing."""
    reached = table.states - table.may_end
    return choose(rng, [table, Hidden(table), Hidden(table, states=reached)])


def _table(rng: Generator) -> tuple[TabularMDP, float]:
    """Two or three states, and perhaps an end; one of them may be visited again and again."""
    states, actions, ends = int(rng.integers(2, 4)), int(rng.integers(2, 4)), rng.random() < 0.5
    low, high = choose(rng, [(0.0, 1.0), (-1.0, 0.0), (-2.0, 1.0)])
    p = rng.dirichlet(np.ones(states + ends), (states + ends, actions))
    if rng.random() < 0.5:
        often = int(rng.integers(states))
        p *= 0.3
        p[..., often] += 0.7
    rewards = low + (high - low) * rng.random(p.shape[:2])
    terminal = [states] if ends else None
    noise = choose(rng, ("none", "bernoulli"))
    table = TabularMDP(p, rewards, None, terminal, noise, reward_range=(low, high))
    return table, high - low


def _recurring(rng: Generator, delta: float) -> Case:
    """The best actions differ by just more than epsilon."""
    epsilon = gamma = 0.0
    while epsilon * (1.0 - gamma) <= 0.08:
        gamma = choose(rng, (0.5, 0.7, 0.85))
        table, width = _table(rng)
        second, first = np.sort(exact.discounted(table, gamma=gamma)[0])[-2:]
        loss = float(first - second) / rng.uniform(1.001, 1.3)
        epsilon = loss / width
    model = _seen(rng, table)
    watched = choose(rng, (False, True))
    return tabular_case(
        table, delta, loss, None, gamma=gamma, model=model, budget=_BUDGET, watched=watched
    )


def _valued(rng: Generator, delta: float) -> Case:
    gamma = choose(rng, (0.5, 0.7))
    table, width = _table(rng)
    epsilon = float(width / (1.0 - gamma) * rng.uniform(0.05, 0.15))
    others: dict[str, Any] = {"model": _seen(rng, table), "settings": {"goal": "value"}}
    return tabular_case(table, delta, epsilon, None, gamma=gamma, budget=_BUDGET, **others)


def _late_rewards(rng: Generator) -> Any:
    """State 2 is seen late, and there for good: a jackpot, or a trap."""
    jackpot = rng.random() < 0.5
    rewards = np.full((3, 2), 0.3 if jackpot else 0.7)
    rewards[2] = 1.0 if jackpot else 0.0
    return rewards


def _late_table(rng: Generator) -> tuple[TabularMDP, float, float]:
    """Action 1 leads to a state that is seen late, and without which action 0 would be better.

    Returns the largest epsilon that does not allow for it, and the discount.
    """
    gamma, rate = rng.uniform(0.8, 0.9), 1.0 / rng.uniform(40.0, 200.0)
    rewards = _late_rewards(rng)
    # State 1 is a second one like the root, so that there is something to learn.
    p = np.zeros((3, 2, 3))
    p[:2, :, :2] = rng.dirichlet((2.0, 2.0), (2, 2))
    p[0, 1, :2] *= 1.0 - rate
    p[0, 1, 2] = rate
    p[2, :, 2] = 1.0
    # What the state makes of action 1, half of which it pays less than the other, or more.
    rewards[0, 1] -= 0.5 * rate * gamma * (rewards[2, 0] - rewards[0, 0]) / (1.0 - gamma)
    table = TabularMDP(p, rewards)
    values = exact.discounted(table, gamma=gamma)
    return table, abs(float(values[0, 1] - values[0, 0])) / rng.uniform(1.001, 1.2), gamma


def _late(rng: Generator, delta: float) -> Case:
    table, epsilon, gamma = _late_table(rng)
    model = Hidden(table, states=choose(rng, (None, 3)))
    return tabular_case(table, delta, epsilon, None, gamma=gamma, model=model, budget=_BUDGET)


def _late_bounded(rng: Generator, delta: float) -> Case:
    """What bounds the values of the states seen at first does not bound that of the late one."""
    table, epsilon, gamma = _late_table(rng)
    values = exact.discounted(table, gamma=gamma).max(1)
    slack = choose(rng, (0.0, 0.1, 1.0))
    bounds = (lambda s: float(values[s]) - slack), (lambda s: float(values[s]) + slack)
    others: dict[str, Any] = {"model": Hidden(table), "settings": {"value_bounds": bounds}}
    return tabular_case(table, delta, epsilon, None, gamma=gamma, budget=_BUDGET, **others)


def _late_steps(rng: Generator, delta: float) -> Case:
    """The same with few steps, each of which counts in full."""
    horizon, rate = int(rng.integers(3, 7)), 1.0 / rng.uniform(10.0, 50.0)
    rewards = _late_rewards(rng)
    p = np.zeros((3, 2, 3))
    p[0, :, 1] = 1.0
    p[0, 1, 1:] = 1.0 - rate, rate
    p[1, :, 1] = p[2, :, 2] = 1.0
    worth = rate * (horizon - 1) * (rewards[2, 0] - rewards[0, 0])
    rewards[0, 1] -= 0.5 * worth
    table = TabularMDP(p, rewards)
    epsilon = 0.5 * abs(worth) / rng.uniform(1.001, 1.2)
    return tabular_case(table, delta, epsilon, horizon, model=Hidden(table))


RECURRING = (
    Family("recurring", "few states, for ever", 0.3, _recurring, {"endless"}),
    Family("recurring-value", "the goal is the value", 0.3, _valued, {"endless"}),
    Family("late", "a state that is seen late decides", 0.1, _late, {"endless"}),
    Family("late-bounded", "the same, with value bounds", 0.1, _late_bounded, {"endless"}),
    Family("late-steps", "the same, with few steps", 0.1, _late_steps, {"untold"}),
)
"""All of them."""
