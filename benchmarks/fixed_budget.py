"""MDP-GapE within a budget: the size of its bounds, and the rule that recommends an action.

    python3 dev.py python benchmarks/fixed_budget.py            two minutes
    python3 dev.py python benchmarks/fixed_budget.py --quick    fewer MDPs and budgets

Bounds are multiples of log tau, tau the number of episodes. b is UGapE's choice, the action with the
smallest bound on its gap; the others are the largest estimate, the largest lower bound and the largest
middle of the interval.
"""

import argparse
import math

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from pacplan import exact
from pacplan.algorithms.common.horizons import allocation

GAMMA = 0.7
BUDGETS = (31, 100, 316, 1_000, 3_162, 10_000, 31_623, 100_000)
# Multiples for rewards and for transitions.
SIZES = ((1.0, 1.0), (1.0, 0.1), (0.2, 0.2), (0.1, 0.1), (0.03, 0.03))
RULES = {
    "b": None,
    "estimate": lambda plan: plan.values,
    "lower": lambda plan: plan.lower,
    "middle": lambda plan: plan.lower + plan.upper,
}


def mean_regrets(models, values, budget, rewards, transitions):
    """Mean regret by rule; ties are broken by the first action, which in random MDPs is any."""
    episodes, horizon = allocation(budget, GAMMA)
    level = math.log(episodes)
    thresholds = pacplan.bounds.Thresholds(
        lambda n: np.full_like(n, rewards * level),
        lambda n: np.full_like(n, transitions * level),
        proven=False,
        name="multiple of log tau",
    )
    planner = pacplan.MDPGapE(
        epsilon=0.0, delta=0.1, gamma=GAMMA, horizon=horizon, thresholds=thresholds
    )
    regrets = {rule: [] for rule in RULES}
    for seed, (model, q) in enumerate(zip(models, values, strict=True)):
        plan = planner.plan(model, seed=seed, budget=budget)
        for rule, score in RULES.items():
            action = plan.action if score is None else int(np.argmax(score(plan)))
            regrets[rule].append(q.max() - q[action])
    return [np.mean(regrets[rule]) for rule in RULES]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer MDPs and budgets")
    quick = parser.parse_args().quick
    count, budgets = (40, BUDGETS[::3]) if quick else (200, BUDGETS)
    console = Console(width=110, highlight=False)
    for noise in ("none", "bernoulli"):
        models = [pacplan.envs.garnet(seed=seed, noise=noise) for seed in range(count)]
        values = [exact.discounted(model, gamma=GAMMA)[0] for model in models]
        for rewards, transitions in SIZES:
            console.print(
                f"noise {noise}: {rewards:g} log τ for rewards, {transitions:g} log τ for transitions",
                style="italic",
            )
            table = Table("n", *RULES, box=None)
            for budget in budgets:
                means = mean_regrets(models, values, budget, rewards, transitions)
                table.add_row(f"{budget:,}", *(f"{mean:.1e}" for mean in means))
            console.print(table)


if __name__ == "__main__":
    main()
