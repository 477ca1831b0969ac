"""What it costs Bracket not to know B: calls on the same MDPs, told and untold, pair by pair.

python3 dev.py python benchmarks/unknown_successors.py            100 MDPs of each kind, some minutes
python3 dev.py python benchmarks/unknown_successors.py --mdps 20  a first look
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan

GAMMA, DELTA = 0.7, 0.1


class Untold:
    """A table that does not say how many successors there are."""

    successors = None

    def __init__(self, table):
        self._table = table

    def __getattr__(self, name):
        return getattr(self._table, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mdps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=500_000, help="of the first MDP")
    options = parser.parse_args()
    table = Table(title=f"Bracket, calls to the model, {options.mdps} MDPs", box=None)
    for header in (
        "epsilon",
        "B",
        "told, median",
        "untold, median",
        "ratio",
        "geometric mean of ratios",
    ):
        table.add_column(header, justify="right")
    for epsilon in (1.0, 0.5):
        planner = pacplan.Bracket(epsilon=epsilon, delta=DELTA, gamma=GAMMA)
        for successors in (2, 10, 50):
            calls = []
            for seed in range(options.seed, options.seed + options.mdps):
                model = pacplan.envs.garnet(states=200, actions=5, successors=successors, seed=seed)
                plans = [planner.plan(m, 0, seed=seed) for m in (model, Untold(model))]
                assert all(plan.certified for plan in plans)
                calls.append([plan.samples for plan in plans])
            told, untold = np.median(calls, axis=0)
            ratios = np.log(np.array(calls)[:, 1] / np.array(calls)[:, 0])
            spread = ratios.std() / np.sqrt(len(ratios))
            table.add_row(
                f"{epsilon:g}",
                str(successors),
                f"{told:,.0f}",
                f"{untold:,.0f}",
                f"{untold / told:.3f}",
                f"{np.exp(ratios.mean()):.3f} ± {spread:.3f}",
            )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
