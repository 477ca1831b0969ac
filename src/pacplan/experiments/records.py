"""The results of runs: one row each, in memory and in a CSV file that survives being killed."""

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pacplan.core.identity import source_digest
from pacplan.core.version import __version__
from pacplan.experiments.lines import Lines, appending
from pacplan.experiments.sweep import Sweep

RUNS, CONFIGURATION = "runs.csv", "sweep.json"
_FOREIGN = (
    "{} does not begin with the columns of a sweep as this version of pacplan writes them; move it "
    "away. (If an earlier version wrote it, run the sweep again.)"
)


@dataclass(frozen=True)
class Record:
    """The result of one run; a row of the CSV file.

    Attributes:
        planner: label of the planner.
        settings: what identifies the planner, as JSON (`PlannerSpec.identity`).
        problem: name of the problem.
        problem_seed: its seed.
        budget: calls to the model that the plan was given, if any.
        seed: of the plan.
        horizon: steps planned.
        action: what the planner chose.
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


HEADER = tuple(entry.name for entry in fields(Record))
_READ: dict[Any, Any] = {
    str: str,
    int: int,
    bool: {"True": True, "False": False}.__getitem__,
    int | None: lambda text: int(text) if text else None,
    float | None: lambda text: float(text) if text else None,
}
_READERS = tuple(_READ[entry.type] for entry in fields(Record))


def _line(values: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


def read(path: str | Path) -> list[Record]:
    """The rows of a file that `store` wrote.

    Raises:
        ValueError: it is a different kind of file, or damaged.
        OSError: it cannot be read.
    """
    return _parse(Path(path).read_bytes(), Path(path))


def _parse(content: bytes, path: Path) -> list[Record]:
    found: list[Record] = []
    # A row is one line, whatever it contains.
    for number, raw in enumerate(content.splitlines(), 1):
        try:
            (line,) = csv.reader([raw.decode()], strict=True)
            if number > 1:
                values = (reader(cell) for reader, cell in zip(_READERS, line, strict=True))
                found.append(Record(*values))
        except (ValueError, KeyError, csv.Error):
            line = []
        if number == 1 and tuple(line) != HEADER:
            raise ValueError(_FOREIGN.format(path))
        if not line:
            raise ValueError(
                f"{path}, line {number} is damaged: {raw[:160]!r}; delete that line, and its run is "
                "done again"
            )
    return found


class Store:
    """The rows of a sweep, in memory and, if there is one, in its CSV file."""

    def __init__(self, records: Sequence[Record] = (), lines: Lines | None = None) -> None:
        self._lines = lines
        self._keys = {record.key for record in records}
        self.records = list(records)
        """The rows in it."""

    def add(self, record: Record) -> bool:
        """Write a row, unless that run has one already; returns whether it was written.

        Raises:
            OSError: it cannot be written. The rows before are in the file.
        """
        if record.key in self._keys:
            return False
        if self._lines is not None:
            self._lines.append(_line(getattr(record, name) for name in HEADER))
        self._keys.add(record.key)
        self.records.append(record)
        return True


@contextmanager
def store(sweep: Sweep, folder: Path) -> Iterator[Store]:
    """Open the folder of a sweep, new or begun before.

    Raises:
        ValueError: it holds another sweep or something else, something is writing to it, or it cannot
            be written to.
    """
    path = folder / RUNS

    def check(whole: bytes) -> None:
        _check_configuration(sweep, folder)
        if not whole and not _line(HEADER).startswith(path.read_bytes()):
            raise ValueError(_FOREIGN.format(path))
        _parse(whole, path)

    with appending(path, "run", check) as lines:
        if not lines.whole:
            lines.append(_line(HEADER))
        yield Store(_parse(lines.whole, path), lines)


def _check_configuration(sweep: Sweep, folder: Path) -> None:
    """Record what the folder is for; refuse it if it is for something else."""
    # Results of two versions of the code must not mix either.
    code = f"{__version__} {source_digest()[:12]}"
    now = {"pacplan": code} | sweep.describe()
    path = folder / CONFIGURATION
    if path.is_dir():
        raise ValueError(f"{path} is a folder; choose another folder for the sweep")
    if (folder / RUNS).stat().st_size == 0:
        _write_whole(path, json.dumps(now, indent=1) + "\n")
        return
    if not path.exists():
        raise ValueError(f"{folder} has a {RUNS} but no {CONFIGURATION}; choose another folder")
    before = _configuration(path)
    if before == now:
        return
    changes = [
        f"{key} was {_short(before.get(key))}, now is {_short(value)}"
        for key, value in now.items()
        if before.get(key) != value
    ]
    raise ValueError(
        f"{folder} holds the results of another sweep: {'; '.join(changes)}. Rows of the two must "
        "not mix: choose another folder, or delete this one to begin again"
    )


def _configuration(path: Path) -> dict[str, Any]:
    """What the folder is for, as recorded."""
    advice = f"choose another folder, or delete {path.parent} to begin again"
    try:
        before = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}; {advice}") from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged, it is not JSON: {error}; {advice}") from None
    except RecursionError:
        raise ValueError(f"{path} is damaged, it is nested too deeply; {advice}") from None
    if not isinstance(before, dict):
        raise ValueError(f"{path} does not describe a sweep: {_short(before)}; {advice}")
    return before


def _write_whole(path: Path, text: str) -> None:
    """Write a file, all or nothing."""
    half = path.with_suffix(".part")
    try:
        half.write_text(text, "utf-8")
        os.replace(half, path)
    except OSError as error:
        with suppress(OSError):
            half.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 160 else f"{text[:78]} ... {text[-78:]}"
