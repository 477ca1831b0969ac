"""How the command ends: its exit codes, and the one line that says what went wrong."""

import signal
from enum import IntEnum
from pathlib import Path


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


def wrong_usage(words: object) -> EndedError:
    """The command cannot be run like this."""
    return EndedError(words, Exit.USAGE)


def failure(words: object) -> EndedError:
    """The command was right, and something else went wrong."""
    return EndedError(words, Exit.ERROR)


def interrupted(words: str) -> EndedError:
    """What ends the command after Ctrl-C; pressed again, it finds nothing left to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return EndedError(words, Exit.INTERRUPTED)


def unwritten(error: OSError, place: Path | None) -> EndedError:
    """A file could not be written."""
    return failure(
        f"cannot write {error.filename or place}: {error.strerror or error}. What was finished is "
        "kept: once this is fixed, the same command continues"
    )
