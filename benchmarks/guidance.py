"""What a user's policy or value function saves, and what a bad one costs: calls on the same MDPs.

    python3 dev.py python benchmarks/guidance.py             40 MDPs of each kind, some minutes
    python3 dev.py python benchmarks/guidance.py --mdps 10   a first look

Guidance is optimal (computed from the table), noisy (half of the advice is drawn at random, values are
off by up to a quarter of the largest) or perverse (the worst action, values upside down).
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from pacplan import envs, exact

DELTA = 0.1
# Name: the model of a seed, the planner and its settings.
PROBLEMS = {
    "garnets, Bracket": (
        lambda seed: envs.garnet(seed=seed),
        pacplan.Bracket,
        {"epsilon": 0.5, "gamma": 0.7, "horizon": 8},
    ),
    "gridworld, Bracket": (
        lambda seed: envs.gridworld(),
        pacplan.Bracket,
        {"epsilon": 0.8, "gamma": 0.9, "horizon": 5},
    ),
    "riverswim, Bracket": (
        lambda seed: envs.riverswim(),
        pacplan.Bracket,
        {"epsilon": 0.8, "gamma": 0.9, "horizon": 7},
    ),
    "garnets with B = 200, Canopy": (
        lambda seed: envs.garnet(200, 5, 200, seed=seed),
        pacplan.Canopy,
        {"epsilon": 0.5, "gamma": 0.7, "horizon": 4},
    ),
}


def guides(model, gamma, horizon, seed):
    """Settings by the name of the guidance."""
    rng = np.random.default_rng(seed)
    q = exact.finite_horizon(model, gamma=gamma, horizon=horizon)
    best, worst, v = q.argmax(2), q.argmin(2), q.max(2)
    random = rng.random(best.shape) < 0.5
    noisy = np.where(random, rng.integers(q.shape[2], size=best.shape), best)
    off = v + 0.25 * v.max(1, keepdims=True) * rng.uniform(-1, 1, v.shape)
    down = v.max(1, keepdims=True) + v.min(1, keepdims=True) - v
    return {
        "none": {},
        "policy, optimal": {"policy": lambda state, h: best[h, state]},
        "policy, noisy": {"policy": lambda state, h: noisy[h, state]},
        "policy, perverse": {"policy": lambda state, h: worst[h, state]},
        "value, optimal": {"value": lambda state, h: v[h, state]},
        "value, noisy": {"value": lambda state, h: off[h, state]},
        "value, perverse": {"value": lambda state, h: down[h, state]},
        "both, optimal": {
            "policy": lambda state, h: best[h, state],
            "value": lambda state, h: v[h, state],
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mdps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=610_000, help="of the first MDP")
    options = parser.parse_args()
    table = Table(title=f"Calls to the model, {options.mdps} MDPs, delta {DELTA}", box=None)
    for header in ("problem", "guidance", "median calls", "ratio to none, geometric mean"):
        table.add_column(header, justify="left" if header in ("problem", "guidance") else "right")
    for name, (make, planner, settings) in PROBLEMS.items():
        calls = {}
        for seed in range(options.seed, options.seed + options.mdps):
            model = make(seed)
            for guide, extra in guides(model, settings["gamma"], settings["horizon"], seed).items():
                plan = planner(delta=DELTA, **settings, **extra).plan(model, seed=seed)
                assert plan.certified
                calls.setdefault(guide, []).append(plan.samples)
        for guide, found in calls.items():
            ratios = np.log(np.array(found) / np.array(calls["none"]))
            error = ratios.std() / np.sqrt(len(ratios))
            ratio = f"{np.exp(ratios.mean()):.2f} ± {error:.2f}" if guide != "none" else ""
            table.add_row(name, guide, f"{np.median(found):,.0f}", ratio)
            name = ""
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
