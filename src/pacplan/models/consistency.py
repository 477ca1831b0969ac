"""Does an environment do what its model promises? A quick look before planning."""

import sys
import time
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pacplan.core import checks
from pacplan.core.keys import same
from pacplan.models.pickles import content_or_none
from pacplan.models.states import EnvState

if TYPE_CHECKING:
    from pacplan.models.environments import GymnasiumSimulator

_STATES_A_WALK, _REPEATS, _STEPS_BETWEEN = 8, 4, 2
# States of one key: how many are kept, pairs that are compared, and actions that are tried.
_TWINS, _MOST_COMPARED, _MOST_TRIED = 4, 32, 8
# How many outcomes are drawn of two states with the same key, and how much the frequencies of one of
# them must differ. With the same law they do so with probability at most 2 exp(-64 * 0.6^2) = 2e-10.
_SAMPLES, _APART = 64, 0.6
_UNSEEN = (
    "The environment has state or randomness that copies do not see (a module's own random generator, "
    "an object outside Python, an array that is a view of another): pass save= and restore=, wrap it "
    "in pacplan.recorded, or pass check=False if only its randomness is its own"
)
_RESETS = 4
_OWN_LUCK = (
    "although the same was shown first, what follows depends on the seed that was given to reset. So "
    "there is randomness of its own, or luck that is drawn in advance, and every replay would have the "
    "same luck, which nobody can know. Pass save= and restore=, or check=False to plan for someone who "
    "knows that luck"
)
_REPLAYED = (
    "states are replayed: a call n steps after the reset costs up to n + 1 steps of the environment, "
    "and only states with the same past are the same, unless key= says otherwise"
)


@dataclass(frozen=True)
class Preflight:
    """What some draws from a model have shown.

    Attributes:
        draws: how many there were.
        successors: most distinct next states seen after one state and action. The promise B must be
            at least this; it may have to be more, since rare successors take many draws to see.
        rewards: lowest and highest reward seen.
        problems: broken promises, in words; none if all is well.
        notes: what is good to know but breaks no promise, in words.
    """

    draws: int
    successors: int
    rewards: tuple[float, float]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        low, high = self.rewards
        seen = (
            f"{self.draws} draws: at most {self.successors} successors of a state and action, "
            f"rewards from {low:g} to {high:g}"
        )
        problems = [f"problem: {problem}" for problem in self.problems]
        return "\n".join([seen, *problems, *(f"note: {note}" for note in self.notes)])


def examine(
    env: "GymnasiumSimulator",
    reward_range: tuple[float, float] | None,
    *,
    draws: int,
    seed: int = 0,
    seconds: float = float("inf"),
) -> Preflight:
    """Play random walks, in one go and by bringing back states, and draw from each state repeatedly.

    It ends with a walk after a number of draws or seconds, whichever comes first.
    """
    look = _Look(env, reward_range, np.random.default_rng(seed), time.perf_counter() + seconds)
    while not look.drawn or (look.drawn < draws and not look.late()):
        look.walk()
    rewards = float(look.lowest), float(look.highest)
    notes = (_REPLAYED,) if env.replayed else ()
    return Preflight(look.drawn, look.most, rewards, tuple(look.problems.values()), notes)


