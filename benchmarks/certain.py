"""Calls and time of certain answers, where nothing is random: OPD with an accuracy."""

import time

import gymnasium
import numpy as np

import pacplan


def cart_pole(seed):
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=seed)
    return pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))


def garnet(seed):
    return pacplan.envs.garnet(states=200, actions=3, successors=1, seed=seed)


def taxi(seed):
    env = gymnasium.make("Taxi-v4")
    env.reset(seed=seed)
    return pacplan.from_gymnasium(env)


CASES = [
    ("CartPole-v1, H = 30", cart_pole, {"gamma": 0.9, "epsilon": 0.5, "horizon": 30}),
    ("CartPole-v1, endless", cart_pole, {"gamma": 0.9, "epsilon": 0.5}),
    ("CartPole-v1, endless", cart_pole, {"gamma": 0.95, "epsilon": 0.5}),
    ("Taxi-v4, endless", taxi, {"gamma": 0.9, "epsilon": 1.0, "merge": "stationary"}),
    ("garnets, endless", garnet, {"gamma": 0.9, "epsilon": 0.5}),
    ("garnets, endless", garnet, {"gamma": 0.9, "epsilon": 0.5, "merge": "stationary"}),
]


def main():
    """One row per case: medians and maxima of ten problems."""
    print("| problem | settings | calls, median / most | ms, median | certified |")
    print("|---|---|---|---|---|")
    for name, make, settings in CASES:
        # Tables show it by themselves; of CartPole it is declared.
        planner = pacplan.OPD(**settings, rewards="deterministic")
        planner.plan(make(0), seed=0, budget=100)  # Compiles.
        calls, times, done = [], [], 0
        for seed in range(10):
            model = make(seed)
            began = time.perf_counter()
            plan = planner.plan(model, None if make is not garnet else 0, seed=seed, budget=100_000)
            times.append(time.perf_counter() - began)
            calls.append(plan.samples)
            done += plan.certified
        shown = ", ".join(f"{key}={value}" for key, value in settings.items())
        print(
            f"| {name} | {shown} | {np.median(calls):,.0f} / {max(calls):,} "
            f"| {1e3 * np.median(times):.0f} | {done} of 10 |",
            flush=True,
        )


if __name__ == "__main__":
    main()
