"""The actions of an environment: all of a finite space, or those that the user lists."""

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pacplan.models import rddl

Actions = tuple[Any, ...] | Callable[[Any], Sequence[Any]]

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
            raise ValueError("pass actions= as a function, or mask=, but not both")
        return given  # type: ignore[no-any-return]
    space, base = env.action_space, env.unwrapped
    if given is not None:
        listed = tuple(_converted(space, action) for action in given)
        if not listed:
            raise ValueError("actions=[] leaves nothing to choose from")
    elif rddl.recognised(base) and type(space).__name__ == "Dict":
        listed = tuple(_of_rddl(base, space))
    else:
        listed = tuple(_all_of(space))
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


def _all_of(space: Any) -> Iterable[Any]:
    """The elements of a space, if they are few enough."""
    _check_few(space, _size(space))
    return _elements(space)


def _check_few(space: Any, count: float) -> None:
    if count > MOST_ACTIONS:
        how_many = f"{count:,}" if count < 10**12 else "more than 10^12"
        how_many = "infinitely many" if count == math.inf else how_many
        own = copy.deepcopy(space)  # The user's has a generator, which is left alone.
        own.seed(0)
        raise ValueError(
            f"the action space {space!s:.200} has {how_many} actions, and at most {MOST_ACTIONS:,} "
            "are listed; pass those to choose from: actions=["
            f"{' '.join(repr(own.sample()).split()):.80}, ...], or a function of the unwrapped "
            "environment that lists those of its state"
        )


def _of_rddl(base: Any, space: Any) -> Iterable[Any]:
    if max(map(_size, space.spaces.values())) > MOST_ACTIONS:
        return _all_of(space)
    values = {name: list(_elements(part)) for name, part in space.spaces.items()}
    kinds = base.sampler.grounded_action_ranges
    values = {n: [False, True] if kinds[n] == "bool" else found for n, found in values.items()}
    count, make = rddl.combinations(base, values)
    _check_few(space, count)
    elements: Iterable[Any] = make()
    return elements


def _ranges(space: Any) -> list[range]:
    """The values of each part of an array of whole numbers."""
    counts = np.asarray(space.nvec) if hasattr(space, "nvec") else np.full(space.shape, 2)
    starts = np.asarray(getattr(space, "start", np.zeros_like(counts))).ravel().tolist()
    return [range(a, a + n) for a, n in zip(starts, counts.ravel().tolist(), strict=True)]


def _parts(space: Any) -> list[Any]:
    return list(space.spaces.values()) if hasattr(space.spaces, "values") else list(space.spaces)


def _size(space: Any) -> float:
    """How many elements a space has."""
    kind = type(space).__name__
    if kind == "Discrete":
        return int(space.n)
    if kind in ("MultiDiscrete", "MultiBinary"):
        return math.prod(map(len, _ranges(space)))
    if kind in ("Dict", "Tuple"):
        sizes = list(map(_size, _parts(space)))
        return math.inf if math.inf in sizes else math.prod(sizes)
    return math.inf


def _elements(space: Any) -> Iterable[Any]:
    """The elements of a finite space."""
    kind = type(space).__name__
    if kind == "Discrete":
        return range(int(space.start), int(space.start) + int(space.n))
    if kind in ("MultiDiscrete", "MultiBinary"):
        rows = itertools.product(*_ranges(space))
        return (np.array(values, space.dtype).reshape(space.shape) for values in rows)
    rows = itertools.product(*map(_elements, _parts(space)))
    if kind == "Tuple":
        return rows
    return (dict(zip(space.spaces, row, strict=True)) for row in rows)


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
