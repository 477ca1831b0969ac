"""What a search relies on in a user's states: that equal ones are recognised, and none is changed."""

from typing import Any

from pacplan.models import forms
from pacplan.models.snapshots import EnvState

# An object with more parts than this is not watched.
_MOST_PARTS = 1000


def by_identity(thing: Any) -> bool:
    """Whether an object, or one in a tuple of them, is equal to itself only."""
    kind: Any = type(thing)
    if kind is tuple:
        return any(map(by_identity, thing))
    return bool(kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__)


def content(state: Any) -> bytes | None:
    """What a state holds that is equal to itself only, to be seen again later.

    None for other states, whose hash changes with what they hold; and where it cannot be told.
    """
    if not by_identity(state):
        return None
    try:
        return forms.form(state, most=_MOST_PARTS)
    except forms.UnidentifiedError:
        return None


def advice(state: Any) -> str:
    """What to do if states such as this one are taken for different and are the same."""
    if isinstance(state, EnvState):
        return (
            "have states told apart by less: they are one if all that is saved of the environment is "
            "the same; name what has no bearing on its future in ignore=, or pass key="
        )
    if by_identity(state):
        return (
            f"make equal states compare equal: an object of class {type(state).__name__} is equal to "
            "itself only, so that every one made is a new state. Give the class __eq__ and __hash__, "
            "or use tuples"
        )
    return "make equal states compare equal"
