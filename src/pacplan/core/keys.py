"""Actions, observations and states of the user's: compared by what they hold, whatever they are.

Arrays do not compare to a truth value, and neither they nor dictionaries can be hashed. And 0.0 equals
-0.0, from which something else may follow: they are told apart.
"""

from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from math import copysign
from operator import is_
from typing import Any

import numpy as np

# Arrays of more bytes than this are told apart by a digest.
_LONG = 1024


def key_of(thing: Any) -> Hashable:
    """A hashable key of what arrays, dictionaries, tuples and lists hold, the same in any process.

    Lists count as tuples, and numbers of NumPy as numbers. Other things are their own keys.

    Raises:
        TypeError: something in it can be neither looked into nor hashed.
    """
    if isinstance(thing, np.ndarray):
        content = thing.tobytes() if not thing.dtype.hasobject else repr(thing)
        if len(content) > _LONG and isinstance(content, bytes):
            content = blake2b(content, digest_size=20).digest()
        return thing.dtype.char, thing.shape, content
    if isinstance(thing, dict):
        return tuple((name, key_of(thing[name])) for name in sorted(thing))
    if isinstance(thing, tuple | list):
        return tuple(map(key_of, thing))
    if isinstance(thing, np.generic):
        thing = thing.item()
    hash(thing)
    return told_apart(thing)


_WITHOUT_ZEROS = int, str, bytes, type(None)


def signs(thing: Any) -> tuple[float, ...]:
    """The signs of the zeros among the floating-point numbers in a hashable thing, in their order."""
    if isinstance(thing, tuple):
        found: tuple[float, ...] = ()
        for part in thing:  # Most are numbers, and not zero: every new state comes by here.
            if type(part) is not float or not part:
                found += signs(part)
        return found
    if isinstance(thing, _WITHOUT_ZEROS):
        return ()
    if isinstance(thing, float | np.floating):
        return (copysign(1.0, thing),) if thing == 0.0 else ()
    if isinstance(thing, complex):
        return signs(thing.real) + signs(thing.imag)
    if isinstance(thing, frozenset):
        return tuple(sorted(sign for part in thing for sign in signs(part)))
    if is_dataclass(thing) and not isinstance(thing, type):
        return tuple(sign for field in fields(thing) for sign in signs(getattr(thing, field.name)))
    return ()


def told_apart(thing: Hashable) -> Hashable:
    """The thing, or something that is equal only to those whose zeros have the same signs."""
    found = signs(thing)
    return (float, found, thing) if -1.0 in found else thing


def _key_or_itself(thing: Any) -> Hashable:
    """The key of a thing; of one that has none, what only it is equal to."""
    try:
        return key_of(thing)
    except TypeError:
        return object, id(thing)


def same(one: Any, other: Any) -> bool:
    """Whether two things hold the same. Things that have no key are the same only as themselves."""
    return one is other or _key_or_itself(one) == _key_or_itself(other)


def place(thing: Any, among: Sequence[Any]) -> int:
    """Where a thing stands in a sequence: itself, or else the first that holds the same."""
    for alike in (is_, same):
        for i, other in enumerate(among):
            if alike(thing, other):
                return i
    raise ValueError(f"{thing!r} is not among {among!r}")


def all_distinct(things: Sequence[Any]) -> bool:
    """Whether no two things hold the same."""
    return len(set(map(_key_or_itself, things))) == len(things)
