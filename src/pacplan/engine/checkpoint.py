"""Checkpoints: what it takes to resume a search, in a file that survives a crash at any moment.

The file is a line that names the format, a SHA-256 checksum of the rest, a header in JSON and the
arrays of the search, byte for byte; nothing in it is executed when it is read. A new one is written
beside the old, synced, and renamed over it, so there is a complete one at any moment.
"""

import ast
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_logger = logging.getLogger("pacplan")
_MAGIC = b"pacplan checkpoint 1\n"
_DIGEST = 64  # characters of the checksum


class Start(NamedTuple):
    """Where a search begins: what it has done already."""

    seconds: float = 0.0
    episodes: int = 0


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A search as it stood between two chunks.

    Attributes:
        header: what was planned, in types that JSON has.
        arrays: its arrays by name.
    """

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def entropy(self) -> Any:
        """Of the plan's seed."""
        return self.header["entropy"]

    @property
    def spawn_key(self) -> tuple[int, ...]:
        """Of the plan's seed."""
        return tuple(self.header["spawn_key"])

    @property
    def seed(self) -> np.random.SeedSequence:
        """The seed of the plan."""
        return np.random.SeedSequence(self.entropy, spawn_key=self.spawn_key)

    @property
    def budget(self) -> int | None:
        """Of the plan."""
        budget: int | None = self.header["budget"]
        return budget

    def state(self, model: Any) -> Any:
        """The state planned from; if it could not be written down, the model's initial one."""
        written = self.header["state"]
        return model.initial_state() if written is None else ast.literal_eval(written)

    def check(self, **expected: str) -> None:
        """Raise ValueError unless the plan was of this planner, model and version."""
        for name, value in expected.items():
            if self.header[name] != value:
                raise ValueError(
                    f"the checkpoint is from another {name}: it was written for {self.header[name]}, "
                    f"and this is {value}"
                )

    def write(self, path: Path) -> None:
        """Replace the file at a path with this checkpoint, all or nothing."""
        table = []
        parts = []
        for name, array in self.arrays.items():
            raw = array.tobytes()
            kept = raw.rstrip(b"\0")
            table.append([name, repr(array.dtype.descr), list(array.shape), len(kept)])
            parts.append(kept)
        header = json.dumps({**self.header, "arrays": table}).encode() + b"\n"
        digest = hashlib.sha256(header)
        for part in parts:
            digest.update(part)
        folder = path.resolve().parent
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + digest.hexdigest().encode() + b"\n" + header)
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path.resolve())
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_folder(folder)

    @classmethod
    def read(cls, path: str | Path) -> "Checkpoint":
        """The checkpoint in a file.

        Raises:
            ValueError: it is not a checkpoint, or it is damaged.
            OSError: it cannot be read.
        """
        content = Path(path).read_bytes()
        if not content.startswith(_MAGIC):
            raise ValueError(f"{path} is not a checkpoint of this version of pacplan")
        place = len(_MAGIC) + _DIGEST + 1
        digest, body = content[len(_MAGIC) : place - 1], content[place:]
        if hashlib.sha256(body).hexdigest().encode() != digest:
            raise ValueError(
                f"{path} is damaged: its checksum is wrong. Use another copy, or plan anew"
            )
        end = body.index(b"\n")
        header = json.loads(body[:end])
        arrays = {}
        place = end + 1
        for name, descr, shape, size in header.pop("arrays"):
            dtype = np.dtype(_described(descr))
            array = np.zeros(shape, dtype)
            flat = array.reshape(-1).view(np.uint8)
            flat[:size] = np.frombuffer(body, np.uint8, size, place)
            arrays[name] = array
            place += size
        return cls(header, arrays)


def _described(descr: str) -> Any:
    """A record type from its `repr(dtype.descr)`, where padding has no name."""
    fields = ast.literal_eval(descr)
    if len(fields) == 1 and fields[0][0] == "":
        return fields[0][1]
    offset, names, formats, offsets = 0, [], [], []
    for name, kind, *_ in fields:
        if name:
            names.append(name)
            formats.append(kind)
            offsets.append(offset)
        offset += np.dtype(kind).itemsize
    return {"names": names, "formats": formats, "offsets": offsets, "itemsize": offset}


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a crash of the machine, if folders can be synced."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def named_arrays(group: Any, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """All arrays in nested named tuples, by their path."""
    for name, value in zip(group._fields, group, strict=True):
        if isinstance(value, np.ndarray):
            yield prefix + name, value
        elif hasattr(value, "_fields"):
            yield from named_arrays(value, f"{prefix}{name}.")


def plain_state(state: Any) -> str | None:
    """A state as Python would write it, if that identifies it; else None."""
    if isinstance(state, np.generic):
        state = state.item()
    text = repr(state)
    try:
        return text if ast.literal_eval(text) == state else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def check_place(path: Path) -> None:
    """Raise ValueError unless checkpoints can be written to a path."""
    if not path.resolve().parent.is_dir():
        raise ValueError(f"checkpoint={str(path)!r}: no such folder")
    if path.is_dir():
        raise ValueError(f"checkpoint={str(path)!r} is a folder; name a file in it")
    if not os.access(path.resolve().parent, os.W_OK):
        raise ValueError(f"checkpoint={str(path)!r}: no permission to write there")


class CheckpointKeeper:
    """Writes the checkpoints of one plan, and restores the one that it resumes from.

    Args:
        path: the file.
        every: seconds between two checkpoints.
        header: what the plan is.
        saved: the checkpoint to resume from; None: a new plan.
    """

    def __init__(
        self, path: Path, every: float, header: dict[str, Any], saved: Checkpoint | None
    ) -> None:
        check_place(path)
        self.every = every
        self._path = path
        self._header = header
        self._saved = saved

    def start(self, search: Any) -> Start:
        """Put a search that has made no call yet where the checkpoint says.

        Raises:
            OSError: the first checkpoint cannot be written.
        """
        search.session.remember()
        saved, self._saved = self._saved, None
        if saved is None:
            self._write(search, 0.0)
            return Start()
        search.restore(saved.arrays)
        return Start(float(saved.header["seconds"]), int(search.report["episodes"]))

    def save(self, search: Any, seconds: float) -> None:
        """Save the search between two chunks.

        If that fails, as on a full disk, the last checkpoint is kept and the search goes on.
        """
        try:
            self._write(search, seconds)
        except OSError as error:
            _logger.warning(
                "pacplan: no checkpoint after %.0f s: %s. The last one is kept; the search goes on.",
                seconds,
                error,
            )

    def _write(self, search: Any, seconds: float) -> None:
        Checkpoint({**self._header, "seconds": seconds}, search.state_arrays()).write(self._path)
