"""What merging equal states saves Bracket, by kind of problem.

    python3 dev.py python benchmarks/merging.py           20 plans for each number, about a minute

Median numbers of calls. A plan that is not done after 300 000 of them counts as that many.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from pacplan import envs

DELTA, MOST = 0.1, 300_000
# Name: the model of a seed, epsilon, gamma, horizon.
PROBLEMS = {
    "the paper's garnets": (lambda seed: envs.garnet(seed=seed, noise="bernoulli"), 0.5, 0.7, 8),
    "garnets with 10 states": (
        lambda seed: envs.garnet(10, 3, 2, seed=seed, noise="bernoulli"),
        0.3,
        0.8,
        10,
    ),
    "sailing": (lambda seed: envs.sailing(), 2.0, 0.95, 4),
    "gridworld": (lambda seed: envs.gridworld(), 0.8, 0.9, 8),
    "riverswim": (lambda seed: envs.riverswim(), 0.8, 0.9, 12),
    "inventory": (lambda seed: envs.inventory(), 2.0, 0.9, 6),
}
MODES = ("tree", "depth", "stationary")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=20)
    options = parser.parse_args()
    table = Table(title=f"Bracket, median of {options.plans} plans, delta {DELTA:g}", box=None)
    for header in ("problem", "epsilon", "gamma", "H", *MODES):
        table.add_column(header, justify="left" if header == "problem" else "right")
    for name, (make, epsilon, gamma, horizon) in PROBLEMS.items():
        cells = []
        for merge in MODES:
            planner = pacplan.Bracket(
                epsilon=epsilon, delta=DELTA, gamma=gamma, horizon=horizon, merge=merge
            )
            calls = [
                planner.plan(make(seed), seed=seed, budget=MOST).samples
                for seed in range(options.plans)
            ]
            middle = np.median(calls)
            cells.append(f"> {MOST:,}" if middle >= MOST else f"{middle:,.0f}")
        table.add_row(name, f"{epsilon:g}", f"{gamma:g}", str(horizon), *cells)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
