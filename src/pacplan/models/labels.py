"""The actions of a state, as the user has them: their labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pacplan.core import checks
from pacplan.core.keys import all_distinct
from pacplan.models.protocol import BrokenPromiseError


def labels_of(given: Any, asked: str, most: int | None) -> tuple[Any, ...]:
    """The actions of a state from their number or their list, which were given for what is asked."""
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given.item()
    counted = isinstance(given, int | np.integer) and not isinstance(given, bool)
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes)
    if not (counted or listed):
        raise BrokenPromiseError(
            f"{asked} must be a number of actions or a list of them, got {given!r}"
        )
    count, most = int(given) if counted else len(given), most or checks.LARGEST
    if count < 1:
        raise BrokenPromiseError(
            f"{asked} offers no action; a transition to a state without actions must terminate"
        )
    if count > most:
        raise BrokenPromiseError(f"{asked} offers {count} actions, more than max_actions={most}")
    found = tuple(range(count)) if counted else plain(given)
    if listed and not all_distinct(found):
        raise BrokenPromiseError(f"{asked} lists an action twice: {given!r}")
    return found


def plain(listed: Any) -> tuple[Any, ...]:
    """What is listed, numbers of NumPy as Python's."""
    return tuple(one.item() if isinstance(one, np.generic) else one for one in listed)


def numbered(labels: Sequence[Any]) -> bool:
    """Whether actions are the numbers 0, 1, ..."""
    return all(type(label) is int and label == i for i, label in enumerate(labels))
