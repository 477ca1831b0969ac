"""Room for a search: arrays that grow, up to a limit of memory."""

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Growth below this is granted without asking how much memory the machine has left.
_SMALL = 1 << 26
# Part of the memory that a search may have in all: what it holds, and what the machine has left.
_SHARE = 0.6
# Bytes per second, on the safe side, at which memory is cleared, and tables are hashed anew.
_FILLED = 1e9
HASHED = 1e8


class OutOfTimeError(Exception):
    """There is no time to make room before the deadline."""


class MemoryBudget:
    """Grants memory to the arrays of one search, while there is time to fill it.

    Attributes:
        limit: most bytes; None: what the machine has left.
        deadline: reading of `time.perf_counter` by which memory must be filled, if there is one.
        used: bytes granted so far.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.deadline: float | None = None
        self.used = 0

    def request(self, more: int, speed: float = _FILLED) -> None:
        """Ask for `more` bytes, which will be filled at `speed` bytes per second.

        Raises:
            MemoryError: there are not so many.
            OutOfTimeError: filling them would take until after the deadline.
        """
        if self.limit is not None and self.used + more > self.limit:
            raise MemoryError(f"the search needs more than memory_limit={self.limit} bytes")
        if more > _SMALL:
            left = available_memory()
            if left is not None and self.used + more > _SHARE * (self.used + left):
                raise MemoryError(
                    f"the search holds {self.used} bytes and needs {more} more, but the machine has "
                    f"only {left} left"
                )
        if self.deadline is not None and time.perf_counter() + more / speed > self.deadline:
            raise OutOfTimeError
        self.used += more

    def rows(self, array: NDArray[Any], needed: int) -> int:
        """The rows granted to an array that needs so many: half as many again as it has if possible."""
        rows = len(array)
        if needed <= rows:
            return rows
        size = array.itemsize * math.prod(array.shape[1:])
        wanted = max(needed, rows * 3 // 2)
        try:
            self.request((wanted - rows) * size)
        except (MemoryError, OutOfTimeError):
            wanted = needed
            self.request((wanted - rows) * size)
        return wanted

    def extend(self, array: NDArray[Any], needed: int) -> NDArray[Any]:
        """The array with at least `needed` rows, the new ones zero.

        It grows in place if the system can, which saves a second copy; so there must be no other
        reference to the array. One that is empty is made anew: rows that are never used then cost
        nothing.
        """
        rows, wanted = len(array), self.rows(array, needed)
        if wanted == rows:
            return array
        if rows == 0 and array.dtype.names is None:
            return np.zeros((wanted, *array.shape[1:]), array.dtype)
        array.resize((wanted, *array.shape[1:]), refcheck=False)
        return array


def available_memory() -> int | None:
    """Bytes that this process can still use, if the system says; else None."""
    return min(_limits(), default=None)


def _limits() -> Iterator[int]:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    try:
        # A container's own limit.
        group = Path("/sys/fs/cgroup")
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            yield int(most) - int((group / "memory.current").read_text())
    except (OSError, ValueError):
        pass
