"""Many runs on any executor, and their results file: a line of JSON for each, to go on from."""

import json
import reprlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, as_completed, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, fields, replace
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pacplan.core.identity import source_digest
from pacplan.core.notes import lost
from pacplan.core.version import __version__
from pacplan.parallel.pools import process_pool, sendable
from pacplan.views.progress import bar


class Run(NamedTuple):
    """Something to do, which leads to a row.

    Attributes:
        row: a dataclass with a `key`, which identifies the run, and an `error`. It has no result yet.
        make: says what to fill into the row; what it raises is its error.
        given: its arguments. They, and the function, can be sent to other processes.
    """

    row: Any
    make: Callable[..., dict[str, Any]]
    given: tuple[Any, ...]

    @property
    def key(self) -> Any:
        """That of its row."""
        return self.row.key

    def made(self) -> Any:
        """The row with its result."""
        try:
            return replace(self.row, **self.make(*self.given))
        except Exception as error:
            return replace(self.row, error=" ".join(f"{type(error).__name__}: {error}".split()))


class Results:
    """The rows of many runs by their keys, in memory and, if there is one, in their file."""

    def __init__(self, file: FileIO | None = None) -> None:
        self.rows: dict[Any, Any] = {}
        self._file = file

    def add(self, row: Any) -> None:
        """Keep a row; raises OSError if it cannot be written, as on a full disk."""
        self.write(asdict(row))
        self.rows[row.key] = row

    def write(self, content: dict[str, Any]) -> None:
        """Append a line to the file. There is no buffer, so nothing is written later."""
        line = _line(content)
        while line and self._file is not None:  # A disk that is nearly full takes only part of it.
            line = line[self._file.write(line) :]


def read_results(path: str | Path, kind: type[Any]) -> list[Any]:
    """The rows of a results file, which are of this class.

    Raises:
        ValueError: the file is of a different kind, or damaged.
        OSError: the file cannot be read.
    """
    return _parsed(Path(path).read_bytes(), path, kind)[1]


@contextmanager
def opened(
    path: str | Path | None, kind: type[Any], configuration: dict[str, Any]
) -> Iterator[Results]:
    """Open a results file, new or begun before.

    Args:
        path: the file; None keeps the rows in memory.
        kind: the class of the rows.
        configuration: everything that rows depend on besides their keys; the file's first line. It gets
            the version of the code, to the byte: results of two versions must not mix.

    Raises:
        ValueError: the file holds something else, is damaged, or cannot be opened.
    """
    if path is None:
        yield Results()
        return
    configuration = {"pacplan": f"{__version__} {source_digest()[:12]}"} | configuration
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = FileIO(path, "a+")
    except OSError as error:
        raise ValueError(
            f"cannot write to {error.filename or path}: {error.strerror}; choose another place"
        ) from None
    with file:
        file.seek(0)
        content = file.readall()
        results, whole = Results(file), content.rfind(b"\n") + 1
        if whole or not _line(configuration).startswith(content):
            before, rows = _parsed(content, path, kind)
            changes = [
                f"{key} was {reprlib.repr(before.get(key))}, now is {reprlib.repr(value)}"
                for key, value in _read(_line(configuration)).items()
                if before.get(key) != value
            ]
            if changes:
                raise ValueError(
                    f"{path} holds other results: {'; '.join(changes)}. They must not mix: choose "
                    "another place, or delete the file to begin again"
                )
            results.rows = {row.key: row for row in rows}
        file.truncate(whole)
        if not whole:
            results.write(configuration)
        yield results


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _parsed(content: bytes, path: str | Path, kind: type[Any]) -> tuple[dict[str, Any], list[Any]]:
    """The configuration in a results file, and its rows.

    A writer that is killed leaves whole lines and at most half of another one, which is left out.
    """
    first, *lines = content.split(b"\n")
    configuration = _read(first)
    if "pacplan" not in configuration:
        raise ValueError(f"{path} is not a results file of pacplan; choose another place")
    names = {entry.name for entry in fields(kind)}
    rows = [_read(line) for line in lines[:-1]]
    for number, row in enumerate(rows, 2):
        if set(row) != names:
            raise ValueError(
                f"{path}, line {number} is damaged; delete that line, and its run is made again"
            )
    return configuration, [kind(**row) for row in rows]


def _read(line: bytes) -> dict[str, Any]:
    """What a line holds; nothing, if it is no object of JSON."""
    with suppress(ValueError):
        content = json.loads(line)
        if isinstance(content, dict):
            return content
    return {}


def complete(
    runs: Sequence[Run],
    results: Results,
    *,
    workers: int,
    executor: Executor | None = None,
    size: int = 1,
    unit: str = "runs",
    progress: bool = False,
) -> None:
    """Make the runs that have no row yet, and add their rows as they come, in any order.

    Args:
        runs: what there is to do.
        results: the rows.
        workers: processes to start; 1 starts none. With an executor: how much it does at a time.
        executor: what computes, if not processes of our own.
        size: how many runs it is sent at once. Their rows come back together.
        unit: what a run is called.
        progress: show a bar on the error stream.

    Raises:
        RuntimeError: the executor lost runs.
        OSError: a row cannot be written.
    """
    left = [run for run in runs if run.key not in results.rows]
    with ExitStack() as stack:
        if executor is None and min(workers, len(left)) > 1:
            sendable(left, "planners and problems")
            executor = stack.enter_context(process_pool(min(workers, len(left))))
        # The bar has a thread, to which Ctrl-C may come. So it follows the start of processes.
        advance = stack.enter_context(bar(len(runs), len(runs) - len(left), unit, show=progress))
        parts = (left[i : i + size] for i in range(0, len(left), size))
        for rows in map(_made, parts) if executor is None else _sent(parts, executor, workers, unit):
            for row in rows:
                results.add(row)
                advance(1)


def _made(runs: Sequence[Run]) -> list[Any]:
    """The rows of runs with their results."""
    return [run.made() for run in runs]


def _sent(
    parts: Iterator[Sequence[Run]], executor: Executor, at_once: int, unit: str
) -> Iterator[list[Any]]:
    """The rows of runs that an executor makes. Whoever is done finds the next ones waiting."""
    pending: set[Future[list[Any]]] = set()
    try:
        while more := [
            executor.submit(_made, part) for part in islice(parts, 2 * at_once - len(pending))
        ]:
            pending |= set(more)
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
        yield from (future.result() for future in as_completed(pending))
    except Exception as error:  # What runs raise is in their rows; this is the executor's own.
        advice = "The results file, if there is one, has the others: run the same again to continue"
        raise lost(unit, error, advice) from error
    finally:
        for future in pending:
            future.cancel()
