"""Compilation that no plan waits for: a kernel is interpreted until another process has compiled it.

What the other process needs is the kernel's name and the types of the arguments. It has a low priority,
outlives a program that ends before it, and leaves the kernel in the cache, where each chunk of a search
looks for it. Of all processes that need a kernel one compiles it: it holds the lock of a file beside
the kernel's place, which is released however it ends.

A kernel that cannot be kept, or that no other process could compile, is compiled here, and waited for.
"""

import logging
import math
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
from pacplan.compiled.dispatch import modules_of
from pacplan.compiled.interpreted import interpreted

try:
    import fcntl
except ImportError:  # On Windows a lock cannot be handed over to another process.
    fcntl = None  # type: ignore[assignment]

_logger = logging.getLogger("pacplan")
# More records than this are not gone through without a kernel, which takes seconds to compile.
_FEW = 20_000
# Seconds after which a search leaves the only core to the compiler.
_PATIENCE = 5.0
_COMPILER = (
    "import os, pickle, sys; os.nice(10); sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from pacplan.compiled.tiered import compile_as_told; compile_as_told(int(sys.argv[1]))"
)
# Kernels that are loaded, with the kinds of their arguments; and of the others the signatures, what
# another process needs to compile them, and where they will be kept, if they can be.
_loaded: set[Any] = set()
_needed: dict[Any, tuple[tuple[Any, ...], bytes | None, Path | None]] = {}
# What waits for the compilers that this process has started, and when it started them.
_started: dict[Path, tuple[threading.Thread, float]] = {}
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


def ready(kernel: Any, arguments: Any, *, wait: bool = False, late: bool = False) -> bool:
    """Whether a kernel can be called with such arguments. If not, it is being compiled.

    Args:
        kernel: the kernel.
        arguments: as for a call.
        wait: return when it can.
        late: there is no time to compile it here, even if the process that was to do so has failed.
    """
    if numba.config.DISABLE_JIT:
        return False
    key = kernel, *_kinds(arguments)
    if key not in _loaded:
        with _loading:
            if not _obtained(kernel, arguments, key, wait or _waits, late):
                return False
            _loaded.add(key)
    return True


def _kinds(values: Any) -> Iterator[type]:
    for value in values:
        yield value.__class__
        if isinstance(value, tuple):
            yield from _kinds(value)


def _obtained(kernel: Any, arguments: Any, key: Any, wait: bool, late: bool) -> bool:
    if key not in _needed:
        signature = tuple(map(numba.typeof, arguments))
        job = _job(kernel, signature)
        _needed[key] = signature, job, place_of(kernel, signature) if job else None
    signature, job, place = _needed[key]
    if job is None or place is None or place.exists():
        kernel.compile(signature)
        return True
    began = _started[place][1] if place in _started else math.inf
    impatient = _cores() == 1 and time.monotonic() - began > _PATIENCE
    wait = wait or (impatient and not late)
    try:
        lock = _locked(place, wait)
    except OSError:  # The folder has gone, or its files cannot be locked.
        _needed[key] = signature, None, None
        return _obtained(kernel, arguments, key, wait, late)
    if lock is None:
        return False
    handed_over = False
    try:
        failed = place in _started  # Its compiler has ended, or we would not have the lock.
        if place.exists() or wait or (failed and not late):
            kernel.compile(signature)
            return True
        running = sum(waiter.is_alive() for waiter, _ in _started.values())
        if not failed and running < max(1, _cores() - 1):
            _started[place] = _start(job, place, lock), time.monotonic()
            handed_over = True
            if kernel.__name__ in WHOLE_SEARCHES:
                words = "in another process, some seconds; until then it is interpreted"
                _logger.warning("pacplan: compiling %s %s", title(kernel.py_func, signature), words)
        return False
    finally:
        if not handed_over:
            with suppress(OSError):
                place.with_suffix(UNFINISHED).unlink()
        os.close(lock)


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _locked(place: Path, wait: bool) -> int | None:
    """Lock a kernel that is not there yet; None if another process compiles it.

    Raises:
        OSError: there is no such folder, or nothing in it can be locked.
    """
    while True:
        lock = os.open(place.with_suffix(UNFINISHED), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if isinstance(error, BlockingIOError):
                return None
            raise
        if os.fstat(lock).st_nlink > 0:
            return lock
        os.close(lock)  # Whoever held it has removed the file, so it keeps nobody out.


def _job(kernel: Any, signature: tuple[Any, ...]) -> bytes | None:
    """What another process needs to compile a kernel; None if it could not."""
    function = kernel.py_func
    modules = {function.__module__}
    for kind in argument_classes(signature):
        modules |= {kind.__module__, *modules_of(kind)}
    if fcntl is None or not sys.executable or hasattr(sys, "frozen") or "__main__" in modules:
        return None
    try:
        if attrgetter(function.__qualname__)(sys.modules[function.__module__]) is not kernel:
            return None
        return pickle.dumps((modules, function.__module__, function.__qualname__, signature))
    except (AttributeError, pickle.PicklingError):  # A class or function inside of a function.
        return None


def _start(job: bytes, place: Path, lock: int) -> threading.Thread:
    """Start a process that compiles a kernel and keeps the lock until then; returns what awaits it."""
    with tempfile.TemporaryFile() as told:
        told.write(pickle.dumps(sys.path) + job + pickle.dumps(place))
        told.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-c", _COMPILER, str(lock)],
            stdin=told,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[lock],
            start_new_session=True,  # Ctrl-C in a terminal is not for it.
        )
    waiter = threading.Thread(target=process.wait, name="pacplan compiler", daemon=True)
    waiter.start()
    return waiter


def compile_as_told(lock: int) -> None:
    """Compile a kernel in a process of its own, as the standard input says."""
    from numba.core.caching import NullCache

    modules, module, name, signature = pickle.load(sys.stdin.buffer)
    place = pickle.load(sys.stdin.buffer)
    for each in modules:
        import_module(each)
    kernel = attrgetter(name)(sys.modules[module])
    cache, kernel._cache = kernel._cache, NullCache()
    kernel.compile(signature)
    if os.fstat(lock).st_nlink > 0:  # Otherwise somebody has removed the folder.
        cache.save_overload(signature, kernel.overloads[signature])
        place.with_suffix(UNFINISHED).unlink(missing_ok=True)
