"""Compiled kernels on disk, so that a second process starts warm.

Every compiled signature is one file. Its name is a digest of all that its code depends on: the
signature, every function that it contains, the processor, the versions of the compiler. It is written
under another name and renamed. So any number of processes can start cold at once, and nothing is stale.

Whatever is wrong with a file or a folder, the kernel is compiled again, and one line says why.
"""

import hashlib
import io
import logging
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import NumbaPickler
from platformdirs import user_cache_path

from pacplan.core.identity import codes_of

_logger = logging.getLogger("pacplan")
_SUFFIX = ".kernel"
UNFINISHED = ".unfinished"
"""How the names of files end that are being written, or tell that a kernel is being compiled."""
# What else changes the code that Numba makes, besides a function's own options.
_SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML")
# Functions of these are known by the version of the compiler or of Python.
_LIBRARIES = {"llvmlite", "numba", "numpy", *sys.stdlib_module_names}
WHOLE_SEARCHES = ("play", "work")
"""Kernels that are a planner's whole search: they are announced by the planner's name."""

compilations: list[tuple[str, bool]] = []
"""What this process has compiled so far, such as "uct", and whether later runs start warm."""
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
                content = place.read_bytes()
                if content[:32] != hashlib.sha256(content[32:]).digest():
                    raise ValueError("it is damaged")
                known_sig, reduced = pickle.loads(content[32:])
                # A class that was defined again is a different one: Numba would not find the kernel.
                if known_sig == sig:
                    return CompileResult._rebuild(target_context, *reduced)
            except Exception as error:
                words = "and is compiled again; if this line comes back, delete that file"
                _warn(f"the compiled kernel {place} cannot be used ({error}) {words}")
        lasting = "" if place is None else "; later runs start warm"
        name = title(self._dispatcher.py_func, sig)
        _logger.warning("pacplan: compiling %s, for some seconds%s", name, lasting)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the kernel that was compiled for a signature."""
        place = place_of(self._dispatcher, sig)
        # Code that holds addresses of this process says nothing in another one.
        lasting = place is not None and not data.library.has_dynamic_globals
        if place is not None and lasting:
            with io.BytesIO() as buffer:
                _Pickler(buffer, protocol=4).dump((sig, data._reduce()))
                content = buffer.getvalue()
            try:
                _write(place, hashlib.sha256(content).digest() + content)
            except OSError as error:
                _cannot_keep(place.parent, error)
                lasting = False
        compilations.append((title(self._dispatcher.py_func, sig), lasting))


class _Pickler(NumbaPickler):  # type: ignore[misc]
    """Refers to classes of a running script by name, without a copy: their code is known."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, type) and thing.__module__ == "__main__":
            return getattr, (sys.modules["__main__"], thing.__qualname__)
        return super().reducer_override(thing)


def place_of(dispatcher: Any, sig: Any) -> Path | None:
    """Where the kernel for a signature is kept, or will be; None if it cannot be kept."""
    function = dispatcher.py_func
    kinds = sorted(set(argument_classes(sig)), key=_name)
    code: dict[Any, str] = {}
    _add(function, kinds, code)
    text = repr(
        (
            _name(function),
            sorted(code.values()),
            list(map(str, sig)),
            list(map(_name, kinds)),
            sorted(dispatcher.targetoptions.items()),
            [getattr(numba.config, setting, None) for setting in _SETTINGS],
            (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__),
            cpu_target.target_context.codegen().magic_tuple(),
            _compiler_digest(),
        )
    )
    if re.search(r" at 0x\w+", text):
        return None  # The name of an object with an address says nothing in another process.
    name = re.sub(r"[^\w.]", "", _name(function))[-100:]
    try:
        return folder() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:40]}{_SUFFIX}"
    except OSError as error:
        _cannot_keep(_chosen_folder(), error)
        return None


def _add(function: Any, kinds: list[type], code: dict[Any, str]) -> None:
    """Add the code of a function and of all that it calls, as far as it stands in a kernel."""
    if function in code or function.__module__.partition(".")[0] in _LIBRARIES:
        return
    held = tuple(cell.cell_contents for cell in function.__closure__ or ())
    code[function] = _name(function) + _constant((*held, *(function.__defaults__ or ())))
    for each in codes_of(function.__code__):
        constants = tuple(part for part in each.co_consts if not isinstance(part, CodeType))
        code[function] += f" {each.co_code!r} {each.co_names} {each.co_varnames} {_constant(constants)}"
    names = names_of(function.__code__)
    known = [function.__globals__[name] for name in names if name in function.__globals__]
    for value in known[:]:
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _LIBRARIES:
            known += [vars(value)[name] for name in names if name in vars(value)]
    for value in (*known, *held):
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


def names_of(code: CodeType) -> list[str]:
    """The global names and attributes that some code uses."""
    return sorted({name for each in codes_of(code) for name in each.co_names})


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


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
    home: Any = next(argument_classes(kinds), function)
    room = home.__module__.removeprefix("pacplan.algorithms.").partition(".")[0]
    name = function.__name__
    return room if name in WHOLE_SEARCHES else f"{name.lstrip('_')} of {room}"


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


def _write(place: Path, content: bytes) -> None:
    """Write a file that others see complete or not at all."""
    with tempfile.NamedTemporaryFile(dir=place.parent, suffix=UNFINISHED, delete=False) as file:
        try:
            file.write(content)
            file.close()
            os.replace(file.name, place)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise


def _cannot_keep(place: Path, error: OSError) -> None:
    _warn(
        f"compiled kernels cannot be kept in {place} ({error.strerror or error}); each process "
        "compiles them for itself. Set NUMBA_CACHE_DIR to a folder that only you can write to"
    )


def _warn(message: str) -> None:
    """Log a warning, once."""
    if message not in _warned:
        _warned.add(message)
        _logger.warning("pacplan: %s", message)
