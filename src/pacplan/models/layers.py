"""The layers of an environment: its wrappers, itself, and the random generators that they hold."""

import copy
import gc
from collections.abc import Iterable
from itertools import pairwise
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from pacplan.models.pickles import GENERATORS

RECORDER, TIME_LIMIT = "ActionRecorder", "TimeLimit"
# Wrappers that check, record, draw or count steps, and change nothing that a planner would see.
TRANSPARENT = frozenset(
    {
        "HumanRendering",
        "OrderEnforcing",
        "PassiveEnvChecker",
        "RecordEpisodeStatistics",
        "RecordVideo",
        "RenderCollection",
        RECORDER,
        TIME_LIMIT,
    }
)
# What has no parts that could change.
ATOMIC: frozenset[Any] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, type, FunctionType, BuiltinFunctionType}
).union({ModuleType}, set(np.sctypeDict.values()) - {np.void, np.object_})
_OBJECTS_TO_WALK = 200_000
# Attributes that hold windows and the like: left out of copies.
_RENDERING = frozenset(
    {"viewer", "screen", "window", "window_surface", "surf", "clock", "renderer", "mujoco_renderer"}
)


class UncopiedError(ValueError):
    """An environment cannot be copied, or no other like it be made."""


def all_layers(env: Any) -> list[Any]:
    """The environment's wrappers from the outside in, then itself."""
    base = getattr(env, "unwrapped", env)
    chain = [env]
    while chain[-1] is not base:
        chain.append(chain[-1].env)
    return chain


def layers_of(env: Any) -> list[Any]:
    """All layers but the transparent wrappers."""
    *wrappers, base = all_layers(env)
    return [layer for layer in wrappers if type(layer).__name__ not in TRANSPARENT] + [base]


def check_same_kind(env: Any, other: Any) -> None:
    """Raise unless two environments have the same layers."""
    here, there = layers_of(env), layers_of(other)
    if list(map(type, here)) != list(map(type, there)):
        raise ValueError(
            f"the model is one of {names_of(there)}, but this environment is {names_of(here)}"
        )


def names_of(layers: list[Any]) -> str:
    """The names of their classes."""
    return "<".join(type(layer).__name__ for layer in layers)


def twin_of(env: Any, *, copied: bool) -> list[Any]:
    """The layers of a second environment like this one, in any state.

    It is a copy if that will do, or if the environment has no registered name to make another by.
    """
    spec: Any = getattr(env, "spec", None)
    twin: Any = None
    if copied or spec is None:
        try:
            twin = copy.deepcopy(env)
        except Exception as error:
            if spec is None:
                raise UncopiedError(
                    f"{type(env).__name__} cannot be copied ({type(error).__name__}: {error}), and has "
                    "no registered name to make another from; give it a method __deepcopy__ that "
                    "returns a new one, or make it with gymnasium.make"
                ) from error
    if twin is None:
        import gymnasium

        twin = gymnasium.make(spec, render_mode=None)
        check_same_kind(twin, env)
    return relinked(layers_of(twin))


def relinked(layers: list[Any]) -> list[Any]:
    """The layers, each around the next."""
    for outer, inner in pairwise(layers):
        vars(outer)["env"] = inner
    return layers


def without_windows(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a layer, without the next layer and what it draws on."""
    found = {}
    for name, value in attributes.items():
        package = type(value).__module__.partition(".")[0]
        drawn = name in _RENDERING and package not in ("builtins", "collections", "numpy")
        found[name] = None if drawn or package == "pygame" else value
    found.pop("env", None)
    return found


def generators_in(things: Iterable[Any]) -> list[Any]:
    """The random generators that some things refer to, directly or not."""
    found: list[Any] = []
    seen: set[int] = set()
    ahead = list(things)
    while ahead and len(seen) < _OBJECTS_TO_WALK:
        thing = ahead.pop()
        if id(thing) in seen or type(thing) in ATOMIC or isinstance(thing, type | MethodType):
            continue
        seen.add(id(thing))
        if isinstance(thing, GENERATORS):
            found.append(thing)
        else:
            ahead.extend(gc.get_referents(thing))
    return found


def seed(generator: Any, number: int) -> None:
    """Put a generator into the state that a seed leads to."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = type(generator.bit_generator)(number).state
    else:
        generator.seed(number)
