"""Planners side by side: the same problems, the same seeds, the same budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms import Planner
from pacplan.core import checks
from pacplan.experiments.records import Record, mean
from pacplan.experiments.runs import run
from pacplan.experiments.sweep import PlannerSpec, ProblemSpec, Sweep
from pacplan.views import terminal


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
        progress: show a bar with rate and time left, on the error stream.

    Returns:
        A row for every planner, the smallest mean regret first.
    """
    sweep = Sweep(
        planners=[PlannerSpec(planner) for planner in planners],
        problems=[ProblemSpec(problem, label="problem")],
        budgets=[checks.integer("budget", budget, least=1)],
        seeds=range(seed, seed + checks.integer("runs", runs, least=1)),
        seed=seed,
    )
    records = run(sweep, workers=workers, progress=progress)
    # The runs of a sweep come problem by problem.
    rows = [_row(planner, records[i :: len(planners)]) for i, planner in enumerate(planners)]
    return sorted(rows, key=lambda row: float(row.regrets.mean()))


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
    """A comparison in types that `json.dumps` takes."""
    planners: list[dict[str, Any]] = []
    for row in rows:
        regret = mean(row.regrets)
        ends = {"mean_regret_low": regret.low, "mean_regret_high": regret.high}
        runs = {name: getattr(row, name).tolist() for name in ("regrets", "samples", "seconds")}
        named = {"name": row.name, "planner": row.planner, "mean_regret": regret.value}
        planners.append(named | ends | runs)
    return {"budget": budget, "problems": len(rows[0].regrets), "planners": planners}


def show(rows: Sequence[Row], budget: int) -> None:
    """Print the comparison as a table."""
    cells = [("planner", "mean regret", "95 % interval", "mean calls", "ms per plan")]
    for row in rows:
        regret = mean(row.regrets)
        interval = f"{regret.low:.2e} .. {regret.high:.2e}"
        numbers = f"{row.samples.mean():,.0f}", f"{row.seconds.mean() * 1e3:.2f}"
        cells.append((row.name, f"{regret.value:.2e}", interval, *numbers))
    runs = len(rows[0].regrets)
    print(f"{runs} problem{'s' * (runs != 1)}, {budget:,} calls each")
    terminal.show(terminal.table(cells, left=(0,)))
