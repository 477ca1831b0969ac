"""How good forecasts are: calls that a short trial foresees, as a multiple of those of the plan."""

import numpy as np

import pacplan

COMMON = {"delta": 0.1}
CASES = [
    ("the paper's garnets", pacplan.envs.garnet, 1000, {"epsilon": 0.2, "gamma": 0.7}),
    ("the paper's garnets", pacplan.envs.garnet, 3000, {"epsilon": 0.1, "gamma": 0.7}),
    ("riverswim", lambda seed: pacplan.envs.riverswim(), 3000, {"epsilon": 0.1, "gamma": 0.95}),
]


def main():
    """One row per case, over 20 problems or seeds."""
    print("| problem | ε | trial | calls, median | forecast / calls: 10 %, median, 90 %, most |")
    print("|---|---|---|---|---|")
    for name, make, trial, settings in CASES:
        ratios, calls = [], []
        for seed in range(20):
            model, asked = make(seed=seed), settings | COMMON | {"seed": seed, "sample": True}
            short = pacplan.plan(model, 0, budget=trial, **asked)
            plan = pacplan.plan(model, 0, budget=3_000_000, **asked)
            calls.append(plan.samples)
            if short.diagnosis is not None and short.diagnosis.samples_needed is not None:
                ratios.append(short.diagnosis.samples_needed / plan.samples)
        spread = ", ".join(f"{ratio:.2g}" for ratio in np.quantile(ratios, [0.1, 0.5, 0.9, 1.0]))
        print(f"| {name} | {settings['epsilon']} | {trial:,} | {np.median(calls):,.0f} | {spread} |")


if __name__ == "__main__":
    main()
