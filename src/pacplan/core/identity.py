"""Telling whether two planners or models are the same, across processes, without executing anything."""

import hashlib
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np


@cache
def source_digest() -> str:
    """A digest of the sources of the whole package."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def described(value: Any) -> str:
    """A value in words that are the same in every process; functions by name and code."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(described, value))})"
    if isinstance(value, partial):
        return f"partial({described(value.func)}, {described(value.args)}, {sorted(value.keywords)})"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if not callable(value):
        return repr(value)
    # A jitted function keeps the Python one it was made of; a method, its function.
    function = getattr(value, "py_func", getattr(value, "__func__", value))
    name = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    code = getattr(function, "__code__", None)
    if code is None:
        # An object that can be called.
        code = getattr(type(value).__call__, "__code__", None)
    digest = hashlib.sha256()
    if code is not None:
        _add_code(digest, code)
    for cell in getattr(function, "__closure__", None) or ():
        digest.update(_plain(cell.cell_contents).encode())
    for default in getattr(function, "__defaults__", None) or ():
        digest.update(_plain(default).encode())
    return f"{name} {digest.hexdigest()[:16]}"


def _add_code(digest: Any, code: CodeType) -> None:
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames)).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add_code(digest, constant)
        else:
            digest.update(_plain(constant).encode())


def _plain(value: Any) -> str:
    """A value, or its type where its repr may differ from process to process."""
    if isinstance(value, np.ndarray):
        return described(value)
    plain = value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic)
    return repr(value) if plain else type(value).__qualname__
