"""What came of the runs: one row each, in memory and in a CSV file that survives being killed."""

import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import pacplan
from pacplan._sources import source_digest
from pacplan.experiments.lines import appending
from pacplan.experiments.sweep import Sweep

RUNS, CONFIGURATION = "runs.csv", "sweep.json"


@dataclass(frozen=True)
class Record:
    """What came of one run; a row of the CSV file.

    Attributes:
        planner: label of the planner.
        parameters: the call that makes it.
        problem: name of the problem.
        problem_seed: its seed.
        budget: calls to the model that the plan was given, if any.
        seed: of the plan; no two runs of a sweep have the same.
        horizon: steps planned.
        action: what the planner chose.
        samples: calls to the model that it made.
        episodes: episodes that it played.
        regret: max_a Q(s, a) - Q(s, action), by exact dynamic programming: of the infinite-horizon
            problem, or of the problem of `horizon` steps where gamma is 1 or the model not
            stationary. None where the model has no tables.
        gap: the planner's own bound on its regret.
        certified: whether the planner stopped by its own rule under proven thresholds.
        stopped_by: why it stopped.
        seconds: time of the search.
        error: why there is no plan; "" if there is one.
    """

    planner: str
    parameters: str
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
    """The rows of a file that `store` wrote."""
    return _parse(Path(path).read_bytes(), Path(path))


def _parse(content: bytes, path: Path) -> list[Record]:
    lines = csv.reader(io.StringIO(content.decode(), newline=""))
    found: list[Record] = []
    for number, line in enumerate(lines, 1):
        if number == 1:
            if tuple(line) != HEADER:
                raise ValueError(f"{path} does not begin with the columns of a sweep; move it away")
            continue
        try:
            values = (reader(cell) for reader, cell in zip(_READERS, line, strict=True))
            found.append(Record(*values))
        except (ValueError, KeyError):
            raise ValueError(f"{path}, line {number} is damaged: {line!r}; delete that line") from None
    return found


class Store:
    """The open CSV file of a sweep."""

    def __init__(self, file: IO[bytes], records: list[Record]) -> None:
        self._file = file
        self._seeds = {record.seed for record in records}
        self.records = records
        """The rows in it."""

    def add(self, record: Record) -> bool:
        """Write a row, unless that run has one already; returns whether it was written."""
        if record.seed in self._seeds:
            return False
        # One write for a line: what is killed leaves whole lines, and at most one that is not.
        self._file.write(_line(getattr(record, name) for name in HEADER))
        self._file.flush()
        self._seeds.add(record.seed)
        self.records.append(record)
        return True


@contextmanager
def store(sweep: Sweep, folder: Path) -> Iterator[Store]:
    """Open the folder of a sweep, new or begun before.

    Raises:
        ValueError: it holds another sweep, or something else is writing to it.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def check(whole: bytes) -> None:
        _check_configuration(sweep, folder)

    with appending(folder / RUNS, "run", check) as (file, whole):
        if not whole:
            file.write(_line(HEADER))
            file.flush()
        yield Store(file, _parse(whole, folder / RUNS))


def _check_configuration(sweep: Sweep, folder: Path) -> None:
    """Note what the folder is for; refuse it if it is for something else."""
    # Numbers of two states of the code must not mix either.
    code = f"{pacplan.__version__} {source_digest()[:12]}"
    now = {"pacplan": code} | sweep.describe()
    path = folder / CONFIGURATION
    if (folder / RUNS).stat().st_size == 0:
        half = path.with_suffix(".part")
        half.write_text(json.dumps(now, indent=1) + "\n", "utf-8")
        os.replace(half, path)
        return
    if not path.exists():
        raise ValueError(f"{folder} has a {RUNS} but no {CONFIGURATION}; choose another folder")
    before = json.loads(path.read_text("utf-8"))
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


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 160 else f"{text[:78]} ... {text[-78:]}"
