"""Planners side by side: the same problems, the same seeds, the same budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms import Planner
from pacplan.core import checks
from pacplan.experiments.results import Results
from pacplan.experiments.runner import complete
from pacplan.experiments.runs import Record, made, prepare
from pacplan.experiments.summary import mean
from pacplan.experiments.sweep import PlannerSpec, ProblemSpec, Sweep
from pacplan.views import terminal
from pacplan.views.pictures import TAKEN, check_picture, library


@dataclass(frozen=True, eq=False)
class Row:
    """How one planner did: an entry for each run.

    Attributes:
        planner: its settings.
        name: its name.
        regrets: max_a Q(state, a) - Q(state, action taken), Q of the infinite-horizon problem.
        samples: calls to the model.
        seconds: time of the search.
    """

    planner: str
    name: str
    regrets: NDArray[np.float64]
    samples: NDArray[np.int64]
    seconds: NDArray[np.float64]


def compare(
    problem: Callable[[int], Any],
    planners: Sequence[Planner],
    *,
    budget: int,
    runs: int,
    seed: int = 0,
    workers: int = 1,
    on_interrupt: Literal["return", "raise"] = "raise",
    progress: bool = False,
) -> list[Row]:
    """Run every planner on problems `seed`, `seed + 1`, ... with the same number of calls.

    Args:
        problem: makes the model of a number; regret needs tables, such as a `TabularMDP` has.
        planners: what to compare.
        budget: calls to the model for each plan.
        runs: number of problems.
        seed: number of the first problem, and seed of the plans.
        workers: processes that make the plans; 1 starts none. With as many as there are cores, times
            may come out longer.
        on_interrupt: "raise": Ctrl-C raises KeyboardInterrupt. "return": it ends the comparison, and
            the rows hold the problems that every planner has finished; it raises if there are none.
        progress: show a bar with rate and time left, on the error stream.
    """
    checks.choice("on_interrupt", on_interrupt, ("return", "raise"))
    sweep = Sweep(
        planners=[PlannerSpec(planner) for planner in planners],
        problems=[ProblemSpec(problem, label="problem")],
        budgets=[checks.integer("budget", budget, least=1)],
        seeds=range(seed, seed + checks.integer("runs", runs, least=1)),
        seed=seed,
    )
    checks.integer("workers", workers, least=1)
    prepare(sweep)
    done: Results[Record] = Results()
    try:
        complete(sweep.runs(), done, made, workers=workers, progress=progress)
    except KeyboardInterrupt:
        if on_interrupt == "raise" or not _finished(sweep, done):
            raise
    finished = _finished(sweep, done)
    return [
        _row(planner, [problem[place] for problem in finished])
        for place, planner in enumerate(planners)
    ]


def _finished(sweep: Sweep, done: Results[Record]) -> list[list[Record]]:
    """The records of every problem that all planners have finished."""
    found = {record.key: record for record in done.rows}
    records = [found.get(run.key) for run in sweep.runs()]
    each = len(sweep.planners)
    # The runs of a sweep come problem by problem.
    problems = (records[i : i + each] for i in range(0, len(records), each))
    return [[r for r in problem if r is not None] for problem in problems if None not in problem]


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


def to_dict(rows: Sequence[Row], budget: int) -> dict[str, Any]:
    """A comparison in types that `json.dumps` takes, the smallest regret first."""
    return {
        "budget": budget,
        "problems": len(rows[0].regrets),
        "planners": [
            {
                "name": row.name,
                "planner": row.planner,
                "mean_regret": (regret := mean(row.regrets)).value,
                "mean_regret_low": regret.low,
                "mean_regret_high": regret.high,
                "regrets": row.regrets.tolist(),
                "samples": row.samples.tolist(),
                "seconds": row.seconds.tolist(),
            }
            for row in _ranked(rows)
        ],
    }


def show(rows: Sequence[Row], budget: int, runs: int) -> None:
    """Print the comparison as a table, the smallest regret first."""
    cells = [("planner", "mean regret", "95 % interval", "mean calls", "ms per plan")]
    for row in _ranked(rows):
        regret = mean(row.regrets)
        cells.append(
            (
                row.name,
                f"{regret.value:.2e}",
                f"{regret.low:.2e} .. {regret.high:.2e}",
                f"{row.samples.mean():,.0f}",
                f"{row.seconds.mean() * 1e3:.2f}",
            )
        )
    print(f"{runs} problem{'s' * (runs != 1)}, {budget:,} calls each")
    terminal.show(terminal.table(cells, left=(0,)))


def _ranked(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: float(row.regrets.mean()))


def plot(rows: Sequence[Row], path: str, budget: int) -> None:
    """Draw mean regret with its interval, one line per planner, to a picture file."""
    check_picture(path)
    plt = library("matplotlib.pyplot")
    ordered = _ranked(rows)[::-1]
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
