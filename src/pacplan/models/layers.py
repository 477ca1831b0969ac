"""The layers of an environment: its wrappers, itself, and the random generators that they hold."""

import gc
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from pacplan.models.pickles import GENERATORS

TIME_LIMIT = "TimeLimit"
# Wrappers that check, record, draw or count steps, and change nothing that a planner would see.
TRANSPARENT = frozenset(
    {
        "HumanRendering",
        "OrderEnforcing",
        "PassiveEnvChecker",
        "RecordEpisodeStatistics",
        "RecordVideo",
        "RenderCollection",
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


def names_of(layers: list[Any]) -> str:
    """The names of their classes."""
    return "<".join(type(layer).__name__ for layer in layers)


def attributes_of(layer: Any) -> dict[str, Any]:
    """The attributes of a layer, without the next layer, its last seed, and what it draws on."""
    found = {}
    for name, value in vars(layer).items():
        package = type(value).__module__.partition(".")[0]
        drawn = name in _RENDERING and package not in ("builtins", "collections", "numpy")
        found[name] = None if drawn or package == "pygame" or name == "render_mode" else value
    found.pop("env", None)
    found.pop("_np_random_seed", None)
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
