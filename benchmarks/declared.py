"""What declarations save: Bracket's calls on the paper's MDPs if rewards or transitions are told.

    python3 dev.py python benchmarks/declared.py             60 MDPs, some minutes
    python3 dev.py python benchmarks/declared.py --mdps 10   a first look

Medians of the calls, and in brackets the median over the MDPs of what they are in multiples of those
with nothing declared. "wrong" counts answers worse than epsilon.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from pacplan import exact

GAMMA, DELTA = 0.7, 0.1
EPSILONS = (1.0, 0.5, 0.2)
DECLARED = {"nothing": {}, 'rewards="deterministic"': {"rewards": "deterministic"}}


def main() -> None:
    """Print a table for each kind of rewards."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mdps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=4_000_000, help="of the first MDP")
    options = parser.parse_args()
    for noise in ("bernoulli", "none"):
        table = Table("told", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS), "wrong", box=None)
        models = [pacplan.envs.garnet(seed=options.seed + i, noise=noise) for i in range(options.mdps)]
        base = {}
        for told, settings in DECLARED.items():
            if noise == "bernoulli" and settings.get("rewards") == "deterministic":
                continue
            cells, wrong = [], 0
            for epsilon in EPSILONS:
                planner = pacplan.Bracket(epsilon=epsilon, delta=DELTA, gamma=GAMMA, **settings)
                calls = np.zeros(len(models))
                for i, model in enumerate(models):
                    plan = planner.plan(model, seed=i)
                    q = exact.finite_horizon(model, gamma=GAMMA, horizon=plan.horizon)[0, 0]
                    calls[i], wrong = plan.samples, wrong + (q.max() - q[plan.action] > epsilon)
                base.setdefault(epsilon, calls)
                cells.append(f"{np.median(calls):,.0f} ({np.median(calls / base[epsilon]):.2f})")
            table.add_row(told, *cells, f"{wrong}")
        console = Console(width=110)
        console.print(f"rewards: {noise}, {options.mdps} MDPs")
        console.print(table)


if __name__ == "__main__":
    main()
