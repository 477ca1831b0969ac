"""Tells the user what is being compiled, which takes seconds, and how long it took.

Messages go to the logger `pacplan`. If nobody listens to it and the error stream is a terminal, a line
stands there while something is compiled, and vanishes: it may appear between the rows of a table that
the user's program prints. The times are then told when the program ends.

Meanwhile Python's garbage collector is off: the compiler makes millions of objects that stay in use,
and the collector would go through them again and again.
"""

import atexit
import gc
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pacplan.compiled.cache import KernelCache, argument_classes
from pacplan.compiled.private import missing
from pacplan.compiled.sources import is_chosen_by

try:
    from numba.core.event import Listener, register
except ImportError:
    Listener, register = object, None

_logger = logging.getLogger("pacplan")
_kernels: set[Callable[..., Any]] = set()
_PLANNERS = "pacplan.algorithms."
# The names of kernels that are a planner's whole search: they are announced by the planner's name.
WHOLE_SEARCHES = ("play", "work")
# Codes of terminals: remember this place; go back there and remove what follows.
_REMEMBER, _GO_BACK = "\x1b7", "\x1b8\x1b[J"


class Compilation(NamedTuple):
    """Something that this process has compiled.

    Attributes:
        title: what it was, such as "uct for a tabular model".
        seconds: how long it took.
        lasting: whether it is kept, so that later runs start warm.
        is_kernel: whether it is a kernel of pacplan or of an extension; a user's simulator is none.
    """

    title: str
    seconds: float
    lasting: bool
    is_kernel: bool

    def __str__(self) -> str:
        return f"{self.title} took {self.seconds:.1f} s{'; later runs start warm' * self.lasting}"


compilations: list[Compilation] = []
"""What this process has compiled so far."""
_untold: list[Compilation] = []


def announce(dispatcher: Any) -> None:
    """Announce the compilations of a kernel."""
    _kernels.add(dispatcher.py_func)


@contextmanager
def compiling(title: str) -> Iterator[None]:
    """Announce that something else is compiled meanwhile, and not kept."""
    _announcer.begin(title)
    try:
        yield
    finally:
        _announcer.end(title, lasting=False, is_kernel=False)


class _Announcer(Listener):  # type: ignore[misc]
    """Numba compiles a function, and within that those it calls: only the outermost counts."""

    def __init__(self) -> None:
        self._depth = 0
        self._start = 0.0
        self._collecting = False
        self._vanishes = False

    def on_start(self, event: Any) -> None:
        dispatcher = _kernel(event)
        if dispatcher is not None:
            self.begin(_title(event), long=dispatcher.py_func.__name__ in WHOLE_SEARCHES)

    def on_end(self, event: Any) -> None:
        dispatcher = _kernel(event)
        if dispatcher is not None:
            cache = getattr(dispatcher, "_cache", None)
            self.end(_title(event), isinstance(cache, KernelCache) and cache.lasting)

    def begin(self, title: str, *, long: bool = False) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        self._vanishes = _can_vanish()
        words = f"pacplan: compiling {title}{', some seconds' * long} ..."
        if self._vanishes:
            print(f"{_REMEMBER}{words}", end="", file=sys.stderr, flush=True)
        elif long:
            _logger.warning("%s", words)
        self._collecting = gc.isenabled()
        gc.disable()
        self._start = time.perf_counter()

    def end(self, title: str, lasting: bool, *, is_kernel: bool = True) -> None:
        self._depth -= 1
        if self._depth > 0:
            return
        done = Compilation(title, time.perf_counter() - self._start, lasting, is_kernel)
        if self._collecting:
            gc.freeze()
            gc.unfreeze()
            gc.enable()
        compilations.append(done)
        if self._vanishes:
            print(_GO_BACK, end="", file=sys.stderr, flush=True)
            _untold.append(done)
        else:
            _logger.warning("pacplan: compiling %s", done)


def _can_vanish() -> bool:
    """Whether a line for the time being can be shown: on a terminal, if nobody else takes the messages.

    Whatever redirects the error stream, such as a progress bar, puts messages where they belong.
    """
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    if not on_terminal or sys.stderr is not sys.__stderr__:
        return False
    return _logger.isEnabledFor(logging.WARNING) and not _logger.hasHandlers()


@atexit.register
def tell() -> None:
    """Say what was compiled, and how long it took, as far as that was not said yet."""
    while _untold:
        _logger.warning("pacplan: compiling %s", _untold.pop(0))


def _kernel(event: Any) -> Any:
    """The dispatcher that an event is about, if it is a kernel's."""
    dispatcher = event.data.get("dispatcher") if isinstance(event.data, dict) else None
    return dispatcher if getattr(dispatcher, "py_func", None) in _kernels else None


def _title(event: Any) -> str:
    return title(event.data["dispatcher"].py_func, event.data.get("args", ()))


def title(function: Any, kinds: Any) -> str:
    """What is compiled, such as "uct for a tabular model", or "kl_lower of bernoulli"."""
    classes = list(argument_classes(kinds))
    models = [kind for kind in classes if kind.__qualname__.endswith("Handle") and is_chosen_by(kind)]
    search = next((kind for kind in classes if kind not in models), None)
    name = _room((function if search is None else search).__module__)
    if search is None or function.__name__ not in WHOLE_SEARCHES:
        name = f"{function.__name__.lstrip('_')} of {name}"
    words = [kind.__qualname__.rpartition(".")[2].removesuffix("Handle") for kind in models]
    described = " ".join(word if word == "Python" else word.lower() for word in words)
    return f"{name} for a {described} model" if described else name


def _room(module: str) -> str:
    """The planner that a module is a part of; elsewhere the last part of its name."""
    if module.startswith(_PLANNERS):
        return module.removeprefix(_PLANNERS).partition(".")[0]
    return module.rpartition(".")[2]


_announcer = _Announcer()
if register is None:
    missing("events", "compilations are not announced, and take longer")
else:
    register("numba:compile", _announcer)
