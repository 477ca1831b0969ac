"""Compilation of the kernels, and the on-disk cache that lets a second process start warm.

Numba's own cache lives beside the source file and is refreshed when *that* file changes. Two
things are different here. The cache sits in the user's cache folder, so an installation that cannot
be written to starts warm as well. And it is stamped with a digest of the whole package, because a
kernel inlines functions of other modules and must be compiled again when any of them changes.
"""

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import caching, cgutils
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic
from numpy.typing import NDArray
from platformdirs import user_cache_path

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).resolve().parent
_logger = logging.getLogger("pacplan")


@cache
def source_digest() -> str:
    """Tells the state of the package's sources."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def cache_folder() -> Path | None:
    """The folder that holds compiled kernels, or None where no folder can be written to.

    `NUMBA_CACHE_DIR` is honoured. Otherwise it is in `pacplan` in the user's cache folder, and in the
    folder for temporary files as a last resort. Its name tells the installation of pacplan and the
    state of its sources; folders of earlier states are removed.
    """
    installation = hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:12]
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    candidates = (
        [Path(chosen) / "pacplan"]
        if chosen
        else [user_cache_path("pacplan"), Path(tempfile.gettempdir()) / f"pacplan-{user}"]
    )
    for candidate in candidates:
        folder = candidate / f"{installation}-{source_digest()[:12]}"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Compiled code is executed when it is read back: trust only what is ours.
            if hasattr(os, "getuid") and any(
                place.stat().st_uid != os.getuid() for place in (candidate, folder)
            ):
                continue
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        for other in candidate.glob(f"{installation}-*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
        return folder
    return None


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Says where a kernel's compiled code lies and when it is out of date."""

    def __init__(self, function: Callable[..., Any]) -> None:
        # Numba names this attribute when it warns about a function it cannot cache.
        self._py_file = function.__code__.co_filename
        self._name = f"{function.__module__}.{function.__qualname__}"

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return source_digest()

    def get_disambiguator(self) -> str:
        return hashlib.sha256(self._name.encode()).hexdigest()[:8]

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_Locator":
        return cls(py_func)


class _CacheFiles(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _CacheFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        loaded = super().load_overload(sig, target_context)
        if loaded is None:
            _announce_compilation()
        return loaded


@cache
def _announce_compilation() -> None:
    """Tell the user, once a process, why the first plan takes seconds."""
    _logger.warning(
        "pacplan: compiling the search kernels, some seconds (once; later runs start warm) ..."
    )


def records(array: NDArray[Any]) -> NDArray[Any]:
    """An array of records in the form in which kernels read fields as attributes.

    Compiled kernels do so with any such array, and take plain ones faster.
    """
    return array.view(np.recarray) if numba.config.DISABLE_JIT else array


# Kernels allocate nothing and keep no reference to an argument, so they are compiled without Numba's
# memory management (`_nrt`): counting references would cost as much as the search itself.
_OPTIONS = {"error_model": "numpy", "_nrt": False}


def inlined(function: F) -> F:
    """Compile `function` as a part of the kernels that call it.

    A call to a compiled function that is not inlined would pass every array of its arguments
    separately, which costs more than most of these functions do.
    """
    compiled = numba.njit(forceinline=True, **_OPTIONS)(function)
    if isinstance(compiled, Dispatcher):
        choose = compiled.get_call_template

        def choose_for(args: Any, kws: Any) -> Any:
            return choose([_plain(kind) for kind in args], kws)

        compiled.get_call_template = choose_for  # type: ignore[method-assign]
    return compiled  # type: ignore[no-any-return]


def _plain(kind: Any) -> Any:
    """The type of an argument, all integers being one.

    A function would be compiled anew for every mixture of literals and integers of 32 and 64 bits.
    """
    kind = types.unliteral(kind)
    return types.int64 if kind == types.int32 else kind


def kernel(function: F) -> F:
    """Compile `function` with Numba on first use, and keep the result in the user's cache folder.

    It runs without the interpreter's lock, so that other threads go on: among them the one that halts
    the search at its deadline.
    """
    return _cached(numba.njit(nogil=True, **_OPTIONS)(function))  # type: ignore[no-any-return]


def _cached(compiled: Any) -> Any:
    if not numba.config.DISABLE_JIT and cache_folder() is not None:
        compiled._cache = _KernelCache(compiled.py_func)
    return compiled


def caller(signature: Any) -> Any:
    """A function `call(address, (arguments...))` that kernels can call, for one signature.

    At the address lies a compiled function that is not a part of the kernel (`numba.cfunc`), such as a
    user's own. So kernels are not compiled anew for every such function, and are found in the cache.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def call(typing: Any, address: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            returned, *taken = (
                context.get_value_type(kind) for kind in (signature.return_type, *signature.args)
            )
            pointer = ir.FunctionType(returned, taken).as_pointer()
            function = builder.inttoptr(values[0], pointer)
            return builder.call(function, cgutils.unpack_tuple(builder, values[1]))

        return signature.return_type(address, arguments), generate

    return call
