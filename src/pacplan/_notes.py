"""Notes on exceptions that are not ours."""


def add_note(error: BaseException, note: str) -> None:
    """Say where an exception came from, if it can be written on: it matters more than the note."""
    try:
        error.add_note(note)
    except Exception:
        return
