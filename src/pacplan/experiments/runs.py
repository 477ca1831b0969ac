"""The runs of a sweep: `runs.jsonl` has their rows while they are made."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan import exact
from pacplan.compiled.tiered import waiting
from pacplan.core import checks
from pacplan.experiments.records import Record
from pacplan.experiments.results import complete, opened, read_results
from pacplan.experiments.sweep import Run, Sweep

RUNS = "runs.jsonl"
"""The results file in the folder of a sweep."""


def run(
    sweep: Sweep,
    folder: str | Path | None = None,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
) -> list[Record]:
    """Run a sweep, or the rest of it.

    Args:
        sweep: what to run.
        folder: where rows are written as runs end. The same sweep with the same folder continues where
            it stopped, even if it was killed. None: nothing is written.
        workers: processes to start, by default one per core; 1 starts none and computes in this
            process. With an executor: how many batches of runs to give it at a time.
        executor: what computes, for instance a Dask client's `get_executor()`.
        progress: show a bar with rate and time left, on the error stream.

    Returns:
        A row for every run, in the order of `sweep.runs()`. A run that raised has a row with its
        error.

    Raises:
        ValueError: a planner or problem is wrong, which is found before any of the user's code is
            called; or the folder holds another sweep.
        RuntimeError: the executor lost runs; the rows of the others are in the folder.
        OSError: a row cannot be written, for instance to a full disk; those before are in the folder.
        KeyboardInterrupt: Ctrl-C; the rows that were finished are in the folder.
    """
    workers = checks.integer("workers", (os.cpu_count() or 1) if workers is None else workers, least=1)
    runs, first = sweep.runs(), sweep.problem_seeds[0]
    for problem in sweep.problems:
        try:
            problem.build(first)  # What is wrong with it would be wrong with all of its runs.
        except Exception as error:
            if not str(problem.problem).startswith("gym:"):  # It is the user's code.
                error.add_note(f"raised when the problem {problem.name} was made with seed {first}")
            raise
    path = None if folder is None else Path(folder) / RUNS
    with opened(path, Record, sweep.describe()) as results:
        complete(runs, results, made, workers=workers, executor=executor, progress=progress)
    return [results.rows[one.key] for one in runs]


def read(path: str | Path) -> list[Record]:
    """The rows of a sweep's results file, or of the file in its folder.

    Raises:
        ValueError: the file is of a different kind, or damaged.
        OSError: the file cannot be read.
    """
    return read_results(Path(path) / RUNS if Path(path).is_dir() else path, Record)


def made(runs: Iterable[Run]) -> Iterator[Record]:
    """Make runs, one after the other. Those on the same problem and seed are adjacent."""
    model, last = None, None
    for one in runs:
        try:
            if model is None or last != (one.row.problem, one.row.problem_seed):
                model, last = None, (one.row.problem, one.row.problem_seed)
                model = one.problem.build(one.row.problem_seed)
            planner = one.planner.build()
            with waiting():  # The time of a run is a result.
                plan = planner.plan(model, seed=one.row.seed, budget=one.row.budget)
            if plan.interrupted:
                raise KeyboardInterrupt
            regret = None
            gamma = getattr(planner, "gamma", None)
            if gamma is not None and model.known:
                values = _values(model, gamma, plan.horizon)
                regret = float(values.max() - values[plan.action])
            names = ("horizon", "samples", "episodes", "gap", "certified", "stopped_by", "seconds")
            found: dict[str, Any] = {name: getattr(plan, name) for name in names}
            yield replace(one.row, action=str(plan.action), regret=regret, **found)
        except Exception as error:
            yield replace(one.row, error=" ".join(f"{type(error).__name__}: {error}".split()))


def _values(model: Any, gamma: float, horizon: int | None) -> NDArray[np.float64]:
    """The values behind `Record.regret`, of the actions of the model's initial state."""
    endless = gamma < 1.0 and model.steps is None
    return _solved(model, gamma, None if endless else horizon)


@lru_cache(maxsize=8)
def _solved(model: Any, gamma: float, steps: int | None) -> NDArray[np.float64]:
    if steps is None:
        values = exact.discounted(model, gamma=gamma)
    else:
        values = exact.finite_horizon(model, gamma=gamma, horizon=steps)[0]
    found: NDArray[np.float64] = values[model.initial_state()]
    return found
