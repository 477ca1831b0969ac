"""Planners side by side: the same problems, the same seeds, the same budget."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pacplan.algorithms import Planner
from pacplan.core import checks
from pacplan.experiments.records import Group, groups
from pacplan.experiments.sweep import PlannerSpec, ProblemSpec, Sweep, run
from pacplan.views import terminal


def compare(
    problem: Callable[[int], Any],
    planners: Sequence[Planner],
    *,
    budget: int,
    runs: int,
    seed: int = 0,
    workers: int = 1,
    progress: bool = False,
) -> list[Group]:
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
        The runs of every planner, the smallest mean regret first.
    """
    sweep = Sweep(
        planners=[PlannerSpec(planner) for planner in planners],
        problems=[ProblemSpec(problem, label="problem")],
        budgets=[checks.integer("budget", budget, least=1)],
        seeds=range(seed, seed + checks.integer("runs", runs, least=1)),
        seed=seed,
    )
    records = run(sweep, workers=workers, progress=progress)
    for record in records:
        if record.error:
            raise ValueError(f"{record.planner}: {record.error}")
        if record.regret is None:
            raise TypeError(
                "regret is measured against exact solutions, so the problem must be a TabularMDP "
                "or publish its table like one"
            )
    return sorted(groups(records), key=lambda group: group.regret.value if group.regret else 0.0)


def to_dict(rows: Sequence[Group]) -> dict[str, Any]:
    """A comparison in types that `json.dumps` takes."""
    planners: list[dict[str, Any]] = []
    for row in rows:
        assert row.regret is not None
        mean, low, high = row.regret
        columns = {"regrets": "regret", "samples": "samples", "seconds": "seconds"}
        entry = {
            **{"name": row.planner, **json.loads(row.settings)},
            **{"mean_regret": mean, "mean_regret_low": low, "mean_regret_high": high},
            **{key: [getattr(plan, name) for plan in row.plans] for key, name in columns.items()},
        }
        planners.append(entry)
    return {"budget": rows[0].budget, "problems": rows[0].runs, "planners": planners}


def show(rows: Sequence[Group]) -> None:
    """Print the comparison as a table."""
    cells = [("planner", "mean regret", "95 % interval", "mean calls", "ms per plan")]
    for row in rows:
        assert row.regret is not None and row.seconds is not None
        regret, calls = row.regret, np.mean([plan.samples for plan in row.plans])
        interval = f"{regret.low:.2e} .. {regret.high:.2e}"
        numbers = f"{calls:,.0f}", f"{row.seconds * 1e3:.2f}"
        cells.append((row.planner, f"{regret.value:.2e}", interval, *numbers))
    print(f"{rows[0].runs} problem{'s' * (rows[0].runs != 1)}, {rows[0].budget:,} calls each")
    terminal.show(terminal.table(cells, left=(0,)))
