"""Are the states of an environment brought back in full? A quick look before planning.

A plan itself checks rewards and successors, in every call.
"""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pacplan.models.pickles import content_or_none

if TYPE_CHECKING:
    from pacplan.models.environments import GymnasiumSimulator

_STATES_A_WALK, _REPEATS, _STEPS_BETWEEN = 8, 4, 2
_UNSEEN = (
    "after a reset and the actions {}, with the same random numbers, the environment gave {} and then "
    "{}, from the state that was brought back. It has state or randomness that copies do not see, such "
    "as a module's own random generator, an object outside Python or an array that is a view of "
    "another. Let its attributes hold it, or pass check=False if only its randomness is its own"
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

    It ends with a walk after a number of draws or seconds, whichever comes first; or with a problem.
    """
    rng, deadline = np.random.default_rng(seed), time.perf_counter() + seconds
    rewards: list[float] = []
    most, problem = 1, ""
    while not problem and (not rewards or (len(rewards) < draws and time.perf_counter() < deadline)):
        paid, successors, problem = _walk(env, rng)
        rewards += paid
        most = max(most, successors)
    problems = (problem,) if problem else ()
    return Preflight(len(rewards), most, (float(min(rewards)), float(max(rewards))), problems)


def _walk(env: "GymnasiumSimulator", rng: np.random.Generator) -> tuple[list[float], int, str]:
    """A random walk in one go; and again, bringing back each state on the way.

    Returns rewards, the largest number of successors of a state and action, and what went wrong.
    """
    seed, lucks = int(rng.integers(2**32)), rng.random(_STATES_A_WALK).tolist()
    streams = ((luck, np.random.default_rng([seed, k])) for k, luck in enumerate(lucks))
    played = list(env.walk(np.random.default_rng(seed), streams))[1:]
    state, rewards, most = env.reset(np.random.default_rng(seed)), list[float](), 1
    for k, (action, *expected) in enumerate(played):
        drawn = [env.draw(state, action, rng) for _ in range(_REPEATS)]
        rewards += [reward for _, reward, _ in drawn]
        most = max(most, len({successor for successor, _, _ in drawn}))
        # What is played in between must make no difference.
        list(env.walk(rng, ((luck, rng) for luck in rng.random(_STEPS_BETWEEN))))
        observation, after, *rest = env.observe(state, action, np.random.default_rng([seed, k]))
        # The same random numbers have the same outcome, if the state is brought back in full.
        if rest != expected[1:] or content_or_none(observation) != content_or_none(expected[0]):
            actions = [one[0] for one in played[: k + 1]]
            return rewards, most, _UNSEEN.format(actions, expected, [observation, *rest])
        if after is not None:
            state = after
    return rewards, most, ""
