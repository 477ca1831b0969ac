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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core import checks
from pacplan.core.version import __version__

if TYPE_CHECKING:
    from pacplan.engine.query import Query
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


@dataclass(frozen=True, eq=False)
class Checkpoints:
    """The checkpoints of a plan.

    Attributes:
        path: the file for them.
        every: seconds from one to the next.
        saved: what the plan goes on from; None: from the start.
        header: what was planned, as each of them tells it.

    Raises:
        ValueError: `path` or `every` cannot be.
    """

    path: Path
    every: float
    saved: Checkpoint | None = None
    header: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.positive("every", self.every)
        if not (self.path.is_file() or (self.path.parent.is_dir() and not self.path.exists())):
            raise ValueError(
                f"checkpoint={str(self.path)!r} is no place for a file: there is no such folder, or it "
                "is a folder or a device; name a file"
            )

    def of(self, planner: Any, query: "Query") -> "Checkpoints":
        """The same for a planner that was chosen; raises ValueError if the saved one is another's."""
        if not planner.keeps_checkpoints:
            raise ValueError(f"{type(planner).__name__} writes no checkpoints; remove checkpoint=")
        expected = {
            "version": __version__,
            "planner": planner.identity,
            "model": query.model.fingerprint(),
        }
        for name, value in expected.items():
            if self.saved is not None and self.saved.header[name] != value:
                raise ValueError(
                    f"the checkpoint belongs to another {name}: it was written for "
                    f"{self.saved.header[name]}, but this is {value}"
                )
        asked: dict[str, Any] = {
            "state": plain_state(query.state),
            "entropy": query.seed.entropy,
            "spawn_key": list(query.seed.spawn_key),
            "budget": query.budget,
        }
        return replace(self, header=expected | asked)

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
