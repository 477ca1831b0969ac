"""Environments brought back to an earlier state, again and again, by copying as little as possible.

`Snapshots` hold a detached copy of an environment with its wrappers. A snapshot of it is what
differs from a *template*: the attributes that stay the same from reset to reset and from step to step
are held once and shared, the others belong to the snapshot. Invariants:

* The user's environment is read, never stepped and never written to.
* What a snapshot holds is never stepped either: restoring puts duplicates on the bench. So what a step
  leaves on the bench can be handed over to the next snapshot without another copy.
* Random generators are not part of a snapshot. All snapshots share the bench's own, whose stream never
  goes back, so draws from one snapshot differ.
* Snapshots are the same state if all that they hold is the same (`pacplan.models.forms`), or if the
  user's key says so.
"""

import copy
from collections.abc import Callable, Hashable, Iterable
from hashlib import blake2b
from itertools import islice
from marshal import dumps
from operator import is_
from typing import Any, TypeVar

import numpy as np

from pacplan.core.notes import pass_on
from pacplan.models import forms, rddl
from pacplan.models.bench import Actions, Bench, EnvState, chosen
from pacplan.models.layers import (
    ATOMIC,
    UncopiedError,
    all_layers,
    another,
    generators_in,
    layers_of,
    names_of,
    relinked,
    seed,
)

# An environment's own way to save and restore: pairs of methods, the second taking the first's result.
_OWN_METHODS = (
    ("clone_state", "restore_state"),
    ("get_state", "set_state"),
    ("save_state", "load_state"),
)
# Attributes that hold windows and the like: left out of copies.
_RENDERING = frozenset(
    {"viewer", "screen", "window", "window_surface", "surf", "clock", "renderer", "mujoco_renderer"}
)
_MISSING = object()
# Under this name, which no attribute has, a snapshot lists the template's attributes that it lacks.
_LACKING = ""


