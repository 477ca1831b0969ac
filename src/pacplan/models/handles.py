"""What a compiled kernel may ask of a model.

A model hands the kernels a *handle*: a NamedTuple of plain data, one class for each kind of model.
The functions below are chosen by the handle's class while a kernel is compiled, so each kind gets a
kernel of its own without passing functions about (which would defeat the compilation cache). With
compilation switched off the same table of implementations is looked up at run time.

    action_count(handle, state, h)                  number of actions; they are 0 .. count - 1
    draw(handle, state, action, h, rng)             (next state, reward, flag), one call to the model
    mean_reward(handle, state, action, h)           its expectation, where the model publishes it
    probability(handle, state, action, h, successor, ended)     likewise
    value_bounds(handle, state, h)                  (lower, upper) bounds that the user knows

States are 64-bit integers here, and h is the number of steps already taken since the root. The flag
is CONTINUES, ENDED (the episode ends with this transition) or ABORTED (the call gave nothing).
"""

from collections.abc import Callable
from math import inf
from typing import Any, TypeVar

from numba.extending import overload

from pacplan._sources import chosen_by

CONTINUES = 0
ENDED = 1
ABORTED = 2

F = TypeVar("F", bound=Callable[..., Any])
_implementations: dict[tuple[str, type], Callable[..., Any]] = {}


def implements(question: Callable[..., Any], handle_class: type) -> Callable[[F], F]:
    """Register the decorated function as the answer of one class of handles."""

    def register(function: F) -> F:
        _implementations[question.__name__, handle_class] = function
        chosen_by(handle_class, function)
        return function

    return register


def _answer(question: str, handle: Any, *args: Any) -> Any:
    return _implementations[question, type(handle)](handle, *args)


def action_count(handle: Any, state: int, h: int) -> int:
    """Number of actions available in `state` after h steps."""
    return int(_answer("action_count", handle, state, h))


def draw(handle: Any, state: int, action: int, h: int, rng: Any) -> tuple[int, float, int]:
    """One call to the model: (next state, reward in the user's units, flag)."""
    successor, reward, flag = _answer("draw", handle, int(state), int(action), int(h), rng)
    return successor, reward, flag


def mean_reward(handle: Any, state: int, action: int, h: int) -> float:
    """Expected reward of a pair, in the user's units; NaN where the model does not publish it."""
    return float(_answer("mean_reward", handle, state, action, h))


def probability(handle: Any, state: int, action: int, h: int, successor: int, ended: bool) -> float:
    """Probability of a successor, or of the end (`ended`); NaN where the model does not publish it."""
    return float(_answer("probability", handle, state, action, h, successor, ended))


def value_bounds(handle: Any, state: int, h: int) -> tuple[float, float]:
    """What the user knows of a state's value; infinite where there is nothing, NaN after an error."""
    if ("value_bounds", type(handle)) not in _implementations:
        return -inf, inf
    low, high = _answer("value_bounds", handle, state, h)
    return low, high


@overload(action_count)  # type: ignore[untyped-decorator]
def _compile_action_count(handle: Any, state: Any, h: Any) -> Any:
    return _implementations["action_count", handle.instance_class]


@overload(draw)  # type: ignore[untyped-decorator]
def _compile_draw(handle: Any, state: Any, action: Any, h: Any, rng: Any) -> Any:
    return _implementations["draw", handle.instance_class]


@overload(mean_reward)  # type: ignore[untyped-decorator]
def _compile_mean_reward(handle: Any, state: Any, action: Any, h: Any) -> Any:
    return _implementations["mean_reward", handle.instance_class]


@overload(probability)  # type: ignore[untyped-decorator]
def _compile_probability(
    handle: Any, state: Any, action: Any, h: Any, successor: Any, ended: Any
) -> Any:
    return _implementations["probability", handle.instance_class]


@overload(value_bounds)  # type: ignore[untyped-decorator]
def _compile_value_bounds(handle: Any, state: Any, h: Any) -> Any:
    return _implementations.get(("value_bounds", handle.instance_class), _no_value_bounds)


def _no_value_bounds(handle: Any, state: Any, h: Any) -> Any:
    return -inf, inf
