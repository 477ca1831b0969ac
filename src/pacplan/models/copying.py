"""A copy of an environment with its wrappers, of which what changes is saved and put back.

What is saved is a pickle of the attributes that change while the environment is played: equal pickles
are equal states, and to restore one is to load it. Invariants:

* The user's environment is read, never stepped and never written to.
* Attributes that stay the same from reset to reset and from step to step are held once, by the copy.
* Random generators are not saved. The copy has one of its own of each class, which takes the place of
  all others and whose stream never goes back, so draws from one state differ.

What pickles cannot hold is saved by functions of the user's.
"""

import marshal
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from operator import is_
from typing import Any, NamedTuple

from pacplan.core.keys import key_of
from pacplan.core.notes import pass_on
from pacplan.models import rddl
from pacplan.models.layers import (
    ATOMIC,
    UncopiedError,
    all_layers,
    another,
    check_same_kind,
    generators_in,
    layers_of,
    relinked,
    without_windows,
)
from pacplan.models.pickles import GENERATORS, Pickles, UnpicklableError, readable

Save = Callable[[Any], Any]
Restore = Callable[[Any, Any], None]

_HOW = (
    "Pass save= and restore=, functions of the unwrapped environment: save(env) returns its state, "
    "restore(env, state) brings it back"
)


def observation_key(observation: Any) -> Hashable:
    """A hashable key of an observation, the same for equal observations, in any process."""
    try:
        return key_of(observation)
    except TypeError:
        raise TypeError(
            f"cannot tell observations such as {observation!r} ({type(observation).__name__}) apart; "
            "pass key=, a function that makes something hashable of an observation"
        ) from None


class EnvState:
    """A state of an environment. States are equal if their keys are, whatever else they hold.

    Attributes:
        key: what was saved, or the user's key of the observation.
        saved: what brings it back: a pickle, or the past that is played again.
        names: of the attributes in the pickle, a tuple for each layer.
    """

    __slots__ = ("key", "names", "saved")

    def __init__(self, key: Hashable, saved: Any, names: tuple[tuple[str, ...], ...] = ()) -> None:
        self.key, self.saved, self.names = key, saved, names

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvState) and self.key == other.key

    def __repr__(self) -> str:
        try:
            parts = described(readable(self.saved), self.names)
            words = [f"{n}={_shortly(repr(v))}" for part in parts for n, v in part.items()]
        except Exception as error:
            pass_on(error)
            words = [repr(self.saved)]
        return f"EnvState({_shortly(', '.join(words))})"


def _shortly(text: str) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= 100 else text[:97] + "..."


class _Part(NamedTuple):
    """A layer of which attributes are saved.

    What is saved is a tuple of the values that change. If others have changed, or are there, or not, it
    is a list: a dictionary of all that differ, and the names of those that are missing.
    """

    layer: Any
    fixed: dict[str, Any]  # what stays the same
    values: tuple[Any, ...]  # of these
    changing: tuple[str, ...]
    names: tuple[str, ...]  # of all, fixed ones first

    def saved(self, now: dict[str, Any], same: Callable[[str, Any], bool]) -> Any:
        """What is to be saved of some attributes; `same` says whether one holds what it always does."""
        if len(now) == len(self.names):
            try:
                found = tuple(map(now.__getitem__, self.names))
                if all(map(is_, self.values, found)):
                    return found[len(self.values) :]
            except KeyError:
                pass
        differing = {n: v for n, v in now.items() if n not in self.fixed or not same(n, v)}
        missing = [name for name in self.names if name not in now]
        if not missing and differing.keys() == set(self.changing):
            return tuple(map(now.__getitem__, self.changing))
        return [differing, missing]

    def is_ours(self, name: str, value: Any) -> bool:
        """Whether this is the very thing that an attribute always holds."""
        return value is self.fixed[name]

    def restore(self, saved: Any) -> None:
        """Put back what was saved: the whole dictionary, so that what a step has added is gone."""
        if isinstance(saved, tuple):
            self.layer.__dict__ = self.fixed | dict(zip(self.changing, saved, strict=True))
        else:
            own = self.fixed | saved[0]
            self.layer.__dict__ = {name: v for name, v in own.items() if name not in saved[1]}


