"""A file that is only ever appended to, line by line, and survives being killed."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

_logger = logging.getLogger("pacplan")


class Lines:
    """A file open to append to.

    It is written without a buffer, so a write that failed is not tried again later.

    Attributes:
        whole: the complete lines that it held when it was opened.
    """

    def __init__(self, file: FileIO, whole: bytes) -> None:
        self._file = file
        self.whole = whole

    def append(self, line: bytes) -> None:
        """Write a line, all or nothing; a process killed meanwhile leaves at most half a line.

        Raises:
            OSError: it cannot be written, as on a full disk. The lines before are in the file.
        """
        before = self._file.seek(0, os.SEEK_END)
        try:
            left = line
            while left:  # A disk that is nearly full takes only part of it.
                left = left[self._file.write(left) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(before)
            raise OSError(error.errno, error.strerror, str(self._file.name)) from error


@contextmanager
def appending(path: Path, lost: str, check: Callable[[bytes], None]) -> Iterator[Lines]:
    """Open a file to append to, and keep other processes from writing to it.

    A writer that is killed leaves complete lines and at most one incomplete one, which is cut off.

    Args:
        path: the file; it is made if there is none, and so are its folders.
        lost: what a line stands for, for the warning about half a line.
        check: called with the complete lines before anything is changed; raises to refuse the file.

    Yields:
        The open file.

    Raises:
        ValueError: something else is writing to it, or it cannot be opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = FileIO(path, "a+")
    except OSError as error:
        raise ValueError(
            f"cannot write to {error.filename or path}: {error.strerror}; choose another place"
        ) from None
    with file:
        _lock(file, path)
        file.seek(0)
        content = file.readall()
        whole = content[: content.rfind(b"\n") + 1]
        check(whole)
        if len(whole) < len(content):
            _logger.warning("pacplan: %s ends in half a line; that %s is done again", path, lost)
            file.truncate(len(whole))
        yield Lines(file, whole)


def _lock(file: FileIO, path: Path) -> None:
    """Keep others out as long as the file is open; the system unlocks it when a process dies."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks.
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ValueError(f"another process is writing to {path}; wait for it or end it") from None