class Snapshots(Bench):
    """A detached copy of an environment, of which what changes is saved and put back.

    Args:
        env: the environment, with its wrappers.
        actions: as for `Bench`.
        key: as for `Bench`.
        redraw: as for `Bench`.
        ignore: names of attributes that do not distinguish states.
        time_limit: whether `TimeLimit` wrappers are a part of the problem.
        save: function of the unwrapped environment that returns what `restore` needs.
        restore: function of the unwrapped environment and of what `save` returned.
        changing: names of attributes that are known to change, besides those found.
    """

    if_too_many = "name in ignore= what the future does not depend on"

    def __init__(
        self,
        env: Any,
        *,
        actions: Actions,
        key: Callable[[Any], Hashable] | None,
        time_limit: bool,
        ignore: frozenset[str] = frozenset(),
        save: Callable[[Any], Any] | None = None,
        restore: Callable[[Any, Any], None] | None = None,
        redraw: Callable[[Any, np.random.Generator], None] | None = None,
        changing: frozenset[str] = frozenset(),
    ) -> None:
        self._time_limit = time_limit
        self._ignore = ignore
        if save is None or restore is None:
            save, restore = own_methods(getattr(env, "unwrapped", env))
        self._save, self._restore = save, restore
        # Unless it is known that they are not, generators may be a part of what is saved.
        self._saves_generators = save is not None and save is not rddl.save
        super().__init__(self._detached(env), actions=actions, key=key, redraw=redraw)
        # If the environment has its own methods, only its wrappers are looked into.
        self._copied = self.layers if save is None else self.layers[:-1]
        self._numbers = {id(layer): i for i, layer in enumerate(self.layers)}
        self._stream: Any = None
        found = self._changing()
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
            self._kept |= {id(v): v for v in template.values() if type(v) not in ATOMIC}
        # What snapshots refer to but do not own.
        self._known = {
            address: number
            for number, (address, thing) in enumerate(self._kept.items())
            if forms.mutable(thing)
        }
        self._constants = self._contents()
        self._glances = self._glanced()
        self._classes = self._class_contents()
        self._quiet = np.random.default_rng(0), np.random.default_rng(0).bit_generator.state
        # Where to start from before a reset: the bench must hold nothing that a snapshot owns.
        self._any = EnvState(object(), self._saved())

    def _detached(self, env: Any) -> list[Any]:
        """A copy of the environment's layers that shares nothing with it."""
        live = layers_of(env, time_limit=self._time_limit)
        if self._save is not None:
            twin = layers_of(another(env, copied=True), time_limit=self._time_limit)
            if [type(layer) for layer in twin] != [type(layer) for layer in live]:
                raise ValueError(f"a copy of {names_of(live)} turned out to be {names_of(twin)}")
            return relinked(twin)
        # Made without a constructor: many environments define a copy as a fresh start.
        fresh = [object.__new__(type(layer)) for layer in live]
        attributes = [_without_windows(vars(layer)) for layer in live]
        memo = self._counterparts(env, fresh)
        try:
            copied = copy.deepcopy(attributes, memo)
        except Exception as error:
            pass_on(error)
            raise UncopiedError(_uncopied(live, attributes, memo, error)) from error
        for layer, content in zip(fresh, copied, strict=True):
            vars(layer).update(content)
        if vars(fresh[-1]).get("render_mode") is not None:
            fresh[-1].render_mode = None
        return relinked(fresh)

    def _counterparts(self, env: Any, layers: list[Any]) -> dict[int, Any]:
        """For every layer of `env`, including skipped ones, the layer of `layers` in its place."""
        own = dict(zip(map(id, layers_of(env, time_limit=self._time_limit)), layers, strict=True))
        memo = {}
        following = layers[-1]
        for layer in reversed(all_layers(env)):
            # A skipped wrapper stands for what it wraps.
            following = memo[id(layer)] = own.get(id(layer), following)
        return memo

    def _changing(self) -> set[tuple[int, str]]:
        """The attributes that change from reset to reset or from step to step, by playing a little."""
        rng = np.random.default_rng(0)
        first: _Forms[int] = {}
        changing: set[tuple[int, str]] = set()
        for _ in range(3):
            self.seed(rng)
            self.top.reset()
            ended = False
            for step in range(9):
                if step:
                    _, _, ended = self._step(chosen(self.offered(), rng.random()))
                if ended or step in (0, 1, 3, 8):
                    seen = self._contents(without=changing)
                    first = first or seen
                    changing |= {at for at in seen if seen[at] is None or first.get(at) != seen[at]}
                if ended:
                    break
        return changing

    def _contents(self, without: Iterable[tuple[int, str]] = ()) -> "_Forms[int]":
        """What the attributes hold, in a form that can be kept and compared; None: unknown."""
        left_out = set(without)
        return {
            (i, name): _form_or_none(value, self._numbers)
            for i, layer in enumerate(self._copied)
            for name, value in vars(layer).items()
            if not isinstance(value, forms.GENERATORS) and name != "env" and (i, name) not in left_out
        }

    def _class_contents(self) -> "_Forms[type]":
        """The same for the classes of the layers, which no snapshot can bring back."""
        return {
            (kind, name): _form_or_none(value, self._numbers)
            for kind in {kind: None for layer in self._copied for kind in type(layer).__mro__}
            for name, value in vars(kind).items()
            if not (name.startswith("__") or callable(value) or hasattr(value, "__get__"))
        }

    def changed_constants(self) -> list[str]:
        """Attributes that were taken for constant and have changed after all."""
        with self._lock:
            for layer, template, _ in self._parts:
                layer.__dict__ = template.copy()
            now = self._glanced()
        return [name for (i, name), seen in self._glances.items() if now[i, name] != seen]

    def _glanced(self) -> "_Forms[int]":
        """A quick look at what the constants hold, to see whether they change in place."""
        return {
            (i, name): _glance(template[name], self._numbers)
            for i, template in enumerate(self._templates)
            for name in template
            if self._constants.get((i, name)) is not None
        }

    def changed_classes(self) -> list[str]:
        """Attributes of classes that have changed, out of the reach of snapshots."""
        now = self._class_contents()
        return [
            f"{kind.__name__}.{name}"
            for (kind, name), content in self._classes.items()
            if content is not None and now.get((kind, name)) != content
        ]

    def forget_stream(self) -> None:
        """Seed the generators anew at the next draw."""
        self._stream = None

    def _stepped(self, action: Any, rng: np.random.Generator) -> tuple[Any, Any, bool]:
        """One step of what is on the bench: (observation, reward, whether the episode ended)."""
        if rng is not self._stream or self._saves_generators:
            self.seed(rng)
            self._stream = rng
        if self._redraw is not None:
            self._redraw(self.base, rng)
        return self._step(action)

    def _reset(self, rng: np.random.Generator) -> Any:
        """Reset what is on the bench; returns the observation."""
        self.put(self._any)
        self.seed(rng)
        self._stream = rng
        observation, _ = self.top.reset()
        return observation

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
            lacking = content.pop(_LACKING, None)
            layer.__dict__ = own = template | content
            for name in lacking or ():
                del own[name]

    def _clear(self) -> None:
        self.put(self._any)

    def _taken(self, observation: Any, unknown: bool = False) -> EnvState:
        """The state on the bench, which gives up what it holds."""
        if unknown:
            return EnvState(object(), self._saved())
        if self._key is not None:
            saved = self._saved()
            return EnvState(self._keyed(observation), saved)
        self._settle()
        saved = self._saved()
        return EnvState(self.identify(saved), saved)

    def _saved(self) -> list[Any]:
        """What is on the bench and differs from the template."""
        saved: list[Any] = []
        for layer, template, fixed in self._parts:
            now = layer.__dict__
            # The template's attributes come first, in order, and are hardly ever replaced.
            if len(now) >= len(fixed) and all(map(is_, fixed, now.values())):
                saved.append(dict(islice(now.items(), len(fixed), None)))
                continue
            content = {n: v for n, v in now.items() if template.get(n, _MISSING) is not v}
            if not template.keys() <= now.keys():
                content[_LACKING] = frozenset(template.keys() - now.keys())
            saved.append(content)
        if self._save is not None:
            saved.append(self._save(self.base))
        return saved

    def _settle(self) -> None:
        """Put what is drawn anew before every step into a fixed state."""
        if self._saves_generators:
            for generator in self._current_generators():
                seed(generator, 0)
        if self._redraw is not None:
            generator, state = self._quiet
            generator.bit_generator.state = state
            self._redraw(self.base, generator)

    def identify(self, saved: list[Any]) -> Hashable:
        """What identifies a snapshot: the same for those that hold the same.

        If what it holds cannot be seen, something that is equal only to itself.
        """
        writer = forms.Writer(self._known)
        try:
            for i, (_, template, _) in enumerate(self._parts):
                content = saved[i]
                if not (self._ignore.isdisjoint(content) and template.keys().isdisjoint(content)):
                    content = {
                        name: value
                        for name, value in content.items()
                        if name not in self._ignore and not self._constant(i, name, value)
                    }
                writer.write_attributes(content)
            if self._save is not None:
                writer.write(saved[-1])
        except forms.UnidentifiedError as error:
            self.unidentified = str(error)
            return object()
        return writer.form()

    def _constant(self, i: int, name: str, value: Any) -> bool:
        """Whether an attribute holds what the template does, in another object."""
        constant = self._constants.get((i, name))
        return constant is not None and constant == _form_or_none(value, self._numbers)

    def differences(self, one: EnvState, other: EnvState) -> list[str]:
        """Names of the attributes in which two states differ, except for those ignored."""
        names = []
        for i in range(len(self._parts)):
            here, there = one.saved[i], other.saved[i]
            for name in sorted((here.keys() | there.keys()) - self._ignore - {_LACKING}):
                template = self._templates[i].get(name, _MISSING)
                contents = (side.get(name, template) for side in (here, there))
                found = [_form_or_none(value, self._known) for value in contents]
                if found[0] is None or found[0] != found[1]:
                    names.append(name)
        if self._save is not None:
            found = [_form_or_none(state.saved[-1], self._known) for state in (one, other)]
            if found[0] is None or found[0] != found[1]:
                names.append("what save() returned")
        return names

    def _duplicate(self, saved: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A copy of what a snapshot holds, for the bench to work on."""
        result = []
        copied = set()
        for content in saved:
            duplicate = content.copy()
            for name, value in content.items():
                kind = type(value)
                if kind in ATOMIC:
                    continue
                if kind is np.ndarray:
                    flat = not value.dtype.hasobject
                else:
                    flat = kind in (tuple, list) and ATOMIC.issuperset(map(type, value))
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
                f"the model is one of {names_of(self.layers)}, but this environment is {names_of(live)}"
            )
        if any(vars(layer).get("_has_reset") is False for layer in all_layers(env)):
            raise ValueError("the environment has no state yet; call env.reset() before planning")
        memo = self._counterparts(env, self.layers)
        numbers = {address: self._numbers[id(layer)] for address, layer in memo.items()}
        attributes: list[Any] = []
        for i, (layer, template) in enumerate(zip(live, self._templates, strict=False)):
            own = vars(layer)
            shared = {
                name
                for name, value in own.items()
                if name in template
                and type(value) not in ATOMIC
                and self._constants.get((i, name)) in (None, _form_or_none(value, numbers))
            }
            memo |= {id(own[name]): template[name] for name in shared}
            content = {
                name: value
                for name, value in _without_windows(own).items()
                if name not in shared
                and name != "render_mode"
                and not _same_atom(value, template.get(name, _MISSING))
            }
            lacking = {n for n, v in template.items() if n not in own and not _of_generators(n, v)}
            attributes.append(content | ({_LACKING: frozenset(lacking)} if lacking else {}))
        for generator in generators_in(attributes, passing=memo):
            memo[id(generator)] = self._generator_like(generator)
        saved = copy.deepcopy(attributes, memo)
        if self._save is not None:
            saved.append(_own_copy(self._save(live[-1])))
        with self._lock:
            # By way of the bench, so that it looks just like a state that a step has led to.
            self.put(EnvState(None, saved))
            unknown = self._key is not None and observation is None
            return self._taken(observation, unknown)

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


def own_methods(
    base: Any,
) -> tuple[Callable[[Any], Any] | None, Callable[[Any, Any], None] | None]:
    """The environment's own methods to save and restore it, as functions of it, or None twice."""
    if rddl.recognised(base):
        return rddl.save, rddl.restore
    for save, restore in _OWN_METHODS:
        if _takes(getattr(base, save, None), 0) and _takes(getattr(base, restore, None), 1):
            return (
                lambda env, name=save: getattr(env, name)(),
                lambda env, state, name=restore: getattr(env, name)(state),
            )
    return None, None


def _takes(method: Any, arguments: int) -> bool:
    """Whether it can be called with this many arguments (MuJoCo's set_state, say, takes two)."""
    from inspect import signature

    if not callable(method):
        return False
    try:
        signature(method).bind(*range(arguments))
    except (TypeError, ValueError):
        return False
    return True


_T = TypeVar("_T")
_Forms = dict[tuple[_T, str], bytes | None]


def _form_or_none(value: Any, known: dict[int, int]) -> bytes | None:
    try:
        return forms.form(value, known)
    except forms.UnidentifiedError:
        return None


def _glance(value: Any, known: dict[int, int]) -> bytes | None:
    """Like a form, but not for comparing two objects: arrays have lost their type and shape."""
    try:
        return blake2b(dumps(value, 2), digest_size=16).digest()
    except ValueError:
        return _form_or_none(value, known)


def _of_generators(name: str, value: Any) -> bool:
    """Whether an attribute is, or belongs to, a generator, which environments make on first use."""
    return isinstance(value, forms.GENERATORS) or name == "_np_random_seed"


def _own_copy(saved: Any) -> Any:
    """A copy, so that the bench cannot change what is not its own; the thing itself if it has none."""
    try:
        return copy.deepcopy(saved)
    except Exception as error:
        pass_on(error)
        return saved


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
    if one is other:
        return True
    return type(one) in ATOMIC and type(one) is type(other) and forms.form(one) == forms.form(other)


def _uncopied(
    layers: list[Any], attributes: list[dict[str, Any]], memo: dict[int, Any], error: Exception
) -> str:
    """Which attribute resists copying, and what to do about it."""
    where = "it"
    for layer, content in zip(layers, attributes, strict=True):
        for name, value in content.items():
            try:
                copy.deepcopy(value, dict(memo))
            except Exception as other:
                pass_on(other)
                where = f"{type(layer).__name__}.{name}, a {type(value).__name__},"
                break
    return (
        f"{type(layers[-1]).__name__} cannot be copied: {where} raises {type(error).__name__}: "
        f"{error}. "
        "Pass save= and restore=, functions of the unwrapped environment: save(env) returns its state, "
        "restore(env, state) brings it back"
    )
