"""The actions of an environment: all of a finite space, or those that the user lists."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pacplan.models import rddl

Actions = tuple[Any, ...] | Callable[[Any], Sequence[Any]]

MOST_ACTIONS = 5000


def actions_of(env: Any, given: Any) -> tuple[Actions, int | None]:
    """The actions to choose from, as the environment takes them, and their largest number, if known.

    The user may give a list, or a function of the unwrapped environment; else they are all of a space.
    """
    space, base = env.action_space, env.unwrapped
    if callable(given):
        return given, int(space.n) if type(space).__name__ == "Discrete" else None
    is_rddl = rddl.recognised(env)
    if given is not None:
        listed = tuple(_converted(space, action) for action in given)
        if not listed:
            raise ValueError("actions=[] leaves nothing to choose from")
    else:
        listed = _listed(space, base if is_rddl and type(space).__name__ == "Dict" else None)
        if is_rddl and base.model.preconditions:
            return partial(rddl.admissible, actions=listed), len(listed)
    return listed, len(listed)


def _converted(space: Any, action: Any) -> Any:
    """The user's action, or the array that it stands for in a space of arrays."""
    if not getattr(space, "shape", ()):
        return action.item() if isinstance(action, np.generic) else action
    try:
        array = np.asarray(action, space.dtype)
    except (TypeError, ValueError):
        return action
    return array if space.contains(array) else action


def _listed(space: Any, base: Any) -> tuple[Any, ...]:
    """The elements of a space, if they are few enough; those that RDDL admits if `base` is given."""
    try:
        if base is None:
            return _some(_elements(space))
        values = {name: list(_some(_elements(part))) for name, part in space.spaces.items()}
        return _some(rddl.combinations(base, values))
    except OverflowError as error:
        raise ValueError(
            f"the action space {space!s:.200} has {error} actions, and at most {MOST_ACTIONS:,} are "
            "listed; pass those to choose from: actions=[...], or a function of the unwrapped "
            "environment that lists those of its state"
        ) from None


def _some(elements: Iterable[Any]) -> tuple[Any, ...]:
    """The elements, if they are few enough."""
    found = tuple(itertools.islice(elements, MOST_ACTIONS + 1))
    if len(found) > MOST_ACTIONS:
        raise OverflowError(f"more than {MOST_ACTIONS:,}")
    return found


def _elements(space: Any) -> Iterable[Any]:
    """The elements of a space; raises OverflowError if they are not finitely many."""
    kind = type(space).__name__
    if kind == "Discrete":
        return range(int(space.start), int(space.start) + int(space.n))
    if kind in ("MultiDiscrete", "MultiBinary"):
        counts = np.asarray(space.nvec) if kind == "MultiDiscrete" else np.full(space.shape, 2)
        starts = np.asarray(getattr(space, "start", np.zeros_like(counts))).ravel().tolist()
        ranges = [range(a, a + n) for a, n in zip(starts, counts.ravel().tolist(), strict=True)]
        return (np.array(v, space.dtype).reshape(space.shape) for v in itertools.product(*ranges))
    if kind == "Tuple":
        return itertools.product(*(_some(_elements(part)) for part in space.spaces))
    if kind == "Dict":
        rows = itertools.product(*(_some(_elements(part)) for part in space.spaces.values()))
        return (dict(zip(space.spaces, row, strict=True)) for row in rows)
    raise OverflowError("infinitely many")
