"""UCT's exploration constant: chosen on some families of problems, reported on others.

    python3 dev.py python benchmarks/uct_constant.py              100 MDPs of each, some minutes
    python3 dev.py python benchmarks/uct_constant.py --mdps 10    a first look
    python3 dev.py python benchmarks/uct_constant.py --large      larger budgets, the paper's MDPs

The families are those of benchmarks/families.py, each with its own horizon and discount, with rewards
that are random and with their means paid for certain. For each family and budget the mean regret of a
constant is divided by the mean over all constants, so hard and easy problems count equally; families
in which no constant ever errs are left out. A score is the mean of these ratios. The default of
`pacplan.UCT` is the constant with the smallest score on the training families. Held-out families, and
the paper's MDPs with other seeds, show what the choice is worth where nothing was tuned.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import families
import pacplan
from pacplan import exact

TEXTBOOK = 2.0**0.5
CONSTANTS = (TEXTBOOK, 1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.125)
BUDGETS = (100, 316, 1_000, 3_162)
LARGE_CONSTANTS = CONSTANTS[:5]
LARGE_BUDGETS = (10_000, 31_623, 100_000)
LARGE_SEEDS = range(950_000, 950_200)


def problems(family, seeds):
    """The family's MDPs, in the variants that it has, by name; those without tables are left out."""
    for noise in ("bernoulli", "none") if family.epsilon_fixed else (None,):
        models = [family.make(seed, noise) if noise else family.make(seed) for seed in seeds]
        if isinstance(models[0], pacplan.TabularMDP):
            yield family.name + (", fixed" if noise == "none" else ""), models


def mean_regrets(family, models, seeds):
    """Mean regret in the problem of the family's horizon, by constant and budget."""
    settings = {"gamma": family.gamma, "horizon": family.horizon}
    planners = [pacplan.UCT(exploration=constant, **settings) for constant in CONSTANTS]
    found = np.zeros((len(CONSTANTS), len(BUDGETS)))
    for model, seed in zip(models, seeds, strict=True):
        q = exact.finite_horizon(model, **settings)[0, model.initial_state()]
        for i, planner in enumerate(planners):
            for j, budget in enumerate(BUDGETS):
                action = planner.plan(model, seed=seed, budget=budget).action
                found[i, j] += q.max() - q[action]
    return found / len(seeds)


def report(console, title, chosen, seeds):
    """Print the ratios of every family, and return the scores."""
    table = Table("family", *(f"{c:.3g}" for c in CONSTANTS), title=title, box=None)
    ratios = []
    for family in chosen:
        for name, models in problems(family, seeds):
            regrets = mean_regrets(family, models, seeds)
            means = regrets.mean(0)
            if (means > 0.0).any():
                own = (regrets[:, means > 0.0] / means[means > 0.0]).mean(1)
                ratios.append(own)
                table.add_row(name, *(f"{ratio:.2f}" for ratio in own))
    scores = np.mean(ratios, 0)
    table.add_section()
    table.add_row("score", *(f"{score:.2f}" for score in scores), style="bold")
    console.print(table)
    return scores


def large(console):
    """Print mean regrets and their standard errors in the setting of the paper's Figure 2."""
    models = [pacplan.envs.garnet(seed=seed) for seed in LARGE_SEEDS]
    values = [exact.discounted(model, gamma=0.7)[0] for model in models]
    table = Table("n", *(f"{c:.3g}" for c in LARGE_CONSTANTS), box=None)
    for budget in LARGE_BUDGETS:
        cells = []
        for constant in LARGE_CONSTANTS:
            planner = pacplan.UCT(gamma=0.7, exploration=constant)
            plans = [planner.plan(model, seed=i, budget=budget) for i, model in enumerate(models)]
            regrets = [q.max() - q[plan.action] for q, plan in zip(values, plans, strict=True)]
            error = np.std(regrets) / len(regrets) ** 0.5
            cells.append(f"{np.mean(regrets):.1e} ± {error:.0e}")
        table.add_row(f"{budget:,}", *cells)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mdps", type=int, default=100, help="of each family")
    parser.add_argument("--large", action="store_true", help="larger budgets, the paper's MDPs only")
    options = parser.parse_args()
    console = Console(width=110, highlight=False)
    if options.large:
        large(console)
        return
    training = range(900_000, 900_000 + options.mdps)
    testing = range(950_000, 950_000 + options.mdps)
    scores = report(console, "training families", families.CHOSEN_ON, training)
    best = CONSTANTS[int(np.argmin(scores))]
    default = pacplan.UCT(gamma=0.7).exploration
    console.print(f"smallest score: {best:g}; the default of pacplan.UCT: {default:g}")
    report(console, "held-out families", families.HELD_OUT, testing)
    report(console, "the paper's MDPs, other seeds", families.CHOSEN_ON[:1], testing)


if __name__ == "__main__":
    main()
