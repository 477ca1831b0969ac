"""Actions, observations and states of the user's: compared by what they hold, whatever they are.

Arrays do not compare to a truth value, and neither they nor dictionaries can be hashed.
"""

from collections.abc import Hashable, Sequence
from hashlib import blake2b
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
    key: Hashable = thing
    return key


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
