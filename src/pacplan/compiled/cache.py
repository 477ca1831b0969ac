"""Compiled kernels on disk, so that a second process starts warm.

Every compiled signature is one file. Its name is a digest of all that its code depends on: the
signature, every function that it contains, the processor, the versions of the compiler. It is written
under another name and renamed. So any number of processes can start cold at once, and nothing is stale.

Whatever is wrong with a file or a folder, the kernel is compiled again, and one line says why.
"""

import gc
import hashlib
import io
import logging
import os
import pickle
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import NumbaPickler
from platformdirs import user_cache_path

_logger = logging.getLogger("pacplan")
_MAGIC = b"pacplan kernel 2\n"
_SUFFIX = ".kernel"
UNFINISHED = ".unfinished"
"""How the names of files end that are being written, or hold the lock of a kernel being compiled."""
_DAY = 24 * 3600.0
# Sources that are edited a lot leave many kernels behind.
_LONGEST_UNUSED = 30 * _DAY
# What else changes the code that Numba makes, besides a function's own options.
_SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML")
# Functions of these are known by the version of the compiler or of Python.
_LIBRARIES = {"llvmlite", "numba", "numpy", *sys.stdlib_module_names}
# Kernels that are a planner's whole search: they are announced by the planner's name.
WHOLE_SEARCHES = ("play", "work")
_PLANNERS = "pacplan.algorithms."


class Compilation(NamedTuple):
    """A kernel that this process has compiled.

    Attributes:
        title: what it was, such as "uct" or "sweep of mdp_gape".
        lasting: whether it is kept, so that later runs start warm.
    """

    title: str
    lasting: bool


compilations: list[Compilation] = []
"""What this process has compiled so far."""
_warned: set[str] = set()


class KernelCache(NullCache):  # type: ignore[misc]
    """Takes the place of a dispatcher's cache in Numba."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel compiled for a signature; None, and a line that says what is compiled."""
        target_context.refresh()
        place = place_of(self._dispatcher, sig)
        if place is not None and place.exists():
            try:
                known_sig, reduced = pickle.loads(_read(place))
                # A class that was defined again is a different one: Numba would not find the kernel.
                if known_sig == sig:
                    return CompileResult._rebuild(target_context, *reduced)
            except Exception as error:
                _warn(
                    str(place),
                    f"the compiled kernel {place} cannot be used ({error}) and is compiled again; if "
                    "this line comes back, delete that file",
                )
        _logger.warning(
            "pacplan: compiling %s, for some seconds%s",
            title(self._dispatcher.py_func, sig),
            "" if place is None else "; later runs start warm",
        )
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the kernel that was compiled for a signature."""
        place = place_of(self._dispatcher, sig)
        # Code that holds addresses of this process says nothing in another one.
        lasting = place is not None and not data.library.has_dynamic_globals
        if place is not None and lasting:
            payload = _serialized(sig, data)
            try:
                _write(place, _MAGIC + hashlib.sha256(payload).digest() + payload)
            except OSError as error:
                _cannot_keep(place.parent, error)
                lasting = False
        compilations.append(Compilation(title(self._dispatcher.py_func, sig), lasting))


def keep_on_disk(dispatcher: Any) -> None:
    """Give a dispatcher a cache on disk."""
    dispatcher._cache = KernelCache(dispatcher)
    compile_for = dispatcher.compile

    def compiled(sig: Any) -> Any:
        # The compiler makes millions of objects that stay in use: no need to go through them.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return compile_for(sig)
        finally:
            if collecting:
                gc.enable()

    dispatcher.compile = compiled


def place_of(dispatcher: Any, sig: Any) -> Path | None:
    """Where the kernel for a signature is kept, or will be; None if it cannot be kept."""
    function = dispatcher.py_func
    kinds = sorted(set(argument_classes(sig)), key=lambda kind: (kind.__module__, kind.__qualname__))
    code: dict[Any, str] = {}
    _add(function, kinds, code)
    text = repr(
        (
            f"{function.__module__}.{function.__qualname__}",
            sorted(code.values()),
            list(map(str, sig)),
            [(kind.__module__, kind.__qualname__) for kind in kinds],
            sorted(dispatcher.targetoptions.items()),
            [getattr(numba.config, setting, None) for setting in _SETTINGS],
            (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__),
            cpu_target.target_context.codegen().magic_tuple(),
            _compiler_digest(),
        )
    )
    if re.search(r" at 0x\w+", text):
        return None  # The name of an object with an address says nothing in another process.
    name = re.sub(r"[^\w.]", "", f"{function.__module__}.{function.__qualname__}")[-100:]
    try:
        return folder() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:40]}{_SUFFIX}"
    except OSError as error:
        _cannot_keep(_chosen_folder(), error)
        return None


def _add(function: Any, kinds: list[type], code: dict[Any, str]) -> None:
    """Add the code of a function and of all that it calls, as far as it stands in a kernel."""
    if function in code or function.__module__.partition(".")[0] in _LIBRARIES:
        return
    code[function] = _described(function)
    names = sorted(set(names_of(function.__code__)))
    known = [function.__globals__[name] for name in names if name in function.__globals__]
    for value in known[:]:
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _LIBRARIES:
            known += [vars(value)[name] for name in names if name in vars(value)]
    for value in [*known, *(cell.cell_contents for cell in function.__closure__ or ())]:
        methods = getattr(value, "methods", {})
        for kind in kinds:
            if kind in methods:
                _add(methods[kind], kinds, code)
        inner = getattr(value, "py_func", getattr(value, "__wrapped__", value))
        if isinstance(inner, FunctionType):
            _add(inner, kinds, code)
            if inner is value and inner in code:
                # Numba compiles something else in its place, from the same file.
                code[inner.__code__.co_filename] = _file_digest(inner.__code__.co_filename)
        elif not isinstance(inner, ModuleType | type):
            code[function] += _constant(inner)


def _described(function: Any) -> str:
    """A function by its name and code, and by what it holds itself."""
    digest = hashlib.sha256()
    for code in codes_of(function.__code__):
        constants = [held for held in code.co_consts if not isinstance(held, CodeType)]
        digest.update(code.co_code)
        digest.update(repr((code.co_names, code.co_varnames, _constant(tuple(constants)))).encode())
    held = (cell.cell_contents for cell in function.__closure__ or ())
    digest.update(_constant((*held, *(function.__defaults__ or ()))).encode())
    return f"{function.__module__}.{function.__qualname__} {digest.hexdigest()}"


def _constant(value: Any) -> str:
    """A value in words that are the same in every process."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_constant, value)))}}}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    told = repr(value)
    return type(value).__qualname__ if " at 0x" in told else told


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Some code, and what is defined inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def names_of(code: CodeType) -> Iterator[str]:
    """The global names and attributes that some code uses."""
    for each in codes_of(code):
        yield from each.co_names


