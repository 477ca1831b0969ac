"""Calls over the least that any rule needs in expectation, problem by problem.

    python3 dev.py python benchmarks/limit.py             100 plans each, some minutes
    python3 dev.py python benchmarks/limit.py --runs 10   a first look

T* is the characteristic time, and T* kl(delta, 1 - delta) the limit (`pacplan.theory.lower_bound`) if
one answer is right. "times" is the mean of the planner's calls over it. Rewards are 0 or 1 but in the
inventory, and nothing is declared. With a horizon the planner is Bracket, and gamma is 1; with two
steps each action of the root leads to one of two states of its own. Without a horizon it is Atlas.
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
    """A table, and what is asked of it."""

    name: str
    model: pacplan.TabularMDP
    horizon: int | None
    epsilon: float
    gamma: float = 1.0
    root: int = 0


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


def two_states(gamma, epsilon, stays):
    """A poor state and a rich one; `stays` is what the first action pays in the poor one."""
    p = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.2, 0.8], [0.6, 0.4]]])
    model = pacplan.TabularMDP(p, np.array([[stays, 0.1], [0.9, 0.6]]), noise="bernoulli")
    return Problem(f"two states {stays:g}, gamma {gamma:g}", model, None, epsilon, gamma)


def machine(gamma, epsilon):
    """New, worn, or broken: run it or repair it."""
    p = np.array(
        [
            [[0.7, 0.3, 0.0], [1.0, 0.0, 0.0]],
            [[0.0, 0.5, 0.5], [0.9, 0.1, 0.0]],
            [[0.0, 0.0, 1.0], [0.6, 0.0, 0.4]],
        ]
    )
    rewards = np.array([[0.9, 0.6], [0.7, 0.4], [0.1, 0.1]])
    model = pacplan.TabularMDP(p, rewards, noise="bernoulli")
    return Problem(f"machine, gamma {gamma:g}", model, None, epsilon, gamma, root=1)


def inventory(gamma, epsilon):
    """Room for 2; orders cost 0.2 each, sales pay 0.5 on average, keeping costs 0.05."""
    p, rewards = np.zeros((3, 3, 3)), np.zeros((3, 3))
    for stock, order in np.ndindex(3, 3):
        have = min(stock + order, 2)
        for demand, chance in enumerate((0.3, 0.4, 0.3)):
            sold = min(have, demand)
            p[stock, order, have - sold] += chance
            rewards[stock, order] += chance * 0.5 * sold
        rewards[stock, order] -= 0.2 * (have - stock) + 0.05 * have
    model = pacplan.TabularMDP(p, rewards, reward_range=(-0.5, 1.0))
    return Problem(f"inventory, gamma {gamma:g}", model, None, epsilon, gamma)


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
    arms(0.1, 0.7, 0.5)._replace(name="one state, gamma 0.9", horizon=None, gamma=0.9),
    two_states(0.5, 0.05, 0.2),
    two_states(0.5, 0.02, 0.28),
    two_states(0.9, 0.1, 0.2),
    two_states(0.9, 0.05, 0.4),
    machine(0.5, 0.05),
    machine(0.8, 0.1),
    inventory(0.5, 0.02),
    inventory(0.8, 0.05),
)  # fmt: skip


def settings(problem):
    """What the limit and the planner are told."""
    return {"epsilon": problem.epsilon, "gamma": problem.gamma, "horizon": problem.horizon}


def measure(problem, delta, runs):
    """Calls of the planner, and how many of its answers are worse than epsilon."""
    if problem.horizon:
        make, values = (
            pacplan.Bracket,
            exact.finite_horizon(problem.model, gamma=problem.gamma, horizon=problem.horizon)[0],
        )
    else:
        make, values = pacplan.Atlas, exact.discounted(problem.model, gamma=problem.gamma)
    planner, q = make(delta=delta, **settings(problem)), values[problem.root]
    plans = [planner.plan(problem.model, problem.root, seed=seed) for seed in range(runs)]
    wrong = sum(q.max() - q[plan.action] > problem.epsilon for plan in plans)
    return np.array([plan.samples for plan in plans]), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    table = Table(title=f"Calls over the limit, {options.runs} plans each", box=None)
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
    times = {(steps, delta): [] for steps in (1, 2, None) for delta in DELTAS}
    for problem in PROBLEMS:
        for delta in DELTAS:
            limit = theory.lower_bound(
                problem.model, problem.root, delta=delta, tolerance=1e-3, **settings(problem)
            )
            calls, wrong = measure(problem, delta, options.runs)
            times[problem.horizon, delta].append(calls.mean() / limit.calls)
            table.add_row(
                problem.name,
                f"{problem.epsilon:g}",
                f"{limit.time:.1f}" if len(limit.answers) == 1 else "-",
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
        console.print(
            f"H = {steps or 'inf'}, delta {delta:g}: {np.mean(found):.1f} times the limit on average"
        )


if __name__ == "__main__":
    main()
