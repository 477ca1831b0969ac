"""How the command ends: its exit codes, and the one line that says what went wrong."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import NoReturn

from pacplan.cli.options import in_options
from pacplan.core.words import printable


class Exit(IntEnum):
    """Exit codes, for scripts."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_REACHED = 3
    INTERRUPTED = 130


def end(code: Exit, words: str = "") -> NoReturn:
    """End the command with an exit code and a line on the error stream."""
    if code is Exit.INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Pressed again, it finds nothing left to stop.
    if words:
        print(f"pacplan: {printable(words)}", file=sys.stderr)
    sys.exit(code)


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
        more = "" if place is None else f"; the same command continues from {place}"
        end(Exit.INTERRUPTED, f"stopped{more}")
    except (TypeError, ValueError, ImportError, MemoryError, OSError, RuntimeError) as error:
        if hasattr(error, "__notes__") or (isinstance(error, RuntimeError) and place is None):
            raise
        words, code = said(str(error)), Exit.USAGE
        if isinstance(error, OSError):
            more = "" if place is None else ". Once this is fixed, the same command continues"
            words = f"cannot write {error.filename or place}: {error.strerror or error}{more}"
        if isinstance(error, OSError | RuntimeError | MemoryError | BrokenPromiseError):
            code = Exit.ERROR
        end(code, words)
