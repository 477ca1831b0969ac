"""Tells the user when a kernel is compiled, which takes seconds, and how long it took.

Meanwhile Python's garbage collector is off: the compiler makes millions of objects that stay in use,
and the collector would go through them again and again.
"""

import gc
import logging
import time
from collections.abc import Callable
from typing import Any

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
_WHOLE_SEARCHES = ("play", "work")


def announce(dispatcher: Any) -> None:
    """Announce the compilations of a kernel."""
    _kernels.add(dispatcher.py_func)


class _Announcer(Listener):  # type: ignore[misc]
    """Numba compiles a function, and within that those it calls: only the outermost counts."""

    def __init__(self) -> None:
        self._depth = 0
        self._start = 0.0
        self._collecting = False

    def on_start(self, event: Any) -> None:
        dispatcher = _kernel(event)
        if dispatcher is None:
            return
        self._depth += 1
        if self._depth == 1:
            cache = getattr(dispatcher, "_cache", None)
            lasting = isinstance(cache, KernelCache) and cache.lasting
            later = "; later runs start warm" if lasting else ""
            _logger.warning("pacplan: compiling %s, some seconds%s ...", _title(event), later)
            self._start = time.perf_counter()
            self._collecting = gc.isenabled()
            gc.disable()

    def on_end(self, event: Any) -> None:
        if _kernel(event) is None:
            return
        self._depth -= 1
        if self._depth == 0:
            if self._collecting:
                gc.enable()
            seconds = time.perf_counter() - self._start
            _logger.info("pacplan: %s took %.1f s to compile", _title(event), seconds)


def _kernel(event: Any) -> Any:
    """The dispatcher that an event is about, if it is a kernel's."""
    dispatcher = event.data.get("dispatcher") if isinstance(event.data, dict) else None
    return dispatcher if getattr(dispatcher, "py_func", None) in _kernels else None


def _title(event: Any) -> str:
    """Such as "uct for a tabular model", or "kl_lower of bernoulli"."""
    function = event.data["dispatcher"].py_func
    classes = list(argument_classes(event.data.get("args", ())))
    models = [kind for kind in classes if kind.__name__.endswith("Handle") and is_chosen_by(kind)]
    search = next((kind for kind in classes if kind not in models), None)
    name = _room((function if search is None else search).__module__)
    if search is None or function.__name__ not in _WHOLE_SEARCHES:
        name = f"{function.__name__.lstrip('_')} of {name}"
    words = [kind.__name__.removesuffix("Handle") for kind in models]
    kinds = " ".join(word if word == "Python" else word.lower() for word in words)
    return f"{name} for a {kinds} model" if kinds else name


def _room(module: str) -> str:
    """The planner that a module is a part of; elsewhere the last part of its name."""
    if module.startswith(_PLANNERS):
        return module.removeprefix(_PLANNERS).partition(".")[0]
    return module.rpartition(".")[2]


if register is None:
    missing("events", "compilations are not announced, and take longer")
else:
    register("numba:compile", _Announcer())
