"""Does an environment do what its model promises? A quick look before planning."""

import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pacplan import _checks
from pacplan.models.snapshots import EnvState, Workbench

_STATES_A_WALK = 8
_REPEATS = 4


@dataclass(frozen=True)
class Preflight:
    """What some draws from an environment have shown.

    Attributes:
        draws: how many there were.
        successors: most distinct next states seen after one state and action. The promise B must be
            at least this; it may have to be more, since rare successors take many draws to see.
        rewards: lowest and highest reward seen.
        problems: broken promises, in words; none if all is well.
        changed: attributes that had been taken for constant and are not.
    """

    draws: int
    successors: int
    rewards: tuple[float, float]
    problems: tuple[str, ...]
    changed: tuple[str, ...] = ()

    def __str__(self) -> str:
        low, high = self.rewards
        seen = (
            f"{self.draws} draws: at most {self.successors} successors of a state and action, "
            f"rewards from {low:g} to {high:g}"
        )
        return "\n".join([seen, *(f"problem: {problem}" for problem in self.problems)])


def examine(
    bench: Workbench,
    actions: tuple[Hashable, ...],
    *,
    draws: int,
    successors: int | None,
    reward_range: tuple[float, float] | None,
    seed: int,
    seconds: float = float("inf"),
) -> Preflight:
    """Draw from states along random walks, each state and action several times.

    It ends after so many draws or seconds, whichever comes first, with two pairs at least.
    """
    rng = np.random.default_rng(seed)
    problems: dict[str, str] = {}
    lowest, highest, most, drawn = np.inf, -np.inf, 1, 0
    walk = _walk(bench, actions, rng)
    deadline = time.perf_counter() + seconds
    while drawn < draws and (drawn < 2 * (3 + _REPEATS) or time.perf_counter() < deadline):
        state, action = next(walk)
        where = f"action {action!r} in state {state!r}"
        seen = set()
        for _ in range(_REPEATS):
            successor, reward, ended = bench.draw(state, action, rng)
            drawn += 1
            lowest, highest = min(lowest, reward), max(highest, reward)
            if not np.isfinite(reward) or _outside(reward, reward_range):
                problems["reward"] = f"{where} paid {reward}, outside reward_range={reward_range}"
            try:
                seen.add(None if ended else successor)
            except Exception as error:
                problems["key"] = (
                    f"the key of what follows {where} does not hash and compare "
                    f"({type(error).__name__}: {error}); return tuples, strings or numbers from key="
                )
        most = max(most, len(seen))
        if successors is not None and len(seen) > successors:
            problems["successors"] = (
                f"{where} has led to {len(seen)} different states, but successors={successors}"
            )
        if "key" not in problems:
            problems |= _replay(bench, state, action, rng)
            drawn += 3
    return Preflight(
        drawn,
        most,
        (float(lowest), float(highest)),
        tuple(problems.values()),
        tuple(bench.changed_constants()),
    )


def _walk(
    bench: Workbench, actions: tuple[Hashable, ...], rng: np.random.Generator
) -> Iterator[tuple[EnvState, Any]]:
    """States along random walks, with an action to try in each."""
    while True:
        state = bench.reset(rng)
        for _ in range(_STATES_A_WALK):
            action = actions[int(rng.integers(len(actions)))]
            yield state, action
            successor, _, ended = bench.draw(state, action, rng)
            if ended or successor is None:
                break
            state = successor


def _replay(bench: Workbench, state: EnvState, action: Any, rng: np.random.Generator) -> dict[str, str]:
    """Whether a state is brought back in full: the same random numbers must have the same outcome."""
    seed = int(rng.integers(2**32))
    first = bench.draw(state, action, np.random.default_rng(seed))
    if not first[2]:
        bench.draw(first[0], action, rng)  # type: ignore[arg-type]
    again = bench.draw(state, action, np.random.default_rng(seed))
    if first == again:
        return {}
    return {
        "replay": f"action {action!r} in state {state!r}, replayed with the same random numbers, gave "
        f"{first} and then {again}. The environment has state or randomness that copies do not see "
        "(a module's own random generator, an object outside Python): pass save= and restore=, or "
        "check=False if only its randomness is its own"
    }


def _outside(reward: float, reward_range: tuple[float, float] | None) -> bool:
    if reward_range is None:
        return False
    low, high = reward_range
    rounding = _checks.REWARD_ROUNDING * (high - low)
    return not low - rounding <= reward <= high + rounding
