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
from typing import TYPE_CHECKING, Any, Self

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
class Checkpoints:
    """The checkpoints of a plan: where they are written, and the one that it goes on from.

    Attributes:
        path: the file.
        every: seconds from one to the next.
        header: what was planned, for JSON.
        saved: arrays of a search between two chunks, by name; None: it begins anew.

    Raises:
        ValueError: `path` or `every` cannot be.
    """

    path: Path
    every: float
    header: dict[str, Any] = field(default_factory=dict)
    saved: Mapping[str, NDArray[Any]] | None = None

    def __post_init__(self) -> None:
        checks.positive("every", self.every)
        if not (self.path.is_file() or (self.path.parent.is_dir() and not self.path.exists())):
            raise ValueError(
                f"checkpoint={str(self.path)!r} is no place for a file: there is no such folder, or it "
                "is a folder or a device; name a file"
            )

    @classmethod
    def read(cls, path: str | Path, every: float) -> Self:
        """To go on from what is in a file; raises ValueError if it is no checkpoint, or damaged."""
        content = Path(path).read_bytes()
        archive, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.sha256(archive).digest() != digest:
            raise ValueError(
                f"{path} is not a checkpoint, or it is damaged; use another copy, or plan anew"
            )
        with np.load(io.BytesIO(archive), allow_pickle=False) as found:
            arrays = dict(found)
        return cls(Path(path), every, json.loads(arrays.pop(_HEADER).tobytes()), arrays)

    @property
    def seed(self) -> np.random.SeedSequence:
        """The seed of the plan."""
        return np.random.SeedSequence(self.header["entropy"], spawn_key=self.header["spawn_key"])

    def state(self, model: Any) -> Any:
        """The state planned from; if it could not be written down, the model's initial one."""
        written = self.header["state"]
        return model.initial_state() if written is None else ast.literal_eval(written)

    def of(self, planner: Any, query: "Query") -> Self:
        """The same for a planner that was chosen; raises ValueError if the saved one is another's."""
        if not planner.keeps_checkpoints:
            raise ValueError(f"{type(planner).__name__} writes no checkpoints; remove checkpoint=")
        model, seed = query.model.fingerprint(), query.seed
        expected = {"version": __version__, "planner": planner.identity, "model": model}
        for name, value in expected.items():
            if self.header.get(name, value) != value:
                raise ValueError(
                    f"the checkpoint belongs to another {name}: it was written for "
                    f"{self.header[name]}, but this is {value}"
                )
        asked: dict[str, Any] = {"entropy": seed.entropy, "spawn_key": list(seed.spawn_key)}
        asked |= {"state": plain_state(query.state), "budget": query.budget}
        return replace(self, header=self.header | expected | asked)

    def start(self, search: "KernelSearch") -> float:
        """Put a search that has made no call yet where the checkpoint says; returns seconds it took.

        Without one, it writes the first, and raises OSError if it cannot.
        """
        search.session.saves = True
        if self.saved is None:
            self._write(search, 0.0)
            return 0.0
        search.restore(self.saved)
        return float(self.header["seconds"])

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
        """Replace the file, all or nothing. Only its owner can read it."""
        header = json.dumps(self.header | {"seconds": seconds}).encode()
        tree = {"tree.nodes": search.tree.nodes, "tree.pairs": search.tree.pairs}  # What is in use.
        arrays: Any = {_HEADER: np.frombuffer(header, np.uint8)}
        arrays |= search.state_arrays() | tree | search.session.memory()
        target = self.path.resolve()
        temporary = target.with_name(f".{target.name}.unfinished")
        try:
            with open(temporary, "w+b", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                np.savez(file, **arrays)
                file.seek(0)
                file.write(hashlib.file_digest(file, "sha256").digest())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def plain_state(state: Any) -> str | None:
    """A state as Python would write it, if that identifies it; else None."""
    if isinstance(state, np.generic):
        state = state.item()
    text = repr(state)
    try:
        return text if ast.literal_eval(text) == state else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
