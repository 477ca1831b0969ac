"""The runs of a sweep, and the row of each: `runs.jsonl` while they are made, `runs.csv` in the end."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan import exact
from pacplan.compiled.tiered import waiting
from pacplan.core import checks
from pacplan.core.notes import pass_on
from pacplan.experiments.results import opened, read_results
from pacplan.experiments.runner import complete
from pacplan.experiments.sweep import ProblemSpec, Run, Sweep

RUNS = "runs.jsonl"
"""The results file in the folder of a sweep."""


@dataclass(frozen=True)
class Record:
    """The result of one run.

    Attributes:
        planner: label of the planner.
        settings: what identifies the planner, as JSON (`PlannerSpec.identity`).
        problem: name of the problem.
        problem_seed: its seed.
        budget: maximum number of calls to the model, if there was one.
        seed: of the plan.
        horizon: steps planned.
        action: the planner's choice.
        samples: calls to the model that it made.
        episodes: episodes that it played.
        regret: max_a Q(s, a) - Q(s, action), by exact dynamic programming: of the infinite-horizon
            problem, or of the problem of `horizon` steps if gamma is 1 or the model is not
            stationary. None if the model has no tables.
        gap: the planner's own bound on its regret.
        certified: whether the planner stopped by its own rule under proven thresholds.
        stopped_by: why it stopped.
        seconds: time of the search.
        error: why there is no plan; "" if there is one.
    """

    planner: str
    settings: str
    problem: str
    problem_seed: int
    budget: int | None
    seed: int
    horizon: int | None = None
    action: str = ""
    samples: int | None = None
    episodes: int | None = None
    regret: float | None = None
    gap: float | None = None
    certified: bool = False
    stopped_by: str = ""
    seconds: float | None = None
    error: str = ""

    @property
    def key(self) -> tuple[str, str, int, int | None]:
        """Identifies the run in its sweep."""
        return self.settings, self.problem, self.problem_seed, self.budget

    @property
    def kind(self) -> tuple[str, int | None]:
        """What the time of the run depends on."""
        return self.settings, self.budget


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
            called; the folder holds another sweep, or something else is writing to it.
        RuntimeError: the executor lost runs; the rows of the others are in the folder.
        OSError: a row cannot be written, for instance to a full disk; those before are in the folder.
        KeyboardInterrupt: Ctrl-C; the rows that were finished are in the folder.
    """
    if workers is None:
        workers = os.cpu_count() or 1
    checks.integer("workers", workers, least=1)
    prepare(sweep)
    runs = sweep.runs()
    path = None if folder is None else Path(folder) / RUNS
    with opened(path, Record, sweep.describe()) as results:
        complete(runs, results, made, workers=workers, executor=executor, progress=progress)
    found = {record.key: record for record in results.rows}
    return [found[one.key] for one in runs]


def read(path: str | Path) -> list[Record]:
    """The rows of a sweep's results file, or of the file in its folder.

    Raises:
        ValueError: the file is of a different kind, or damaged.
        OSError: the file cannot be read.
    """
    return read_results(Path(path) / RUNS if Path(path).is_dir() else path, Record)


def prepare(sweep: Sweep) -> None:
    """Raise what would make every run fail, calling as little of the user's code as possible."""
    sweep.check()
    for problem in sweep.problems:
        seed = sweep.problem_seeds[0]
        try:
            problem.build(seed)
        except Exception as error:
            error.add_note(f"raised when the problem {problem.name} was made with seed {seed}")
            raise


def made(runs: Iterable[Run]) -> Iterator[Record]:
    """Make runs, one after the other. Those on the same problem and seed are adjacent."""
    instance: _Instance | None = None
    for one in runs:
        record = Record(
            planner=one.planner.name,
            settings=one.settings,
            problem=one.problem.name,
            problem_seed=one.problem_seed,
            budget=one.budget,
            seed=one.seed,
        )
        try:
            if instance is None or instance.key != (record.problem, record.problem_seed):
                instance = _Instance(one.problem, one.problem_seed)
            yield _planned(one, record, instance)
        except Exception as error:
            pass_on(error)
            yield replace(record, error=" ".join(f"{type(error).__name__}: {error}".split()))


def _planned(one: Run, record: Record, instance: "_Instance") -> Record:
    planner = one.planner.build()
    with waiting():  # The time of a run is a result.
        plan = planner.plan(instance.model, seed=one.seed, budget=one.budget, on_interrupt="raise")
    return replace(
        record,
        horizon=plan.horizon,
        action=str(plan.action),
        samples=plan.samples,
        episodes=plan.episodes,
        regret=instance.regret(plan.action, getattr(planner, "gamma", None), plan.horizon),
        gap=plan.gap,
        certified=plan.certified,
        stopped_by=plan.stopped_by,
        seconds=plan.seconds,
    )


class _Instance:
    """A problem drawn from a seed, and its exact solutions, each computed once."""

    def __init__(self, problem: ProblemSpec, seed: int) -> None:
        self.key = problem.name, seed
        self.model = problem.build(seed)
        self._values: dict[tuple[float, int | None], NDArray[np.float64]] = {}

    def regret(self, action: Any, gamma: float | None, horizon: int | None) -> float | None:
        """As in `Record.regret`."""
        if gamma is None or not self.model.known:
            return None
        steps = None if gamma < 1.0 and self.model.steps is None else horizon
        key = (gamma, steps)
        if key not in self._values:
            state = self.model.initial_state()
            if steps is None:
                values = exact.discounted(self.model, gamma=gamma)
            else:
                values = exact.finite_horizon(self.model, gamma=gamma, horizon=steps)[0]
            self._values[key] = values[state]
        values = self._values[key]
        return float(values.max() - values[action])
