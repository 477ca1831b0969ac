"""Notes on exceptions, and words for objects, that are not ours: their own code may raise."""

from typing import Any


def add_note(error: BaseException, note: str) -> None:
    """Say where an exception came from, if it can be written on: it matters more than the note."""
    try:
        error.add_note(note)
    except Exception:
        return


def shown(thing: Any) -> str:
    """The repr of a user's object, or something in its place."""
    try:
        return repr(thing)
    except Exception:
        return f"<{type(thing).__name__} without a repr>"
