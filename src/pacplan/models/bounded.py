"""Bounds on values that a user knows, handed to the kernels with any model."""

import itertools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import objmode

from pacplan import _checks
from pacplan._notes import add_note, shown
from pacplan.models import handles
from pacplan.models.protocol import BrokenPromiseError, Session

Bounds = tuple[Callable[[Any, int], float], Callable[[Any, int], float]]


class BoundedHandle(NamedTuple):
    """A model's handle, and the number of the bounds that go with it."""

    inner: Any
    slot: int


class ValueBounds:
    """The user's two functions during one plan. Whoever holds it keeps its number alive."""

    def __init__(self, bounds: Bounds, session: Session) -> None:
        self._lower, self._upper = bounds
        self._session = session
        slot = next(_slots)
        _bounds[slot] = self
        session.handle = BoundedHandle(session.handle, slot)

    def ask(self, key: int, h: int) -> tuple[float, float]:
        """Bounds on the value of a state after h steps; NaN, and an error kept, where it has none."""
        states = self._session.states
        state = key if states is None else states[key]
        try:
            low = _checks.real("the lower value bound", self._lower(state, h) + 0.0)
            high = _checks.real("the upper value bound", self._upper(state, h) + 0.0)
            if low > high:
                raise BrokenPromiseError(
                    f"value_bounds of state {shown(state)} after {h} steps: the lower one, {low}, is "
                    f"above the upper one, {high}"
                )
        except BaseException as error:
            add_note(error, f"raised by value_bounds in state {shown(state)} after {h} steps")
            self._session.error = error
            return np.nan, np.nan
        return low, high


_bounds: "weakref.WeakValueDictionary[int, ValueBounds]" = weakref.WeakValueDictionary()
_slots = itertools.count()


def check_bounds(bounds: Any) -> Bounds | None:
    """A pair of functions of (state, h), or None."""
    if bounds is None:
        return None
    if not (isinstance(bounds, tuple) and len(bounds) == 2 and all(map(callable, bounds))):
        raise TypeError(
            "value_bounds must be a pair of functions (lower, upper), each of the state and the number "
            f"of steps taken, got {bounds!r}"
        )
    return bounds


def _ask(slot: int, state: int, h: int) -> tuple[float, float]:
    return _bounds[slot].ask(state, h)


@handles.implements(handles.value_bounds, BoundedHandle)
def _value_bounds(handle: Any, state: Any, h: Any) -> Any:
    slot = handle.slot
    with objmode(low="float64", high="float64"):
        low, high = _ask(slot, state, h)
    return low, high


@handles.implements(handles.action_count, BoundedHandle)
def _action_count(handle: Any, state: Any, h: Any) -> Any:
    return handles.action_count(handle.inner, state, h)


@handles.implements(handles.draw, BoundedHandle)
def _draw(handle: Any, state: Any, action: Any, h: Any, rng: Any) -> Any:
    return handles.draw(handle.inner, state, action, h, rng)


@handles.implements(handles.mean_reward, BoundedHandle)
def _mean_reward(handle: Any, state: Any, action: Any, h: Any) -> Any:
    return handles.mean_reward(handle.inner, state, action, h)


@handles.implements(handles.probability, BoundedHandle)
def _probability(handle: Any, state: Any, action: Any, h: Any, successor: Any, ended: Any) -> Any:
    return handles.probability(handle.inner, state, action, h, successor, ended)
