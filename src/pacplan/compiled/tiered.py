"""Compilation that no plan waits for: a kernel is interpreted until another process has compiled it.

What the other process needs is the kernel's name and the types of the arguments. It has a low
priority, outlives a program that ends before it, and leaves the kernel in the cache, where each chunk
of a search looks for it. Of all processes that need a kernel one has it compiled: the one whose claim,
an empty file beside the kernel's place, came first. An old claim is void.

A kernel that cannot be kept, or that no other process could compile, is compiled here, and waited for.
"""

import logging
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import numba

from pacplan.compiled.cache import UNFINISHED, WHOLE_SEARCHES, argument_classes, place_of, title
from pacplan.compiled.interpreted import interpreted

_logger = logging.getLogger("pacplan")
# More records than this are not gone through without a kernel, which takes seconds to compile.
_FEW = 20_000
# Seconds after which a claim is void: whoever made it was killed.
_LONGEST = 300.0
_COMPILER = (
    "import gc, os, pickle, sys; gc.disable(); getattr(os, 'nice', int)(5); "
    "sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from pacplan.compiled.tiered import compile_as_told; compile_as_told()"
)
# Kernels that are loaded, with the kinds of their arguments; and of the others the signatures, what
# another process needs to compile them, and where they will be kept, if they can be.
_loaded: set[Any] = set()
_needed: dict[Any, tuple[tuple[Any, ...], bytes | None, Path | None]] = {}
# What waits for the compilers that this process has started.
_started: dict[Path, threading.Thread] = {}
# Of several threads that need a kernel, one loads it. (A model may make plans itself.)
_loading = threading.RLock()
_waits = False


@contextmanager
def waiting() -> Iterator[None]:
    """Wait for kernels meanwhile: for what compiles beforehand, and what measures time."""
    global _waits
    before, _waits = _waits, True
    try:
        yield
    finally:
        _waits = before


def run(kernel: Callable[..., Any], records: int, *arguments: Any) -> Any:
    """Run a kernel that goes through so many records. If they are few, it need not be compiled yet."""
    compiled = ready(kernel, arguments, wait=records > _FEW)
    return (kernel if compiled else interpreted(kernel))(*arguments)


def ready(kernel: Any, arguments: Any, *, wait: bool = False) -> bool:
    """Whether a kernel can be called with such arguments. If not, it is being compiled.

    Args:
        kernel: the kernel.
        arguments: as for a call.
        wait: compile it here rather than not at all.
    """
    if numba.config.DISABLE_JIT:
        return False
    key = kernel, *_kinds(arguments)
    if key not in _loaded:
        with _loading:
            if key not in _needed:
                signature = tuple(map(numba.typeof, arguments))
                job = _job(kernel, signature)
                _needed[key] = signature, job, place_of(kernel, signature) if job else None
            signature, job, place = _needed[key]
            if not (wait or _waits or job is None or place is None or place.exists()):
                with suppress(OSError):  # The folder has gone, or no process can be started.
                    if _compiled_elsewhere(kernel, signature, job, place):
                        return False
            kernel.compile(signature)
            _loaded.add(key)
    return True


def _kinds(values: Any) -> Iterator[type]:
    for value in values:
        yield value.__class__
        if isinstance(value, tuple):
            yield from _kinds(value)


def _compiled_elsewhere(kernel: Any, signature: tuple[Any, ...], job: bytes, place: Path) -> bool:
    """Whether another process compiles a kernel, or will; one is started if nobody has claimed it."""
    if place in _started:
        return _started[place].is_alive()
    if sum(waiter.is_alive() for waiter in _started.values()) >= max(1, (os.cpu_count() or 1) - 1):
        return True  # Once one of them is done.
    claim = place.with_suffix(UNFINISHED)
    with suppress(FileNotFoundError):
        if time.time() - claim.stat().st_mtime > _LONGEST:
            claim.unlink()
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        return True
    _started[place] = _start(job, claim)
    if kernel.__name__ in WHOLE_SEARCHES:
        words = "in another process, some seconds; until then it is interpreted"
        _logger.warning("pacplan: compiling %s %s", title(kernel.py_func, signature), words)
    return True


def _job(kernel: Any, signature: tuple[Any, ...]) -> bytes | None:
    """What another process needs to compile a kernel; None if it could not."""
    function = kernel.py_func
    homes = {function.__module__, *(kind.__module__ for kind in argument_classes(signature))}
    if not sys.executable or hasattr(sys, "frozen") or "__main__" in homes:
        return None
    try:
        if attrgetter(function.__qualname__)(sys.modules[function.__module__]) is not kernel:
            return None
        return pickle.dumps((function.__module__, function.__qualname__, signature))
    except (AttributeError, pickle.PicklingError):  # A class or function inside of a function.
        return None


def _start(job: bytes, claim: Path) -> threading.Thread:
    """Start a process that compiles a kernel; returns what awaits it, and then gives up the claim."""
    with tempfile.TemporaryFile() as told:
        told.write(pickle.dumps(sys.path) + job)
        told.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-c", _COMPILER, str(claim)],
            stdin=told,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal is not for it.
        )

    def wait() -> None:
        process.wait()
        with suppress(OSError):  # It has given it up itself, unless it was killed.
            claim.unlink()

    waiter = threading.Thread(target=wait, name="pacplan compiler", daemon=True)
    waiter.start()
    return waiter


def compile_as_told() -> None:
    """Compile a kernel in a process of its own, as the standard input says; then its claim is void."""
    try:
        module, name, signature = pickle.load(sys.stdin.buffer)
        attrgetter(name)(import_module(module)).compile(signature)
    finally:
        Path(sys.argv[1]).unlink(missing_ok=True)
