"""How far plans overrun their time limit, for every planner on a table, and for a Python simulator.

    python3 dev.py python benchmarks/deadlines.py

Prints the median and the largest overrun in milliseconds over repeated plans; a negative one means that
the plan was back before its deadline. On a busy machine the largest ones show what else was running.
"""

import argparse
import time

import numpy as np

import pacplan

LIMITS = (0.001, 0.01, 0.1, 1.0)
PLANNERS = (
    pacplan.Bracket(epsilon=0.001, delta=0.1, gamma=0.7),
    pacplan.MDPGapE(epsilon=0.001, delta=0.1, gamma=0.7),
    pacplan.MDPGapE(epsilon=0.001, delta=0.1, gamma=0.7, merge="depth"),
    pacplan.UCT(gamma=0.7),
    pacplan.BRUE(gamma=0.7),
    pacplan.OPMDP(gamma=0.7),
    pacplan.SparseSampling(gamma=0.7, horizon=20, width=20),
    pacplan.StOP(epsilon=0.1, delta=0.1, gamma=0.7, max_policies=10**7),
    pacplan.TrailBlazer(epsilon=0.1, delta=0.1, gamma=0.7),
    pacplan.SmoothCruiser(epsilon=0.1, delta=0.1, gamma=0.7, temperature=0.5),
)
OPEN_LOOP = (pacplan.OLOP(gamma=0.7, horizon=8), pacplan.KLOLOP(gamma=0.7, horizon=8))


def overruns(planner, model, limit, plans, **settings):
    """Milliseconds beyond the limit, of some plans."""
    found = []
    for seed in range(plans):
        start = time.perf_counter()
        plan = planner.plan(model, 0, seed=seed, time_limit=limit, **settings)
        if plan.stopped_by == "deadline":
            found.append(1e3 * (time.perf_counter() - start - limit))
    return np.array(found)


def show(name, planner, model, plans, **settings):
    overruns(planner, model, 0.01, 1, **settings)  # compiles
    cells = []
    for limit in LIMITS:
        found = overruns(planner, model, limit, max(3, min(plans, int(2.0 / limit))), **settings)
        cells.append(
            f"{np.median(found):7.2f} {found.max():7.2f}" if found.size else f"{'-':>7} {'-':>7}"
        )
    print(f"{name:52}", " | ".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=50)
    plans = parser.parse_args().plans
    print(
        f"{'overrun in ms, median and largest; limit in s:':52}", " | ".join(f"{x:>15}" for x in LIMITS)
    )
    table = pacplan.envs.garnet(states=200, actions=5, seed=0)
    for planner in PLANNERS:
        show(repr(planner)[:52], planner, table, plans)
    for planner in OPEN_LOOP:
        show(repr(planner), planner, table, plans, budget=10**8)
    python = pacplan.Simulator(table.step, actions=5, successors=2)
    show("MDPGapE, Python simulator", PLANNERS[2], python, plans)


if __name__ == "__main__":
    main()
