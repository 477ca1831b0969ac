"""What a search requires of a user's states: that equal ones are recognised, and none is changed."""

from typing import Any

from pacplan.models.copying import EnvState
from pacplan.models.pickles import content_or_none


def by_identity(thing: Any) -> bool:
    """Whether an object, or one inside a tuple, is equal only to itself."""
    kind: Any = type(thing)
    if kind is tuple:
        return any(map(by_identity, thing))
    return bool(kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__)


def content(state: Any) -> bytes | None:
    """What a state that is equal only to itself holds, to be compared later.

    None for other states, whose hash changes with what they hold; and if that cannot be seen.
    """
    return content_or_none(state) if by_identity(state) else None


def advice(state: Any) -> str:
    """What to do if states such as this one are the same but are taken for different."""
    if isinstance(state, EnvState):
        return (
            "distinguish fewer states: they are one if all that is saved of the environment is "
            "the same, or if they have the same past and are replayed; name what has no bearing on "
            "its future in ignore=, or pass key="
        )
    if by_identity(state):
        return (
            f"make equal states compare equal: an object of class {type(state).__name__} is equal to "
            "itself only, so every new object is a new state. Give the class __eq__ and __hash__, "
            "or use tuples"
        )
    return "make equal states compare equal"
