"""Environments that cannot be copied: how they got where they are, recorded and played again.

A state is a `Past`: the seed of a reset, and the actions taken since. The same wrapper records the
user's environment and plays another one of the same kind. To bring that to a state, it is reset with
the seed and takes the actions. Invariants:

* The generators of the user's environment went on by themselves, and so they do when it is replayed.
  A step of a plan has random numbers of its own: a seed for them belongs to the past, if it used any.
* From a state on the way to the one asked for, only what is missing is played: else a call after n
  steps costs n + 1.
* Whatever a replay shows is compared with what was shown the first time.
* Nothing is known of the content of a state, so only states with the same past are the same.
"""

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np

from pacplan.models import layers
from pacplan.models.pickles import content, content_or_none
from pacplan.models.protocol import BrokenPromiseError


class Past:
    """A reset, or a step and what came before it. Pasts are equal if they lead to the same state.

    Attributes:
        before: what came before the step; None: this is the reset.
        action: what was done; of a reset, its seed and options.
        noise: seed of the random numbers of the step; None: the generators went on as they were.
        shown: the content of the observation and the reward.
        mark: what identifies it.
    """

    __slots__ = ("action", "before", "mark", "noise", "shown")

    def __init__(self, before: "Past | None", action: Any, noise: int | None, shown: Any) -> None:
        self.before, self.action, self.noise, self.shown = before, action, noise, content_or_none(shown)
        self.mark: bytes = content((None if before is None else before.mark, action, noise))

    def __hash__(self) -> int:
        return hash(self.mark)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Past) and self.mark == other.mark

    def __repr__(self) -> str:
        later, past = [], self
        while past.before is not None:
            later.append(past.action)
            past = past.before
        return f"reset(seed={past.action[0]}), then {later[::-1]}"


class ActionRecorder(gymnasium.Wrapper):
    """Records the seed of the last reset, and the actions since with what they led to.

    A reset without a seed gets one, drawn from the last seed that was given.

    Attributes:
        past: how it got where it is; None: nobody knows, or the episode has ended.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.past: Past | None = None
        self._seeds = np.random.default_rng()
        self._generators: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment, always with a seed."""
        if seed is None:
            seed = int(self._seeds.integers(2**31))
        else:
            self._seeds = np.random.default_rng(seed)
        self.past, own = None, copy.deepcopy(options)
        observation, info = self.env.reset(seed=seed, options=options)
        self.past = Past(None, (seed, own), None, (observation, 0.0))
        self._generators = layers.generators_in(map(vars, layers.all_layers(self.env)))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and record it."""
        return self.play(action, None)

    def play(self, action: Any, noise: int | None) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step with random numbers from a seed; None: the generators go on as they are."""
        own, before = copy.deepcopy(action), self.past
        self.past = None  # If the step raises, nobody knows where it led to.
        if noise is not None:
            numbers = np.random.default_rng(noise)
            for generator in self._generators:
                layers.seed(generator, int(numbers.integers(2**32)))
        positions = pickle.dumps(self._generators)
        observation, reward, terminated, truncated, info = self.env.step(action)
        if positions == pickle.dumps(self._generators):
            noise = None  # It used none.
        if before is not None and not (terminated or truncated):
            self.past = Past(before, own, noise, (observation, reward))
        return observation, reward, terminated, truncated, info

    def go_to(self, goal: Past) -> None:
        """Play what leads to a state.

        Raises:
            BrokenPromiseError: it does not do again what it did.
        """
        missing, past = [], goal
        while past != self.past and past.before is not None:
            missing.append(past)
            past = past.before
        if past != self.past:
            seed, options = past.action
            self.reset(seed=seed, options=copy.deepcopy(options))
        self._compare(past)
        for past in reversed(missing):
            self.play(copy.deepcopy(past.action), past.noise)
            self._compare(past)
        self.past = goal

    def _compare(self, past: Past) -> None:
        """Raise unless it was shown the same as the first time."""
        if self.past is None or self.past.shown != past.shown:
            raise BrokenPromiseError(
                f"{type(self.unwrapped).__name__} cannot be replayed: {past!r} led to something else "
                "the second time, with the same random numbers. There is randomness that does not come "
                "from its own generators, or it keeps something from one episode to the next"
            )


class EnvReplay:
    """Another environment of the same kind, brought to states by playing their past. As `EnvCopy`."""

    names = ()

    def __init__(self, env: ActionRecorder) -> None:
        self.layers = layers.twin_of(env.env, copied=False)
        self._top = ActionRecorder(self.layers[0])
        self.put = self._top.go_to

    def take(self, env: Any) -> None:
        """Bring it to the state that a recorded environment of the same kind is in."""
        if not isinstance(env, ActionRecorder):
            raise ValueError(
                f"{type(env.unwrapped).__name__} is not recorded; wrap it before you reset it, env = "
                "pacplan.recorded(env), so that it can be replayed"
            )
        if env.past is None:
            raise ValueError("the environment has no state; call env.reset() before planning")
        self.put(env.past)

    def saved(self) -> Past | None:
        """What brings back the state that it is in."""
        return self._top.past

    def changed(self) -> list[str]:
        """Nothing: states share nothing."""
        return []

    def forget_stream(self) -> None:
        """Nothing to do: every step has a seed of its own."""

    def reset(self, rng: np.random.Generator) -> Any:
        """Reset the environment; returns the observation."""
        return self._top.reset(seed=int(rng.integers(2**31)))[0]

    def step(self, action: Any, rng: np.random.Generator) -> Any:
        """One step of the environment, drawn from `rng`."""
        return self._top.play(action, int(rng.integers(2**63)))