@cache
def _file_digest(path: str) -> str:
    with suppress(OSError):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return ""


@cache
def _compiler_digest() -> str:
    """Of what makes kernels of functions, and of streams, whose methods are not called by a name."""
    return "".join(map(_file_digest, sorted(map(str, Path(__file__).parent.glob("*.py")))))


def argument_classes(kinds: Any) -> Iterator[type]:
    """The named tuples among the types of arguments, and inside them."""
    for kind in kinds:
        if isinstance(kind, numba.types.BaseTuple):
            if hasattr(kind, "instance_class"):
                yield kind.instance_class
            yield from argument_classes(kind.types)


def title(function: Callable[..., Any], kinds: Any) -> str:
    """What is compiled, such as "uct", or "sweep of mdp_gape"."""
    search = next(argument_classes(kinds), None)
    home = (function if search is None else search).__module__
    room = home.removeprefix(_PLANNERS).partition(".")[0] if home.startswith(_PLANNERS) else home
    room = room.rpartition(".")[2]
    name = function.__name__
    return room if name in WHOLE_SEARCHES and search is not None else f"{name.lstrip('_')} of {room}"


def _serialized(sig: Any, result: Any) -> bytes:
    class Pickler(NumbaPickler):  # type: ignore[misc]
        """Refers to classes of a running script by name, without a copy: their code is known."""

        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, type) and thing.__module__ == "__main__":
                return getattr, (sys.modules["__main__"], thing.__qualname__)
            return super().reducer_override(thing)

    with io.BytesIO() as buffer:
        Pickler(buffer, protocol=4).dump((sig, result._reduce()))
        return buffer.getvalue()


def folder() -> Path:
    """The folder of compiled kernels, which is made if need be.

    Reading compiled code back means executing it. The checksums of the files reveal accidents, not
    attacks. What protects the user is that nobody else can write to the folder.

    Raises:
        OSError: there is none that only the user can write to.
    """
    place = _chosen_folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = place.stat()
    if hasattr(os, "geteuid") and (status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022):
        raise PermissionError("others can write to it")
    return place


def _chosen_folder() -> Path:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen).absolute() / "pacplan" if chosen else user_cache_path("pacplan").absolute()


def _read(place: Path) -> bytes:
    content = place.read_bytes()
    begin = len(_MAGIC) + 32
    if content[:begin] != _MAGIC + hashlib.sha256(content[begin:]).digest():
        raise ValueError("it is damaged")
    if time.time() - place.stat().st_mtime > _DAY:
        with suppress(OSError):
            os.utime(place)  # It is in use.
    return content[begin:]


def _write(place: Path, content: bytes) -> None:
    """Write a file that others see complete or not at all, and remove what nobody has used for long."""
    number, unfinished = tempfile.mkstemp(UNFINISHED, place.name[:40], place.parent)
    try:
        with open(number, "wb") as file:
            file.write(content)
        os.replace(unfinished, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
    for other in place.parent.iterdir():
        # Who was killed leaves a file behind that is not finished.
        longest = {_SUFFIX: _LONGEST_UNUSED, UNFINISHED: _DAY}.get(other.suffix)
        with suppress(OSError):
            if longest is not None and time.time() - other.stat().st_mtime > longest:
                other.unlink()


def _cannot_keep(place: Path, error: OSError) -> None:
    _warn(
        "folder",
        f"compiled kernels cannot be kept in {place} ({error.strerror or error}); each process "
        "compiles them for itself. Set NUMBA_CACHE_DIR to a folder that only you can write to",
    )


def _warn(about: str, message: str) -> None:
    """Log a warning, once for each thing that it may be about."""
    if about not in _warned:
        _warned.add(about)
        _logger.warning("pacplan: %s", message)
