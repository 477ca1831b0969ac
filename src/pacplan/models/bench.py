"""An environment of our own, brought to whatever state is asked for, to draw transitions from it.

How it is brought there differs: `Snapshots` puts back what was saved, `Replays` plays it again.
"""

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from pacplan.core.keys import key_of
from pacplan.models import forms, layers
from pacplan.models.protocol import BrokenPromiseError

Actions = tuple[Any, ...] | Callable[[Any], Sequence[Any]]


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
    """A state of an environment: what identifies it, and what brings it back.

    States are equal if their keys are, whatever else they hold.

    Attributes:
        key: a digest of `saved`, or the user's key of the observation.
        saved: of snapshots, the attributes that differ from the bench's template, one dictionary per
            layer; then what the environment's own method of saving gave, if there is one. Of replays,
            the one `Past` that led here.
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
        words = []
        for content in self.saved:
            attributes = content.items() if isinstance(content, dict) else [("saved", content)]
            # The name that stands for missing attributes is empty.
            words += [f"{name}={_shortly(value)}" for name, value in attributes if name]
        return f"EnvState({_shortly(', '.join(words), str)})"


def _shortly(value: Any, show: Callable[[Any], str] = repr) -> str:
    text = show(value).replace("\n", " ")
    return text if len(text) <= 100 else text[:97] + "..."


class Bench(ABC):
    """A detached environment, for drawing transitions from any state of it.

    Args:
        own: its layers, which belong to the bench.
        actions: the actions, or a function of the unwrapped environment that returns those it takes.
        key: makes something hashable of an observation, which then identifies the state; None: what is
            saved does.
        redraw: function of the unwrapped environment and a generator, called before every step.

    Attributes:
        unidentified: what is saved but cannot be seen into, in words, so that no state is equal to
            another; None: nothing.
        if_too_many: what to do if states are the same but are taken for different, in words.
    """

    if_too_many: str

    def __init__(
        self,
        own: list[Any],
        *,
        actions: Actions,
        key: Callable[[Any], Hashable] | None,
        redraw: Callable[[Any, np.random.Generator], None] | None,
    ) -> None:
        self.layers = own
        self.top, self.base = own[0], own[-1]
        self._actions = actions
        self._key = key
        self._redraw = redraw
        self._counters = [layer for layer in own if type(layer).__name__ == layers.TIME_LIMIT]
        _ = getattr(self.base, "np_random", None)  # Made on first use.
        self._generators = list(layers.generators_in(map(vars, own)))
        self._lock = threading.RLock()
        self.unidentified: str | None = None

    @abstractmethod
    def put(self, state: EnvState) -> None:
        """Bring the environment on the bench to a state."""

    @abstractmethod
    def _reset(self, rng: np.random.Generator) -> Any:
        """Reset what is on the bench; returns the observation."""

    @abstractmethod
    def _stepped(self, action: Any, rng: np.random.Generator) -> tuple[Any, Any, bool]:
        """One step of what is on the bench: (observation, reward, whether the episode ended)."""

    @abstractmethod
    def _taken(self, observation: Any) -> EnvState:
        """The state on the bench, after a reset or a step that showed an observation."""

    @abstractmethod
    def _clear(self) -> None:
        """Give up what is on the bench: it must not be stepped further."""

    @abstractmethod
    def state_of(self, env: Any, observation: Any = None) -> EnvState:
        """The state that an environment of the same kind is in now."""

    @abstractmethod
    def identify(self, saved: list[Any]) -> Hashable:
        """What identifies a saved state, whatever the user's key says."""

    @abstractmethod
    def differences(self, one: EnvState, other: EnvState) -> list[str]:
        """Names of that in which two states differ."""

    @abstractmethod
    def forget_stream(self) -> None:
        """Let the next draw depend on its generator alone, not on draws before."""

    def changed_constants(self) -> list[str]:
        """Attributes that were taken for constant and have changed after all."""
        return []

    def changed_classes(self) -> list[str]:
        """Attributes of classes that have changed, out of the bench's reach."""
        return []

    def hidden_randomness(self, rng: np.random.Generator, lucks: Sequence[float]) -> str | None:
        """What shows that draws do not come from the generators that are seen, in words."""
        return None

    @property
    def cost(self) -> str | None:
        """What a call costs if that is more than a step, in words."""
        return None

    @property
    def by_content(self) -> bool:
        """Whether states are identified by all that is saved, not by a key."""
        return self._key is None

    def offered(self) -> Sequence[Any]:
        """The actions that can be taken in the state on the bench."""
        if not callable(self._actions):
            return self._actions
        # Copies: a step may change what the environment handed out.
        offered = [own_copy(action) for action in self._actions(self.base)]
        if not offered:
            raise BrokenPromiseError(
                "actions= or mask= leaves nothing to do in a state in which the episode has not ended"
            )
        return offered

    def actions(self, state: EnvState) -> Sequence[Any]:
        """The actions that can be taken in a state."""
        if not callable(self._actions):
            return self._actions
        with self._lock:
            self.put(state)
            return self.offered()

    def seed(self, rng: np.random.Generator) -> None:
        """Give every generator of the bench its own state, drawn from `rng`."""
        for generator in self._current_generators():
            layers.seed(generator, int(rng.integers(2**32)))

    def _current_generators(self) -> Iterable[Any]:
        generators = {id(generator): generator for generator in self._generators}
        current = getattr(self.base, "np_random", None)  # It may have been replaced.
        if isinstance(current, forms.GENERATORS):
            generators[id(current)] = current
        return generators.values()

    def draw(
        self, state: EnvState, action: Any, rng: np.random.Generator
    ) -> tuple[EnvState | None, Any, bool]:
        """One transition: (next state, reward, whether the episode ended)."""
        return self.observe(state, action, rng)[1:]

    def observe(
        self, state: EnvState, action: Any, rng: np.random.Generator
    ) -> tuple[Any, EnvState | None, Any, bool]:
        """One transition: (observation, next state, reward, whether the episode ended)."""
        with self._lock:
            self.put(state)
            observation, reward, ended = self._stepped(action, rng)
            return observation, None if ended else self._taken(observation), reward, ended

    def play(
        self, start: np.random.Generator, steps: Iterable[tuple[float, np.random.Generator]]
    ) -> list[tuple[Any, Any, Any, bool]]:
        """A reset and some steps in one go: (action, observation, reward, ended) of each.

        Args:
            start: for the reset.
            steps: where in the list of actions the next one stands, from 0 to 1, and a generator for
                its step.
        """
        with self._lock:
            self._reset(start)
            return self._played(steps)

    def _played(
        self, steps: Iterable[tuple[float, np.random.Generator]]
    ) -> list[tuple[Any, Any, Any, bool]]:
        played: list[tuple[Any, Any, Any, bool]] = []
        for luck, rng in steps:
            action = chosen(self.offered(), luck)
            observation, reward, ended = self._stepped(action, rng)
            # A copy: the next step may change the very same object.
            played.append((action, copy.deepcopy(observation), reward, ended))
            if ended:
                break
        self._clear()
        return played

    def reset(self, rng: np.random.Generator) -> tuple[Any, EnvState]:
        """A first observation and state, drawn by the environment's own `reset`."""
        with self._lock:
            observation = self._reset(rng)
            return observation, self._taken(observation)

    def ask(self, state: EnvState, question: Callable[[Any], Any]) -> Any:
        """The answer of the unwrapped environment in a state."""
        with self._lock:
            self.put(state)
            return question(self.base)

    def _step(self, action: Any) -> tuple[Any, Any, bool]:
        """One step, with an action of the environment's own: it may do with it what it likes."""
        observation, reward, terminated, truncated, _ = self.top.step(own_copy(action))
        return observation, reward, bool(terminated or truncated)

    def _keyed(self, observation: Any) -> Hashable:
        """What the user's key makes of an observation, and the time if that is limited."""
        assert self._key is not None
        key = self._key(observation)
        if self._counters:
            return (key, *(layer._elapsed_steps for layer in self._counters))
        return key

    def __repr__(self) -> str:
        spec = getattr(self.base, "spec", None)
        return layers.names_of(self.layers) + ("" if spec is None else f" of {spec.id}")


def chosen(actions: Sequence[Any], luck: float) -> Any:
    """The action that stands at a place, from 0 to 1, in the list of them."""
    return actions[int(luck * len(actions))]


def own_copy(action: Any) -> Any:
    """A copy of an action, which may be changed."""
    return action if type(action) in layers.ATOMIC else copy.deepcopy(action)
