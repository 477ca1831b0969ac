"""The results file of a verification: one line per batch of plans, kept through interruptions."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pacplan.experiments.lines import Lines, appending
from pacplan.testing.checks import CHECKS


@dataclass(frozen=True)
class Batch:
    """The results of consecutive cases of one family, planned by one planner.

    Attributes:
        family: name of the family.
        planner: name of the planner.
        number: of the batch, from 0.
        plans: how many plans.
        calls: calls to the model that they made.
        seconds: time that they took.
        claims: for every check, in how many cases something was claimed about it.
        failed: for every check, the numbers of the cases that failed it.
        errors: numbers of the cases that raised something, and what.
    """

    family: str
    planner: str
    number: int
    plans: int
    calls: int
    seconds: float
    claims: dict[str, int]
    failed: dict[str, list[int]]
    errors: list[tuple[int, str]]

    @property
    def key(self) -> tuple[str, str, int]:
        """Identifies the batch."""
        return self.family, self.planner, self.number


class Ledger:
    """The batches of a verification, in memory and, if there is one, in its file."""

    def __init__(self, batches: list[Batch], lines: Lines | None = None) -> None:
        self.batches = batches
        self._lines = lines
        self._keys = {batch.key for batch in batches}

    def __contains__(self, key: tuple[str, str, int]) -> bool:
        return key in self._keys

    def add(self, batch: Batch) -> None:
        """Add a batch.

        Raises:
            OSError: it cannot be written. The batches before are in the file.
        """
        if self._lines is not None:
            self._lines.append(_line(asdict(batch)))
        self._keys.add(batch.key)
        self.batches.append(batch)


@contextmanager
def ledger(path: str | Path | None, configuration: dict[str, Any]) -> Iterator[Ledger]:
    """Open a results file, new or begun before.

    Args:
        path: the file; None keeps results in memory.
        configuration: everything that batches depend on besides their keys: the file's first line.

    Raises:
        ValueError: the file holds something else, is damaged, or something else is writing to it.
    """
    if path is None:
        with nullcontext(Ledger([])) as memory:
            yield memory
        return
    place = Path(path)
    with appending(place, "batch", lambda whole: _check(whole, place, configuration)) as lines:
        if not lines.whole:
            lines.append(_line(configuration))
        yield Ledger(_parse(lines.whole, place), lines)


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _check(whole: bytes, path: Path, configuration: dict[str, Any]) -> None:
    """Refuse a file of another verification."""
    if not whole:
        if path.stat().st_size > 0:
            raise ValueError(f"{path} is not a results file of pacplan verify; choose another file")
        return
    try:
        before = json.loads(whole.splitlines()[0])
        if not isinstance(before, dict) or "pacplan" not in before:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{path} is not a results file of pacplan verify; choose another file"
        ) from None
    changes = [
        f"{key} was {before.get(key)!r}, now is {value!r}"
        for key, value in configuration.items()
        if before.get(key) != value
    ]
    if changes:
        raise ValueError(
            f"{path} holds results of another verification: {'; '.join(changes)}. They must not mix: "
            "choose another file, or delete this one to begin again"
        )
    _parse(whole, path)


def _parse(whole: bytes, path: Path) -> list[Batch]:
    names = {entry.name for entry in fields(Batch)}
    found: list[Batch] = []
    for number, line in enumerate(whole.splitlines()[1:], 2):
        try:
            content = json.loads(line)
            if set(content) != names or set(content["failed"]) != set(CHECKS):
                raise ValueError
            content["errors"] = [(int(case), str(what)) for case, what in content["errors"]]
            found.append(Batch(**content))
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{path}, line {number} is damaged; delete that line") from None
    return found
