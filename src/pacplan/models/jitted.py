"""Simulators jitted with Numba: their functions compiled with one signature, and called by address."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaError

from pacplan.compiled.jit import address_of
from pacplan.compiled.streams import streams
from pacplan.models import handles
from pacplan.models.handles import COUNT, STEP, CompiledHandle, Handle
from pacplan.models.protocol import BrokenPromiseError, Session

# How often a function is called again to find out what it raised.
_CALLED_AGAIN = 1000


class JittedSession(Session):
    """A jitted simulator during one plan."""

    def __init__(self, model: Any, seed: np.random.SeedSequence) -> None:
        self._model, self._seed = model, seed
        super().__init__(_handle(model.step, model.offered, model.stationary))

    def agree(self, state: Any, actions: tuple[Any, ...]) -> None:
        """Check that the user's function still says that the state offers as many actions."""
        asked = self._model.offered
        if callable(asked) and (count := int(asked(int(state)))) != len(actions):
            raise BrokenPromiseError(
                f"actions({state}) returned {len(actions)} and then {count}; it must always return the "
                "same number of actions of a state"
            )

    def diagnose(self, key: int, action: int | None, h: int) -> None:
        """Find out what the user's function raised, by calling it again from here."""
        who, what = ("'s actions", "") if action is None else ("", f", action {action}")
        (rng,) = streams(self._seed.spawn(1)[0], 1)
        try:
            if action is None:
                self._model.offered(key)
                return
            for _ in range(_CALLED_AGAIN):
                self._model.step(key, action, rng, *(() if self._model.stationary else (h,)))
            raise RuntimeError(f"the jitted step raised, but not in {_CALLED_AGAIN} calls after that")
        except Exception as error:
            error.add_note(f"raised by the model{who} in state {key}{what}")
            self.error = error


@cache
def _handle(step: Any, actions: int | Callable[[Any], Any], stationary: bool) -> handles.Handle:
    address = address_of(_compiled_step(step, stationary))
    if callable(actions):
        return Handle(compiled=CompiledHandle(address, address_of(_compiled_count(actions))))
    return Handle(compiled=CompiledHandle(address, 0), actions=actions)


@cache
def _compiled_step(step: Any, stationary: bool) -> Any:
    """The user's function with one signature, whatever its own; compiled, with an address."""
    _check_signature(step, stationary)

    # An exception would leak what the kernel holds, so it becomes a flag; see `diagnose`. An adapter
    # between the two signatures would itself leak the generator, so that Numba leaves out one branch.
    @numba.cfunc(STEP)
    def adapted(state, action, rng, h):  # type: ignore[no-untyped-def]
        successor, reward, flag = np.int64(0), 0.0, handles.ABORTED
        try:
            if stationary:
                found, paid, terminated = step(state, action, rng)
            else:
                found, paid, terminated = step(state, action, rng, h)
            # Cast here: an unsigned and a signed state would meet as floating-point numbers.
            successor, reward = np.int64(found), np.float64(paid)
            flag = handles.ENDED if terminated else handles.CONTINUES
        except Exception:
            flag = handles.ABORTED
        return successor, reward, np.int64(flag)

    return adapted


def _check_signature(step: Any, stationary: bool) -> None:
    wanted = STEP.args[:3] if stationary else STEP.args
    promise = (
        f"the jitted step must take (state, action, rng{'' if stationary else ', h'}), integers and a "
        "pacplan.Stream, and return (integer state, reward, truth value)"
    )
    try:
        step.compile(wanted)
        returned = step.overloads[wanted].signature.return_type
    except (NumbaError, TypeError) as error:
        raise TypeError(f"{promise}; Numba says: {_plain_text(error)}") from error
    parts: tuple[Any, ...] = getattr(returned, "types", ())
    allowed = types.Integer, types.Float | types.Integer, types.Boolean | types.Integer
    if len(parts) != 3 or not all(map(isinstance, parts, allowed)):
        raise TypeError(f"{promise}; it returns {returned}")


@cache
def _compiled_count(actions: Callable[[Any], Any]) -> Any:
    """The number of actions as a compiled function of the state; 0 if the user's function raised."""

    def asked(state):  # type: ignore[no-untyped-def]
        count = np.int64(0)
        try:
            count = np.int64(actions(state))
        except Exception:
            count = np.int64(0)
        return count

    try:
        return numba.cfunc(COUNT)(asked)
    except (NumbaError, TypeError) as error:
        raise TypeError(
            f"the jitted function given as actions must take an integer state and return the number "
            f"of its actions; Numba says: {_plain_text(error)}"
        ) from error


def _plain_text(error: Exception) -> str:
    """What Numba says, without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))
