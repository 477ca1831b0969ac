"""Checkpoints: what it takes to resume a search, in a file that is whole at any moment.

The file is a NumPy archive of the search's arrays, with a header in JSON, and a digest of all that.
Nothing in it is executed when it is read, but kernels follow the numbers in it: the digest reveals
damage, not malice. A new file is written beside the old one and renamed over it.
"""

import ast
import hashlib
import io
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pacplan.engine.search import KernelSearch

_logger = logging.getLogger("pacplan")
_HEADER = "header"
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A search as it stood between two chunks: its arrays by name, and what was planned, for JSON."""

    header: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    @property
    def seed(self) -> np.random.SeedSequence:
        """The seed of the plan."""
        return np.random.SeedSequence(self.header["entropy"], spawn_key=self.header["spawn_key"])

    def state(self, model: Any) -> Any:
        """The state planned from; if it could not be written down, the model's initial one."""
        written = self.header["state"]
        return model.initial_state() if written is None else ast.literal_eval(written)

    def check(self, **expected: str) -> None:
        """Raise ValueError unless the plan was of this planner, model and version."""
        for name, value in expected.items():
            if self.header[name] != value:
                raise ValueError(
                    f"the checkpoint belongs to another {name}: it was written for "
                    f"{self.header[name]}, but this is {value}"
                )

    def write(self, path: Path) -> None:
        """Replace the file at a path by this checkpoint, all or nothing. Only its owner can read it."""
        text = np.frombuffer(json.dumps(self.header).encode(), np.uint8)
        target = path.resolve()
        temporary = target.with_name(f".{target.name}.unfinished")
        try:
            with open(temporary, "w+b", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                np.savez(file, **{_HEADER: text}, **self.arrays)  # type: ignore[arg-type]
                file.seek(0)
                file.write(hashlib.file_digest(file, "sha256").digest())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: str | Path) -> "Checkpoint":
        """The checkpoint in a file; raises ValueError if there is none or it is damaged."""
        content = Path(path).read_bytes()
        archive, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.sha256(archive).digest() != digest:
            raise ValueError(
                f"{path} is not a checkpoint, or it is damaged; use another copy, or plan anew"
            )
        with np.load(io.BytesIO(archive), allow_pickle=False) as found:
            arrays = dict(found)
        return cls(json.loads(arrays.pop(_HEADER).tobytes()), arrays)


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
    folder = path.resolve().parent
    if not folder.is_dir():
        raise ValueError(f"checkpoint={str(path)!r}: no such folder")
    if path.exists() and not path.is_file():
        raise ValueError(f"checkpoint={str(path)!r} is a folder or a device; name a file")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"checkpoint={str(path)!r}: no permission to write there")


@dataclass(frozen=True, eq=False)
class CheckpointKeeper:
    """Writes the checkpoints of one plan, `every` so many seconds, and begins from a `saved` one."""

    path: Path
    every: float
    header: dict[str, Any]
    saved: Checkpoint | None

    def start(self, search: "KernelSearch") -> float:
        """Put a search that has made no call yet where the checkpoint says; returns seconds it took.

        Without one, it writes the first, and raises OSError if it cannot.
        """
        search.session.saves = True
        if self.saved is None:
            self._write(search, 0.0)
            return 0.0
        search.restore(self.saved.arrays)
        return float(self.saved.header["seconds"])

    def save(self, search: "KernelSearch", seconds: float) -> None:
        """Save the search between two chunks.

        If that fails, as on a full disk, the last checkpoint is kept and the search goes on.
        """
        try:
            self._write(search, seconds)
        except OSError as error:
            words = "pacplan: no checkpoint after %.0f s: %s. The last one is kept; the search goes on."
            _logger.warning(words, seconds, error)

    def _write(self, search: "KernelSearch", seconds: float) -> None:
        tree = {"tree.nodes": search.tree.nodes, "tree.pairs": search.tree.pairs}  # What is in use.
        arrays = search.state_arrays() | tree | search.session.memory()
        Checkpoint({**self.header, "seconds": seconds}, arrays).write(self.path)
