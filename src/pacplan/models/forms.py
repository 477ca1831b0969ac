"""A canonical form of Python objects: the same bytes for the same content, which tell objects apart.

Objects with the same form have the same classes, the same values bit by bit (so 0.0 and -0.0 differ,
and a NaN is equal to itself) and the same sharing of mutable parts. What is left out on purpose:

* the state of random generators, which are seeded anew when an object is restored;
* which of several equal immutable objects it is, and the order of a set;
* the memory layout of an array, and whether it is a view of another.

Functions, classes and modules are identified by their names or, if a name does not lead back to them,
by their address. Forms may be compared as long as what they were made of exists. What cannot be seen,
such as the inside of an object of a C library, has no form, rather than one that might be shared:
`UnidentifiedError`.
"""

import enum
import random
import sys
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from marshal import dumps
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from pacplan.core.notes import pass_on

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
# Marshalled without a look inside. Version 2 of the format has neither interning nor references, so
# the bytes depend only on values.
_PLAIN: frozenset[type] = frozenset({type(None), bool, int, float, complex, str, bytes})
_VERSION = 2
_SCALARS: frozenset[type] = frozenset(set(np.sctypeDict.values()) - {np.void, np.object_})
_IMMUTABLE = (tuple, frozenset, str, bytes, int, float, complex, np.generic, type(None))
# Forms longer than this are replaced by a digest.
_LONG = 200
# Each part of a form begins with a byte that says what follows; marshalled values begin below 0x80.
_AGAIN, _TUPLE, _LIST, _DICT, _SET, _FROZENSET, _ARRAY, _OBJECTS, _SCALAR, _OBJECT, _REDUCED = (
    bytes([0x80 + i]) for i in range(11)
)
_GENERATOR, _NAMED, _ADDRESS, _METHOD, _ENUM, _KNOWN, _ABSENT, _STATE = (
    bytes([0xA0 + i]) for i in range(8)
)
# How objects of a class are written.
(
    _IS_MUTABLE,
    _IS_SCALAR,
    _IS_TUPLE,
    _IS_FROZENSET,
    _IS_GENERATOR,
    _IS_NAMED,
    _IS_BUILTIN,
    _IS_ENUM,
    _IS_FROZEN,
) = range(9)


class UnidentifiedError(Exception):
    """Something has no form: its content cannot be seen, or there is too much of it."""


def form(value: Any, known: Mapping[int, int] | None = None, most: int | None = None) -> bytes:
    """The canonical form of an object, as a short digest if it is long.

    Args:
        value: the object.
        known: objects that stand for themselves, by address, and the numbers that tell them apart.
        most: parts to look at before giving up; None: all.

    Raises:
        UnidentifiedError: it has none.
    """
    writer = Writer({} if known is None else known, most)
    writer.write(value)
    return writer.form()


