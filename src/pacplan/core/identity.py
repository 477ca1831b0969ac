"""Telling whether two planners or models are the same, across processes."""

import dis
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
# Of these, only the class or the name counts.
_OPAQUE = (type, ModuleType, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
# What lies further inside is left out.
_DEEPEST = 50
# Longer descriptions are replaced by a digest.
_LONG = 200


@cache
def source_digest() -> str:
    """A digest of the sources of the whole package."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def described(value: Any) -> str:
    """A value in words that are the same in every process: what it holds, functions by their code.

    That includes what functions and objects refer to: what closures hold, defaults, and global names
    that a function reads. Of what has no content to be seen, such as a generator or a lock, it is the
    class; of classes, modules and global functions of other modules, the name. Variables that a
    function assigns itself, such as a count of its calls, are left out.
    """
    return _Writer().described(value)


class _Writer:
    """Describes a value and all that it refers to.

    Attributes:
        home: the module of the first function: what its global names stand for counts.
    """

    def __init__(self) -> None:
        self.home: str | None = None
        # By address: what has been described, or is being described. Temporary ones stay alive.
        self._known: dict[int, tuple[Any, str]] = {}
        self._depth = 0

    def described(self, value: Any) -> str:
        """The value in words."""
        if type(value) in _PLAIN or isinstance(value, np.generic):
            return repr(value)
        if id(value) in self._known:
            return self._known[id(value)][1]
        self._known[id(value)] = value, "<above>"
        self._depth += 1
        parts = self._parts(value) if self._depth < _DEEPEST else []
        text = ", ".join(map(self.described, parts))
        self._depth -= 1
        kind = _name(value if isinstance(value, type | FunctionType | ModuleType) else type(value))
        text = f"({text})" if type(value) in (tuple, list) else f"{kind}({text})" if parts else kind
        if len(text) > _LONG:
            text = f"{kind} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self._known[id(value)] = value, text
        return text

    def _parts(self, value: Any) -> list[Any]:
        """What a value consists of."""
        if isinstance(value, _OPAQUE):
            return []
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return [str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, MethodType):
            return [value.__func__, value.__self__]
        if hasattr(value, "py_func"):  # A jitted function keeps the Python one it was made of.
            return [value.py_func]
        if type(value) in (tuple, list):
            return list(value)
        if type(value) in (set, frozenset):
            return sorted(map(self.described, value))
        # Others by what would be pickled, which has no addresses; callable ones by their code, too.
        called = type(value).__call__
        parts: list[Any] = [called] if isinstance(called, FunctionType) else []
        try:
            saved = value.__reduce_ex__(4)
        except Exception:  # It cannot be pickled.
            return parts
        if isinstance(saved, str):
            return [*parts, saved]
        held = (list(part) if isinstance(part, Iterator) else part for part in saved[1:])
        return [*parts, _name(saved[0]), *held]

    def _of_function(self, function: FunctionType) -> list[Any]:
        """The code of a function, and what it refers to."""
        if self.home is None and not function.__module__.startswith("pacplan."):
            self.home = function.__module__
        parts: list[Any] = [function.__defaults__, function.__kwdefaults__]
        read: dict[str, None] = {}
        assigned: set[str] = set()
        for code in codes_of(function.__code__):
            constants = [held for held in code.co_consts if not isinstance(held, CodeType)]
            parts += [code.co_code, code.co_names, code.co_varnames, constants]
            steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
            assigned |= {name for kind, name in steps if kind in ("STORE_GLOBAL", "STORE_DEREF")}
            read |= {name: None for kind, name in steps if kind == "LOAD_GLOBAL"}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name not in assigned and cell != CellType():
                parts.append((name, cell.cell_contents))
        for name in read if function.__module__ == self.home else ():
            if name in function.__globals__ and name not in assigned:
                held = function.__globals__[name]
                # A function of another module goes by its name.
                foreign = isinstance(held, FunctionType) and held.__module__ != self.home
                parts.append((name, _name(held) if foreign else held))
        return parts


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def _name(thing: Any) -> str:
    """A function, class or module by its name."""
    if isinstance(thing, ModuleType):
        return thing.__name__
    return f"{thing.__module__}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"
