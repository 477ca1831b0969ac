"""Which planner to take? The same random MDPs, the same seeds, the same number of calls.

Shows `pacplan.comparison` from Python; `pacplan compare garnet --budget 1000` does it in the shell.

    python examples/compare_planners.py
"""

import pacplan
from pacplan.comparison import compare, show

BUDGET, RUNS = 1000, 40


def problem(seed):
    """A random MDP of the MDP-GapE paper whose rewards are 0 or 1."""
    return pacplan.envs.garnet(states=100, actions=4, noise="bernoulli", seed=seed)


def main():
    """Compare five planners, and say what a guarantee would cost."""
    planners = [
        pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, thresholds="sharp"),
        pacplan.UCT(gamma=0.7),
        pacplan.BRUE(gamma=0.7),
        pacplan.KLOLOP(gamma=0.7),
        pacplan.SparseSampling(gamma=0.7, horizon=3, width=3),
    ]
    show(compare(problem, planners, budget=BUDGET, runs=RUNS))

    plan = pacplan.MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7).plan(problem(0), seed=0)
    print(f"\nNone of these answers is proven. One that is, for problem 0: {plan.guarantee}")
    print(plan.effort)


if __name__ == "__main__":
    main()
