"""The scale of one plan: time a call as a search grows from 10^5 calls to 10^8.

    python3 dev.py python benchmarks/scale.py            up to 10^7 calls, some minutes
    python3 dev.py python benchmarks/scale.py --most 8   up to 10^8: up to 8 GB, half an hour

Calls a second, in brackets the time of a call in multiples of that at 10^5 calls, and how much of the
time the system took, most of it to find memory for the tree. A call of `OPMDP` reads a row of the
table, and five of them are an expansion: its row has expansions a second.

Each plan is made in a process of its own, and its processor time counts, so that others on the machine
disturb it less; of the repetitions the fastest counts.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

from rich.console import Console
from rich.table import Table

import pacplan

SETTING = {"gamma": 0.9, "horizon": 20}
ANYTIME = SETTING | {"epsilon": 0.0, "delta": 0.1}
PLANNERS: dict[str, Any] = {
    "Bracket": pacplan.Bracket(**ANYTIME),
    "MDP-GapE": pacplan.MDPGapE(**ANYTIME),
    "UCT": pacplan.UCT(**SETTING),
    "UCT, random rollouts": pacplan.UCT(**SETTING, rollout="random"),
    "OPMDP, expansions": pacplan.OPMDP(gamma=0.7),
}
LEAST = 5  # log10 of the calls of the smallest plan
REPEATS = {5: 9, 6: 5, 7: 3, 8: 1}


def measure(name: str, calls: int) -> tuple[float, float, int, float]:
    """Seconds of a plan, those of the system, its expansions or calls, and bytes for each call.

    Seconds of the processor; bytes of the tree.
    """
    model = pacplan.envs.garnet(seed=0)
    PLANNERS[name].plan(model, 0, seed=0, budget=1000)  # Compiles.
    began, before = time.process_time(), os.times().system
    plan = PLANNERS[name].plan(model, 0, seed=0, budget=calls)
    seconds, system = time.process_time() - began, os.times().system - before
    # (Bracket may know the best action before that.)
    assert plan.samples > 0.5 * calls, f"{name} ended after {plan.samples} calls"
    work = plan.episodes if name.startswith("OPMDP") else plan.samples
    return seconds, system, work, plan.tree.nbytes / plan.samples


def apart(name: str, calls: int) -> tuple[float, float, int, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--only", name, "--calls", str(calls)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, system, work, size = json.loads(answer.splitlines()[-1])
    return seconds, system, work, size


def main() -> None:
    """Print a row for each planner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, choices=tuple(REPEATS), default=7, help="log10 of calls")
    parser.add_argument("--only", choices=tuple(PLANNERS), help="one planner")
    parser.add_argument("--calls", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.calls is not None:
        print(json.dumps(measure(options.only, options.calls)))
        return
    sizes = range(LEAST, options.most + 1)
    table = Table(
        "", *(f"10^{size} calls" for size in sizes), "bytes a call", title="millions a second"
    )
    for name in PLANNERS if options.only is None else [options.only]:
        cells, first, size_of_call = [], 0.0, 0.0
        # What OPMDP stores grows with every call: 10^8 would take 10 GB.
        for size in sizes if name != "OPMDP, expansions" else range(LEAST, min(options.most, 7) + 1):
            runs = [apart(name, 10**size) for _ in range(REPEATS[size])]
            seconds, _, work, size_of_call = min(runs)
            each = seconds / work
            first = first or each
            share = sum(run[1] for run in runs) / sum(run[0] for run in runs)
            cells.append(f"{1e-6 / each:.2f} ({each / first:.2f}) {share:.0%}")
        table.add_row(name, *cells, *[""] * (len(sizes) - len(cells)), f"{size_of_call:.0f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
