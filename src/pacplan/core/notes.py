"""Words for users' objects, and the error for work that was lost."""

from typing import Any


def shown(thing: Any) -> str:
    """The repr of a user's object, or something in its place."""
    try:
        return repr(thing)
    except Exception:
        return f"<{type(thing).__name__} without a repr>"


def lost(what: str, error: BaseException, advice: str = "") -> RuntimeError:
    """The error for work that nobody will finish: what an executor raises itself."""
    return RuntimeError(
        f"{what} were lost with the process that computed them ({type(error).__name__}: {error}); it "
        f"may have been killed for lack of memory. {advice}".rstrip()
    )
