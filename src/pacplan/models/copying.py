"""A copy of an environment with its wrappers, of which what changes is saved and put back.

What is saved is a pickle of the attributes that change while the environment is played: equal pickles
are equal states, and to restore one is to load it. Invariants:

* The user's environment is read, never stepped and never written to.
* Attributes that stay the same from reset to reset and from step to step are held once, by the copy.
* Random generators are not saved. The copy has one of its own of each class, which takes the place of
  all others and whose stream never goes back, so draws from one state differ.
* Attributes to ignore have the same values in all states.

What pickles cannot hold is saved by functions of the user's.
"""

import marshal
from collections.abc import Callable, Iterable
from operator import is_
from typing import Any

import numpy as np

from pacplan.models import rddl
from pacplan.models.layers import (
    ATOMIC,
    UncopiedError,
    all_layers,
    generators_in,
    layers_of,
    relinked,
    seed,
    twin_of,
    without_windows,
)
from pacplan.models.pickles import GENERATORS, Pickles, UnpicklableError

Save = Callable[[Any], Any]
Restore = Callable[[Any, Any], None]

_HOW = (
    "Pass save= and restore=, functions of the unwrapped environment: save(env) returns its state, "
    "restore(env, state) brings it back"
)


class _Part:
    """A layer of which attributes are saved.

    What is saved is a tuple of the values that change. If others were bound anew, or are there, or not,
    it is a list: a dictionary of all that differ, and the names of those that are missing.

    Args:
        layer: the layer.
        fixed: the attributes that stay the same.
        ignored: attributes that do not tell states apart, with the values that they have in all states.
    """

    def __init__(self, layer: Any, fixed: dict[str, Any], ignored: dict[str, Any]) -> None:
        self.layer, self.fixed, self._held = layer, fixed, tuple(fixed.values())
        self.changing = tuple(name for name in vars(layer) if name not in fixed)
        self._names = (*fixed, *self.changing)
        self._ignored = {name: v for name, v in ignored.items() if name in self.changing}

    def saved(self, now: dict[str, Any]) -> Any:
        """What is to be saved of the attributes that a layer has now."""
        if self._ignored:
            now = now | self._ignored
        if len(now) == len(self._names):
            try:
                found = tuple(map(now.__getitem__, self._names))
                if all(map(is_, self._held, found)):
                    return found[len(self._held) :]
            except KeyError:
                pass
        differing = {n: v for n, v in now.items() if n not in self.fixed or v is not self.fixed[n]}
        return [differing, [name for name in self._names if name not in now]]

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
        ignore: names of attributes that do not tell states apart: all states have the values of now.
        save: function of the unwrapped environment that returns what `restore` needs; by default its
            attributes are pickled.
        restore: function of the unwrapped environment and of what `save` returned.
        time_limit: whether `TimeLimit` wrappers are a part of the problem.

    Attributes:
        layers: the copies of its wrappers from the outside in, and of itself.
        names: of the attributes that change, a tuple for each layer.
    """

    def __init__(
        self,
        env: Any,
        *,
        ignore: frozenset[str] = frozenset(),
        save: Save | None = None,
        restore: Restore | None = None,
        time_limit: bool = False,
    ) -> None:
        # Whether the states of generators may be a part of what is saved.
        self._saves_generators = save is not None
        if save is None and rddl.recognised(env.unwrapped):
            save, restore = rddl.save, rddl.restore
        self._save, self._restore, self._time_limit = save, restore, time_limit
        self._own: dict[type, Any] = {}  # generators
        self._parts: list[_Part] = []
        self._generators: Iterable[Any] = ()
        self._stream: Any = None
        if save is None:
            self.layers = self._pickled_copy(env)
        else:
            self.layers = twin_of(env, copied=True, time_limit=time_limit)
        _ = getattr(self.layers[-1], "np_random", None)  # Made on first use.
        self._find_generators()
        self._plain = self._pickles = Pickles(self.layers, self._own)
        found = [{n: v for n, v in vars(layer).items() if n in ignore} for layer in self.layers]
        self._ignored: list[dict[str, Any]] = self._plain.loads(self._dumped(found))

    def _pickled_copy(self, env: Any) -> list[Any]:
        live = layers_of(env, time_limit=self._time_limit)
        # Made without a constructor: many environments define a copy as a fresh start.
        self.layers = fresh = [object.__new__(type(layer)) for layer in live]
        self._plain = Pickles(fresh, self._own)
        also = self._counterparts(env)
        attributes = [without_windows(vars(layer)) for layer in live]
        for layer, held in zip(live, attributes, strict=True):
            for name, value in held.items():
                self._content(layer, name, value, also)
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

    def _content(self, layer: Any, name: str, value: Any, also: dict[int, int] | None = None) -> bytes:
        """What an attribute holds."""
        try:
            return self._plain.dumps(value, also)
        except UnpicklableError as error:
            raise UncopiedError(
                f"{type(self.layers[-1]).__name__} cannot be copied: {type(layer).__name__}.{name}, a "
                f"{type(value).__name__}, raises {error}. {_HOW}"
            ) from error

    # What changes and what does not.

    def divide(self, moments: Iterable[int]) -> None:
        """Tell what changes from what does not.

        Args:
            moments: plays the environment, and stops after some numbers of steps since a reset.
        """
        copied = self.layers if self._save is None else self.layers[:-1]
        changing: set[tuple[int, str]] = set()
        first: dict[tuple[int, str], bytes] = {}
        held: dict[tuple[int, str], Any] = {}
        for steps in moments:
            for i, layer in enumerate(copied):
                for name, value in vars(layer).items():
                    at = i, name
                    if at in changing or name == "env" or isinstance(value, GENERATORS):
                        continue
                    # One that steps bind anew counts as changing, too: then all states save it.
                    bound = steps > 0 and held.setdefault(at, value) is not value
                    held[at] = value
                    found = self._content(layer, name, value)
                    if bound or first.setdefault(at, found) != found:
                        changing.add(at)
        for i, layer in enumerate(copied):
            fixed = {name: v for name, v in vars(layer).items() if (i, name) not in changing}
            for name, value in fixed.items():
                if isinstance(value, GENERATORS):
                    fixed[name] = self._own.setdefault(type(value), value)
            self._parts.append(_Part(layer, fixed, self._ignored[i]))
        self.names = tuple(part.changing for part in self._parts)
        shared = [
            (part.layer, name, value)
            for part in self._parts
            for name, value in part.fixed.items()
            if not isinstance(value, GENERATORS)
        ]
        self._pickles = Pickles(
            [*self.layers, *(v for _, _, v in shared if type(v) not in ATOMIC)], self._own
        )
        self._contents = [(*one, self._content(*one)) for one in shared]
        self._glances = [(*one, self._glance(*one)) for one in shared]

    def _glance(self, layer: Any, name: str, value: Any) -> bytes:
        """What an attribute holds, as far as a quick look tells."""
        try:
            return marshal.dumps(value, 2)
        except ValueError:
            return self._content(layer, name, value)

    def changed(self) -> list[str]:
        """What all states share and has changed after all."""
        return [
            f"{type(layer).__name__}.{name}"
            for layer, name, value, found in self._glances
            if self._glance(layer, name, value) != found
        ]

    # Saving and restoring.

    def saved(self) -> bytes:
        """What brings back the state that the copy is in."""
        if self._saves_generators:  # They are seeded before every step.
            for generator in self._generators:
                seed(generator, 0)
        saved = [part.saved(part.layer.__dict__) for part in self._parts]
        if self._save is not None:
            saved.append(self._save(self.layers[-1]))
        return self._dumped(saved)

    def take(self, env: Any) -> None:
        """Bring the copy to the state that an environment of the same kind is in."""
        live, also = layers_of(env, time_limit=self._time_limit), self._counterparts(env)
        found = [without_windows(vars(layer)) for layer in live[: len(self._parts)]]
        theirs: dict[int, int] = {}
        for part, now in zip(self._parts, found, strict=True):
            for name, value in part.fixed.items():
                own = isinstance(value, GENERATORS)
                if own or name in ("env", "render_mode", "_np_random_seed"):
                    now[name] = value
        at = {id(part.layer): now for part, now in zip(self._parts, found, strict=True)}
        for layer, name, value, held in self._contents:
            now = at[id(layer)]
            if name in now and (
                now[name] is value or self._content(layer, name, now[name], also) == held
            ):
                if type(value) not in ATOMIC:
                    theirs[id(now[name])] = self._pickles.number_of(value)
                now[name] = value
        saved = [part.saved(now) for part, now in zip(self._parts, found, strict=True)]
        if self._save is not None:
            saved.append(self._save(live[-1]))
        # What refers to theirs is to refer to ours.
        self.put(self._dumped(saved, also | theirs))

    def _dumped(self, saved: list[Any], also: dict[int, int] | None = None) -> bytes:
        try:
            return self._pickles.dumps(saved, also)
        except UnpicklableError as error:
            for part in self._parts:
                for name, value in vars(part.layer).items():
                    self._content(part.layer, name, value)
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
            self._generators = self._own.values()

    # Playing.

    def _find_generators(self) -> None:
        """Look for the generators that are in use, after something else than `put`."""
        self._generators = list(generators_in(map(vars, self.layers)))

    def forget_stream(self) -> None:
        """Let the next draw depend on its generator alone, not on draws before."""
        self._stream = None

    def _seed(self, rng: np.random.Generator) -> None:
        """Give every generator of the environment a state of its own, drawn from `rng`."""
        number = int(rng.integers(2**32))
        kinds: list[type] = []
        for generator in self._generators:
            seed(generator, (number + kinds.count(type(generator))) % 2**32)
            kinds.append(type(generator))
        self._stream = rng

    def reset(self, rng: np.random.Generator) -> Any:
        """Reset the environment; returns the observation."""
        self._seed(rng)
        observation, _ = self.layers[0].reset()
        self._find_generators()
        return observation

    def step(self, action: Any, rng: np.random.Generator) -> Any:
        """One step of the environment, drawn from `rng`."""
        if rng is not self._stream or self._saves_generators:
            self._seed(rng)
        return self.layers[0].step(action)
