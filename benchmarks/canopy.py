"""Canopy where successors never recur, or hardly: calls to a certificate, and answers that were wrong.

    python3 dev.py python benchmarks/canopy.py              30 plans of each problem, about a minute
    python3 dev.py python benchmarks/canopy.py --plans 5    a first look

The walk is x' = x + a + N(0, 1/4), a in {-1, 0, 1}, paying exp(-x'^2), from x = 1.3; garnets have 200
successors of every pair; the shop has Poisson demand, and rewards scaled to a range of 1.
"""

import argparse
import sys
from pathlib import Path

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from pacplan import exact

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "algorithms"))
from gaussian import GAMMA, walk, walk_values

DELTA = 0.1
CAPACITY, DEMAND, LOT = 20, 6.0, 5
MOST_CALLS = 10_000_000


@numba.njit
def sell(stock, action, rng):
    """Order lots, sell what is asked for, keep the rest; rewards scaled from [-11, 20]."""
    offered = min(stock + LOT * action, CAPACITY)
    sold = min(offered, rng.poisson(DEMAND))
    left = offered - sold
    earned = sold - 0.2 * left - 0.3 * (offered - stock) - (action > 0)
    return left, (earned + 11.0) / 31.0, False


def shop_values(horizon, gamma):
    """Q of the actions in stock 5, by dynamic programming."""
    chances = np.exp(-DEMAND + np.arange(80) * np.log(DEMAND) - np.cumsum(np.log([1, *range(1, 80)])))
    values = np.zeros(CAPACITY + 1)
    for _ in range(horizon):
        stock, action, asked = np.ogrid[: CAPACITY + 1, :5, :80]
        offered = np.minimum(stock + LOT * action, CAPACITY)
        sold = np.minimum(offered, asked)
        left = offered - sold
        earned = sold - 0.2 * left - 0.3 * (offered - stock) - (action > 0)
        q = ((earned + 11.0) / 31.0 + gamma * values[left]) @ chances
        values = q.max(axis=1)
    return q[5]


def cases():
    """Name, settings, and a function of a seed that gives a model and the values of its actions."""
    for horizon in (3, 4, 5, 6, 8):
        q = walk_values(horizon)
        settings = {"epsilon": 0.3, "gamma": GAMMA, "horizon": horizon}
        yield f"walk, H {horizon}", settings, lambda seed, q=q: (walk(), q)
    for successors in (2, 50, 200):
        settings = {"epsilon": 0.5, "gamma": 0.7}

        def garnet(seed, successors=successors):
            model = pacplan.envs.garnet(successors=successors, seed=seed)
            return model, exact.finite_horizon(model, gamma=0.7, horizon=8)[0, 0]

        yield f"garnet, B {successors}", settings, garnet
    shop = pacplan.Simulator(sell, actions=5, successors=None, may_end=False, initial=5)
    for horizon in (4, 6):
        q = shop_values(horizon, 0.95)
        settings = {"epsilon": 0.2, "gamma": 0.95, "horizon": horizon}
        yield f"shop, H {horizon}", settings, lambda seed, q=q: (shop, q)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=30)
    parser.add_argument("--seed", type=int, default=500_000, help="of the first plan")
    options = parser.parse_args()
    table = Table(title=f"calls to a certificate, {options.plans} plans each", box=None)
    for header in ("problem", "median", "90 %", "most", "M calls/s", "not certified", "wrong"):
        table.add_column(header, justify="right" if header != "problem" else "left")
    for name, settings, make in cases():
        rows = []
        for seed in range(options.seed, options.seed + options.plans):
            model, q = make(seed)
            plan = pacplan.Canopy(delta=DELTA, **settings).plan(model, seed=seed, budget=MOST_CALLS)
            wrong = q.max() - q[plan.action] > settings["epsilon"]
            rows.append((plan.samples, plan.seconds, not plan.certified, wrong))
        calls, seconds, open_, wrong = np.array(rows).T
        table.add_row(
            name,
            f"{np.median(calls):,.0f}",
            f"{np.percentile(calls, 90):,.0f}",
            f"{calls.max():,.0f}",
            f"{calls.sum() / seconds.sum() / 1e6:.2f}",
            f"{open_.sum():.0f}",
            f"{wrong.sum():.0f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
