"""The actions of an environment: all of a finite space, or those that the user lists."""

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pacplan.models import rddl
from pacplan.models.restoring import Actions

MOST_ACTIONS = 5000


def actions_of(env: Any, given: Any, mask: Callable[[Any], Any] | None = None) -> Actions:
    """The actions to choose from, as the environment takes them.

    Args:
        env: the environment.
        given: the user's: a list, a function of the unwrapped environment, or None.
        mask: function of the unwrapped environment that returns a truth value for each action.

    Raises:
        ValueError: there are infinitely or too many to list.
    """
    if callable(given):
        if mask is not None:
            raise ValueError("actions= is a function already; let it leave out what mask= would")
        return given  # type: ignore[no-any-return]
    space, base = env.action_space, env.unwrapped
    if given is not None:
        listed = tuple(_converted(space, action) for action in given)
        if not listed:
            raise ValueError("actions=[] leaves nothing to choose from")
    elif rddl.recognised(base) and type(space).__name__ == "Dict":
        listed = _of_rddl(base, space)
    else:
        listed = tuple(_listed(space, *_enumerated(space)))
    if mask is not None:
        return Filtered(listed, mask)
    if given is None and rddl.recognised(base) and base.model.preconditions:
        return Filtered(listed, partial(rddl.admissible, actions=listed))
    return listed


class Filtered:
    """Those of some actions that a mask allows.

    Args:
        listed: the actions.
        mask: function of the unwrapped environment that returns a truth value for each.
    """

    def __init__(self, listed: tuple[Any, ...], mask: Callable[[Any], Any]) -> None:
        self.listed, self._mask = listed, mask

    def __call__(self, base: Any) -> list[Any]:
        """Those allowed in the state that an unwrapped environment is in."""
        return [action for action, yes in zip(self.listed, self._mask(base), strict=True) if yes]


def _converted(space: Any, action: Any) -> Any:
    """The user's action, or the array that it stands for in a space of arrays."""
    if not getattr(space, "shape", ()):
        return action.item() if isinstance(action, np.generic) else action
    try:
        array = np.asarray(action, space.dtype)
    except (TypeError, ValueError):
        return action
    return array if space.contains(array) else action


# The number of actions, and a function that makes them one after the other.
_Enumerated = tuple[float, Callable[[], Iterable[Any]]]


def _listed(space: Any, count: float, make: Callable[[], Iterable[Any]]) -> Iterable[Any]:
    if count > MOST_ACTIONS:
        how_many = f"{count:,}" if count < 10**12 else "more than 10^12"
        if count == math.inf:
            how_many = "infinitely many"
        raise ValueError(
            f"the action space {_shortly(space)} has {how_many} actions, and at most {MOST_ACTIONS:,} "
            f"are listed; pass those to choose from: actions=[{_example(space)}, ...], or a function "
            "of the unwrapped environment that lists those of its state"
        )
    return make()


def _shortly(space: Any) -> str:
    text = str(space)
    return text if len(text) <= 200 else text[:197] + "..."


def _example(space: Any) -> str:
    """An action in Python's words, such as the user might list."""
    own = copy.deepcopy(space)  # The user's has a generator, which is left alone.
    own.seed(0)
    return " ".join(repr(own.sample()).split())[:80]


def _of_rddl(base: Any, space: Any) -> tuple[Any, ...]:
    parts = {name: _enumerated(part) for name, part in space.spaces.items()}
    if any(count > MOST_ACTIONS for count, _ in parts.values()):
        return tuple(_listed(space, *_enumerated(space)))
    values = {name: list(make()) for name, (_, make) in parts.items()}
    booleans = base.sampler.grounded_action_ranges
    values = {n: [False, True] if booleans[n] == "bool" else found for n, found in values.items()}
    return tuple(_listed(space, *rddl.combinations(base, values)))


def _enumerated(space: Any) -> _Enumerated:
    """How many elements a space has, and what lists them."""
    kind = type(space).__name__
    if kind == "Discrete":
        first = int(space.start)
        return int(space.n), lambda: range(first, first + int(space.n))
    if kind in ("MultiDiscrete", "MultiBinary"):
        shape, dtype = space.shape, space.dtype
        counts = np.asarray(space.nvec) if kind == "MultiDiscrete" else np.full(shape, 2)
        starts = np.asarray(getattr(space, "start", np.zeros_like(counts))).ravel().tolist()
        ranges = [range(a, a + n) for a, n in zip(starts, counts.ravel().tolist(), strict=True)]
        return math.prod(map(len, ranges)), lambda: (
            np.array(values, dtype).reshape(shape) for values in itertools.product(*ranges)
        )
    if kind == "Dict":
        count, rows = _product(space.spaces.values())
        return count, lambda: (dict(zip(space.spaces, row, strict=True)) for row in rows())
    if kind == "Tuple":
        return _product(space.spaces)
    if kind == "OneOf":
        parts = [_enumerated(part) for part in space.spaces]
        return _combined(sum, parts), lambda: (
            (i, value) for i, (_, make) in enumerate(parts) for value in make()
        )
    return math.inf, list


def _product(spaces: Iterable[Any]) -> _Enumerated:
    parts = [_enumerated(part) for part in spaces]
    return _combined(math.prod, parts), lambda: itertools.product(*(make() for _, make in parts))


def _combined(combine: Callable[[list[float]], float], parts: list[_Enumerated]) -> float:
    """Sum or product of the numbers of elements; infinite if one is, however large the others are."""
    counts = [count for count, _ in parts]
    return math.inf if math.inf in counts else combine(counts)


def mask_of(env: Any) -> Callable[[Any], Any]:
    """A function of the unwrapped environment that gives its mask of actions."""
    base = env.unwrapped
    if callable(getattr(base, "action_masks", None)):
        return lambda env: env.action_masks()
    if callable(getattr(base, "get_available_actions", None)):
        return lambda env: np.isin(range(int(env.action_space.n)), env.get_available_actions())
    if callable(getattr(base, "action_mask", None)) and hasattr(base, "s"):
        return lambda env: env.action_mask(env.s)
    raise ValueError(
        f"{type(base).__name__} has no method action_masks, get_available_actions or "
        "action_mask(state); pass mask=, a function of the unwrapped environment that returns one "
        "truth value for each action"
    )


def most_of(actions: Actions) -> int | None:
    """The largest number of actions in any state; None: not known."""
    if isinstance(actions, Filtered):
        return len(actions.listed)
    return None if callable(actions) else len(actions)


def numbered(actions: Sequence[Any]) -> bool:
    """Whether actions are the numbers 0, 1, ..."""
    return all(type(action) is int and action == i for i, action in enumerate(actions))
