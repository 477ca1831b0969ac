"""Bracket's calls over the least that any rule needs in expectation, problem by problem.

    python3 dev.py python benchmarks/limit.py             100 plans each, about a minute
    python3 dev.py python benchmarks/limit.py --runs 10   a first look

T* is the characteristic time, and T* kl(delta, 1 - delta) the limit (`pacplan.theory.lower_bound`).
"times" is the mean of Bracket's calls over it. Rewards are 0 or 1, nothing is declared, and gamma is 1.
With two steps each action of the root leads to one of two states of its own.
"""

import argparse
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from pacplan import exact, theory

DELTAS = (0.1, 0.001)


class Problem(NamedTuple):
    """A table, its steps, and an accuracy."""

    name: str
    model: pacplan.TabularMDP
    horizon: int
    epsilon: float


def arms(epsilon, *means):
    """One step."""
    model = pacplan.TabularMDP(np.ones((1, len(means), 1)), np.array([means]), noise="bernoulli")
    return Problem(f"arms {' '.join(f'{mean:g}' for mean in means)}", model, 1, epsilon)


def two_steps(name, epsilon, first, chances, second):
    """Two actions that pay `first` and lead to states which pay `second`, by `chances` to the first."""
    p = np.zeros((5, 2, 5))
    for action, chance in enumerate(chances):
        p[0, action, 1 + 2 * action : 3 + 2 * action] = chance, 1.0 - chance
    p[1:, :, 0] = 1.0
    return Problem(
        name, pacplan.TabularMDP(p, np.array([first, *second]), noise="bernoulli"), 2, epsilon
    )


PROBLEMS = (
    arms(0.1, 0.7, 0.5),
    arms(0.05, 0.5, 0.4),
    arms(0.1, 0.5, 0.3, 0.3, 0.3, 0.3),
    arms(0.1, 0.9, 0.7),
    arms(0.05, 0.15, 0.05),
    two_steps("two steps, far", 0.1, (0.5, 0.5), (0.5, 0.5),
              ((0.9, 0.5), (0.7, 0.3), (0.6, 0.4), (0.4, 0.2))),
    two_steps("two steps, risky", 0.1, (0.2, 0.6), (0.8, 0.3),
              ((0.9, 0.1), (0.4, 0.2), (0.3, 0.2), (0.1, 0.05))),
    two_steps("two steps, close", 0.05, (0.5, 0.5), (0.5, 0.5),
              ((0.6, 0.5), (0.6, 0.4), (0.5, 0.4), (0.5, 0.4))),
)  # fmt: skip


def measure(problem, delta, runs):
    """Calls of Bracket, and how many of its answers are worse than epsilon."""
    planner = pacplan.Bracket(epsilon=problem.epsilon, delta=delta, gamma=1.0, horizon=problem.horizon)
    q = exact.finite_horizon(problem.model, gamma=1.0, horizon=problem.horizon)[0, 0]
    plans = [planner.plan(problem.model, seed=seed) for seed in range(runs)]
    wrong = sum(q.max() - q[plan.action] > problem.epsilon for plan in plans)
    return np.array([plan.samples for plan in plans]), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    table = Table(title=f"Bracket over the limit, {options.runs} plans each", box=None)
    for header in (
        "problem",
        "epsilon",
        "T*",
        "delta",
        "limit",
        "median n",
        "mean n",
        "times",
        "wrong",
    ):
        table.add_column(header, justify="right" if header != "problem" else "left")
    times = {(steps, delta): [] for steps in (1, 2) for delta in DELTAS}
    for problem in PROBLEMS:
        for delta in DELTAS:
            limit = theory.lower_bound(
                problem.model,
                epsilon=problem.epsilon,
                delta=delta,
                gamma=1.0,
                horizon=problem.horizon,
                tolerance=1e-3,
            )
            calls, wrong = measure(problem, delta, options.runs)
            times[problem.horizon, delta].append(calls.mean() / limit.calls)
            table.add_row(
                problem.name,
                f"{problem.epsilon:g}",
                f"{limit.time:.1f}",
                f"{delta:g}",
                f"{limit.calls:,.0f}",
                f"{np.median(calls):,.0f}",
                f"{calls.mean():,.0f}",
                f"{calls.mean() / limit.calls:.1f}",
                str(wrong),
            )
    console = Console(width=110)
    console.print(table)
    for (steps, delta), found in times.items():
        console.print(f"H = {steps}, delta {delta:g}: {np.mean(found):.1f} times the limit on average")


if __name__ == "__main__":
    main()
