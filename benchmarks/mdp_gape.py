"""MDP-GapE measured: samples and regret on the paper's MDPs, speed, memory, start-up.

    python3 dev.py python benchmarks/mdp_gape.py            everything, some minutes
    python3 dev.py python benchmarks/mdp_gape.py --quick    fewer MDPs, about one minute

Speeds are ratios against `baseline.py`, run in turn with ours in the same process on the same MDPs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import baseline
import pacplan
from pacplan import exact

GAMMA, DELTA = 0.7, 0.1
# epsilon: the paper's median n, the most we allow ourselves, nodes the baseline needs room for.
PAPER = {1.0: (6.3e3, 2.7e3, 8_000), 0.5: (5.5e4, 2.2e4, 60_000), 0.2: (3.4e5, 1.9e5, 400_000)}


def planner(epsilon, thresholds="paper", **options):
    return pacplan.MDPGapE(epsilon=epsilon, delta=DELTA, gamma=GAMMA, thresholds=thresholds, **options)


def samples_and_regret(console, mdps):
    """The paper's Table 4: calls to the model and regret on random MDPs."""
    table = Table(
        "epsilon", "H", "median n", "target", "paper", "max n", "max regret",
        title=f'Samples on {mdps} of the paper\'s MDPs, thresholds="paper"',
    )  # fmt: skip
    for epsilon, (paper, target, _) in PAPER.items():
        ours = planner(epsilon)
        samples, regrets = [], []
        for seed in range(mdps):
            model = pacplan.envs.garnet(seed=seed)
            plan = ours.plan(model, 0, seed=seed)
            values = exact.discounted(model, gamma=GAMMA)[0]
            samples.append(plan.samples)
            regrets.append(values.max() - values[plan.action])
        median = np.median(samples)
        table.add_row(
            f"{epsilon:g}", str(ours.horizon), f"{median:,.0f}", f"{target:,.0f}", f"{paper:,.0f}",
            f"{max(samples):,}", f"{max(regrets):.2g}",
        )  # fmt: skip
        assert max(regrets) < epsilon, "an action was not epsilon-optimal"
    console.print(table)


def speed(console, repeats):
    """Calls per second of plan(), everything included, against the baseline, in turn."""
    table = Table(
        "epsilon", "pacplan, M calls/s", "in the kernel", "baseline", "ratio", "bytes per call",
        title="Speed on one core and memory, median of alternating runs",
    )  # fmt: skip
    for epsilon, count in ((1.0, 30), (0.5, 30), (0.2, 8)):
        models = [pacplan.envs.garnet(seed=i) for i in range(count)]
        ours = planner(epsilon)
        tables = [(m._probabilities[0], m._to[0], m._rewards[0, :, :, 0].copy()) for m in models]
        rest = (0, ours.horizon, GAMMA, epsilon, DELTA)
        room = PAPER[epsilon][2]
        ours.plan(models[0], 0, seed=0)
        baseline.plan(*tables[0], *rest, 0, room)
        rates, inner, base = [], [], []
        for _ in range(repeats):
            start = time.perf_counter()
            plans = [ours.plan(model, 0, seed=i) for i, model in enumerate(models)]
            seconds = time.perf_counter() - start
            calls = sum(plan.samples for plan in plans)
            rates.append(calls / seconds)
            inner.append(calls / sum(plan.seconds for plan in plans))
            start = time.perf_counter()
            calls = sum(baseline.plan(*t, *rest, i, room)[1] for i, t in enumerate(tables))
            base.append(calls / (time.perf_counter() - start))
        memory = np.mean([plan.tree.nbytes / plan.samples for plan in plans])
        rate, kernel, plain = (np.median(x) for x in (rates, inner, base))
        table.add_row(
            f"{epsilon:g}", f"{rate / 1e6:.2f}", f"{kernel / 1e6:.2f}", f"{plain / 1e6:.2f}",
            f"{np.median(np.array(rates) / np.array(base)):.2f}", f"{memory:.0f}",
        )  # fmt: skip
    console.print(table)


def python_simulator(console):
    """What a plan takes for each call to a Python simulator on top of it, the search included."""

    def step(state, action, rng):
        after = (37 * state + 11 * action + (rng.random() < 0.5)) % 211
        return after, after / 210, False

    model = pacplan.Simulator(step, actions=5, successors=2)
    asked = {"epsilon": 0.0, "delta": DELTA, "gamma": 0.9}
    table = Table(
        "planner", "H = 10", "H = 30",
        title="Python simulator: µs per call on top of its own, by process time, 50,000 calls",
    )  # fmt: skip
    kinds = [
        ("MDPGapE", pacplan.MDPGapE, {}),
        ("MDPGapE, merge='depth'", pacplan.MDPGapE, {"merge": "depth"}),
        ("Bracket", pacplan.Bracket, {}),
    ]
    for name, make, more in kinds:
        cells = []
        for horizon in (10, 30):
            anytime = make(horizon=horizon, **asked, **more)
            anytime.plan(model, 0, seed=0, budget=1000)
            found = [_overhead(anytime, model, step) for _ in range(3)]
            cells.append(f"{min(found) * 1e6:.1f}")
        table.add_row(name, *cells)
    console.print(table)


def _overhead(anytime, model, step):
    """Seconds of a plan for each call, less those of a call."""
    start = time.process_time()
    plan = anytime.plan(model, 0, seed=0, budget=50_000)
    whole = time.process_time() - start
    rng = np.random.default_rng(0)
    start = time.process_time()
    for _ in range(plan.samples):
        step(0, 1, rng)
    return (whole - (time.process_time() - start)) / plan.samples


SECONDS = """
import json, pacplan
from pacplan.compiled.tiered import waiting
model = pacplan.envs.garnet(seed=0)
planner = pacplan.MDPGapE(epsilon=0, delta=.1, gamma=.7, horizon=6, thresholds="paper")
with waiting():
    planner.plan(model, 0, seed=0, budget=10)
plan = planner.plan(model, 0, seed=0, budget={budget})
print(json.dumps(plan.seconds / plan.samples))
"""


def interpreted(console):
    """The same search with compilation switched off: a ratio that holds on every machine."""

    def seconds(budget, **environment):
        command = [sys.executable, "-c", SECONDS.format(budget=budget)]
        return json.loads(
            subprocess.run(
                command, env=os.environ | environment, capture_output=True, text=True, check=True
            ).stdout
        )

    slow = seconds(3000, NUMBA_DISABLE_JIT="1")
    fast = seconds(300_000)
    console.print(
        f"Interpreted (NUMBA_DISABLE_JIT=1): {slow * 1e6:.0f} µs per call; compiled: "
        f"{fast * 1e9:.0f} ns, {slow / fast:.0f} times faster"
    )


def start_up(console):
    """A whole process, with an empty compile cache and with a warm one."""
    command = [sys.executable, "-m", "pacplan", "plan", "garnet", "--epsilon", "1", "--json"]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        walls = []
        for _ in range(4):
            start = time.perf_counter()
            subprocess.run(command, env=environment, check=True, capture_output=True)
            walls.append(time.perf_counter() - start)
    console.print(
        f"pacplan plan garnet --epsilon 1: {walls[0]:.1f} s the first time ever, "
        f"{np.median(walls[1:]):.2f} s from then on"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer MDPs and repetitions")
    quick = parser.parse_args().quick
    console = Console(width=110)
    speed(console, 3 if quick else 7)
    samples_and_regret(console, 20 if quick else 200)
    python_simulator(console)
    interpreted(console)
    start_up(console)


if __name__ == "__main__":
    main()
