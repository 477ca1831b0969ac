"""Bracket on many families of problems: calls, and how they compare with those of MDP-GapE.

    python3 dev.py python benchmarks/families.py             20 MDPs of each, about five minutes
    python3 dev.py python benchmarks/families.py --mdps 5    a first look

The constants that steer Bracket were chosen on the families of the first table, with other seeds, and
on the paper's (benchmarks/bracket.py). Nothing was chosen on those of the second. Each family is run
with random rewards and, "fixed", with their means paid for certain, unless it has its own rewards.

A ratio is that of an MDP's mean calls, over several runs of each planner, to those of MDP-GapE with
the thresholds of the paper's experiments, which give no guarantee: in problems of one step some of its
runs stop after a handful of calls and others after thousands, so these are run 20 times as often.
"wrong" counts Bracket's answers worse than epsilon, in the H-step problem, among all runs; for queues,
which have no table, it is not known.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from pacplan import exact
from pacplan.envs import garnet, gridworld, inventory, queues, riverswim, sailing

DELTA = 0.1
WINDS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


class Family(NamedTuple):
    """Problems made by `make(seed)`, or `make(seed, noise)` if two epsilons are given."""

    name: str
    make: Any
    gamma: float
    horizon: int
    epsilon: float
    epsilon_fixed: float | None = None


def shaped(states, actions, successors, density=0.5):
    """Garnets of one shape."""
    return lambda seed, noise: garnet(states, actions, successors, density, seed=seed, noise=noise)


def tied(seed, noise):
    """A garnet with a copy of the best action of the root in place of the second."""
    model = garnet(100, seed=seed)
    second, best = np.argsort(exact.finite_horizon(model, gamma=0.7, horizon=6)[0, 0])[-2:]
    tables = [table.copy() for table in model.sparse()]
    for table in tables:
        table[0, second] = table[0, best]
    rewards, probabilities, successors = tables
    return pacplan.TabularMDP(probabilities, rewards, successors=successors, noise=noise)


def close(actions, epsilon):
    """One step, actions that are half to one and a half epsilon worse than the best."""

    def make(seed, noise):
        rng = np.random.default_rng(seed)
        means = np.append(0.0, epsilon * rng.uniform(-1.5, -0.5, actions - 1))
        means = np.clip(rng.uniform(0.1, 0.9) + rng.permutation(means), 0.0, 1.0)
        return pacplan.TabularMDP(np.ones((1, actions, 1)), means[np.newaxis], noise=noise)

    return make


def lake(seed):
    """Sailing from somewhere else, in another wind."""
    return sailing(4, start=(seed % 3, seed // 3 % 3), wind=WINDS[seed % 8])


def shop(seed):
    """Another demand for the inventory."""
    demand = np.random.default_rng(seed).dirichlet(np.ones(3))
    return inventory(demand=demand.tolist())


def jobs(seed):
    """Other queues to begin with."""
    return queues(initial=np.random.default_rng(seed).integers(0, 4, 4).tolist())


CHOSEN_ON = (
    Family("garnet, the paper's", shaped(200, 5, 2), 0.7, 8, 0.5, 0.5),
    Family("garnet, B 1", shaped(200, 5, 1), 0.7, 8, 0.5, 0.5),
    Family("garnet, B 5", shaped(200, 5, 5), 0.7, 5, 1.0, 0.7),
    Family("garnet, K 2, B 3, gamma .95", shaped(200, 2, 3), 0.95, 4, 0.6, 0.3),
    Family("garnet, K 10", shaped(200, 10, 2), 0.7, 6, 0.8, 0.5),
    Family("garnet, gamma .5", shaped(200, 5, 2), 0.5, 6, 0.3, 0.2),
    Family("garnet, K 4, gamma .95", shaped(200, 4, 2), 0.95, 6, 1.5, 1.0),
    Family("garnet, sparse rewards", shaped(200, 5, 2, 0.1), 0.7, 6, 0.6, 0.4),
    Family("garnet, dense rewards", shaped(200, 5, 2, 1.0), 0.7, 6, 0.6, 0.5),
    Family("garnet, 10 states", shaped(10, 4, 2), 0.8, 7, 1.0, 0.5),
    Family("garnet, two best actions", tied, 0.7, 6, 1.0, 0.7),
    Family("garnet, H 1", shaped(50, 5, 2), 0.7, 1, 0.1, 0.1),
    Family("garnet, H 2", shaped(50, 5, 2), 0.7, 2, 0.2, 0.2),
    Family("gaps near epsilon, K 2, H 1", close(2, 0.05), 0.7, 1, 0.05, 0.05),
    Family("gaps near epsilon, K 5, H 1", close(5, 0.1), 0.7, 1, 0.1, 0.1),
    Family("sailing", lake, 0.9, 5, 8.0),
    Family("riverswim", lambda seed: riverswim(5), 0.9, 7, 1.2),
)
HELD_OUT = (
    Family("garnet, K 3, B 4, gamma .8", shaped(50, 3, 4, 0.3), 0.8, 5, 0.8, 0.6),
    Family("garnet, K 8, gamma .6", shaped(500, 8, 2, 0.7), 0.6, 6, 0.5, 0.4),
    Family("garnet, K 20", shaped(200, 20, 2), 0.7, 5, 1.0, 0.6),
    Family("garnet, K 3, B 1, gamma .9", shaped(100, 3, 1), 0.9, 8, 1.0, 0.7),
    Family("garnet, B 3, 2000 states", shaped(2000, 5, 3), 0.7, 6, 0.8, 0.6),
    Family("garnet, K 3, H 3", shaped(50, 3, 2, 1.0), 1.0, 3, 0.4, 0.3),
    Family("gaps near epsilon, K 10, H 1", close(10, 0.15), 0.7, 1, 0.15, 0.15),
    Family("gridworld", lambda seed: gridworld(slip=0.05 * (1 + seed % 8)), 0.9, 5, 1.5),
    Family("inventory", shop, 0.9, 4, 8.0),
    Family("queues", jobs, 0.9, 4, 1.0),
)


def worse(model, plan, family, epsilon):
    """Whether an answer is worse than epsilon; NaN if there is no table to tell."""
    if not isinstance(model, pacplan.TabularMDP):
        return np.nan
    q = exact.finite_horizon(model, gamma=family.gamma, horizon=plan.horizon)[0, model.initial_state()]
    return q.max() - q[plan.action] > epsilon


def measure(family, noise, seeds, runs):
    """Epsilon, calls of each planner by MDP and run, and how many of Bracket's answers are wrong."""
    epsilon = family.epsilon_fixed if noise == "none" else family.epsilon
    settings = {"epsilon": epsilon, "delta": DELTA, "gamma": family.gamma, "horizon": family.horizon}
    planners = pacplan.Bracket(**settings), pacplan.MDPGapE(thresholds="paper", **settings)
    runs *= 20 if family.horizon == 1 else 1
    calls = np.zeros((2, len(seeds), runs))
    wrong = 0
    for i, seed in enumerate(seeds):
        model = family.make(seed, noise) if noise else family.make(seed)
        for j in range(runs):
            plans = [planner.plan(model, seed=runs * seed + j) for planner in planners]
            calls[:, i, j] = [plan.samples for plan in plans]
            wrong += worse(model, plans[0], family, epsilon)
    return epsilon, calls, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mdps", type=int, default=20)
    parser.add_argument("--runs", type=int, default=5, help="of each planner on each MDP, H > 1")
    parser.add_argument("--seed", type=int, default=700_000, help="of the first MDP")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.mdps)
    console = Console(width=110)
    for title, families in (("constants chosen on", CHOSEN_ON), ("held out", HELD_OUT)):
        table = Table(title=f"{title}: {options.mdps} MDPs, {options.runs} runs each", box=None)
        for header in ("family", "epsilon", "median n", "max n", "MDP-GapE", "ratio", "worst", "wrong"):
            table.add_column(header, justify="right" if header != "family" else "left")
        for family in families:
            for noise in ("bernoulli", "none") if family.epsilon_fixed else (None,):
                epsilon, calls, wrong = measure(family, noise, seeds, options.runs)
                ratios = calls[0].mean(-1) / calls[1].mean(-1)
                table.add_row(
                    family.name + (", fixed" if noise == "none" else ""),
                    f"{epsilon:g}",
                    f"{np.median(calls[0]):,.0f}",
                    f"{calls[0].max():,.0f}",
                    f"{np.median(calls[1]):,.0f}",
                    f"{np.median(ratios):.2f}",
                    f"{ratios.max():.2f}",
                    f"{wrong:g}",
                )
        console.print(table)


if __name__ == "__main__":
    main()
