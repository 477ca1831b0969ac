"""The most calls that Bracket needs by its theorem, beside the paper's bound, real calls and the limit.

    python3 dev.py python benchmarks/calls.py            20 MDPs of the paper's family, some minutes
    python3 dev.py python benchmarks/calls.py --mdps 3   a first look

Medians over MDPs, of the mean of some plans. From `pacplan.theory`: `bracket_calls`, `corollary_1` (the
proven number, in calls) and `lower_bound` (for small trees).
Rewards are 0 or 1, nothing is declared, and delta is 0.1.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from limit import PROBLEMS
from pacplan import theory

DELTA = 0.1
SEED = 300_000
# Epsilon and horizon, on the paper's MDPs. Their trees are too large for the limit.
PAPER = ((1.0, 6), (0.5, 8), (0.2, 10))
PLANS, PLANS_OF_SMALL = 3, 50


def compare(model, gamma, horizon, epsilon, *, small):
    """The theorem, Corollary 1, the mean of some plans, and the limit if the tree is small."""
    settings = {"gamma": gamma, "horizon": horizon, "epsilon": epsilon, "delta": DELTA}
    planner = pacplan.Bracket(**settings)
    plans = PLANS_OF_SMALL if small else PLANS
    limit = theory.lower_bound(model, **settings, tolerance=0.02).calls if small else np.nan
    return (
        theory.bracket_calls(model, **settings).calls,
        horizon * theory.corollary_1(model, **settings).proven,
        np.mean([planner.plan(model, seed=seed).samples for seed in range(plans)]),
        limit,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mdps", type=int, default=20)
    options = parser.parse_args()
    table = Table(title="calls", box=None)
    for header in ("problem", "epsilon", "H", "theorem", "Corollary 1", "measured", "limit"):
        table.add_column(header, justify="right" if header != "problem" else "left")

    def add(name, epsilon, horizon, found):
        theorem, paper, measured, limit = np.median(found, axis=0)
        lowest = "" if np.isnan(limit) else f"{limit:,.0f}"
        line = f"{theorem:.1e}", f"{paper:.1e}", f"{measured:,.0f}", lowest
        table.add_row(name, f"{epsilon:g}", str(horizon), *line)

    models = [pacplan.envs.garnet(seed=SEED + i, noise="bernoulli") for i in range(options.mdps)]
    for epsilon, horizon in PAPER:
        found = [compare(model, 0.7, horizon, epsilon, small=False) for model in models]
        add("the paper's MDPs", epsilon, horizon, found)
    for problem in PROBLEMS:
        found = [compare(problem.model, 1.0, problem.horizon, problem.epsilon, small=True)]
        add(problem.name, problem.epsilon, problem.horizon, found)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