class Writer:
    """Writes the forms of several objects, one after the other, that may share parts.

    Args:
        known: objects that stand for themselves, by address, and the numbers that tell them apart.
        most: parts to look at before giving up; None: all.
    """

    def __init__(self, known: Mapping[int, int], most: int | None = None) -> None:
        self._known = known
        self._most = sys.maxsize if most is None else most
        self._parts: list[bytes] = []
        # Mutable objects met, numbered in order. Temporary ones are kept alive, so that no other object
        # gets their address.
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def form(self) -> bytes:
        """What was written, as a short digest if it is long."""
        whole = b"".join(self._parts)
        return whole if len(whole) <= _LONG else blake2b(whole, digest_size=20).digest()

    def write(self, value: Any) -> None:
        """Add the form of an object.

        Raises:
            UnidentifiedError: it has none.
        """
        try:
            self._write(value)
        except Exception as error:
            pass_on(error)
            raise UnidentifiedError(_words(value, error)) from error

    def write_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Add the form of some attributes, by their names.

        Raises:
            UnidentifiedError: one of them has none; the message names it.
        """
        name = ""
        # Values marshalled without a look inside are marshalled all at once, with a mark for the rest.
        plain: list[Any] = []
        try:
            for name in sorted(attributes):
                value = attributes[name]
                kind: Any = type(value)
                if kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, value))):
                    plain += (name, value)
                else:
                    plain += (name, ...)
                    self._write(value)
        except Exception as error:
            pass_on(error)
            raise UnidentifiedError(f"{name} holds {_words(attributes[name], error)}") from error
        self._parts.append(dumps(plain, _VERSION))

    def _write(self, value: Any) -> None:
        kind: Any = type(value)
        parts = self._parts
        if kind in _PLAIN:
            parts.append(dumps(value, _VERSION))
            return
        if len(parts) > self._most:
            raise UnidentifiedError("too many parts to look at")
        if id(value) in self._known:
            parts.append(_KNOWN + dumps(self._known[id(value)], _VERSION))
            return
        sort = _sort(kind)
        if sort == _IS_MUTABLE:
            number = self._numbers.get(id(value))
            if number is None:
                self._numbers[id(value)] = len(self._numbers)
                self._mutable(value, kind)
            else:
                parts.append(_AGAIN + dumps(number, _VERSION))
        elif sort == _IS_SCALAR:
            parts.append(_SCALAR + dumps((value.dtype.str, value.tobytes()), _VERSION))
        elif sort == _IS_TUPLE:
            if _PLAIN.issuperset(map(type, value)):
                parts.append(dumps(value, _VERSION))
            else:
                self._sequence(_TUPLE, value)
        elif sort == _IS_FROZENSET:
            self._unordered(_FROZENSET, value)
        elif sort == _IS_GENERATOR:
            parts.append(_GENERATOR)
        elif sort == _IS_NAMED:
            parts.append(_name(value))
        elif sort == _IS_BUILTIN:
            self._builtin(value)
        elif sort == _IS_ENUM:
            parts.append(_ENUM)
            parts.append(_name(kind))
            self._write((value.name, value.value))
        else:
            self._object(value, kind)

    def _mutable(self, value: Any, kind: type) -> None:
        """A list, a dictionary, an array or another object that may be met again."""
        parts = self._parts
        if kind is list:
            if _PLAIN.issuperset(map(type, value)):
                parts.append(dumps(value, _VERSION))
            else:
                self._sequence(_LIST, value)
        elif kind is np.ndarray:
            parts.append(_header(value.dtype, value.shape))
            if value.dtype.hasobject:
                self._sequence(_LIST, value.ravel().tolist())
            else:
                parts.append(value.tobytes())
        elif kind is dict:
            parts.append(_DICT + dumps(len(value), _VERSION))
            for name, content in value.items():
                self._write(name)
                self._write(content)
        elif kind is set:
            self._unordered(_SET, value)
        elif kind is MethodType:
            parts.append(_METHOD)
            self._write(value.__func__)
            self._write(value.__self__)
        else:
            self._object(value, kind)

    def _sequence(self, tag: bytes, values: Any) -> None:
        self._parts.append(tag + dumps(len(values), _VERSION))
        for value in values:
            self._write(value)

    def _unordered(self, tag: bytes, values: Any) -> None:
        """A set: sorted by the forms, unless these number objects in the order they are met."""
        outside, met = self._parts, len(self._numbers)
        forms = []
        for value in values:
            self._parts = []
            self._write(value)
            forms.append(b"".join(self._parts))
        self._parts = outside
        if len(self._numbers) == met:
            forms.sort()
        outside.append(tag + dumps(len(forms), _VERSION))
        outside += forms

    def _builtin(self, value: Any) -> None:
        if isinstance(value.__self__, ModuleType | type | None):
            self._parts.append(_name(value))
            return
        self._parts.append(_METHOD)
        self._write(value.__name__)
        self._write(value.__self__)

    def _object(self, value: Any, kind: type) -> None:
        """An object by its class, its attributes, and what pickling would save if it has more."""
        parts = self._parts
        members, complete = _layout(kind)
        if kind is object:
            raise UnidentifiedError("object(), which has only an address")
        parts.append(_of_class(kind))
        for member in members:
            try:
                content = member.__get__(value, kind)
            except AttributeError:
                parts.append(_ABSENT)
            else:
                self._write(content)
        own = getattr(value, "__dict__", None)
        if own:
            parts.append(_STATE)
            self.write_attributes(own)
        if not complete:
            self._reduced(value, kind)

    def _reduced(self, value: Any, kind: type) -> None:
        """What pickling would save."""
        try:
            saved = value.__reduce_ex__(4)
        except Exception as error:
            pass_on(error)
            raise UnidentifiedError(f"{kind.__module__}.{kind.__qualname__}") from None
        if isinstance(saved, tuple):
            # Iterators over items are read out.
            saved = (*saved[:3], *(None if items is None else list(items) for items in saved[3:5]))
        self._kept.append(saved)
        self._parts.append(_REDUCED)
        self._write(saved)


def _name(value: Any) -> bytes:
    """A function, class or module by its name, or by its address if the name leads elsewhere."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if isinstance(value, ModuleType):
        module, name = value.__name__, ""
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for step in name.split(".") if isinstance(name, str) and name else ():
        found = getattr(found, step, None)
    if found is value:
        return _NAMED + dumps((module, name), _VERSION)
    return _ADDRESS + dumps(id(value), _VERSION)


