"""Running a sweep: on any executor, resumable, with the same results wherever they are computed."""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan import exact
from pacplan.compiled.tiered import waiting
from pacplan.core import checks
from pacplan.core.notes import lost, pass_on
from pacplan.engine.executors import Batches, InProcess, as_computed, here_or_in_processes
from pacplan.experiments.records import Record, Store, store
from pacplan.experiments.sweep import ProblemSpec, Run, Sweep
from pacplan.views.bar import bar

# A batch should take about this long: long enough to be worth sending, short enough that little is
# lost when everything is killed.
_BATCH_SECONDS = 0.2
_MOST_RUNS = 200


class Timed(NamedTuple):
    """The result of a run, and how long all of it took."""

    record: Record
    seconds: float


def run(
    sweep: Sweep,
    folder: str | Path | None = None,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
) -> list[Record]:
    """Run a sweep, or what is left of it.

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
    with nullcontext(Store()) if folder is None else store(sweep, Path(folder)) as rows:
        return complete(sweep, rows, workers, executor, progress)


def prepare(sweep: Sweep) -> None:
    """Raise what would make every run fail, calling as little of the user's code as possible."""
    sweep.check()
    for problem in sweep.problems:
        _try(problem, sweep.problem_seeds[0])


def complete(
    sweep: Sweep,
    rows: Store,
    workers: int,
    executor: Executor | None = None,
    progress: bool = False,
) -> list[Record]:
    """Compute the runs that have no row yet; returns all of them, in the order of `sweep.runs()`."""
    runs = sweep.runs()
    done = {record.key for record in rows.records}
    left = [run for run in runs if run.key not in done]
    if left:
        with (
            _chosen(executor, min(workers, len(left)), sweep) as chosen,
            bar(len(runs), len(runs) - len(left), "runs", show=progress) as advance,
        ):
            for record in _results(left, chosen, workers):
                rows.add(record)
                advance(1)
    found = {record.key: record for record in rows.records}
    return [found[run.key] for run in runs]


def _try(problem: ProblemSpec, seed: int) -> None:
    """Make a problem once; what the user's code raises says where it comes from."""
    try:
        problem.build(seed)
    except Exception as error:
        error.add_note(f"raised when the problem {problem.name} was made with seed {seed}")
        raise


@contextmanager
def _chosen(executor: Executor | None, processes: int, sweep: Sweep) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    sent = (sweep.planners, sweep.problems)
    with here_or_in_processes(processes, sent, "planners and problems") as own:
        yield own


def _results(runs: list[Run], executor: Executor, at_once: int) -> Iterator[Record]:
    """The rows as they come.

    The loop is that of `plan_many`, but not its order, since rows are written when they are there; nor
    its Ctrl-C, since a plan that was cut short is no row, and is made again when the sweep goes on.
    """
    if isinstance(executor, InProcess):
        yield from (timed.record for timed in _computed(runs))
        return
    batches = Batches(runs, _BATCH_SECONDS, _MOST_RUNS, _kind)
    # One batch more than can be worked on is always waiting.
    for future in as_computed(executor, (execute,), batches, at_once + 1):
        for timed in _result(future):
            batches.learn(_kind(timed.record), timed.seconds)
            yield timed.record


def _result(future: Future[list[Timed]]) -> list[Timed]:
    try:
        return future.result()
    except Exception as error:  # What planners raise is in the rows; this is the executor's own.
        advice = "What was finished is kept: run the same again to continue"
        raise lost("runs", error, advice) from error


def _kind(run: Run | Record) -> tuple[str, int | None]:
    """What the time of a run depends on."""
    return run.settings, run.budget


def execute(runs: Sequence[Run]) -> list[Timed]:
    """Compute a batch."""
    return list(_computed(runs))


def _computed(runs: Sequence[Run]) -> Iterator[Timed]:
    """Compute runs one after the other."""
    instances: dict[tuple[str, int], _Instance] = {}
    for run in runs:
        start = time.perf_counter()
        record = _attempt(run, instances)
        yield Timed(record, time.perf_counter() - start)


def _attempt(run: Run, instances: "dict[tuple[str, int], _Instance]") -> Record:
    record = Record(
        planner=run.planner.name,
        settings=run.settings,
        problem=run.problem.name,
        problem_seed=run.problem_seed,
        budget=run.budget,
        seed=run.seed,
    )
    try:
        key = (record.problem, run.problem_seed)
        if key not in instances:
            instances.clear()  # Runs on the same problem and seed are adjacent.
            instances[key] = _Instance(run.problem, run.problem_seed)
        instance = instances[key]
        planner = run.planner.build()
        with waiting():  # The time of a run is a result.
            plan = planner.plan(instance.model, seed=run.seed, budget=run.budget, on_interrupt="raise")
        return replace(
            record,
            horizon=plan.horizon,
            action=_one_line(plan.action),
            samples=plan.samples,
            episodes=plan.episodes,
            regret=instance.regret(plan.action, getattr(planner, "gamma", None), plan.horizon),
            gap=plan.gap,
            certified=plan.certified,
            stopped_by=plan.stopped_by,
            seconds=plan.seconds,
        )
    except Exception as error:
        pass_on(error)
        # On one line, since each line of the file is a row.
        return replace(record, error=" ".join(f"{type(error).__name__}: {error}".split()))


def _one_line(action: Any) -> str:
    """An action in words that fit on one line."""
    text = str(action)
    return text if text.isprintable() else repr(text)


class _Instance:
    """A problem drawn from a seed, and its exact solutions, each computed once."""

    def __init__(self, problem: ProblemSpec, seed: int) -> None:
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
