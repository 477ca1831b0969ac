"""Python objects as bytes: equal bytes mean equal content, and bring the object back.

These are pickles, with a few rules so that the same content has the same bytes:

* The state of random generators is left out. They are seeded anew when an object is restored.
* Equal strings count as one object, frozen sets are sorted, and arrays forget their memory layout.
* Functions and classes that cannot be imported by name, modules and bare `object()`s are references.
* What the caller names is a reference, too, and is not looked into.

Values are kept bit by bit: 0.0 and -0.0 differ, and a NaN equals itself.
"""

import copy
import io
import marshal
import pickle
import random
import sys
from collections import defaultdict
from collections.abc import Iterable
from hashlib import blake2b
from sys import intern
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})
# Longer contents are replaced by a digest.
_LONG = 200


class UnpicklableError(Exception):
    """An object cannot be pickled."""


def content(thing: Any) -> bytes:
    """What an object holds, to be compared; a digest if that is long. Who shares what does not count.

    Raises:
        UnpicklableError: its content cannot be seen.
    """
    kinds = set(map(type, thing)) if type(thing) is tuple else {type(thing)}
    try:
        # Version 2 of this format depends on values alone.
        found = marshal.dumps(thing, 2) if kinds <= _PLAIN else Pickles().dumps(thing, values_only=True)
    except UnpicklableError as error:
        if not isinstance(error.__cause__, ValueError):
            raise
        found = Pickles().dumps(thing)  # It contains itself.
    return found if len(found) <= _LONG else blake2b(found, digest_size=20).digest()


def content_or_none(thing: Any) -> bytes | None:
    """Its content; None if that cannot be seen."""
    try:
        return content(thing)
    except UnpicklableError:
        return None


class Pickles:
    """Pickles and restores objects that refer to things which are not pickled with them.

    Args:
        references: these things. They must outlive the pickles.
        held: what takes the place of others: generators by class, what has no name by address.
    """

    def __init__(self, references: Iterable[Any] = (), held: dict[Any, Any] | None = None) -> None:
        self.held = {} if held is None else held
        self._objects = [_array, _scalar, self.held.__getitem__, *references]
        self.numbers = {id(thing): i for i, thing in enumerate(self._objects)} | {id(_held): 2}

    def dumps(self, thing: Any, also: dict[int, int] | None = None, values_only: bool = False) -> bytes:
        """The bytes of an object.

        Args:
            thing: the object.
            also: further objects, by address, that count as the references of these numbers.
            values_only: ignore which parts are shared, as if each were there by itself.

        Raises:
            UnpicklableError: it cannot be pickled.
        """
        file = io.BytesIO()
        pickler = _Pickler(file, 5)
        pickler.fast, pickler.pickles = values_only, self
        pickler.number = (self.numbers | also if also else self.numbers).get
        try:
            pickler.dump(thing)
        except Exception as error:
            raise UnpicklableError(f"{type(error).__name__}: {error}") from error
        return file.getvalue()

    def loads(self, data: bytes) -> Any:
        """The object that was pickled."""
        return _loads(data, self._objects)


def readable(data: bytes) -> Any:
    """What was pickled, to be shown: `...` stands for references."""
    return _loads(data, defaultdict(lambda: ..., enumerate((_array, _scalar, _held))))


def _loads(data: bytes, objects: Any) -> Any:
    unpickler = _Unpickler(io.BytesIO(data))
    unpickler.objects = objects
    return unpickler.load()


class _Pickler(pickle.Pickler):
    pickles: Pickles
    number: Any

    def persistent_id(self, thing: Any) -> Any:
        if type(thing) is str:
            return intern(thing)
        if type(thing) is frozenset:  # A state may be one, or hold one.
            return (sorted(thing, key=content),)
        return self.number(id(thing))

    def reducer_override(self, thing: Any) -> Any:
        kind = type(thing)
        if kind is np.ndarray and not thing.dtype.hasobject and thing.dtype.names is None:
            return _array, (thing.tobytes(), thing.dtype.str, thing.shape)
        if isinstance(thing, np.generic) and not isinstance(thing, np.void | np.object_):
            return _scalar, (thing.tobytes(), thing.dtype.str)
        if isinstance(thing, GENERATORS):
            if kind not in self.pickles.held:
                self.pickles.held[kind] = copy.deepcopy(thing)
            return _held, (kind,)
        nameless = isinstance(thing, FunctionType | type | ModuleType) and not _importable(thing)
        if nameless or kind is object:
            self.pickles.held[id(thing)] = thing
            return _held, (id(thing),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    objects: Any

    def persistent_load(self, number: Any) -> Any:
        if type(number) is tuple:
            return frozenset(*number)
        return number if type(number) is str else self.objects[number]


def _array(data: bytes, dtype: str, shape: tuple[int, ...]) -> Any:
    return np.ndarray(shape, dtype, bytearray(data))


def _scalar(data: bytes, dtype: str) -> Any:
    return np.ndarray((), dtype, data)[()]


def _held(key: Any) -> Any:
    return ...  # Its number stands for what is held by whoever restores.


def _importable(thing: Any) -> bool:
    """Whether the name of a function or class leads back to it."""
    found: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for name in getattr(thing, "__qualname__", "?").split("."):
        found = getattr(found, name, None)
    return found is thing
