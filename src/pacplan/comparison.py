"""Planners side by side: the same problems, the same seeds, the same budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms import Planner
from pacplan.core import checks
from pacplan.experiments.records import Record, Store
from pacplan.experiments.runner import complete, prepare
from pacplan.experiments.summary import mean
from pacplan.experiments.sweep import PlannerSpec, ProblemSpec, Sweep
from pacplan.views.style import TAKEN, check_picture, library


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


def compare(
    problem: Callable[[int], Any],
    planners: Sequence[Planner],
    *,
    budget: int,
    runs: int,
    seed: int = 0,
    on_interrupt: Literal["return", "raise"] = "raise",
) -> list[Row]:
    """Run every planner on problems `seed`, `seed + 1`, ... with the same number of calls.

    Args:
        problem: makes the model of a number; regret needs tables, such as a `TabularMDP` has.
        planners: what to compare.
        budget: calls to the model for each plan.
        runs: number of problems.
        seed: number of the first problem, and seed of the plans.
        on_interrupt: "raise": Ctrl-C raises KeyboardInterrupt. "return": it ends the comparison, and
            the rows hold the problems that every planner has finished; it raises if there are none.
    """
    checks.choice("on_interrupt", on_interrupt, ("return", "raise"))
    sweep = Sweep(
        planners=[PlannerSpec(planner) for planner in planners],
        problems=[ProblemSpec(problem, label="problem")],
        budgets=[budget],
        seeds=range(seed, seed + checks.integer("runs", runs, least=1)),
        seed=seed,
    )
    prepare(sweep)
    done = Store()
    try:
        complete(sweep, done, workers=1)
    except KeyboardInterrupt:
        if on_interrupt == "raise" or len(done.records) < len(planners):
            raise
    # They come in the order of the sweep, problem by problem.
    whole = len(done.records) // len(planners) * len(planners)
    return [
        _row(planner, done.records[place : whole : len(planners)])
        for place, planner in enumerate(planners)
    ]


def _row(planner: Planner, records: Sequence[Record]) -> Row:
    for record in records:
        if record.error:
            raise ValueError(f"{planner!r}: {record.error}")
        if record.regret is None:
            raise TypeError(
                "regret is measured against exact solutions, so the problem must be a TabularMDP "
                "or publish its table like one"
            )
    columns = ([getattr(r, name) for r in records] for name in ("regret", "samples", "seconds"))
    return Row(repr(planner), planner.name, *map(np.array, columns))


def show(rows: Sequence[Row], budget: int, runs: int) -> None:
    """Print the comparison as a table, the smallest regret first."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "planner",
        "mean regret",
        "95 % interval",
        "mean calls",
        "ms per plan",
        title=f"{runs} problems, {budget:,} calls each",
        box=None,
        title_justify="left",
    )
    for row in sorted(rows, key=lambda row: float(row.regrets.mean())):
        regret = mean(row.regrets)
        table.add_row(
            row.name,
            f"{regret.value:.2e}",
            f"{regret.low:.2e} .. {regret.high:.2e}",
            f"{row.calls.mean():,.0f}",
            f"{row.seconds.mean() * 1e3:.2f}",
        )
    Console(highlight=False).print(table)


def plot(rows: Sequence[Row], path: str, budget: int) -> None:
    """Draw mean regret with its interval, one line per planner, to a picture file."""
    check_picture(path)
    plt = library("matplotlib.pyplot")
    ordered = sorted(rows, key=lambda row: float(row.regrets.mean()), reverse=True)
    figure, axes = plt.subplots(figsize=(7, 1.2 + 0.45 * len(rows)), layout="constrained")
    for place, row in enumerate(ordered):
        regret = mean(row.regrets)
        around = [[regret.value - regret.low], [regret.high - regret.value]]
        axes.errorbar(regret.value, place, xerr=around, fmt="o", color=TAKEN, capsize=4)
    axes.set_yticks(range(len(rows)), [row.name for row in ordered])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(left=0.0)
    axes.set_xlabel(f"mean regret and its 95 % interval, {budget:,} calls per plan")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
