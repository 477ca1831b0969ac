"""Records in memory that grows in place: for arrays that are large, and read by chains of links.

Such memory is a mapping with addresses for all that the machine could give, of which only what is
written to takes memory. So an array that grows is neither moved nor filled with zeros, and begins where
a line of the caches does. It lies in huge pages if the system has them: these are provided faster than
the same memory in small ones, and found faster when a link leads to them.

Systems where a program cannot ask for huge pages, and arrays smaller than one, are left to NumPy.
"""

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.engine.memory import available_memory

_HUGE_PAGE = 1 << 21


def resized(records: NDArray[Any], rows: int) -> NDArray[Any]:
    """The records as an array of `rows`, new ones zero.

    There must be no other reference to the array.

    Raises:
        MemoryError: the system has no more.
    """
    size, memory = rows * records.itemsize, records.base
    if isinstance(memory, mmap.mmap) and size <= len(memory):
        if size < records.nbytes:
            _clear(memory, size, records.nbytes)
        return np.ndarray(rows, records.dtype, memory)
    grows = size > records.nbytes and type(records) is np.ndarray
    larger = _mapping(size) if grows else None
    if larger is None:
        if memory is not None:
            raise MemoryError("the system has no addresses left for the search tree")
        records.resize(rows, refcheck=False)
        return records
    np.ndarray(len(records), records.dtype, larger)[...] = records
    return np.ndarray(rows, records.dtype, larger)


def _mapping(size: int) -> mmap.mmap | None:
    """Memory for at least `size` bytes, and addresses for more; None if that is left to NumPy."""
    if size < _HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    try:
        most = max(size, available_memory() or 0)
        memory = mmap.mmap(-1, most, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # Addresses may be limited, and a system may be made without huge pages.
        return None
    return memory


def _clear(memory: mmap.mmap, start: int, end: int) -> None:
    """Give some bytes back to the system, which are zero if they are read again."""
    page = min(end, -(-start // mmap.PAGESIZE) * mmap.PAGESIZE)
    memory[start:page] = bytes(page - start)
    if page < end:
        memory.madvise(mmap.MADV_DONTNEED, page, end - page)
