"""Room for a search: arrays that grow, up to a limit of memory."""

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

# Growth below this is granted without asking how much memory the machine has left.
_SMALL = 1 << 26
# An array grows by no more than this at a time, or by what is needed: to clear it takes little time.
_MOST = 1 << 27
# Part of the memory that a search may have in all: what it holds, and what the machine has left.
_SHARE = 0.6


class MemoryBudget:
    """Grants memory to the arrays of one search.

    Attributes:
        limit: most bytes; None: what the machine has left.
        used: bytes granted so far.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.used = 0

    def request(self, more: int) -> None:
        """Ask for `more` bytes; raises MemoryError if there are not so many."""
        if self.limit is not None and self.used + more > self.limit:
            raise MemoryError(f"the search needs more than memory_limit={self.limit} bytes")
        if more > _SMALL and self.used + more > _SHARE * (self.used + (left := _available())):
            raise MemoryError(
                f"the search holds {self.used} bytes and needs {more} more, but the machine has only "
                f"{left} left"
            )
        self.used += more

    def extend(self, array: NDArray[Any], needed: int) -> NDArray[Any]:
        """The array with at least `needed` rows, half as many again if there is room, new ones zero.

        It grows in place if the system can, which saves a second copy; so there must be no other
        reference to the array.
        """
        rows, size = len(array), max(1, array.itemsize * math.prod(array.shape[1:]))
        if needed > rows:
            wanted = rows + min(rows // 2, _MOST // size)
            if self.limit is not None:
                wanted = min(wanted, rows + (self.limit - self.used) // size)
            wanted = max(needed, wanted)
            self.request((wanted - rows) * size)
            array.resize((wanted, *array.shape[1:]), refcheck=False)
        return array


def _available() -> int:
    """Bytes that this process can still use: of the machine, or of its container."""
    import psutil  # type: ignore[import-untyped]

    left: int = psutil.virtual_memory().available
    with suppress(OSError, ValueError):  # "max" is no number: there is no limit.
        most, used = (Path(f"/sys/fs/cgroup/memory.{n}").read_text() for n in ("max", "current"))
        left = min(left, int(most) - int(used))
    return left
