"""A file that is only ever appended to, line by line, and survives being killed."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_logger = logging.getLogger("pacplan")


@contextmanager
def appending(
    path: Path, lost: str, check: Callable[[bytes], None]
) -> Iterator[tuple[IO[bytes], bytes]]:
    """Open a file to append to, and keep other processes from writing to it.

    A writer that writes each line at once and is killed leaves whole lines, and at most one that is
    not; that one is cut off.

    Args:
        path: the file; it is made if there is none.
        lost: what a line stands for, for the warning about half a line.
        check: called with the whole lines before anything is changed; raises to refuse the file.

    Yields:
        The file, and the whole lines that it held.

    Raises:
        ValueError: something else is writing to it.
    """
    with open(path, "a+b") as file:
        _lock(file, path)
        file.seek(0)
        content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        check(whole)
        if len(whole) < len(content):
            _logger.warning("pacplan: %s ends in half a line; that %s is done again", path, lost)
            file.truncate(len(whole))
        yield file, whole


def _lock(file: IO[bytes], path: Path) -> None:
    """Keep others out for as long as the file is open; the system lets go when a process dies."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks.
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ValueError(f"another process is writing to {path}; wait for it or end it") from None
