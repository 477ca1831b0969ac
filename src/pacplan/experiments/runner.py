"""Many runs on any executor: they go on where they stopped, with the same rows wherever computed."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from pacplan.core.notes import lost
from pacplan.experiments.results import Keyed, Results, Row
from pacplan.parallel.batches import Batches, as_computed
from pacplan.parallel.pools import InProcess, here_or_in_processes
from pacplan.views.progress import bar

Run = TypeVar("Run", bound=Keyed)
Work = Callable[[Iterable[Run]], Iterator[Row]]
"""Makes runs, one after the other, and gives the row of each. What a run raises is in its row."""

# A batch should take about this long: long enough to be worth sending, short enough that little is
# lost when everything is killed.
_BATCH_SECONDS = 0.2
_MOST_RUNS = 200


def complete(
    runs: Sequence[Run],
    results: Results[Row],
    work: Work[Run, Row],
    *,
    workers: int,
    executor: Executor | None = None,
    unit: str = "runs",
    progress: bool = False,
) -> None:
    """Make the runs that have no row yet, and add their rows as they come.

    Rows come in any order, and a run that is cut short by Ctrl-C has none: it is made again later.

    Args:
        runs: what there is to do.
        results: the rows.
        work: what makes the runs; it can be sent to other processes, and so can the runs.
        workers: processes to start; 1 starts none. With an executor: batches to give it at a time.
        executor: what computes, if not processes of our own.
        unit: what a run is called.
        progress: show a bar on the error stream.

    Raises:
        RuntimeError: the executor lost runs.
        OSError: a row cannot be written.
    """
    left = [run for run in runs if run.key not in results]
    if not left:
        return
    place: AbstractContextManager[Executor]
    if executor is None:
        place = here_or_in_processes(min(workers, len(left)), left, "planners and problems")
    else:
        place = nullcontext(executor)
    done = len(runs) - len(left)
    with place as chosen, bar(len(runs), done, unit, show=progress) as advance:
        rows = work(left) if isinstance(chosen, InProcess) else _sent(left, chosen, work, workers, unit)
        for row in rows:
            results.add(row)
            advance(1)


def _sent(
    runs: Sequence[Run], executor: Executor, work: Work[Run, Row], at_once: int, unit: str
) -> Iterator[Row]:
    """The rows of runs that an executor makes in batches of about equal time."""
    batches = Batches(runs, _BATCH_SECONDS, _MOST_RUNS, lambda run: run.kind)
    # One batch more than can be worked on is always waiting.
    for future in as_computed(executor, (_timed, work), batches, at_once + 1):
        try:
            made = future.result()
        except Exception as error:  # What runs raise is in their rows; this is the executor's own.
            advice = "The results file, if there is one, has the others: run the same again to continue"
            raise lost(unit, error, advice) from error
        for row, seconds in made:
            batches.learn(row.kind, seconds)
            yield row


def _timed(work: Work[Run, Row], runs: Sequence[Run]) -> list[tuple[Row, float]]:
    """The rows of a batch, and how long each took with all that belongs to it."""
    found, last = [], time.perf_counter()
    for row in work(runs):
        now = time.perf_counter()
        found.append((row, now - last))
        last = now
    return found
