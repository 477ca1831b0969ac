"""Bounds on values that a user knows, handed to the kernels with any model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import call_python
from pacplan.compiled.questions import answers
from pacplan.core import checks
from pacplan.core.notes import add_note, shown
from pacplan.models import handles
from pacplan.models.protocol import BrokenPromiseError, Session

Bounds = tuple[Callable[[Any, int], float], Callable[[Any, int], float]]


class BoundedHandle(NamedTuple):
    """A model's handle, the function to ask for the bounds, and where its answer lies."""

    inner: Any
    ask: int
    answer: NDArray[np.float64]  # lower, upper


class ValueBounds:
    """The user's two functions during one plan. Kernels know it by an address: keep it alive."""

    def __init__(self, bounds: Bounds, session: Session) -> None:
        self._lower, self._upper = bounds
        self._session = session
        self._answer = np.zeros(2)
        self._entry = self._answer_ask
        session.handle = BoundedHandle(session.handle, id(self._entry), self._answer)

    def _answer_ask(self, key: int, h: int, _: int) -> None:
        self._answer[:] = self.ask(key, h)

    def ask(self, key: int, h: int) -> tuple[float, float]:
        """Bounds on the value of a state after h steps; NaN after an error, which is kept."""
        states = self._session.states
        state = key if states is None else states[key]
        try:
            low = checks.real("the lower value bound", self._lower(state, h) + 0.0)
            high = checks.real("the upper value bound", self._upper(state, h) + 0.0)
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


@dataclass(frozen=True)
class Constant:
    """The same bound for every state and number of steps."""

    value: float

    def __call__(self, state: Any, h: int) -> float:
        """The bound."""
        return self.value


def check_bounds(bounds: Any) -> Bounds | None:
    """A pair of functions of (state, h), or None. Numbers become functions."""
    if bounds is None:
        return None
    if isinstance(bounds, tuple) and len(bounds) == 2:
        lower, upper = (
            bound if callable(bound) or not _is_number(bound) else Constant(float(bound))
            for bound in bounds
        )
        if callable(lower) and callable(upper):
            return lower, upper
    raise TypeError(
        "value_bounds must be a pair (lower, upper) of numbers or of functions, each of the state and "
        f"the number of steps taken, got {bounds!r}"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


@answers(handles.value_bounds, BoundedHandle)
def _value_bounds(handle: Any, state: Any, h: Any) -> Any:
    call_python(handle.ask, state, h, 0)
    return handle.answer[0], handle.answer[1]


@answers(handles.action_count, BoundedHandle)
def _action_count(handle: Any, state: Any, h: Any) -> Any:
    return handles.action_count(handle.inner, state, h)


@answers(handles.draw, BoundedHandle)
def _draw(handle: Any, state: Any, action: Any, h: Any, rng: Any) -> Any:
    return handles.draw(handle.inner, state, action, h, rng)


@answers(handles.mean_reward, BoundedHandle)
def _mean_reward(handle: Any, state: Any, action: Any, h: Any) -> Any:
    return handles.mean_reward(handle.inner, state, action, h)


@answers(handles.probability, BoundedHandle)
def _probability(handle: Any, state: Any, action: Any, h: Any, successor: Any, ended: Any) -> Any:
    return handles.probability(handle.inner, state, action, h, successor, ended)


@answers(handles.coordinates, BoundedHandle)
def _coordinates(handle: Any, state: Any, point: Any) -> Any:
    return handles.coordinates(handle.inner, state, point)


@answers(handles.reseed, BoundedHandle)
def _reseed(handle: Any, high: Any, low: Any) -> Any:
    handles.reseed(handle.inner, high, low)
