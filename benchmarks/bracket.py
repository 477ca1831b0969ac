"""Bracket on fresh MDPs of the paper's family: calls, beside those of MDP-GapE and the paper's table.

    python3 dev.py python benchmarks/bracket.py             200 MDPs, about ten minutes
    python3 dev.py python benchmarks/bracket.py --mdps 20   a first look

Nothing is declared to the planners. "proven" marks those whose answer is epsilon-optimal with
probability at least 1 - delta. Lemma 2's thresholds run on a tenth of the MDPs, and not at epsilon 0.2.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from pacplan import exact

GAMMA, DELTA = 0.7, 0.1
EPSILONS = (1.0, 0.5, 0.2)
PAPER = {1.0: 6_300, 0.5: 55_000, 0.2: 340_000}
PLANNERS = {
    "Bracket, proven": pacplan.Bracket,
    'MDP-GapE, "paper"': lambda **kw: pacplan.MDPGapE(thresholds="paper", **kw),
    'MDP-GapE, "lemma", proven': pacplan.MDPGapE,
}


def measure(make, noise, epsilon, seeds):
    """Calls, regret and time of each plan, in the H-step problem that the planner solves."""
    planner = make(epsilon=epsilon, delta=DELTA, gamma=GAMMA)
    rows = []
    for seed in seeds:
        model = pacplan.envs.garnet(seed=seed, noise=noise)
        plan = planner.plan(model, seed=seed)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=plan.horizon)[0, 0]
        rows.append((plan.samples, q.max() - q[plan.action], plan.seconds))
    return np.array(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mdps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=300_000, help="of the first MDP")
    options = parser.parse_args()
    console = Console(width=110)
    for noise in ("bernoulli", "none"):
        table = Table(title=f"calls to the model, {options.mdps} MDPs, rewards: {noise}", box=None)
        for header in ("planner", "epsilon", "median n", "max n", "worst ratio", "M calls/s", "wrong"):
            table.add_column(header, justify="right" if header != "planner" else "left")
        for epsilon in EPSILONS:
            if noise == "none":
                table.add_row("the paper's table", f"{epsilon:g}", f"{PAPER[epsilon]:,}")
            baseline = None
            for name in ('MDP-GapE, "paper"', "Bracket, proven", 'MDP-GapE, "lemma", proven'):
                few = "lemma" in name
                if few and epsilon < 0.5:
                    continue
                count = max(1, options.mdps // 10) if few else options.mdps
                seeds = range(options.seed, options.seed + count)
                found = measure(PLANNERS[name], noise, epsilon, seeds)
                calls, regrets, seconds = found.T
                if baseline is None:
                    baseline = calls
                table.add_row(
                    name,
                    f"{epsilon:g}",
                    f"{np.median(calls):,.0f}",
                    f"{calls.max():,.0f}",
                    f"{(calls / baseline[:count]).max():.2f}",
                    f"{calls.sum() / seconds.sum() / 1e6:.2f}",
                    str(int((regrets > epsilon).sum())),
                )
        console.print(table)


if __name__ == "__main__":
    main()
