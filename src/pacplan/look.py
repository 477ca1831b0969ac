"""What a few dozen calls show of a model, before it is planned in: the choice of a planner rests on it.

No certificate does: the calls are thrown away, so no delta is spent on them.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from pacplan.compiled.streams import streams
from pacplan.engine.caller import Caller
from pacplan.models.protocol import Model

# Calls of each of the first actions of the state, random episodes, and their steps.
_DRAWS, _ACTIONS, _EPISODES, _STEPS = 12, 4, 8, 8


@dataclass(frozen=True)
class Look:
    """What was seen.

    Attributes:
        calls: how many calls were made.
        again: calls of a pair that had been called before.
        recurred: of those, how many led where an earlier call of the pair had.
        varied: of those, how many differed from the first, in reward or successor.
        reached: states reached in random episodes.
        states: different ones among them.
    """

    calls: int
    again: int
    recurred: int
    varied: int
    reached: int
    states: int

    @property
    def successors_recur(self) -> bool:
        """Whether one call in twenty, of pairs called before, led where an earlier one had."""
        return self.again == 0 or 20 * self.recurred > self.again

    @property
    def states_recur(self) -> bool:
        """Whether at least half of the states that were reached had been reached before."""
        return self.states > 0 and 2 * self.states <= self.reached

    @property
    def some_states_recur(self) -> bool:
        """Whether at least a tenth of them had."""
        return 10 * self.states <= 9 * self.reached


def look(
    model: Model, state: Any, horizon: int, seed: np.random.SeedSequence, seconds: float | None = None
) -> Look:
    """Call the first actions of a state again and again, then play a few random episodes.

    Args:
        model: the problem.
        state: where to look from.
        horizon: most steps of an episode.
        seed: of the calls; its children are used, and no others.
        seconds: after the first call, after which no other is made; None: there is no such limit.
    """
    (ties,) = streams(seed, 1)
    first: dict[tuple[int, int, int], tuple[int | None, float]] = {}
    after: dict[tuple[int, int, int], set[int | None]] = {}
    calls = again = recurred = varied = 0
    reached: list[int] = []
    with Caller(model, state, seed, horizon) as caller:
        root = caller.start()

        def call(at: int, action: int, h: int) -> int | None:
            nonlocal calls, again, recurred, varied
            pair = caller.pair(at, action, h)
            drawn = caller.call(at, action, h)
            calls += 1
            if pair in first:
                again += 1
                recurred += drawn[0] in after[pair]
                varied += drawn != first[pair]
            first.setdefault(pair, drawn)
            after.setdefault(pair, set()).add(drawn[0])
            return drawn[0]

        def late() -> bool:
            return seconds is not None and time.perf_counter() > began + seconds

        offered = caller.actions(root, 0)
        # Compilation, if the first call needs it, does not count.
        call(root, 0, 0)
        began = time.perf_counter()
        for draw in range(1, _DRAWS * min(offered, _ACTIONS)):
            if not late():
                call(root, draw % min(offered, _ACTIONS), 0)
        for _ in range(_EPISODES):
            at: int | None = root
            for h in range(min(horizon, _STEPS)):
                if at is None or late():
                    break
                at = call(at, int(ties.random() * caller.actions(at, h)), h)
                if at is not None:
                    reached.append(at)
    return Look(calls, again, recurred, varied, len(reached), len(set(reached)))
