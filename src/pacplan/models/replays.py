"""Environments that cannot be copied, brought back to an earlier state by playing it again.

A state is a `Past`: the seed of a reset, and the actions taken since, each with the seed of the random
numbers of its step. `Replays` hold another environment of the same kind. To bring it to a state, they
reset it with the seed and take the actions, each after giving the generators the state that its seed
leads to. So what has happened stays the same, and a new step draws anew. Invariants:

* The past of the user's environment was recorded, and its generators went on by themselves: so they do
  when it is replayed.
* A state on the bench is stepped at once if it is the one asked for, or one on the way to it; else the
  past is replayed from the reset: a call after n steps costs at most n + 1.
* Whatever a replay shows is compared with what was shown the first time.
* Nothing is known of the content of a state, so only states with the same past are the same, or those
  of which the user's key says so. The seed of a step is a part of the past only if the step used it.
"""

import copy
import itertools
import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pacplan.models import forms
from pacplan.models.bench import Actions, Bench, EnvState, chosen
from pacplan.models.layers import (
    RECORDER,
    all_layers,
    another,
    generators_in,
    layers_of,
    names_of,
    relinked,
    seed,
)
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
        reward: what the step paid.
        shown: the form of the observation; None: it has none.
        length: number of steps since the reset.
        mark: what identifies it.
        certain: what steps from here that used no random numbers have led to, by their marks.
    """

    __slots__ = ("action", "before", "certain", "length", "mark", "noise", "reward", "shown")

    def __init__(
        self,
        before: "Past | None",
        action: Any,
        noise: int | None,
        reward: float,
        observation: Any,
        used: bool = False,
    ) -> None:
        self.before, self.action, self.noise = before, action, noise
        self.reward, self.shown = reward, form_or_none(observation)
        self.length: int = 0 if before is None else before.length + 1
        content = (None if before is None else before.mark, action, noise if used else None)
        self.mark: bytes = form_or_none(content) or b"%d" % next(_counter)
        self.certain: dict[bytes, tuple[Any, ...]] = {}

    def steps(self) -> Iterator["Past"]:
        """From this one back to the reset."""
        past: Past | None = self
        while past is not None:
            yield past
            past = past.before

    def __repr__(self) -> str:
        reset, *later = [past.action for past in self.steps()][::-1]
        return f"reset(seed={reset[0]}), then {later}"


def form_or_none(thing: Any) -> bytes | None:
    """What a thing holds, in a form that can be compared; None: that cannot be seen."""
    try:
        return forms.form(thing)
    except forms.UnidentifiedError:
        return None


class Replays(Bench):
    """Another environment of the same kind, which plays the past again to reach a state.

    Args:
        env: the environment, with its wrappers. To plan from where it is, it must have been recorded.
        actions: as for `Bench`.
        key: as for `Bench`.
        redraw: as for `Bench`.
        time_limit: whether `TimeLimit` wrappers are a part of the problem.
    """

    if_too_many = "leave out successors=, or pass key=, since replayed states are known by it alone"

    def __init__(
        self,
        env: Any,
        *,
        actions: Actions,
        key: Callable[[Any], Hashable] | None,
        time_limit: bool,
        redraw: Callable[[Any, np.random.Generator], None] | None = None,
    ) -> None:
        self._time_limit = time_limit
        live = layers_of(env, time_limit=time_limit)
        own = layers_of(another(env, copied=False), time_limit=time_limit)
        if [type(layer) for layer in own] != [type(layer) for layer in live]:
            raise ValueError(f"another {names_of(live)} turned out to be {names_of(own)}")
        super().__init__(relinked(own), actions=actions, key=key, redraw=redraw)
        self.steps_taken = 0
        self._at: Past | None = None  # What is on the bench.
        self._random: dict[int, set[str]] = {}
        self._look_for_generators()

    def _look_for_generators(self) -> None:
        """Find the attributes that lead to generators, by playing a little."""
        rng = np.random.default_rng(0)
        for _ in range(3):
            self.top.reset(seed=int(rng.integers(2**31)))
            for _ in range(9):
                for i, layer in enumerate(self.layers):
                    passing = {id(other) for other in self.layers}
                    found = self._random.setdefault(i, set())
                    for name, value in vars(layer).items():
                        if name not in found and list(generators_in([value], passing)):
                            found.add(name)
                actions = self.offered()
                if self._step(actions[int(rng.integers(len(actions)))])[2]:
                    break
        self._clear()

    def _current_generators(self) -> Iterable[Any]:
        passing = {id(layer) for layer in self.layers}
        held = [
            vars(self.layers[i])[name]
            for i, names in self._random.items()
            for name in sorted(names)
            if name in vars(self.layers[i])
        ]
        return generators_in(held, passing)

    @property
    def cost(self) -> str:
        """What a call costs."""
        return (
            "states are replayed: a call n steps after the reset costs up to n + 1 steps of the "
            "environment, and only states with the same past are the same, unless key= says otherwise"
        )

    def forget_stream(self) -> None:
        """Nothing: each step has a seed of its own."""

    def _clear(self) -> None:
        self._at = None

    def put(self, state: EnvState) -> None:
        """Bring the environment on the bench to a state."""
        (past,) = state.saved
        self._bring_to(past)

    def _bring_to(self, goal: Past) -> None:
        at, self._at = self._at, None
        missing = []
        for past in goal.steps():
            if at is not None and past.mark == at.mark:
                break
            missing.append(past)
        for past in reversed(missing):
            if past.before is None:
                seed_of_reset, options = past.action
                observation, _ = self.top.reset(seed=seed_of_reset, options=copy.deepcopy(options))
                reward, ended = 0.0, False
            else:
                observation, reward, ended, _ = self._noisy_step(past.action, past.noise)
            shown = form_or_none(observation)
            if ended or shown != past.shown or not _equal(reward, past.reward):
                first = (past.reward, False, past.shown)
                raise self._irreproducible(past, first, (reward, ended, shown))
        self._at = goal

    def _irreproducible(
        self, past: Past, first: tuple[Any, ...], now: tuple[Any, ...]
    ) -> BrokenPromiseError:
        """Says that what happened once has not happened again."""
        ends = ["ended" if ended else "did not end" for _, ended, _ in (first, now)]
        shown = "something else" if first[2] != now[2] else "the same"
        return BrokenPromiseError(
            f"{self!r} cannot be replayed: {past!r} first paid {first[0]} and {ends[0]}; with the same "
            f"random numbers it then paid {now[0]}, {ends[1]}, and showed {shown}. There is randomness "
            "that does not come from its own generators, or it keeps something from one episode to "
            "the next; pass save= and restore="
        )

    def _noisy_step(self, action: Any, noise: int | None) -> tuple[Any, Any, bool, bool]:
        """One step with the random numbers of a seed; also whether it used any."""
        self.steps_taken += 1
        if noise is None:
            return *self._step(action), False
        rng = np.random.default_rng(noise)
        generators = list(self._current_generators())
        for generator in generators:
            seed(generator, int(rng.integers(2**32)))
        before = [_position(generator) for generator in generators]
        if self._redraw is not None:
            self._redraw(self.base, rng)
        observation, reward, ended = self._step(action)
        used = self._redraw is not None or before != [_position(g) for g in generators]
        return observation, reward, ended, used

    def _reset(self, rng: np.random.Generator) -> Any:
        self._clear()
        reset = int(rng.integers(2**31)), None
        observation, _ = self.top.reset(seed=reset[0])
        self._at = Past(None, reset, None, 0.0, observation)
        return observation

    def _stepped(self, action: Any, rng: np.random.Generator) -> tuple[Any, Any, bool]:
        before, self._at = self._at, None
        assert before is not None
        noise = int(rng.integers(2**63))
        observation, reward, ended, used = self._noisy_step(action, noise)
        past = Past(before, action, noise, reward, observation, used)
        if not used:
            now = reward, ended, past.shown
            first = before.certain.setdefault(past.mark, now)
            if first[1:] != now[1:] or not _equal(first[0], now[0]):
                raise self._irreproducible(past, first, now)
        self._at = None if ended else past
        return observation, reward, ended

    def _taken(self, observation: Any) -> EnvState:
        past = self._at
        assert past is not None
        return EnvState(past.mark if self._key is None else self._keyed(observation), [past])

    def identify(self, saved: list[Any]) -> Hashable:
        """What identifies a past."""
        mark: bytes = saved[0].mark
        return mark

    def differences(self, one: EnvState, other: EnvState) -> list[str]:
        """States are known by their past alone."""
        return ["what led to them"]

    def hidden_randomness(self, rng: np.random.Generator, lucks: Sequence[float]) -> str | None:
        """What shows that draws do not come from the generators that are seen, in words.

        What comes after a reset is played several times. After resets with the same seed it must be the
        same, whatever the generators did before. With other seeds of resets and the same random numbers
        in all steps, it must be the same if these generators had the same states before the reset; and
        if the first observation is the same. (It need not be, if a part of the state is drawn by the
        reset and not shown. But that cannot be told from luck to come.)
        """
        noises, start = rng.integers(2**63, size=len(lucks)).tolist(), int(rng.integers(2**63))
        with self._lock:
            alone = [self._alone(rng, lucks, start) for _ in range(2)]
            if alone[0] != alone[1]:
                return (
                    "what follows reset(seed=...) is not always the same, so that its past cannot be "
                    "played again; let reset seed all of its generators, or pass save= and restore="
                )
            given = [self._after_reset(rng, lucks, noises, start) for _ in range(2)]
            if given[0] != given[1]:
                return f"even with the same numbers in the generators that are seen, {_OWN_LUCK}"
            free = [self._after_reset(rng, lucks, noises) for _ in range(_RESETS)]
        for one, other in itertools.pairwise(free):
            if one[0] == other[0] and one != other:
                return f"although the same was shown first, {_OWN_LUCK}"
        return None

    def _alone(
        self, rng: np.random.Generator, lucks: Sequence[float], start: int
    ) -> list[bytes | None]:
        """What follows a reset with a seed while the generators go on by themselves."""
        self._clear()
        self.seed(rng)
        observation, _ = self.top.reset(seed=start % 2**31)
        seen = [form_or_none(observation)]
        for luck in lucks:
            observation, reward, ended = self._step(chosen(self.offered(), luck))
            seen.append(form_or_none((observation, reward, ended)))
            if ended:
                break
        return seen

    def _after_reset(
        self,
        rng: np.random.Generator,
        lucks: Sequence[float],
        noises: Sequence[int],
        start: int | None = None,
    ) -> list[bytes | None]:
        """What follows a reset with any seed, and a second one from a state of the generators."""
        observation = self._reset(rng)
        if start is not None:
            self.seed(np.random.default_rng(start))
            observation, _ = self.top.reset()
            self._at = Past(None, (None, None), None, 0.0, observation)
        shown = form_or_none(observation)
        played = self._played(zip(lucks, map(np.random.default_rng, noises), strict=True))
        return [shown, *map(form_or_none, played)]

    def state_of(self, env: Any, observation: Any = None) -> EnvState:
        """The state that a recorded environment of the same kind is in now."""
        live = layers_of(env, time_limit=self._time_limit)
        if [type(layer) for layer in live] != [type(layer) for layer in self.layers]:
            raise ValueError(
                f"the model is one of {names_of(self.layers)}, but this environment is {names_of(live)}"
            )
        recorder = all_layers(env)[0]
        if type(recorder).__name__ != RECORDER:
            raise ValueError(
                f"{type(self.base).__name__} cannot be copied, so it must be known how it got where it "
                "is: wrap it before you reset it, env = pacplan.recorded(env), and use that"
            )
        if recorder.start is None or recorder.over:
            raise ValueError("the environment has no state; call env.reset() before planning")
        past = Past(None, recorder.start, None, 0.0, None)
        past.shown = recorder.first
        for action, reward, shown in recorder.steps:
            past = Past(past, action, None, reward, None)
            past.shown = shown
        with self._lock:
            self._bring_to(past)
        if self._key is None:
            return EnvState(past.mark, [past])
        return EnvState(object() if observation is None else self._keyed(observation), [past])


def _position(generator: Any) -> bytes:
    """Where a generator stands in its sequence of numbers."""
    if isinstance(generator, np.random.Generator):
        return pickle.dumps(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return pickle.dumps(generator.get_state())
    return pickle.dumps(generator.getstate())


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)