@lru_cache(1024)
def _of_class(kind: type) -> bytes:
    """What comes before the content of an object."""
    return _OBJECT + _name(kind)


def _words(value: Any, error: Exception) -> str:
    """Says what has no form. An object's own code may have raised, or things be nested too deeply."""
    if isinstance(error, UnidentifiedError):
        return str(error)
    return f"{type(value).__name__} ({type(error).__name__}: {error})"


@lru_cache(1024)
def _layout(kind: type) -> tuple[tuple[MemberDescriptorType, ...], bool]:
    """The slots of a class, and whether they and `__dict__` are all that an object of it has."""
    members = tuple(
        member
        for base in kind.__mro__
        for _, member in sorted(vars(base).items())
        if isinstance(member, MemberDescriptorType)
    )
    # A class written in Python has one word per slot; if an object is larger, it is written in C.
    slots = sum("__slots__" in vars(member.__objclass__) for member in members)
    links = sum(getattr(kind, offset) > 0 for offset in ("__dictoffset__", "__weakrefoffset__"))
    size = object.__basicsize__ + tuple.__itemsize__ * (slots + links)
    return members, kind.__itemsize__ == 0 and kind.__basicsize__ <= size


def mutable(value: Any) -> bool:
    """Whether an object may change, so that it matters whether it is met twice."""
    kind: Any = type(value)
    return kind not in _PLAIN and _sort(kind) == _IS_MUTABLE


@lru_cache(1024)
def _sort(kind: type) -> int:
    """How objects of a class are written."""
    exact = {tuple: _IS_TUPLE, frozenset: _IS_FROZENSET} | dict.fromkeys(_SCALARS, _IS_SCALAR)
    if kind in exact:
        return exact[kind]
    for classes, sort in (
        (GENERATORS, _IS_GENERATOR),
        ((type, FunctionType, ModuleType), _IS_NAMED),
        (BuiltinFunctionType, _IS_BUILTIN),
        (enum.Enum, _IS_ENUM),
        (_IMMUTABLE, _IS_FROZEN),
    ):
        if issubclass(kind, classes):
            return sort
    frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
    return _IS_FROZEN if frozen else _IS_MUTABLE


@lru_cache(1024)
def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """What comes before the content of an array."""
    written = dtype.str if dtype.names is None else repr(dtype)
    return (_OBJECTS if dtype.hasobject else _ARRAY) + dumps((written, shape), _VERSION)
