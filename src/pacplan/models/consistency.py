"""Does an environment do what its model promises? A quick look before planning."""

import sys
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pacplan.core import checks
from pacplan.core.keys import same
from pacplan.models.copying import EnvState
from pacplan.models.pickles import content_or_none

if TYPE_CHECKING:
    from pacplan.models.environments import GymnasiumSimulator

_STATES_A_WALK = 8
_REPEATS = 4
_STEPS_BETWEEN = 2
# States of one key: how many are kept, pairs that are compared, and actions that are tried.
_TWINS, _MOST_COMPARED, _MOST_TRIED = 4, 32, 8
# How many outcomes are drawn of two states with the same key, and how much the frequencies of one of
# them must differ. With the same law they do so with probability at most 2 exp(-256 * 0.3^2) = 2e-10
# in the second look, and 4^-16 = 2e-10 in the first.
_LOOKS = ((16, 1.0), (256, 0.3))
_UNSEEN = (
    "The environment has state or randomness that copies do not see (a module's own random generator, "
    "an object outside Python, an array that is a view of another): pass save= and restore=, or "
    "check=False if only its randomness is its own"
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
        restored: whether states that were brought back went on as they had before, as far as was seen.
    """

    draws: int
    successors: int
    rewards: tuple[float, float]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    restored: bool = True

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
    successors: int | None,
    reward_range: tuple[float, float] | None,
    *,
    draws: int,
    seed: int = 0,
    seconds: float = float("inf"),
) -> Preflight:
    """Play random walks, in one go and by bringing back states, and draw from each state repeatedly.

    It ends after a number of draws or seconds, whichever comes first, with at least one whole walk.
    """
    look = _Look(env, successors, reward_range, np.random.default_rng(seed))
    look.until(draws, time.perf_counter() + seconds)
    return Preflight(
        look.drawn,
        look.most,
        (float(look.lowest), float(look.highest)),
        tuple(look.problems.values()),
        env.notes,
        look.problems.keys().isdisjoint(("shared", "hidden", "restored")),
    )


class _Look:
    """What was seen so far."""

    def __init__(
        self,
        env: "GymnasiumSimulator",
        successors: int | None,
        reward_range: tuple[float, float] | None,
        rng: np.random.Generator,
    ) -> None:
        self._env, self._rng = env, rng
        self._successors, self._range = successors, reward_range
        self._alike: dict[Hashable, list[EnvState]] = {}
        self._compared = 0
        self.problems: dict[str, str] = {}
        self.lowest, self.highest, self.most, self.drawn = np.inf, -np.inf, 1, 0

    def until(self, draws: int, deadline: float) -> None:
        """Walk until there were so many draws, or it is late."""
        self._draws, self._deadline = draws, deadline
        while not self.drawn or not self._enough():
            self._walk(whole=not self.drawn)
        changed = self._env.changed()
        if changed is not None:
            self.problems["shared"] = changed

    def _enough(self) -> bool:
        return self.drawn >= self._draws or time.perf_counter() >= self._deadline

    def _walk(self, whole: bool) -> None:
        """A random walk, in one go; and again, bringing back each state on the way."""
        env, rng = self._env, self._rng
        seed = int(rng.integers(2**32))
        lucks = rng.random(_STATES_A_WALK).tolist()
        streams = [(luck, np.random.default_rng([seed, k])) for k, luck in enumerate(lucks)]
        played = env.play(np.random.default_rng(seed), streams)
        hidden = env.hidden_randomness(rng, lucks)
        if hidden is not None:
            self.problems["hidden"] = hidden
        _, state = env.reset(np.random.default_rng(seed))
        self._meet(state)
        for k, (action, *expected) in enumerate(played):
            self._draw(state, action)
            found: list[Any] = []
            for _ in range(2):
                # What is played in between must make no difference.
                self.drawn += len(env.play(rng, [(luck, rng) for luck in rng.random(_STEPS_BETWEEN)]))
                found.append(env.observe(state, action, np.random.default_rng([seed, k])))
                self.drawn += 1
            self._compare(state, [action for action, *_ in played[: k + 1]], expected, found)
            successor = found[0][1]
            if successor is None:
                return
            self._meet(successor)
            state = successor
            if not whole and self._enough():
                return

    def _compare(self, state: EnvState, actions: list[Any], expected: Any, found: list[Any]) -> None:
        """Is a state brought back in full? Then the same random numbers have the same outcome."""
        one, other = found
        here, there, differ = (one[0], *one[2:]), (other[0], *other[2:]), ""
        if _alike(here, there) and one[1] != other[1]:
            here, there, differ = one[1], other[1], self._apart([one[1], other[1]])
        elif _alike(here, there):
            here, there = tuple(expected), here
            if _alike(here, there):
                return
        self.problems["restored"] = (
            f"after a reset and the actions {actions}, with the same random numbers, the environment "
            f"gave {here} and then {there}, brought back to {state!r}{differ}. {_UNSEEN}"
        )

    def _draw(self, state: EnvState, action: Any) -> None:
        """Draw several times from a state: rewards and successors."""
        where = f"action {action!r} in state {state!r}"
        low, high = self._range or (-sys.float_info.max, sys.float_info.max)
        rounding = 0.0 if self._range is None else checks.REWARD_ROUNDING * (high - low)
        seen: dict[EnvState | None, EnvState | None] = {}
        for _ in range(_REPEATS):
            successor, reward, _ = self._env.draw(state, action, self._rng)
            self.drawn += 1
            self.lowest, self.highest = min(self.lowest, reward), max(self.highest, reward)
            if not low - rounding <= reward <= high + rounding:
                self.problems["reward"] = f"{where} paid {reward}, outside reward_range={self._range}"
            seen.setdefault(successor, successor)
        self.most = max(self.most, len(seen))
        if self._successors is not None and len(seen) > self._successors:
            self.problems["successors"] = (
                f"{where} has led to {len(seen)} different states, but successors={self._successors}"
                + self._apart([found for found in seen.values() if found is not None])
            )

    def _apart(self, found: Sequence[EnvState]) -> str:
        """What some states differ in, in words."""
        if self._env.needs_observations or len(found) < 2:
            return ""
        names = self._env.differences(found[0], found[1])
        return f". They differ in {names}; {self._env.if_too_many}"

    def _meet(self, state: EnvState) -> None:
        """Compare a state with others of the same key, which promises that the same follows them."""
        if not self._env.needs_observations or "alike" in self.problems:
            return
        others = self._alike.setdefault(state.key, [])
        if len(others) >= _TWINS or any(state.saved == other.saved for other in others):
            return
        for other in others:
            late = time.perf_counter() >= self._deadline
            if self._compared >= _MOST_COMPARED or (self._compared and late):
                break
            self._compared += 1
            difference = self._difference(other, state)
            if difference is not None:
                self.problems["alike"] = (
                    f"states with the same key have different futures: {other!r} and {state!r} differ "
                    f"in {self._env.differences(other, state)}, and {difference}. Leave key= out, or "
                    "make it tell them apart"
                )
                break
        others.append(state)

    def _difference(self, one: EnvState, other: EnvState) -> str | None:
        """What shows that different things follow two states, in words; None: nothing did."""
        offered = [list(self._env.actions(state)) for state in (one, other)]
        if not same(*offered):
            return f"they offer the actions {offered[0]} and {offered[1]}"
        for i in self._rng.permutation(len(offered[0]))[:_MOST_TRIED]:
            for samples, apart in _LOOKS:
                seeds = self._rng.integers(2**32, size=samples).tolist()
                seen = [
                    [self._outcome(state, actions[i], seed) for seed in seeds]
                    for state, actions in zip((one, other), offered, strict=True)
                ]
                if seen[0] == seen[1]:
                    break
                # Perhaps they only use random numbers in a different way.
                counts = list(map(Counter, seen))
                if any(
                    abs(counts[0][x] - counts[1][x]) >= apart * samples for x in {*seen[0], *seen[1]}
                ):
                    return f"the action {offered[0][i]} has different outcomes"
        return None

    def _outcome(self, state: EnvState, action: Any, seed: int) -> tuple[Hashable, float]:
        successor, reward, _ = self._env.draw(state, action, np.random.default_rng(seed))
        return None if successor is None else successor.key, float(reward)


def _alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether (observation, reward, ended) are the same, as far as can be seen."""
    return one[1:] == other[1:] and content_or_none(one[0]) == content_or_none(other[0])
