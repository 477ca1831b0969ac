"""Bracket's calls against those of another checkout, problem by problem.

    git worktree add /tmp/before main
    python3 dev.py python benchmarks/against.py /tmp/before              the paper's MDPs, minutes
    python3 dev.py python benchmarks/against.py /tmp/before --families   those of families.py

Medians of different sets of MDPs differ by a fifth, so both checkouts plan for the same ones. For each
MDP the mean of the calls here is divided by that of the other one; "ratio" is the geometric mean of
these quotients, "error" its relative standard error, and "worst" the largest of them. "wrong" counts
answers of this checkout worse than epsilon.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from families import CHOSEN_ON, DELTA, HELD_OUT, Family, shaped, worse

PAPER = tuple(
    Family(f"garnet, the paper's, epsilon {epsilon:g}", shaped(200, 5, 2), 0.7, None, epsilon, epsilon)
    for epsilon in (1.0, 0.5, 0.2)
)


def chosen(options):
    """The families asked for, each with its noise."""
    for family in CHOSEN_ON + HELD_OUT if options.families else PAPER:
        for noise in ("none", "bernoulli") if family.epsilon_fixed else (None,):
            yield family, noise


def measure(family, noise, options):
    """Calls by MDP and plan, and how many answers are wrong."""
    epsilon = family.epsilon_fixed if noise == "none" else family.epsilon
    planner = pacplan.Bracket(epsilon=epsilon, delta=DELTA, gamma=family.gamma, horizon=family.horizon)
    runs = options.runs * (20 if family.horizon == 1 else 1)
    calls = np.zeros((options.mdps, runs), int)
    wrong = 0
    for i, seed in enumerate(range(options.seed, options.seed + options.mdps)):
        model = family.make(seed, noise) if noise else family.make(seed)
        for j in range(runs):
            plan = planner.plan(model, seed=runs * seed + j)
            calls[i, j] = plan.samples
            wrong += worse(model, plan, family, epsilon)
    return calls, wrong


def answers(checkout):
    """Start measuring with the sources of a checkout; one line for each family, as it is done."""
    command = [sys.executable, __file__, *sys.argv[1:], "--measure"]
    environment = os.environ | {"PYTHONPATH": str(Path(checkout).resolve() / "src")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def compare(options):
    """Print a table, a row at a time."""
    console = Console(width=110)
    here = Path(__file__).parents[1]
    both = [answers(checkout) for checkout in (options.checkout, here)]
    table = Table(title=f"{options.mdps} MDPs, {options.runs} plans each", box=None)
    for header in ("family", "n before", "n now", "ratio", "error", "worst", "wrong"):
        table.add_column(header, justify="right" if header != "family" else "left")
    for family, noise in chosen(options):
        (before, _), (now, wrong) = (json.loads(process.stdout.readline()) for process in both)
        before, now = np.mean(before, axis=1), np.mean(now, axis=1)
        ratios = np.log(now / before)
        table.add_row(
            family.name + (", fixed" if noise == "none" else ""),
            f"{np.median(before):,.0f}",
            f"{np.median(now):,.0f}",
            f"{np.exp(ratios.mean()):.3f}",
            f"{ratios.std(ddof=1) / np.sqrt(len(ratios)):.3f}",
            f"{np.exp(ratios.max()):.2f}",
            f"{wrong:g}",
        )
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", help="folder of the other one")
    parser.add_argument("--families", action="store_true", help="those of families.py")
    parser.add_argument("--mdps", type=int, default=100)
    parser.add_argument(
        "--runs", type=int, default=3, help="plans for each MDP; 20 times as many if H = 1"
    )
    parser.add_argument("--seed", type=int, default=800_000, help="of the first MDP")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.measure:
        compare(options)
        return
    for family, noise in chosen(options):
        calls, wrong = measure(family, noise, options)
        print(json.dumps([calls.tolist(), float(wrong)]), flush=True)


if __name__ == "__main__":
    main()
