"""Tells the user when a kernel is compiled, which takes seconds, and how long it took."""

import logging
import re
import time
from collections.abc import Callable
from typing import Any

from pacplan.compiled.cache import KernelCache, argument_classes
from pacplan.compiled.sources import is_chosen_by

try:
    from numba.core.event import Listener, register
except ImportError:
    Listener, register = object, None

_logger = logging.getLogger("pacplan")
_kernels: set[Callable[..., Any]] = set()


def announce(dispatcher: Any) -> None:
    """Announce the compilations of a kernel."""
    _kernels.add(dispatcher.py_func)


class _Announcer(Listener):  # type: ignore[misc]
    """Numba compiles one function at a time, and inside that those it calls: only the first counts."""

    def __init__(self) -> None:
        self._begun: list[tuple[str, float]] = []

    def on_start(self, event: Any) -> None:
        dispatcher = _kernel(event)
        if dispatcher is not None:
            name = _title(dispatcher.py_func, event.data.get("args", ()))
            if not self._begun:
                cache = getattr(dispatcher, "_cache", None)
                lasting = isinstance(cache, KernelCache) and cache.lasting
                later = "; later runs start warm" if lasting else ""
                _logger.warning("pacplan: compiling %s, some seconds%s ...", name, later)
            self._begun.append((name, time.perf_counter()))

    def on_end(self, event: Any) -> None:
        if _kernel(event) is not None:
            name, start = self._begun.pop()
            if not self._begun:
                _logger.info("pacplan: %s took %.1f s to compile", name, time.perf_counter() - start)


def _kernel(event: Any) -> Any:
    """The dispatcher that an event is about, if it is one of a kernel."""
    dispatcher = event.data.get("dispatcher") if isinstance(event.data, dict) else None
    return dispatcher if getattr(dispatcher, "py_func", None) in _kernels else None


def _title(function: Callable[..., Any], arguments: Any) -> str:
    """Such as "uct.run for a tabular model"."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    handles = [kind.__name__ for kind in argument_classes(arguments) if is_chosen_by(kind)]
    kinds = " ".join(re.sub("Handle$", "", handle).lower() for handle in handles)
    return f"{name} for a {kinds} model" if kinds else name


if register is not None:
    register("numba:compile", _Announcer())
