"""Are the states of an environment brought back in full? A quick look before planning.

A plan itself checks rewards and successors, in every call.
"""

import time
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pacplan.core.keys import same
from pacplan.models.pickles import content_or_none
from pacplan.models.states import EnvState

if TYPE_CHECKING:
    from pacplan.models.environments import GymnasiumSimulator

_STATES_A_WALK, _REPEATS, _STEPS_BETWEEN = 8, 4, 2
# How many outcomes are drawn of two states with the same key, and how much the frequencies of one of
# them must differ. With the same law they do so with probability at most 2 exp(-64 * 0.6^2) = 2e-10.
_MOST_COMPARED, _SAMPLES, _APART = 32, 64, 0.6
_UNSEEN = (
    "The environment has state or randomness that copies do not see, such as a module's own random "
    "generator, an object outside Python or an array that is a view of another. Let it be in attributes "
    "of the environment, or pass check=False if only its randomness is its own"
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
    env: "GymnasiumSimulator", *, draws: int, seed: int = 0, seconds: float = float("inf")
) -> Preflight:
    """Play random walks, in one go and by bringing back states, and draw from each state repeatedly.

    It ends with a walk after a number of draws or seconds, whichever comes first.
    """
    look, deadline = _Look(env, np.random.default_rng(seed)), time.perf_counter() + seconds
    while not look.rewards or (len(look.rewards) < draws and time.perf_counter() < deadline):
        look.walk()
    rewards = float(min(look.rewards)), float(max(look.rewards))
    return Preflight(len(look.rewards), look.most, rewards, tuple(look.problems.values()))


class _Look:
    """What was seen so far."""

    def __init__(self, env: "GymnasiumSimulator", rng: np.random.Generator) -> None:
        self._env, self._rng = env, rng
        self._alike: dict[Hashable, EnvState] = {}
        self._compared = 0
        self.problems: dict[str, str] = {}
        self.rewards: list[float] = []
        self.most = 1

    def walk(self) -> None:
        """A random walk, in one go; and again, bringing back each state on the way."""
        env, rng = self._env, self._rng
        seed, lucks = int(rng.integers(2**32)), rng.random(_STATES_A_WALK).tolist()
        streams = ((luck, np.random.default_rng([seed, k])) for k, luck in enumerate(lucks))
        played = list(env.walk(np.random.default_rng(seed), streams))
        state: EnvState | None = env.reset(np.random.default_rng(seed))
        for k, (action, *expected) in enumerate(played[1:]):
            assert state is not None
            if env.needs_observations:
                self._compare(state)
            drawn = [env.draw(state, action, rng) for _ in range(_REPEATS)]
            self.rewards += [reward for _, reward, _ in drawn]
            self.most = max(self.most, len({successor for successor, _, _ in drawn}))
            # What is played in between must make no difference.
            list(env.walk(rng, ((luck, rng) for luck in rng.random(_STEPS_BETWEEN))))
            observation, state, *rest = env.observe(state, action, np.random.default_rng([seed, k]))
            # The same random numbers have the same outcome, if the state is brought back in full.
            if rest != expected[1:] or content_or_none(observation) != content_or_none(expected[0]):
                self.problems["restored"] = (
                    f"after a reset and the actions {[one[0] for one in played[1 : k + 2]]}, with the "
                    f"same random numbers, the environment gave {expected} and then "
                    f"{[observation, *rest]}, from the state that was brought back. {_UNSEEN}"
                )
                return

    def _compare(self, state: EnvState) -> None:
        """Compare a state with the first of the same key, which promises that the same follows them."""
        first = self._alike.setdefault(state.key, state)
        if first.saved == state.saved or self._compared >= _MOST_COMPARED:
            return
        self._compared += 1
        states = first, state
        offered = [list(self._env.actions(one)) for one in states]
        i = int(self._rng.integers(len(offered[0])))
        difference = f"they offer the actions {offered[0]} and {offered[1]}"
        if same(*offered):
            difference = f"the action {offered[0][i]} has different outcomes"
            here, there = (
                Counter(self._outcome(one, actions[i], seed) for seed in range(_SAMPLES))
                for one, actions in zip(states, offered, strict=True)
            )
            if all(abs(here[x] - there[x]) < _APART * _SAMPLES for x in here | there):
                return
        self.problems["alike"] = (
            f"states with the same key have different futures: of {first!r} and {state!r}, "
            f"{difference}. Leave key= out, or make it tell them apart"
        )

    def _outcome(self, state: EnvState, action: Any, seed: int) -> tuple[Hashable, float]:
        successor, reward, _ = self._env.draw(state, action, np.random.default_rng(seed))
        return None if successor is None else successor.key, float(reward)
