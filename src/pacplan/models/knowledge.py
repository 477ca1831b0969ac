"""User knowledge: bounds on values, a policy and a value function, handed to the kernels with a model.

The guarantee depends on the bounds; the other two guide the search only. Each is a function of a state
and the number h of steps taken, or of the state alone.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from pacplan.core import checks
from pacplan.core.keys import place
from pacplan.core.notes import shown
from pacplan.models import handles
from pacplan.models.protocol import BrokenPromiseError, Session

Function = Callable[[Any, int], Any]
Bounds = tuple[Function, Function]

_NAMES = {handles.ASK_BOUNDS: "value_bounds", handles.ASK_VALUE: "value"}


def attach(
    session: Session,
    bounds: Bounds | None,
    policy: Function | None = None,
    value: Function | None = None,
) -> None:
    """Hand user knowledge to the kernels, for one plan."""
    has = bounds is not None, policy is not None, value is not None
    if any(has):
        session.knowledge = known = UserKnowledge(session, bounds, policy, value)
        knowledge = handles.KnowledgeHandle(*has, id(known.entry), known.answer)
        session.handle = session.handle._replace(knowledge=knowledge)


class UserKnowledge:
    """The functions, during one plan. Kernels know `entry` by its address."""

    def __init__(self, session: Session, bounds: Any, policy: Any, value: Any) -> None:
        self._session, self._bounds, self._policy, self._value = session, bounds, policy, value
        self.answer = np.zeros(2)
        self.entry = self._answer_ask
        # Equal questions have equal answers: proofs need that.
        self._guidance = cache(self._ask)

    def _answer_ask(self, key: int, h: int, what: int) -> None:
        states = self._session.states
        state = key if states is None else states[key]
        try:
            if what == handles.ASK_BOUNDS:
                self.answer[:] = bounds_of(self._bounds, state, h)
            else:
                self.answer[0] = self._guidance(key, state, h, what)
        except BaseException as error:
            where = f"in state {shown(state)} after {h} steps"
            error.add_note(f"raised by {_NAMES.get(what, 'policy')} {where}")
            self._session.error = error
            self.answer[:] = np.nan

    def _ask(self, key: int, state: Any, h: int, what: int) -> float:
        """A value or the index of an action."""
        if what == handles.ASK_VALUE:
            return checks.real("the value", self._value(state, h) + 0.0)
        advised = self._policy(state, h)
        if advised is None:
            return handles.NO_ADVICE
        offered = [self._session.label(key, action) for action in range(what)]
        try:
            return place(advised, offered)
        except ValueError:
            raise ValueError(
                f"policy gave {shown(advised)}, which is not among the actions: "
                f"{', '.join(map(shown, offered)):.200}; for no advice it may give None"
            ) from None


@dataclass(frozen=True)
class Constant:
    """The same bound for every state and number of steps."""

    value: float

    def __call__(self, state: Any, h: int) -> float:
        """The bound."""
        return self.value


def bounds_of(bounds: Bounds, state: Any, h: int) -> tuple[float, float]:
    """Bounds on the value of a state after h steps."""
    lower, upper = bounds
    low = checks.real("the lower value bound", lower(state, h) + 0.0)
    high = checks.real("the upper value bound", upper(state, h) + 0.0)
    if low > high:
        raise BrokenPromiseError(
            f"value_bounds of state {shown(state)} after {h} steps: the lower one, {low}, is above the "
            f"upper one, {high}"
        )
    return low, high


def check_bounds(bounds: Any) -> Bounds | None:
    """A pair of functions of (state, h), or None. Numbers become functions."""
    if bounds is None:
        return None
    if not (isinstance(bounds, tuple) and len(bounds) == 2):
        raise TypeError(
            "value_bounds must be a pair (lower, upper) of numbers or of functions, each of the state "
            f"and the number of steps taken, got {bounds!r}"
        )
    lower, upper = (
        check_guidance("each of value_bounds", bound)
        if callable(bound)
        else Constant(checks.real("each of value_bounds", bound))
        for bound in bounds
    )
    return lower, upper


def check_guidance(name: str, function: Any) -> Any:
    """A function of (state, h), or None. A function of the state alone becomes one."""
    if function is None:
        return None
    if not callable(function):
        raise TypeError(
            f"{name} must be a function of the state, or of the state and the number of steps taken, "
            f"got {function!r}"
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    # One with a default is meant for something else, unless its name says otherwise.
    steps = any(p.default is p.empty or p.name in ("h", "step", "steps") for p in places[1:2])
    if steps or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return function
    return partial(_of_state, function)


def _of_state(function: Callable[[Any], Any], state: Any, h: int) -> Any:
    return function(state)
