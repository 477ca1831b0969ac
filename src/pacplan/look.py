"""What about a hundred calls show of a model, before it is planned in: a planner's choice rests on it.

No certificate does. What was not seen may be so all the same, and the calls are thrown away, so that no
delta is spent on them.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pacplan.compiled.streams import streams
from pacplan.engine.caller import Caller
from pacplan.engine.interrupts import Interrupt
from pacplan.engine.promises import REWARD_VARIES, TOO_MANY_SUCCESSORS
from pacplan.models.protocol import Model

# Calls of each of the first actions of the state, random episodes, and their steps.
_DRAWS, _ACTIONS, _EPISODES, _STEPS = 12, 4, 8, 8
MOST_CALLS = _DRAWS * _ACTIONS + _EPISODES * _STEPS
# Rewards are the same if they differ by no more than rounding, in parts of the width of their range.
_SAME_REWARD = 1e-9


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
        seconds: time that it took, without the first call.
    """

    calls: int
    again: int
    recurred: int
    varied: int
    reached: int
    states: int
    seconds: float = field(default=0.0, compare=False)

    @property
    def successors_recur(self) -> bool:
        """Whether one call in twenty, of pairs called before, led where an earlier one had."""
        return self.again == 0 or 20 * self.recurred > self.again

    @property
    def states_recur(self) -> bool:
        """Whether at least half of the states that were reached had been reached before."""
        return self.states > 0 and 2 * self.states <= self.reached


def look(
    model: Model,
    state: Any,
    horizon: int,
    seed: np.random.SeedSequence,
    *,
    seconds: float | None = None,
    deterministic: bool = False,
    same_rewards: bool = False,
    interrupt: Interrupt | None = None,
) -> Look:
    """Call the first actions of a state again and again, then play a few random episodes.

    Args:
        model: the problem.
        state: where to look from.
        horizon: most steps of an episode.
        seed: of the calls; its children are used, and no others.
        seconds: after the first call, after which no other is made; None: there is no such limit.
        deterministic: whether the user declared that every pair has one successor.
        same_rewards: whether the user declared that a pair always pays the same.
        interrupt: of Ctrl-C, which ends the look; None: each raises.

    Raises:
        BrokenPromiseError: the model broke a promise, or what was declared of it is wrong.
    """
    (ties,) = streams(seed, 1)
    with Caller(model, state, seed, horizon, deterministic=deterministic) as caller:
        seeing = _Seeing(caller, same_rewards, seconds, interrupt)
        try:
            _call_and_play(seeing, caller.start(), horizon, ties)
        except KeyboardInterrupt:
            if interrupt is None or interrupt.forced:
                raise
            interrupt.requested = True
    return seeing.look()


def _call_and_play(seeing: "_Seeing", root: int, horizon: int, ties: Any) -> None:
    tried = min(seeing.caller.actions(root, 0), _ACTIONS)
    for draw in range(_DRAWS * tried):
        if seeing.over():
            return
        seeing.call(root, draw % tried, 0)
    for _ in range(_EPISODES):
        at = root
        for h in range(min(horizon, _STEPS)):
            if seeing.over():
                return
            after = seeing.call(at, int(ties.random() * seeing.caller.actions(at, h)), h)
            if after is None:
                break
            seeing.reached.append(after)
            at = after


class _Seeing:
    """Calls a model, and keeps count of what is seen."""

    def __init__(
        self, caller: Caller, same_rewards: bool, seconds: float | None, interrupt: Interrupt | None
    ) -> None:
        self.caller = caller
        self.reached: list[int] = []
        self._same_rewards, self._seconds, self._interrupt = same_rewards, seconds, interrupt
        self._began: float | None = None
        self._first: dict[tuple[int, int, int], tuple[int | None, float]] = {}
        self._after: dict[tuple[int, int, int], set[int | None]] = {}
        self._calls = self._again = self._recurred = self._varied = 0

    def over(self) -> bool:
        """Whether there is no time left, or Ctrl-C was pressed."""
        if self._interrupt is not None and self._interrupt.requested:
            return True
        return self._seconds is not None and self._elapsed() > self._seconds

    def _elapsed(self) -> float:
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def call(self, at: int, action: int, h: int) -> int | None:
        """The state that a call leads to, None after an end."""
        pair = self.caller.pair(at, action, h)
        successor, reward = drawn = self.caller.call(at, action, h)
        if self._began is None:  # Compilation, if the first call needs it, does not count.
            self._began = time.perf_counter()
        self._calls += 1
        first = self._first.setdefault(pair, drawn)
        after = self._after.setdefault(pair, set())
        if after:
            self._again += 1
            self._recurred += successor in after
            self._varied += drawn != first
        after.add(successor)
        if len(after) > self.caller.problem["successors"]:
            raise self.caller.broken(TOO_MANY_SUCCESSORS, at, action, h)
        rounding = _SAME_REWARD * float(self.caller.problem["width"])
        if self._same_rewards and abs(reward - first[1]) > rounding:
            raise self.caller.broken(REWARD_VARIES, at, action, h, reward)
        return successor

    def look(self) -> Look:
        """What was seen so far."""
        return Look(
            calls=self._calls,
            again=self._again,
            recurred=self._recurred,
            varied=self._varied,
            reached=len(self.reached),
            states=len(set(self.reached)),
            seconds=self._elapsed(),
        )