class EnvCopy:
    """A copy of an environment. `divide` must be called before anything is saved.

    Args:
        env: the environment, with its wrappers.
        save: function of the unwrapped environment that returns what `restore` needs; by default its
            attributes are pickled.
        restore: function of the unwrapped environment and of what `save` returned.
        time_limit: whether `TimeLimit` wrappers are a part of the problem.

    Attributes:
        layers: the copies of its wrappers from the outside in, and of itself.
        names: of the attributes that change, a tuple for each layer.
        generators: those that are in use.
        saves_generators: whether their states may be a part of what is saved.
    """

    def __init__(
        self, env: Any, *, save: Save | None, restore: Restore | None, time_limit: bool
    ) -> None:
        if save is None and rddl.recognised(env.unwrapped):
            save, restore = rddl.save, rddl.restore
        self._save, self._restore, self._time_limit = save, restore, time_limit
        self.saves_generators = save not in (None, rddl.save)
        self._own: dict[type, Any] = {}  # generators
        if save is None:
            self.layers = self._pickled_copy(env)
        else:
            twin = another(env, copied=True)
            check_same_kind(twin, env, time_limit=time_limit)
            self.layers = relinked(layers_of(twin, time_limit=time_limit))
        _ = getattr(self.layers[-1], "np_random", None)  # Made on first use.
        self.find_generators()
        self._plain = self._pickles = Pickles(self.layers, self._own)
        self._parts: list[_Part] = []
        self._contents: dict[tuple[int, str], bytes] = {}

    def _pickled_copy(self, env: Any) -> list[Any]:
        live = layers_of(env, time_limit=self._time_limit)
        # Made without a constructor: many environments define a copy as a fresh start.
        fresh = [object.__new__(type(layer)) for layer in live]
        self._plain, self.layers = Pickles(fresh, self._own), fresh
        also = self._counterparts(env)
        attributes = [without_windows(vars(layer)) for layer in live]
        for layer, held in zip(live, attributes, strict=True):
            for name, value in held.items():
                self._content(value, type(layer).__name__, name, also)
        copied = self._plain.loads(self._plain.dumps(attributes, also))
        for layer, held in zip(fresh, copied, strict=True):
            vars(layer).update(held)
        if vars(fresh[-1]).get("render_mode") is not None:
            fresh[-1].render_mode = None
        return relinked(fresh)

    def _counterparts(self, env: Any) -> dict[int, int]:
        """For every layer of `env`, including skipped ones, the number of our layer in its place."""
        ours = dict(zip(map(id, layers_of(env, time_limit=self._time_limit)), self.layers, strict=True))
        found, following = {}, self.layers[-1]
        for layer in reversed(all_layers(env)):
            # A skipped wrapper stands for what it wraps.
            following = ours.get(id(layer), following)
            found[id(layer)] = self._plain.number_of(following)
        return found

    def find_generators(self) -> None:
        """Look for the generators that are in use, after something else than `put`."""
        self.generators: Iterable[Any] = list(generators_in(map(vars, self.layers)))

    # What changes and what does not.

    def divide(self, moments: Iterable[None]) -> None:
        """Tell what changes from what does not, by looking at some moments while it is played."""
        copied = self.layers if self._save is None else self.layers[:-1]
        changing: set[tuple[int, str]] = set()
        first: dict[tuple[int, str], bytes] = {}
        for _ in moments:
            for i, layer in enumerate(copied):
                for name, value in vars(layer).items():
                    if (i, name) in changing or name == "env" or isinstance(value, GENERATORS):
                        continue
                    found = self._content(value, type(layer).__name__, name)
                    if first.setdefault((i, name), found) != found:
                        changing.add((i, name))
        for i, layer in enumerate(copied):
            fixed = {name: v for name, v in vars(layer).items() if (i, name) not in changing}
            for name, value in fixed.items():
                if isinstance(value, GENERATORS):
                    fixed[name] = self._own.setdefault(type(value), value)
            rest = tuple(name for name in vars(layer) if name not in fixed)
            self._parts.append(_Part(layer, fixed, tuple(fixed.values()), rest, (*fixed, *rest)))
        self._parts_and_tests = [(p, partial(self._same, i)) for i, p in enumerate(self._parts)]
        self.names = tuple(part.changing for part in self._parts)
        held = [v for part in self._parts for v in part.values if type(v) not in ATOMIC]
        self._pickles = Pickles([*self.layers, *held], self._own)
        self._contents = {
            (i, name): self._content(value, type(part.layer).__name__, name)
            for i, part in enumerate(self._parts)
            for name, value in part.fixed.items()
            if not isinstance(value, GENERATORS)
        }
        self._glances = self._glanced()

    def _content(self, value: Any, owner: str, name: str, also: dict[int, int] | None = None) -> bytes:
        """What an attribute holds."""
        try:
            return self._plain.dumps(value, also)
        except UnpicklableError as error:
            raise UncopiedError(
                f"{type(self.layers[-1]).__name__} cannot be copied: {owner}.{name}, a "
                f"{type(value).__name__}, raises {error}. {_HOW}"
            ) from error

    def _same(self, i: int, name: str, value: Any, also: dict[int, int] | None = None) -> bool:
        """Whether an attribute holds what it always does."""
        if value is self._parts[i].fixed[name]:
            return True
        found = self._content(value, type(self._parts[i].layer).__name__, name, also)
        return self._contents.get((i, name)) == found

    def _glanced(self) -> dict[tuple[int, str], bytes]:
        """What the attributes that stay the same hold, as far as a quick look tells."""
        found = {}
        for i, name in self._contents:
            value = self._parts[i].fixed[name]
            try:
                found[i, name] = marshal.dumps(value, 2)
            except ValueError:
                found[i, name] = self._content(value, type(self._parts[i].layer).__name__, name)
        return found

    def changed(self) -> list[str]:
        """What all states share and has changed after all."""
        now = self._glanced()
        return [
            f"{type(self._parts[i].layer).__name__}.{name}"
            for (i, name), found in self._glances.items()
            if now[i, name] != found
        ]

    # Saving and restoring.

    def saved(self, without: frozenset[str] = frozenset()) -> bytes:
        """What brings back the state that the copy is in, except for some attributes."""
        saved = [part.saved(part.layer.__dict__, same) for part, same in self._parts_and_tests]
        if without:
            named = by_name(saved, self.names)
            missing = [[] if isinstance(found, tuple) else found[1] for found in saved]
            kept = [{n: v for n, v in own.items() if n not in without} for own in named]
            saved = list(zip(kept, missing, strict=True))
        if self._save is not None:
            saved.append(self._save(self.layers[-1]))
        return self._dumped(saved)

    def saved_of(self, env: Any) -> bytes:
        """What brings the copy to the state that an environment of the same kind is in."""
        also = self._counterparts(env)
        saved: list[Any] = []
        live = layers_of(env, time_limit=self._time_limit)
        for i, (layer, part) in enumerate(zip(live, self._parts, strict=False)):
            found, theirs = without_windows(vars(layer)), {}
            for name, value in part.fixed.items():
                ours = isinstance(value, GENERATORS) or name in ("env", "render_mode")
                if ours or (name == "_np_random_seed" and name not in found):
                    found[name] = value
                elif name in found and self._same(i, name, found[name], also):
                    if type(value) not in ATOMIC:
                        theirs[id(found[name])] = self._pickles.number_of(value)
                    found[name] = value
            also |= theirs  # What refers to theirs is to refer to ours.
            saved.append(part.saved(found, part.is_ours))
        if self._save is not None:
            saved.append(self._save(live[-1]))
        return self._dumped(saved, also)

    def _dumped(self, saved: list[Any], also: dict[int, int] | None = None) -> bytes:
        try:
            return self._pickles.dumps(saved, also)
        except UnpicklableError as error:
            for part in self._parts:
                for name, value in vars(part.layer).items():
                    self._content(value, type(part.layer).__name__, name)
            raise ValueError(
                f"what save= returned cannot be pickled ({error}); return numbers, strings, arrays, or "
                "lists and dictionaries of them"
            ) from error

    def put(self, data: bytes) -> None:
        """Bring the copy to a state."""
        saved = self._pickles.loads(data)
        for part, found in zip(self._parts, saved, strict=False):
            part.restore(found)
        if self._restore is not None:
            self._restore(self.layers[-1], saved[-1])
        else:
            self.generators = self._own.values()

    def differences(self, one: bytes, other: bytes) -> set[str]:
        """Names of that in which two states differ."""
        here, there = (described(self._pickles.loads(data), self.names) for data in (one, other))
        return {
            name
            for a, b in zip(here, there, strict=True)
            for name in a.keys() | b.keys()
            if not (name in a and name in b and self._dumped(a[name]) == self._dumped(b[name]))
        }


def by_name(saved: list[Any], names: tuple[tuple[str, ...], ...]) -> list[dict[str, Any]]:
    """What was saved of each layer, by the names of the attributes."""
    return [
        dict(zip(own, found, strict=True)) if isinstance(found, tuple) else found[0]
        for own, found in zip(names, saved, strict=False)
    ]


def described(saved: list[Any], names: tuple[tuple[str, ...], ...]) -> list[dict[str, Any]]:
    """All that was saved, by names: also what the user's function gave."""
    return by_name(saved, names) + [{"saved": end} for end in saved[len(names) :]]
