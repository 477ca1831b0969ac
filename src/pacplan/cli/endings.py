"""How the command ends: its exit codes, and the one line that says what went wrong."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from pacplan.cli.options import in_options


class Exit(IntEnum):
    """Exit codes, for scripts."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_REACHED = 3
    INTERRUPTED = 130


class EndedError(Exception):
    """Ends the command with an exit code and a line on the error stream."""

    def __init__(self, words: object, code: Exit) -> None:
        super().__init__(str(words))
        self.code = code


def interrupted(words: str) -> EndedError:
    """What ends the command after Ctrl-C; pressed again, it finds nothing left to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return EndedError(words, Exit.INTERRUPTED)


@contextmanager
def reported(place: Path | None = None, said: Callable[[str], str] = in_options) -> Iterator[None]:
    """End the command with a line for what the library raises, and Ctrl-C, while this lasts.

    What the user's own code raises has notes, and passes.

    Args:
        place: where results are kept, from which the same command continues.
        said: puts the library's words into those of the command.
    """
    from pacplan.models.protocol import BrokenPromiseError

    try:
        yield
    except KeyboardInterrupt:
        if place is None:
            raise
        raise interrupted(f"stopped; the same command continues from {place}") from None
    except (TypeError, ValueError, ImportError, MemoryError, OSError, RuntimeError) as error:
        if hasattr(error, "__notes__") or (isinstance(error, RuntimeError) and place is None):
            raise
        words, code = said(str(error)), Exit.USAGE
        if isinstance(error, OSError):
            more = "" if place is None else ". Once this is fixed, the same command continues"
            words = f"cannot write {error.filename or place}: {error.strerror or error}{more}"
        if isinstance(error, OSError | RuntimeError | MemoryError | BrokenPromiseError):
            code = Exit.ERROR
        raise EndedError(words, code) from error
