"""Notes on exceptions, and words for objects, of the user's: their own code may raise."""

from typing import Any


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception if it takes one: the exception matters more than the note."""
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
