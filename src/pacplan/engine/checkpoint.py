"""Checkpoints: what it takes to resume a search, in a file that survives a crash at any moment.

The file is a line that names the format, a SHA-256 checksum of the rest, a header in JSON and the
arrays of the search, byte for byte; nothing in it is executed when it is read. A new one is written
beside the old, synced, and renamed over it, so there is a complete one at any moment.
"""

import ast
import hashlib
import json
import logging
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_logger = logging.getLogger("pacplan")
_MAGIC = b"pacplan checkpoint 1\n"
_DIGEST = 64  # characters of the checksum
_MOST_BYTES = 2**62  # of any array


# What a file's header must hold.
_HEADER: dict[str, tuple[type, ...]] = {
    "version": (str,),
    "planner": (str,),
    "model": (str,),
    "state": (str, type(None)),
    "entropy": (int, list),
    "spawn_key": (list,),
    "budget": (int, type(None)),
    "seconds": (int, float),
    "arrays": (list,),
}


class Start(NamedTuple):
    """Where a search begins: what it has done already."""

    seconds: float = 0.0
    episodes: int = 0


class Stored(NamedTuple):
    """An array of a file, which is not unpacked before it is known what it should be.

    Attributes:
        kind: the type of its entries, as `_kind` writes it.
        shape: how many there are.
        raw: they themselves, without the zeros at the end.
    """

    kind: str
    shape: tuple[int, ...]
    raw: bytes

    @classmethod
    def of(cls, array: NDArray[Any]) -> "Stored":
        """An array as it is stored."""
        return cls(_kind(array), array.shape, array.tobytes().rstrip(b"\0"))

    def nbytes_as(self, like: NDArray[Any]) -> int:
        """Bytes of the array; raises ValueError unless its entries are those of another."""
        size = like.itemsize * math.prod(self.shape)
        if self.kind != _kind(like) or len(self.raw) > size:
            raise ValueError("the checkpoint does not fit this planner: other records")
        return size

    def unpacked(self, like: NDArray[Any]) -> NDArray[Any]:
        """The array, of the type of another. Raises ValueError or MemoryError if there is none."""
        self.nbytes_as(like)
        array = np.zeros(self.shape, like.dtype)
        self.write(array)
        return array

    def write(self, array: NDArray[Any]) -> None:
        """Copy the entries to an array of the same type and shape."""
        flat = array.reshape(-1).view(np.uint8)
        flat[: len(self.raw)] = np.frombuffer(self.raw, np.uint8)
        flat[len(self.raw) :] = 0


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A search as it stood between two chunks.

    Attributes:
        header: what was planned, in types that JSON has.
        arrays: its arrays by name.
    """

    header: dict[str, Any]
    arrays: Mapping[str, Stored]

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
        if written is None:
            return model.initial_state()
        try:
            return ast.literal_eval(written)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise ValueError("the checkpoint names a state that nobody can have written") from None

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
        stored = self.arrays.items()
        table = [[name, part.kind, part.shape, len(part.raw)] for name, part in stored]
        header = json.dumps({**self.header, "arrays": table}).encode() + b"\n"
        digest = hashlib.sha256(header)
        for _, part in stored:
            digest.update(part.raw)
        temporary = unfinished(path)
        try:
            with open(temporary, "xb", opener=_private) as file:
                file.write(_MAGIC + digest.hexdigest().encode() + b"\n" + header)
                for _, part in stored:
                    file.write(part.raw)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path.resolve())
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_folder(temporary.parent)

    @classmethod
    def read(cls, path: str | Path) -> "Checkpoint":
        """The checkpoint in a file, its arrays not unpacked.

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
        head, _, rest = body.partition(b"\n")
        try:
            header = _checked(json.loads(head))
            arrays = dict(_unpacked(header.pop("arrays"), rest))
        except (ValueError, TypeError, RecursionError):
            raise ValueError(f"{path} is damaged: its header makes no sense") from None
        return cls(header, arrays)


def unfinished(path: Path) -> Path:
    """Where a file is written before it replaces the one at a path."""
    target = path.resolve()
    return target.with_name(f".{target.name}.unfinished")


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read."""
    return os.open(path, flags, 0o600)


def _kind(array: NDArray[Any]) -> str:
    """The type of an array's entries in words."""
    return repr(array.dtype.descr)


def _checked(header: Any) -> dict[str, Any]:
    """The header of a file; raises ValueError or TypeError unless it can be one."""
    given: dict[str, Any] = dict(header)
    entropy = given.get("entropy")
    numbers = [*given.get("spawn_key", ()), *(entropy if isinstance(entropy, list) else [entropy])]
    if (
        set(given) != set(_HEADER)
        or not all(type(given[name]) in kinds for name, kinds in _HEADER.items())
        or not all(type(number) is int and number >= 0 for number in numbers)
        or not (given["budget"] is None or given["budget"] > 0)
        or not 0.0 <= given["seconds"] < math.inf
    ):
        raise ValueError
    return given


def _unpacked(table: list[Any], rest: bytes) -> Iterator[tuple[str, Stored]]:
    """The arrays that a header lists; raises ValueError or TypeError unless they are there."""
    place = 0
    for name, kind, shape, size in table:
        numbers = (*shape, size)
        if not all(type(number) is int and 0 <= number < _MOST_BYTES for number in numbers):
            raise ValueError
        raw = rest[place : place + size]
        if not isinstance(name, str) or not isinstance(kind, str) or len(raw) != size:
            raise ValueError
        yield name, Stored(kind, tuple(shape), raw)
        place += size


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
    if path.exists() and not path.is_file():
        raise ValueError(f"checkpoint={str(path)!r} is a device or the like; name a file")
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
        # A plan has its file to itself: what is there was left by a writer that was killed.
        unfinished(self._path).unlink(missing_ok=True)
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
        arrays = {name: Stored.of(array) for name, array in search.state_arrays().items()}
        Checkpoint({**self._header, "seconds": seconds}, arrays).write(self._path)
