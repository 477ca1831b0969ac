"""What users' objects raise, and words for them; the error for work that was lost."""

import signal
from functools import partial
from typing import Any


def pass_on(error: BaseException) -> None:
    """Raise what a signal handler has raised, and not the object that was asked at that moment.

    A handler may raise anywhere, so whoever survives what a user's object raises begins with this.
    """
    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    codes = {code for code in map(_code, handlers) if code is not None}
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code in codes:
            raise error
        frame = frame.tb_next


def _code(handler: Any) -> Any:
    """The code that a signal handler runs, if it is one in Python."""
    while isinstance(handler, partial):
        handler = handler.func
    function = handler if hasattr(handler, "__code__") else getattr(handler, "__func__", handler)
    if not hasattr(function, "__code__"):
        function = type(handler).__call__
    return getattr(function, "__code__", None)


def shown(thing: Any) -> str:
    """The repr of a user's object, or something in its place."""
    try:
        return repr(thing)
    except Exception as error:
        pass_on(error)
        return f"<{type(thing).__name__} without a repr>"


def lost(what: str, error: BaseException, advice: str = "") -> RuntimeError:
    """The error for work that nobody will finish: what an executor raises itself."""
    return RuntimeError(
        f"{what} were lost with the process that computed them ({type(error).__name__}: {error}); it "
        f"may have been killed for lack of memory. {advice}".rstrip()
    )
