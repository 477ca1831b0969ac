"""A copy of an environment with its wrappers, of which what changes is saved and put back.

What is saved is a pickle of the attributes that change while the environment is played: equal pickles
are equal states, and to restore one is to load it. Invariants:

* The user's environment is read, never stepped and never written to.
* Attributes that stay the same from reset to reset and from step to step are held once, by the copy.
* Random generators are not saved. The copy has one of its own of each class, which takes the place of
  all others and whose stream never goes back, so draws from one state differ.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from pacplan.models.layers import (
    ATOMIC,
    TRANSPARENT,
    all_layers,
    attributes_of,
    generators_in,
    layers_of,
)
from pacplan.models.pickles import GENERATORS, Pickles, UnpicklableError
from pacplan.models.protocol import BrokenPromiseError


class _Gone:
    """Stands for an attribute that is not there."""


class EnvCopy:
    """A copy of any environment that can be pickled. `divide` is called before anything is saved.

    Attributes:
        layers: the copies of its wrappers from the outside in, and of itself.
    """

    def __init__(self, env: Any) -> None:
        live = layers_of(env)
        # Made without a constructor: many environments define a copy as a fresh start.
        self.layers = [object.__new__(type(layer)) for layer in live]
        self._own: dict[Any, Any] = {}  # generators by class, and what cannot be pickled by address
        self._plain = Pickles(self.layers, self._own)
        self._stream: Any = None
        attributes = list(map(attributes_of, live))
        also = self._counterparts(env)
        for layer, held in zip(live, attributes, strict=True):
            for name, value in held.items():
                self._content(layer, name, value, also)
        copied = self._plain.loads(self._plain.dumps(attributes, also))
        for layer, held in zip(self.layers, copied, strict=True):
            vars(layer).update(held)
        for outer, inner in pairwise(self.layers):
            vars(outer)["env"] = inner
        base = self.layers[-1]
        if isinstance(found := getattr(base, "np_random", None), np.random.Generator):
            base.np_random = self._own.setdefault(np.random.Generator, found)  # Made on first use.
        self._generators = self._own_generators()
        self._at = b""  # the state that it is in, if that is known

    def _own_generators(self) -> list[Any]:
        return [thing for thing in self._own.values() if isinstance(thing, GENERATORS)]

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
            raise ValueError(
                f"{type(self.layers[-1]).__name__} cannot be copied: {type(layer).__name__}.{name}, a "
                f"{type(value).__name__}, raises {error}. Give its class methods with which it can be "
                "pickled (__getstate__ and __setstate__), or make a pacplan.Simulator whose states are "
                "the actions taken, and whose step plays them again"
            ) from error

    def divide(self, moments: Iterable[Any]) -> None:
        """Tell what changes at moments of play from what does not.

        What is bound anew changes, too, even if it holds the same: so all states save it.
        """
        self._parts = []  # Of each layer: itself, its fixed attributes, and what those hold.
        for layer in self.layers:
            fixed = dict(vars(layer))
            values = {n: v for n, v in fixed.items() if not isinstance(v, GENERATORS)}
            contents = {name: self._content(layer, name, value) for name, value in values.items()}
            self._parts.append((layer, fixed, contents))
        for _ in moments:
            for layer, fixed, contents in self._parts:
                now = vars(layer)
                for name, value in tuple(fixed.items()):
                    same = now.get(name, _Gone) is value
                    if name in contents:
                        same = same and self._content(layer, name, value) == contents[name]
                    if not same:
                        del fixed[name]
                        contents.pop(name, None)
        held = (fixed[name] for _, fixed, contents in self._parts for name in contents)
        shared = [value for value in held if type(value) not in ATOMIC]
        self._pickles = Pickles([*self.layers, *shared], self._own)

    def changed(self) -> list[str]:
        """Names of what all states share and has changed after all."""
        return [
            f"{type(layer).__name__}.{name}"
            for layer, fixed, contents in self._parts
            for name, content in contents.items()
            if self._content(layer, name, fixed[name]) != content
        ]

    # Saving and restoring.

    def saved(self) -> bytes:
        """What brings back the state that the copy is in."""
        parts = self._parts
        self._at = self._pickles.dumps([_changes(layer.__dict__, fixed) for layer, fixed, _ in parts])
        return self._at

    def take(self, env: Any) -> None:
        """Bring the copy to the state that an environment of the same kind is in."""
        also, theirs = self._counterparts(env), dict[int, int]()
        saved = []
        for live, (layer, fixed, contents) in zip(layers_of(env), self._parts, strict=True):
            now = attributes_of(live)
            for name, value in fixed.items():
                if name not in contents or name in ("env", "_np_random_seed"):
                    now[name] = value
                elif name in now and (
                    now[name] is value or self._content(layer, name, now[name], also) == contents[name]
                ):
                    if type(value) not in ATOMIC:
                        theirs[id(now[name])] = self._pickles.numbers[id(value)]
                    now[name] = value
            saved.append(dict(sorted(_changes(now, fixed).items())))
        # What refers to theirs is to refer to ours.
        self.put(self._pickles.dumps(saved, also | theirs))

    def put(self, data: bytes) -> None:
        """Bring the copy to a state, unless it is there, as in an episode played in one go."""
        if data == self._at:
            return
        for (layer, fixed, _), found in zip(self._parts, self._pickles.loads(data), strict=True):
            layer.__dict__ = fixed | found
        self._generators = self._own_generators()
        self._at = data

    # Playing.

    def forget_stream(self) -> None:
        """Let the next draw depend on its generator alone, not on draws before."""
        self._stream = None

    def _seed(self, rng: np.random.Generator) -> None:
        """Give every random generator of the environment a state that is drawn from `rng`."""
        number = int(rng.integers(2**32))
        for generator in self._generators:
            if isinstance(generator, np.random.Generator):
                bits = generator.bit_generator
                bits.state = type(bits)(number).state
            else:
                generator.seed(number)
        self._stream = rng

    def reset(self, rng: np.random.Generator) -> Any:
        """Reset the environment; returns the observation."""
        self._seed(rng)
        self._at = b""
        observation, _ = self.layers[0].reset()
        self._generators = generators_in(map(vars, self.layers))
        return observation

    def step(self, action: Any, rng: np.random.Generator) -> Any:
        """One step of the environment, drawn from `rng`."""
        if rng is not self._stream:
            self._seed(rng)
        self._at = b""
        return self.layers[0].step(action)


def _changes(now: dict[str, Any], fixed: dict[str, Any]) -> dict[str, Any]:
    """Those of the attributes that a layer has now that are not the fixed ones."""
    if not fixed.keys() <= now.keys():
        raise BrokenPromiseError(
            f"the environment has removed its attributes {sorted(fixed.keys() - now.keys())}, so that "
            "earlier states cannot be brought back; let it bind None instead"
        )
    return {name: value for name, value in now.items() if fixed.get(name, _Gone) is not value}
