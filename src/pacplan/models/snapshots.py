"""Environments brought back to an earlier state, again and again, by copying as little as possible.

A `Workbench` holds a detached copy of an environment with its wrappers. A snapshot of it is what
differs from a *template*: the attributes that stay the same from reset to reset and from step to step
are held once and shared, the others belong to the snapshot. Invariants:

* The user's environment is read, never stepped and never written to.
* What a snapshot holds is never stepped either: to restore is to put duplicates on the bench. So what
  a step leaves on the bench can be handed over to the next snapshot without another copy.
* Random generators are no part of a snapshot. All snapshots share the bench's own, whose stream only
  ever goes on, so draws from one snapshot differ.
"""

import copy
import gc
import io
import pickle
import random
import threading
from collections.abc import Callable, Container, Hashable, Iterable
from hashlib import blake2b
from itertools import islice, pairwise
from operator import is_
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

# Wrappers that check, record or draw, and change nothing that a planner would see.
TRANSPARENT = frozenset(
    {
        "HumanRendering",
        "OrderEnforcing",
        "PassiveEnvChecker",
        "RecordEpisodeStatistics",
        "RecordVideo",
        "RenderCollection",
    }
)
TIME_LIMIT = "TimeLimit"
# An environment's own way to save and restore: pairs of methods, the second taking what the first gave.
_OWN_METHODS = (
    ("clone_state", "restore_state"),
    ("get_state", "set_state"),
    ("save_state", "load_state"),
)
# Attributes that hold windows and the like: left out of copies.
_RENDERING = frozenset(
    {"viewer", "screen", "window", "window_surface", "surf", "clock", "renderer", "mujoco_renderer"}
)
_ATOMIC: frozenset[Any] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, type, FunctionType, BuiltinFunctionType}
).union({ModuleType}, set(np.sctypeDict.values()) - {np.void, np.object_})
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_MISSING = object()
# Observations longer than this are told apart by a digest.
_LONG = 1024
_OBJECTS_TO_WALK = 200_000


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


def observation_key(observation: Any) -> Hashable:
    """A hashable key of an observation, the same for equal observations, in any process."""
    if isinstance(observation, np.ndarray):
        content = observation.tobytes() if not observation.dtype.hasobject else repr(observation)
        if len(content) > _LONG and isinstance(content, bytes):
            content = blake2b(content, digest_size=20).digest()
        return observation.dtype.char, observation.shape, content
    if isinstance(observation, dict):
        return tuple((name, observation_key(observation[name])) for name in sorted(observation))
    if isinstance(observation, tuple | list):
        return tuple(map(observation_key, observation))
    if isinstance(observation, np.generic):
        return cast(Hashable, observation.item())
    try:
        hash(observation)
    except TypeError:
        raise TypeError(
            f"cannot tell observations such as {observation!r} ({type(observation).__name__}) apart; "
            "pass key=, a function that makes something hashable of an observation"
        ) from None
    return cast(Hashable, observation)


class EnvState:
    """A state of an environment: what tells it from others, and what brings it back.

    States are equal if their keys are, whatever else they hold.

    Attributes:
        key: by default made of the observation.
        saved: what differs from the bench's template, by layer and attribute; or what the
            environment's own method of saving gave.
    """

    __slots__ = ("key", "saved")

    def __init__(self, key: Hashable, saved: list[Any]) -> None:
        self.key = key
        self.saved = saved

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvState) and self.key == other.key

    def __repr__(self) -> str:
        key = repr(self.key)
        return f"EnvState({key if len(key) <= 100 else key[:97] + '...'})"


