"""States of environments; and what a search requires of a user's states: that none is changed."""

from typing import Any

from pacplan.core.notes import shown
from pacplan.core.words import short
from pacplan.models.pickles import content_or_none, readable


class EnvState(bytes):
    """A state of an environment: a pickle of what brings it back."""

    __slots__ = ()

    def __repr__(self) -> str:
        found = readable(self)
        held = found if isinstance(found, dict) else {n: v for part in found for n, v in part.items()}
        words = (f"{name}={short(shown(value), 100)}" for name, value in held.items())
        return f"EnvState({short(', '.join(words), 100)})"


def _by_identity(thing: Any) -> bool:
    """Whether an object, or one inside a tuple, is equal only to itself."""
    kind: Any = type(thing)
    if kind is tuple:
        return any(map(_by_identity, thing))
    return bool(kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__)


def content(state: Any) -> bytes | None:
    """What a state that is equal only to itself holds, to be compared later.

    None for other states, whose hash changes with what they hold; and if that cannot be seen.
    """
    return content_or_none(state) if _by_identity(state) else None


def advice(state: Any) -> str:
    """What to do if states such as this one are the same but are taken for different."""
    if isinstance(state, EnvState):
        return (
            "distinguish fewer states: they are one if all that is saved of the environment is the "
            "same; let a wrapper give what has no bearing on its future the same value after every step"
        )
    if _by_identity(state):
        return (
            f"make equal states compare equal: an object of class {type(state).__name__} is equal to "
            "itself only, so every new object is a new state. Give the class __eq__ and __hash__, "
            "or use tuples"
        )
    return "make equal states compare equal"