class _Look:
    """What was seen so far."""

    def __init__(
        self,
        env: "GymnasiumSimulator",
        reward_range: tuple[float, float] | None,
        rng: np.random.Generator,
        deadline: float,
    ) -> None:
        self._env, self._rng, self._deadline = env, rng, deadline
        self._range = reward_range or (-sys.float_info.max, sys.float_info.max)
        self._rounding = 0.0
        if reward_range is not None:
            self._rounding = checks.REWARD_ROUNDING * (reward_range[1] - reward_range[0])
        self._alike: dict[Hashable, list[EnvState]] = {}
        self._compared = 0
        self.problems: dict[str, str] = {}
        self.lowest, self.highest, self.most, self.drawn = np.inf, -np.inf, 1, 0

    def late(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() >= self._deadline

    def walk(self) -> None:
        """A random walk, in one go; and again, bringing back each state on the way."""
        env, rng = self._env, self._rng
        seed, lucks = int(rng.integers(2**32)), rng.random(_STATES_A_WALK).tolist()
        streams = [(luck, np.random.default_rng([seed, k])) for k, luck in enumerate(lucks)]
        played = env.play(np.random.default_rng(seed), streams)
        if env.replayed:
            self._compare_resets(seed, lucks)
        state: EnvState | None = env.reset(np.random.default_rng(seed))[1]
        for k, (action, *expected) in enumerate(played[1:]):
            assert state is not None
            self._meet(state)
            self._draw(state, action)
            # What is played in between must make no difference.
            self.drawn += 1 + len(env.play(rng, [(luck, rng) for luck in rng.random(_STEPS_BETWEEN)]))
            observation, successor, *rest = env.observe(state, action, np.random.default_rng([seed, k]))
            # The same random numbers have the same outcome, if the state is brought back in full.
            if rest != expected[1:] or content_or_none(observation) != content_or_none(expected[0]):
                self.problems["restored"] = (
                    f"after a reset and the actions {[one[0] for one in played[1 : k + 2]]}, with the "
                    f"same random numbers, the environment gave {expected} and then "
                    f"{[observation, *rest]}, brought back to {state!r}. {_UNSEEN}"
                )
                return
            state = successor

    def _compare_resets(self, seed: int, lucks: list[float]) -> None:
        """Play again after other resets: if the same is shown first, all must be the same.

        It need not be, if a part of the state is drawn by the reset and not shown. But that cannot be
        told from luck to come.
        """
        walks = []
        for start in self._rng.integers(2**32, size=_RESETS):
            streams = [(luck, np.random.default_rng([seed, k])) for k, luck in enumerate(lucks)]
            played = self._env.play(np.random.default_rng(start), streams)
            walks.append([content_or_none(one[1:]) for one in played])
        if any(one[0] == other[0] and one != other for one, other in pairwise(walks)):
            self.problems["hidden"] = _OWN_LUCK

    def _draw(self, state: EnvState, action: Any) -> None:
        """Draw several times from a state: rewards and successors."""
        env, where = self._env, f"action {action!r} in state {state!r}"
        low, high = self._range
        seen: dict[EnvState | None, EnvState | None] = {}
        for _ in range(_REPEATS):
            successor, reward, _ = env.draw(state, action, self._rng)
            self.drawn += 1
            self.lowest, self.highest = min(self.lowest, reward), max(self.highest, reward)
            if not low - self._rounding <= reward <= high + self._rounding:
                self.problems["reward"] = f"{where} paid {reward}, outside reward_range={self._range}"
            seen.setdefault(successor, successor)
        self.most = max(self.most, len(seen))
        if env.successors is not None and len(seen) > env.successors:
            self.problems["successors"] = (
                f"{where} has led to {len(seen)} different states, but successors={env.successors}"
            )
            alone = [found for found in seen.values() if found is not None]
            if env.replayed:
                self.problems["successors"] += (
                    "; leave out successors=, or pass key=, since replayed states are known by it alone"
                )
            elif not env.needs_observations and len(alone) > 1:
                self.problems["successors"] += (
                    f". They differ in {_differences(*alone[:2])}; name in ignore= what the future "
                    "does not depend on"
                )

    def _meet(self, state: EnvState) -> None:
        """Compare a state with others of the same key, which promises that the same follows them."""
        if not self._env.needs_observations or "alike" in self.problems:
            return
        others = self._alike.setdefault(state.key, [])
        if len(others) >= _TWINS or any(state.saved == other.saved for other in others):
            return
        for other in others:
            if self._compared >= _MOST_COMPARED or (self._compared and self.late()):
                break
            self._compared += 1
            if difference := self._difference(other, state):
                apart = "what led to them" if self._env.replayed else _differences(other, state)
                self.problems["alike"] = (
                    f"states with the same key have different futures: {other!r} and {state!r} differ "
                    f"in {apart}, and {difference}. Leave key= out, or make it tell them apart"
                )
                break
        others.append(state)

    def _difference(self, one: EnvState, other: EnvState) -> str | None:
        """What shows that different things follow two states, in words; None: nothing did."""
        offered = [list(self._env.actions(state)) for state in (one, other)]
        if not same(*offered):
            return f"they offer the actions {offered[0]} and {offered[1]}"
        for i in self._rng.permutation(len(offered[0]))[:_MOST_TRIED]:
            here, there = (
                Counter(self._outcome(state, actions[i], seed) for seed in range(_SAMPLES))
                for state, actions in zip((one, other), offered, strict=True)
            )
            if any(abs(here[x] - there[x]) >= _APART * _SAMPLES for x in here | there):
                return f"the action {offered[0][i]} has different outcomes"
        return None

    def _outcome(self, state: EnvState, action: Any, seed: int) -> tuple[Hashable, float]:
        successor, reward, _ = self._env.draw(state, action, np.random.default_rng(seed))
        return None if successor is None else successor.key, float(reward)


def _differences(one: EnvState, other: EnvState) -> str:
    """Names of the attributes in which two states differ."""
    here, there = one.attributes(), other.attributes()
    both = here.keys() & there.keys()
    differing = {n for n in both if content_or_none(here[n]) != content_or_none(there[n])}
    return ", ".join(sorted(differing | (here.keys() ^ there.keys())))
