"""A wrapper that records how an environment got where it is, so that it can be replayed."""

import copy
from typing import Any

import gymnasium
import numpy as np

from pacplan.models.replays import form_or_none


class ActionRecorder(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Records the seed of the last reset, and the actions since with what they led to.

    A reset without a seed gets one, drawn from the last seed that was given.

    Attributes:
        start: the seed and the options of the last reset; None: there was none.
        first: the form of the observation that it showed.
        steps: action, reward and form of the observation of each step since.
        over: whether the episode has ended.
    """

    def __init__(self, env: Any) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)
        self.start: tuple[int, Any] | None = None
        self.first: bytes | None = None
        self.steps: list[tuple[Any, Any, bytes | None]] = []
        self.over = False
        self._seeds = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment, always with a seed."""
        if seed is None:
            seed = int(self._seeds.integers(2**31))
        else:
            self._seeds = np.random.default_rng(seed)
        self.start, self.steps, self.over = None, [], False
        observation, info = self.env.reset(seed=seed, options=options)
        self.start, self.first = (seed, copy.deepcopy(options)), form_or_none(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and record it."""
        own, start = copy.deepcopy(action), self.start
        self.start = None  # If the step raises, nobody knows where it led to.
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.start = start
        self.steps.append((own, reward, form_or_none(observation)))
        self.over = bool(terminated or truncated)
        return observation, reward, terminated, truncated, info
