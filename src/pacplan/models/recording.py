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
import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np

from pacplan.models import layers
from pacplan.models.pickles import content_or_none
from pacplan.models.protocol import BrokenPromiseError

_RESETS = 4
_OWN_LUCK = (
    "what follows depends on the seed that was given to reset. So there is randomness of its own, or "
    "luck that is drawn in advance, and every replay would have the same luck, which nobody can know. "
    "Pass save= and restore=, or check=False to plan for someone who knows that luck"
)
_counter = itertools.count()


class Past:
    """A reset, or a step and what came before it.

    Attributes:
        before: what came before the step; None: this is the reset.
        action: what was done; of a reset, its seed and options.
        noise: seed of the random numbers of the step; None: the generators went on as they were.
        shown: the content of the observation and the reward.
        mark: what identifies it.
        certain: what was shown after steps from here that used no random numbers, by their marks.
    """

    __slots__ = ("action", "before", "certain", "mark", "noise", "shown")

    def __init__(self, before: "Past | None", action: Any, noise: int | None, shown: Any) -> None:
        self.before, self.action, self.noise, self.shown = before, action, noise, content_or_none(shown)
        content = (None if before is None else before.mark, action, noise)
        self.mark: bytes = content_or_none(content) or b"%d" % next(_counter)
        self.certain: dict[bytes, bytes | None] = {}

    def steps(self) -> Iterator["Past"]:
        """From this one back to the reset."""
        past: Past | None = self
        while past is not None:
            yield past
            past = past.before

    def __repr__(self) -> str:
        reset, *later = [past.action for past in self.steps()][::-1]
        return f"reset(seed={reset[0]}), then {later}"


class ActionRecorder(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Records the seed of the last reset, and the actions since with what they led to.

    A reset without a seed gets one, drawn from the last seed that was given.

    Attributes:
        past: how it got where it is; None: nobody knows, or the episode has ended.
        noise: seed of the random numbers of the next step; None: the generators go on as they are.
        steps_taken: how many, for tests.
    """

    def __init__(self, env: Any) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)
        self.past: Past | None = None
        self.noise: int | None = None
        self.steps_taken = 0
        self._seeds = np.random.default_rng()
        self._generators: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment, always with a seed."""
        if seed is None:
            seed = int(self._seeds.integers(2**31))
        else:
            self._seeds = np.random.default_rng(seed)
        self.past, self.noise, own = None, None, copy.deepcopy(options)
        observation, info = self.env.reset(seed=seed, options=options)
        self.past = Past(None, (seed, own), None, (observation, 0.0))
        self._generators = list(
            layers.generators_in([vars(one) for one in layers.all_layers(self.env)])
        )
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and record it."""
        own, before, noise = copy.deepcopy(action), self.past, self.noise
        self.past = self.noise = None  # If the step raises, nobody knows where it led to.
        self.steps_taken += 1
        positions = [] if noise is None else self._seeded(noise)
        observation, reward, terminated, truncated, info = self.env.step(action)
        unused = noise is not None and positions == self._positions()
        if before is not None and not (terminated or truncated):
            past = Past(before, own, None if unused else noise, (observation, reward))
            if unused and before.certain.setdefault(past.mark, past.shown) != past.shown:
                raise self._irreproducible(past)
            self.past = past
        return observation, reward, terminated, truncated, info

    def _seeded(self, noise: int) -> list[bytes]:
        """Where the generators stand, once they are in the states that a seed leads to."""
        numbers = np.random.default_rng(noise)
        for generator in self._generators:
            layers.seed(generator, int(numbers.integers(2**32)))
        return self._positions()

    def _positions(self) -> list[bytes]:
        return [pickle.dumps(generator) for generator in self._generators]

    def go_to(self, goal: Past) -> None:
        """Play what leads to a state.

        Raises:
            BrokenPromiseError: it does not do again what it did.
        """
        at, missing = self.past, []
        for past in goal.steps():
            if at is not None and past.mark == at.mark:
                break
            missing.append(past)
        for past in reversed(missing):
            if past.before is None:
                seed, options = past.action
                self.reset(seed=seed, options=copy.deepcopy(options))
            else:
                self.noise = past.noise
                self.step(copy.deepcopy(past.action))
            if self.past is None or self.past.shown != past.shown:
                raise self._irreproducible(past)
        self.past = goal

    def _irreproducible(self, past: Past) -> BrokenPromiseError:
        return BrokenPromiseError(
            f"{type(self.unwrapped).__name__} cannot be replayed: {past!r} led to something else the "
            "second time, with the same random numbers. There is randomness that does not come from "
            "its own generators, or it keeps something from one episode to the next; pass save= and "
            "restore="
        )

    def hidden_randomness(
        self, rng: np.random.Generator, lucks: Sequence[float], choose: Callable[[float], Any]
    ) -> str | None:
        """What shows that random numbers do not come from the generators that are seen, in words.

        What comes after a reset is played several times. After resets with the same seed it must be the
        same, whatever the generators did before. With other seeds of resets and the same random numbers
        in all steps, it must be the same if these generators had the same states before the reset; and
        if the first observation is the same. (It need not be, if a part of the state is drawn by the
        reset and not shown. But that cannot be told from luck to come.)
        """
        noises, start = rng.integers(2**63, size=len(lucks)).tolist(), int(rng.integers(2**63))
        seeds = rng.integers(2**31, size=_RESETS).tolist()

        def follow(seed: int, noises: list[Any], start: int | None = None) -> list[bytes | None]:
            self._seeded(int(rng.integers(2**63)))
            observation, _ = self.reset(seed=seed)
            if start is not None:
                self._seeded(start)
                observation, _ = self.env.reset()
            shown = [content_or_none(observation)]
            for luck, noise in zip(lucks, noises, strict=True):
                self.noise = noise
                found = self.step(choose(luck))[:4]
                shown.append(content_or_none(found))
                if found[2] or found[3]:
                    break
            self.past = None
            return shown

        alone = [None] * len(lucks)
        if follow(seeds[0], alone) != follow(seeds[0], alone):
            return (
                "what follows reset(seed=...) is not always the same, so that its past cannot be "
                "played again; let reset seed all of its generators, or pass save= and restore="
            )
        if follow(seeds[0], noises, start) != follow(seeds[1], noises, start):
            return f"even with the same numbers in the generators that are seen, {_OWN_LUCK}"
        free = [follow(seed, noises) for seed in seeds]
        if any(one[0] == other[0] and one != other for one, other in itertools.pairwise(free)):
            return f"although the same was shown first, {_OWN_LUCK}"
        return None
