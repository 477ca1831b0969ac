"""The results file of many runs: a line of JSON for each, kept through whatever ends them."""

import json
import logging
import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from io import FileIO
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pacplan.core.identity import source_digest
from pacplan.core.version import __version__

_logger = logging.getLogger("pacplan")


class Keyed(Protocol):
    """A run to be made, or the row that it has led to: a frozen dataclass."""

    @property
    def key(self) -> Hashable:
        """Identifies the run."""

    @property
    def kind(self) -> Hashable:
        """What the time of the run depends on."""


Row = TypeVar("Row", bound=Keyed)


class Results(Generic[Row]):
    """The rows of many runs, in memory and, if there is one, in their file.

    Attributes:
        rows: the rows, in the order in which they came.
    """

    def __init__(self, rows: Sequence[Row] = (), file: FileIO | None = None) -> None:
        self.rows = list(rows)
        self._keys = {row.key for row in rows}
        self._file = file

    def __contains__(self, key: Hashable) -> bool:
        return key in self._keys

    def add(self, row: Row) -> None:
        """Write a row.

        Raises:
            OSError: it cannot be written, as on a full disk. The rows before are in the file.
        """
        if self._file is not None:
            _append(self._file, _line(asdict(row)))  # type: ignore[call-overload]
        self._keys.add(row.key)
        self.rows.append(row)


def code_version() -> str:
    """The version of the code, to the byte: results of two versions must not mix."""
    return f"{__version__} {source_digest()[:12]}"


def read_results(path: str | Path, kind: type[Row]) -> list[Row]:
    """The rows of a results file.

    Raises:
        ValueError: the file is of a different kind, or damaged.
        OSError: the file cannot be read.
    """
    content = Path(path).read_bytes()
    _configuration(content, Path(path))
    return _rows(content[: content.rfind(b"\n") + 1], Path(path), kind)


@contextmanager
def opened(
    path: str | Path | None, kind: type[Row], configuration: dict[str, Any]
) -> Iterator[Results[Row]]:
    """Open a results file, new or begun before, and keep other processes from writing to it.

    A writer that is killed leaves whole lines and at most half of another one, which is cut off.

    Args:
        path: the file; None keeps the rows in memory.
        kind: the class of the rows.
        configuration: everything that rows depend on besides their keys; the file's first line.

    Raises:
        ValueError: the file holds something else, is damaged, cannot be opened, or is in use.
    """
    if path is None:
        yield Results()
        return
    place = Path(path)
    first = {"pacplan": code_version()} | configuration
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        file = FileIO(place, "a+")
    except OSError as error:
        raise ValueError(
            f"cannot write to {error.filename or place}: {error.strerror}; choose another place"
        ) from None
    with file:
        _lock(file, place)
        file.seek(0)
        content = file.readall()
        whole = content[: content.rfind(b"\n") + 1]
        if whole or not _line(first).startswith(content):
            _compare(_configuration(content, place), json.loads(_line(first)), place)
        found = _rows(whole, place, kind)
        if len(whole) < len(content):
            _logger.warning("pacplan: %s ends in half a line; that run is made again", place)
            file.truncate(len(whole))
        if not whole:
            _append(file, _line(first))
        yield Results(found, file)


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _append(file: FileIO, line: bytes) -> None:
    """Write a line, all or nothing; the file has no buffer, so nothing is written later."""
    before = file.seek(0, os.SEEK_END)
    try:
        left = line
        while left:  # A disk that is nearly full takes only part of it.
            left = left[file.write(left) :]
    except OSError as error:
        with suppress(OSError):
            file.truncate(before)
        raise OSError(error.errno, error.strerror, str(file.name)) from error


def _lock(file: FileIO, path: Path) -> None:
    """Keep others out as long as the file is open; the system unlocks it when a process dies."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks.
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ValueError(f"another process is writing to {path}; wait for it or end it") from None


def _configuration(content: bytes, path: Path) -> dict[str, Any]:
    """The first line of a results file."""
    with suppress(ValueError, RecursionError):
        before = json.loads(content.partition(b"\n")[0])
        if isinstance(before, dict) and "pacplan" in before:
            return before
    raise ValueError(f"{path} is not a results file of pacplan; choose another place")


def _compare(before: dict[str, Any], now: dict[str, Any], path: Path) -> None:
    changes = [
        f"{key} was {_short(before.get(key))}, now is {_short(value)}"
        for key, value in now.items()
        if before.get(key) != value
    ]
    if changes:
        raise ValueError(
            f"{path} holds other results: {'; '.join(changes)}. They must not mix: choose another "
            "place, or delete the file to begin again"
        )


def _rows(whole: bytes, path: Path, kind: type[Row]) -> list[Row]:
    names = {entry.name for entry in fields(kind)}  # type: ignore[arg-type]
    found = []
    for number, line in enumerate(whole.splitlines()[1:], 2):
        content = None
        with suppress(ValueError, RecursionError):
            content = json.loads(line)
        if not isinstance(content, dict) or set(content) != names:
            raise ValueError(
                f"{path}, line {number} is damaged; delete that line, and its run is made again"
            )
        found.append(kind(**content))
    return found


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 160 else f"{text[:78]} ... {text[-78:]}"
