"""Planners side by side: the same problems, the same seeds, the same budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan import _checks, exact
from pacplan.algorithms import Planner
from pacplan.models import TabularMDP
from pacplan.views.style import TAKEN, library


@dataclass(frozen=True, eq=False)
class Row:
    """How one planner did: an entry for each run.

    Attributes:
        planner: its settings.
        name: its name.
        regrets: max_a Q(state, a) - Q(state, action taken), Q of the infinite-horizon problem.
        calls: calls to the model.
        seconds: time of the search.
    """

    planner: str
    name: str
    regrets: NDArray[np.float64]
    calls: NDArray[np.int64]
    seconds: NDArray[np.float64]

    def interval(self) -> tuple[float, float, float]:
        """Mean regret, and its 95 % interval by the bootstrap (the ends may be equal)."""
        rng = np.random.default_rng(0)
        draws = rng.choice(self.regrets, size=(2000, len(self.regrets))).mean(-1)
        low, high = np.quantile(draws, [0.025, 0.975])
        return float(self.regrets.mean()), float(low), float(high)


def compare(
    problem: Callable[[int], Any],
    planners: Sequence[Planner],
    *,
    budget: int,
    runs: int,
    gamma: float,
    seed: int = 0,
) -> list[Row]:
    """Run every planner on problems `seed`, `seed + 1`, ... with as many calls, and those seeds.

    Args:
        problem: the model of a number; regret needs tables, so it must be a `TabularMDP`.
        planners: what to compare.
        budget: calls to the model for each plan.
        runs: number of problems.
        gamma: discount of the regret; that of the planners.
        seed: number of the first problem, and seed of its plans.
    """
    _checks.integer("runs", runs, least=1)
    if not planners:
        raise ValueError("name at least one planner to compare")
    records: list[list[tuple[float, int, float]]] = [[] for _ in planners]
    for number in range(seed, seed + runs):
        model = problem(number)
        if not isinstance(model, TabularMDP):
            raise TypeError(
                "regret is measured against exact solutions, so the problem must be a TabularMDP; "
                f"got {type(model).__name__}"
            )
        values = exact.discounted(model, gamma=gamma)[model.initial_state()]
        for planner, record in zip(planners, records, strict=True):
            plan = planner.plan(model, seed=number, budget=budget)
            record.append((values.max() - values[plan.action], plan.samples, plan.seconds))
    return [
        Row(repr(planner), planner.name, *(np.array(column) for column in zip(*record, strict=True)))
        for planner, record in zip(planners, records, strict=True)
    ]


def show(rows: Sequence[Row], budget: int, runs: int) -> None:
    """Print the comparison as a table, the smallest regret first."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "planner",
        "mean regret",
        "95 % interval",
        "mean calls",
        "ms a plan",
        title=f"{runs} problems, {budget:,} calls each",
        box=None,
        title_justify="left",
    )
    for row in sorted(rows, key=lambda row: float(row.regrets.mean())):
        mean, low, high = row.interval()
        table.add_row(
            row.name,
            f"{mean:.2e}",
            f"{low:.2e} .. {high:.2e}",
            f"{row.calls.mean():,.0f}",
            f"{row.seconds.mean() * 1e3:.2f}",
        )
    Console(highlight=False).print(table)


def plot(rows: Sequence[Row], path: str, budget: int) -> None:
    """Draw mean regret with its interval, one line a planner, to a picture file."""
    plt = library("matplotlib.pyplot")
    ordered = sorted(rows, key=lambda row: float(row.regrets.mean()), reverse=True)
    figure, axes = plt.subplots(figsize=(7, 1.2 + 0.45 * len(rows)), layout="constrained")
    for place, row in enumerate(ordered):
        mean, low, high = row.interval()
        axes.errorbar(mean, place, xerr=[[mean - low], [high - mean]], fmt="o", color=TAKEN, capsize=4)
    axes.set_yticks(range(len(rows)), [row.name for row in ordered])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(left=0.0)
    axes.set_xlabel(f"mean regret and its 95 % interval, {budget:,} calls a plan")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