class Workbench:
    """A detached copy of an environment, for drawing transitions from any state of it.

    Args:
        env: the environment, with its wrappers.
        actions: actions to try while looking for the attributes that change.
        convert: what to make of an action before the environment sees it.
        key: makes something hashable of an observation.
        time_limit: whether `TimeLimit` wrappers are a part of the problem.
        save: function of the unwrapped environment that returns what `restore` needs.
        restore: function of the unwrapped environment and of what `save` returned.
        redraw: function of the unwrapped environment and a generator, called before every step.
        changing: names of attributes that are known to change, besides those found.
    """

    def __init__(
        self,
        env: Any,
        *,
        actions: tuple[Hashable, ...],
        convert: Callable[[Any], Any] | None,
        key: Callable[[Any], Hashable],
        time_limit: bool,
        save: Callable[[Any], Any] | None = None,
        restore: Callable[[Any, Any], None] | None = None,
        redraw: Callable[[Any, np.random.Generator], None] | None = None,
        changing: frozenset[str] = frozenset(),
    ) -> None:
        self._time_limit = time_limit
        self._convert = convert
        self._key = key
        self._redraw = redraw
        if save is None or restore is None:
            save, restore = own_methods(getattr(env, "unwrapped", env))
        self._save, self._restore = save, restore
        self.layers = self._detached(env)
        self.top, self.base = self.layers[0], self.layers[-1]
        self._counters = [layer for layer in self.layers if type(layer).__name__ == TIME_LIMIT]
        # With methods of its own, the environment itself is not looked into, only its wrappers are.
        self._copied = self.layers if save is None else self.layers[:-1]
        _ = getattr(self.base, "np_random", None)  # Made on first use, and never replaced here.
        self._generators = list(generators_in(map(vars, self.layers)))
        self._stream: Any = None
        self._lock = threading.RLock()
        found = self._changing(actions)
        self._generators = list(generators_in(map(vars, self.layers)))
        self._templates = [
            {
                name: value
                for name, value in vars(layer).items()
                if (i, name) not in found and name not in changing
            }
            for i, layer in enumerate(self._copied)
        ]
        self._parts = [
            (layer, template, tuple(template.values()))
            for layer, template in zip(self._copied, self._templates, strict=True)
        ]
        self._kept = {id(thing): thing for thing in [*self.layers, *self._generators]}
        for template in self._templates:
            self._kept |= {id(v): v for v in template.values() if type(v) not in _ATOMIC}
        self._constants = self._contents()
        # Where to start from before a reset: the bench must hold nothing that a snapshot owns.
        self._any = self._taken(None, key=object())

    def _detached(self, env: Any) -> list[Any]:
        """A copy of the environment's layers that shares nothing with it."""
        live = layers_of(env, time_limit=self._time_limit)
        if self._save is not None:
            twin = layers_of(_another(env), time_limit=self._time_limit)
            if [type(layer) for layer in twin] != [type(layer) for layer in live]:
                raise ValueError(f"a copy of {_names(live)} came out as {_names(twin)}")
            return self._relinked(twin)
        # Made without a constructor: many environments define what a copy is as starting afresh.
        fresh = [object.__new__(type(layer)) for layer in live]
        attributes = [_without_windows(vars(layer)) for layer in live]
        memo = self._counterparts(env, fresh)
        try:
            copied = copy.deepcopy(attributes, memo)
        except Exception as error:
            raise ValueError(_uncopied(live, attributes, memo, error)) from error
        for layer, content in zip(fresh, copied, strict=True):
            vars(layer).update(content)
        if vars(fresh[-1]).get("render_mode") is not None:
            fresh[-1].render_mode = None
        return self._relinked(fresh)

    @staticmethod
    def _relinked(layers: list[Any]) -> list[Any]:
        for outer, inner in pairwise(layers):
            vars(outer)["env"] = inner
        return layers

    def _counterparts(self, env: Any, layers: list[Any]) -> dict[int, Any]:
        """For every layer of `env`, also the skipped ones, the one of `layers` in its place."""
        own = dict(zip(map(id, layers_of(env, time_limit=self._time_limit)), layers, strict=True))
        memo = {}
        following = layers[-1]
        for layer in reversed(all_layers(env)):
            # A skipped wrapper stands for what it wraps.
            following = memo[id(layer)] = own.get(id(layer), following)
        return memo

    def _changing(self, actions: tuple[Hashable, ...]) -> set[tuple[int, str]]:
        """The attributes that change from reset to reset or from step to step, by playing a little."""
        rng = np.random.default_rng(0)
        first: dict[tuple[int, str], Any] = {}
        changing: set[tuple[int, str]] = set()
        for _ in range(3):
            self.seed(rng)
            self.top.reset()
            ended = False
            for step in range(9):
                if step:
                    action = self._converted(actions[int(rng.integers(len(actions)))])
                    _, _, terminated, truncated, _ = self.top.step(action)
                    ended = terminated or truncated
                if ended or step in (0, 1, 3, 8):
                    seen = self._contents(without=changing)
                    first = first or seen
                    changing |= {at for at in seen if seen[at] is None or first.get(at) != seen[at]}
                if ended:
                    break
        return changing

    def _contents(self, without: Iterable[tuple[int, str]] = ()) -> dict[tuple[int, str], Any]:
        """What the attributes hold, in a form that can be kept and compared; None: cannot be told."""
        skipped = {id(layer): i for i, layer in enumerate(self.layers)}
        left_out = set(without)
        return {
            (i, name): (value,) if type(value) in _ATOMIC else _fingerprint(value, skipped)
            for i, layer in enumerate(self._copied)
            for name, value in vars(layer).items()
            if not isinstance(value, _GENERATORS) and name != "env" and (i, name) not in left_out
        }

    def changed_constants(self) -> list[str]:
        """Attributes that were taken for constant and have changed after all."""
        with self._lock:
            for layer, template, _ in self._parts:
                layer.__dict__ = template.copy()
            now = self._contents()
        return [
            name
            for (i, name), content in self._constants.items()
            if content is not None and (i, name) in now and now[i, name] != content
        ]

    def _converted(self, action: Any) -> Any:
        return action if self._convert is None else self._convert(action)

    def seed(self, rng: np.random.Generator) -> None:
        """Give every generator of the bench a state of its own, drawn from `rng`."""
        generators = {id(generator): generator for generator in self._generators}
        current = getattr(self.base, "np_random", None)  # Restoring may have put another in place.
        if isinstance(current, _GENERATORS):
            generators[id(current)] = current
        for generator in generators.values():
            seed = int(rng.integers(2**32))
            if isinstance(generator, np.random.Generator):
                generator.bit_generator.state = type(generator.bit_generator)(seed).state
            else:
                generator.seed(seed)

    def draw(
        self, state: EnvState, action: Any, rng: np.random.Generator
    ) -> tuple[EnvState | None, Any, bool]:
        """One transition: (next state, reward, whether the episode ended)."""
        with self._lock:
            self.put(state)
            if rng is not self._stream or self._save is not None:
                self.seed(rng)
                self._stream = rng
            if self._redraw is not None:
                self._redraw(self.base, rng)
            if self._convert is not None:
                action = self._convert(action)
            observation, reward, terminated, truncated, _ = self.top.step(action)
            if terminated or truncated:
                return None, reward, True
            return self._taken(observation), reward, False

    def reset(self, rng: np.random.Generator) -> EnvState:
        """A first state, drawn by the environment's own `reset`."""
        with self._lock:
            self.put(self._any)
            self.seed(rng)
            self._stream = rng
            observation, _ = self.top.reset()
            return self._taken(observation)

    def put(self, state: EnvState) -> None:
        """Bring the environment on the bench back to a state."""
        saved = state.saved
        if self._save is not None:
            assert self._restore is not None
            self._restore(self.base, saved[-1])
            saved = saved[:-1]
        if not saved:
            return
        for (layer, template, _), content in zip(self._parts, self._duplicate(saved), strict=True):
            # The whole dictionary, so that attributes which a step has added are gone again.
            layer.__dict__ = template | content

    def ask(self, state: EnvState, question: Callable[[Any], Any]) -> Any:
        """The answer of the unwrapped environment in a state."""
        with self._lock:
            self.put(state)
            return question(self.base)

    def _taken(self, observation: Any, key: Hashable = None) -> EnvState:
        """The state on the bench, which gives up what it holds."""
        saved: list[Any] = []
        for layer, template, fixed in self._parts:
            now = layer.__dict__
            # The template's attributes come first, in order, and are hardly ever replaced.
            if all(map(is_, fixed, now.values())):
                saved.append(dict(islice(now.items(), len(fixed), None)))
            else:
                saved.append({n: v for n, v in now.items() if template.get(n, _MISSING) is not v})
        if self._save is not None:
            saved.append(self._save(self.base))
        if key is not None:
            return EnvState(key, saved)
        key = self._key(observation)
        if self._counters:
            key = (key, *(layer._elapsed_steps for layer in self._counters))
        return EnvState(key, saved)

    def _duplicate(self, saved: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A copy of what a snapshot holds, for the bench to work on."""
        result = []
        copied = set()
        for content in saved:
            duplicate = content.copy()
            for name, value in content.items():
                kind = type(value)
                if kind in _ATOMIC:
                    continue
                if kind is np.ndarray:
                    flat = not value.dtype.hasobject
                else:
                    flat = kind in (tuple, list) and _ATOMIC.issuperset(map(type, value))
                # Things that contain others, or appear twice, are copied all at once.
                if not flat or id(value) in copied:
                    return copy.deepcopy(saved, self._kept.copy())
                if kind is not tuple:
                    copied.add(id(value))
                    duplicate[name] = value.copy()
            result.append(duplicate)
        return result

    def state_of(self, env: Any, observation: Any = None) -> EnvState:
        """The state that an environment of the same kind is in now."""
        live = layers_of(env, time_limit=self._time_limit)
        if [type(layer) for layer in live] != [type(layer) for layer in self.layers]:
            raise ValueError(
                f"the model is one of {_names(self.layers)}, but this environment is {_names(live)}"
            )
        if any(vars(layer).get("_has_reset") is False for layer in all_layers(env)):
            raise ValueError("the environment is in no state yet; call env.reset() before planning")
        memo = self._counterparts(env, self.layers)
        attributes: list[Any] = []
        for layer, template in zip(live, self._templates, strict=False):
            own = vars(layer)
            shared = {n for n, v in template.items() if n in own and type(own[n]) not in _ATOMIC}
            memo |= {id(own[n]): template[n] for n in shared}
            attributes.append(
                {
                    name: value
                    for name, value in _without_windows(own).items()
                    if name not in shared
                    and name != "render_mode"
                    and not _same_atom(value, template.get(name, _MISSING))
                }
            )
        for generator in generators_in(attributes, passing=memo):
            memo[id(generator)] = self._generator_like(generator)
        saved = copy.deepcopy(attributes, memo)
        if self._save is not None:
            saved.append(self._save(live[-1]))
        if observation is None:
            return EnvState(object(), saved)
        key = self._key(observation)
        if self._counters:
            elapsed = (layer._elapsed_steps for layer in live if type(layer).__name__ == TIME_LIMIT)
            key = (key, *elapsed)
        return EnvState(key, saved)

    def _generator_like(self, generator: Any) -> Any:
        """The bench's own generator of the same type; a new one if there is none."""
        for own in [getattr(self.base, "_np_random", None), *self._generators]:
            if type(own) is type(generator):
                return own
        own = copy.deepcopy(generator)
        self._generators.append(own)
        self._kept[id(own)] = own
        self._stream = None
        return own


def _another(env: Any) -> Any:
    """A second environment like this one, in whatever state."""
    try:
        return copy.deepcopy(env)
    except Exception as error:
        spec = getattr(env, "spec", None)
        if spec is None:
            raise ValueError(
                f"{type(env).__name__} cannot be copied ({type(error).__name__}: {error}), and has no "
                "registered name to make another from; give it a method __deepcopy__ that returns a "
                "new one, or make it with gymnasium.make"
            ) from error
    import gymnasium

    return gymnasium.make(spec, render_mode=None)


def own_methods(
    base: Any,
) -> tuple[Callable[[Any], Any] | None, Callable[[Any, Any], None] | None]:
    """The environment's own methods to save and restore it, as functions of it, or None twice."""
    for save, restore in _OWN_METHODS:
        if _takes(getattr(base, save, None), 0) and _takes(getattr(base, restore, None), 1):
            return (
                lambda env, name=save: getattr(env, name)(),
                lambda env, state, name=restore: getattr(env, name)(state),
            )
    return None, None


def _takes(method: Any, arguments: int) -> bool:
    """Whether it can be called with so many arguments (MuJoCo's set_state takes two, for one)."""
    from inspect import signature

    if not callable(method):
        return False
    try:
        signature(method).bind(*range(arguments))
    except (TypeError, ValueError):
        return False
    return True


class _Fingerprinter(pickle.Pickler):
    """Pickles without the environment itself and without random generators."""

    def __init__(self, file: io.BytesIO, skipped: dict[int, int]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._skipped = skipped

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _GENERATORS):
            return "generator"
        return self._skipped.get(id(obj))


def _fingerprint(value: Any, skipped: dict[int, int]) -> bytes | None:
    file = io.BytesIO()
    try:
        _Fingerprinter(file, skipped).dump(value)
    except Exception:
        return None
    return blake2b(file.getvalue(), digest_size=16).digest()


def generators_in(things: Iterable[Any], passing: Container[int] = ()) -> Iterable[Any]:
    """The random generators that some things refer to, directly or not.

    Objects whose `id` is in `passing` are not looked into.
    """
    found: dict[int, Any] = {}
    seen: set[int] = set()
    ahead = list(things)
    while ahead and len(seen) < _OBJECTS_TO_WALK:
        thing = ahead.pop()
        if id(thing) in seen or type(thing) in _ATOMIC or isinstance(thing, type | MethodType):
            continue
        seen.add(id(thing))
        if isinstance(thing, _GENERATORS):
            found[id(thing)] = thing
        elif id(thing) not in passing:
            ahead.extend(gc.get_referents(thing))
    return found.values()


def _without_windows(attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if _is_window(name, value) else value
        for name, value in attributes.items()
        if name != "env"
    }


def _is_window(name: str, value: Any) -> bool:
    package = type(value).__module__.partition(".")[0]
    return package == "pygame" or (
        name in _RENDERING and package not in ("builtins", "collections", "numpy")
    )


def _same_atom(one: Any, other: Any) -> bool:
    return one is other or (type(one) in _ATOMIC and type(one) is type(other) and bool(one == other))


def _names(layers: list[Any]) -> str:
    return "<".join(type(layer).__name__ for layer in layers)


def _uncopied(
    layers: list[Any], attributes: list[dict[str, Any]], memo: dict[int, Any], error: Exception
) -> str:
    """Which attribute resists copying, and what to do about it."""
    where = "it"
    for layer, content in zip(layers, attributes, strict=True):
        for name, value in content.items():
            try:
                copy.deepcopy(value, dict(memo))
            except Exception:
                where = f"{type(layer).__name__}.{name}, a {type(value).__name__},"
                break
    return (
        f"{type(layers[-1]).__name__} cannot be copied: {where} raises {type(error).__name__}: "
        f"{error}. "
        "Pass save= and restore=, functions of the unwrapped environment: save(env) returns its state, "
        "restore(env, state) brings it back"
    )
