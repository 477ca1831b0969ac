"""A copy of an environment with its wrappers, of which what changes is saved and put back.

What is saved is a pickle of the attributes that change while the environment is played: equal pickles
are equal states, and to restore one is to load it. Invariants:

* The user's environment is read, never stepped and never written to.
* Attributes that stay the same from reset to reset and from step to step are held once, by the copy.
* Random generators are not saved. The copy has one of its own of each class, which takes the place of
  all others and whose stream never goes back, so draws from one state differ.

Of environments of pyRDDLGym it is known what changes.
"""

from collections.abc import Iterable
from operator import is_
from typing import Any

import numpy as np

from pacplan.models import rddl
from pacplan.models.layers import (
    ATOMIC,
    TRANSPARENT,
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


class _Gone:
    """Stands for an attribute that is no longer there."""


class _Part:
    """A layer of which attributes are saved.

    What is saved is a tuple of the values that change. If others were bound anew, or are there, or not,
    it is a dictionary of all that differ.

    Args:
        layer: the layer.
        fixed: the attributes that stay the same.
        contents: what those hold that are no generators.
    """

    def __init__(self, layer: Any, fixed: dict[str, Any], contents: dict[str, bytes]) -> None:
        self.layer, self.fixed, self.contents = layer, fixed, contents
        self.changing = tuple(name for name in vars(layer) if name not in fixed)
        self._names, self._held = (*fixed, *self.changing), tuple(fixed.values())

    def saved(self, now: dict[str, Any]) -> Any:
        """What is to be saved of the attributes that a layer has now."""
        if len(now) == len(self._names):
            try:
                found = tuple(map(now.__getitem__, self._names))
                if all(map(is_, self._held, found)):
                    return found[len(self._held) :]
            except KeyError:
                pass
        values = {name: now.get(name, _Gone) for name in (*self._names, *now)}
        return {n: v for n, v in values.items() if n not in self.fixed or v is not self.fixed[n]}

    def restore(self, saved: Any) -> None:
        """Put back what was saved: the whole dictionary, so that what a step has added is gone."""
        if isinstance(saved, tuple):
            self.layer.__dict__ = self.fixed | dict(zip(self.changing, saved, strict=True))
        else:
            own = self.fixed | saved
            self.layer.__dict__ = {name: v for name, v in own.items() if v is not _Gone}


class EnvCopy:
    """A copy of an environment. `divide` must be called before anything is saved.

    Attributes:
        layers: the copies of its wrappers from the outside in, and of itself.
        names: of the attributes that change, a tuple for each layer.
    """

    def __init__(self, env: Any) -> None:
        self._rddl = rddl.recognised(env.unwrapped)
        self._own: dict[type, Any] = {}  # generators
        self._parts: list[_Part] = []
        self._generators: Iterable[Any] = ()
        self._stream: Any = None
        if self._rddl:
            self.layers = twin_of(env, copied=True)
            self._plain = Pickles(self.layers, self._own)
        else:
            self._copy(env)
        _ = getattr(self.layers[-1], "np_random", None)  # Made on first use.
        self._find_generators()

    def _copy(self, env: Any) -> None:
        live = layers_of(env)
        # Made without a constructor: many environments define a copy as a fresh start.
        self.layers = [object.__new__(type(layer)) for layer in live]
        self._plain = Pickles(self.layers, self._own)
        also = self._counterparts(env)
        attributes = [without_windows(vars(layer)) for layer in live]
        for layer, held in zip(live, attributes, strict=True):
            for name, value in held.items():
                self._content(layer, name, value, also)
        copied = self._plain.loads(self._plain.dumps(attributes, also))
        for layer, held in zip(self.layers, copied, strict=True):
            vars(layer).update(held)
        if vars(self.layers[-1]).get("render_mode") is not None:
            self.layers[-1].render_mode = None
        relinked(self.layers)

    def _counterparts(self, env: Any) -> dict[int, int]:
        """The numbers of our layers, by the addresses of those in their place.

        A transparent wrapper, which is left out, stands for what it wraps.
        """
        found: dict[int, int] = {}
        number, ours = 0, reversed(self.layers)
        for layer in reversed(all_layers(env)):
            if not found or type(layer).__name__ not in TRANSPARENT:
                number = self._plain.numbers[id(next(ours))]
            found[id(layer)] = number
        return found

    def _content(self, layer: Any, name: str, value: Any, also: dict[int, int] | None = None) -> bytes:
        """What an attribute holds."""
        try:
            return self._plain.dumps(value, also)
        except UnpicklableError as error:
            raise UncopiedError(
                f"{type(self.layers[-1]).__name__} cannot be copied: {type(layer).__name__}.{name}, a "
                f"{type(value).__name__}, raises {error}. To replay it from its seed and actions, wrap "
                "it before you reset it: env = pacplan.recorded(env)"
            ) from error

    def divide(self, moments: Iterable[int]) -> None:
        """Tell what changes at moments of play, so many steps after a reset, from what does not."""
        copied = self.layers[:-1] if self._rddl else self.layers
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
        shared: list[Any] = []
        for i, layer in enumerate(copied):
            fixed = {name: v for name, v in vars(layer).items() if (i, name) not in changing}
            contents = {}
            for name, value in fixed.items():
                if isinstance(value, GENERATORS):
                    fixed[name] = self._own.setdefault(type(value), value)
                else:
                    contents[name] = self._content(layer, name, value)
                    shared += [] if type(value) in ATOMIC else [value]
            self._parts.append(_Part(layer, fixed, contents))
        self.names = tuple(part.changing for part in self._parts)
        self._pickles = Pickles([*self.layers, *shared], self._own)

    def changed(self) -> list[str]:
        """What all states share and has changed after all."""
        return [
            f"{type(part.layer).__name__}.{name}"
            for part in self._parts
            for name, held in part.contents.items()
            if self._content(part.layer, name, part.fixed[name]) != held
        ]

    # Saving and restoring.

    def saved(self) -> bytes:
        """What brings back the state that the copy is in."""
        saved = [part.saved(part.layer.__dict__) for part in self._parts]
        if self._rddl:
            saved.append(rddl.save(self.layers[-1]))
        return self._pickles.dumps(saved)

    def take(self, env: Any) -> None:
        """Bring the copy to the state that an environment of the same kind is in."""
        live = layers_of(env)
        also, theirs = self._counterparts(env), dict[int, int]()
        saved: list[Any] = []
        for part, layer in zip(self._parts, live, strict=False):
            now = without_windows(vars(layer))
            for name, value in part.fixed.items():
                if name not in part.contents or name in ("env", "render_mode", "_np_random_seed"):
                    now[name] = value
                elif name in now and (
                    now[name] is value
                    or self._content(layer, name, now[name], also) == part.contents[name]
                ):
                    if type(value) not in ATOMIC:
                        theirs[id(now[name])] = self._pickles.numbers[id(value)]
                    now[name] = value
            saved.append(part.saved(now))
        if self._rddl:
            saved.append(rddl.save(live[-1]))
        # What refers to theirs is to refer to ours.
        self.put(self._pickles.dumps(saved, also | theirs))

    def put(self, data: bytes) -> None:
        """Bring the copy to a state."""
        saved = self._pickles.loads(data)
        for part, found in zip(self._parts, saved, strict=False):
            part.restore(found)
        if self._rddl:
            rddl.restore(self.layers[-1], saved[-1])
        else:
            self._generators = self._own.values()

    # Playing.

    def _find_generators(self) -> None:
        """Look for the generators that are in use, after something else than `put`."""
        self._generators = generators_in(map(vars, self.layers))

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
        if rng is not self._stream:
            self._seed(rng)
        return self.layers[0].step(action)
