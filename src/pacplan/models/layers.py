"""The layers of an environment: its wrappers, itself, and the random generators that they hold."""

import copy
import gc
from collections.abc import Container, Iterable
from itertools import pairwise
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from pacplan.core.notes import pass_on
from pacplan.models import forms

RECORDER = "ActionRecorder"
# Wrappers that check, record or draw, and change nothing that a planner would see.
TRANSPARENT = frozenset(
    {
        "HumanRendering",
        "OrderEnforcing",
        "PassiveEnvChecker",
        "RecordEpisodeStatistics",
        "RecordVideo",
        "RenderCollection",
        RECORDER,
    }
)
TIME_LIMIT = "TimeLimit"
# What has no parts that could change.
ATOMIC: frozenset[Any] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, type, FunctionType, BuiltinFunctionType}
).union({ModuleType}, set(np.sctypeDict.values()) - {np.void, np.object_})
_OBJECTS_TO_WALK = 200_000


class UncopiedError(ValueError):
    """An environment cannot be copied, or no other like it be made."""


def layers_of(env: Any, *, time_limit: bool) -> list[Any]:
    """The environment's wrappers from the outside in, then itself, without the transparent ones."""
    skipped = TRANSPARENT if time_limit else TRANSPARENT | {TIME_LIMIT}
    chain = all_layers(env)
    return [layer for layer in chain[:-1] if type(layer).__name__ not in skipped] + chain[-1:]


def all_layers(env: Any) -> list[Any]:
    """The environment's wrappers from the outside in, then itself."""
    base = getattr(env, "unwrapped", env)
    chain = [env]
    while chain[-1] is not base:
        chain.append(chain[-1].env)
    return chain


def names_of(layers: list[Any]) -> str:
    """The names of their classes."""
    return "<".join(type(layer).__name__ for layer in layers)


def another(env: Any, *, copied: bool) -> Any:
    """A second environment like this one, in any state.

    Args:
        env: the environment.
        copied: whether a copy will do; else one is made by its registered name if it has one.
    """
    spec = getattr(env, "spec", None)
    if copied or spec is None:
        try:
            return copy.deepcopy(env)
        except Exception as error:
            pass_on(error)
            if spec is None:
                raise UncopiedError(
                    f"{type(env).__name__} cannot be copied ({type(error).__name__}: {error}), and has "
                    "no registered name to make another from; give it a method __deepcopy__ that "
                    "returns a new one, or make it with gymnasium.make"
                ) from error
    import gymnasium

    return gymnasium.make(spec, render_mode=None)


def relinked(layers: list[Any]) -> list[Any]:
    """The layers, each around the next."""
    for outer, inner in pairwise(layers):
        vars(outer)["env"] = inner
    return layers


def generators_in(things: Iterable[Any], passing: Container[int] = ()) -> Iterable[Any]:
    """The random generators that some things refer to, directly or not.

    Objects whose `id` is in `passing` are not looked into.
    """
    found: dict[int, Any] = {}
    seen: set[int] = set()
    ahead = list(things)
    while ahead and len(seen) < _OBJECTS_TO_WALK:
        thing = ahead.pop()
        if id(thing) in seen or type(thing) in ATOMIC or isinstance(thing, type | MethodType):
            continue
        seen.add(id(thing))
        if isinstance(thing, forms.GENERATORS):
            found[id(thing)] = thing
        elif id(thing) not in passing:
            ahead.extend(gc.get_referents(thing))
    return found.values()


def seed(generator: Any, number: int) -> None:
    """Put a generator into the state that a seed leads to."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = type(generator.bit_generator)(number).state
    else:
        generator.seed(number)
