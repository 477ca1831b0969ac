"""What about a hundred calls show of a model, before it is planned in: a planner's choice rests on it.

No certificate does. What was not seen may be so all the same, and the calls are thrown away, so that no
delta is spent on them.
"""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pacplan.compiled.streams import Stream, streams
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
        interrupt: Ctrl-C, which ends the look; None: each raises.

    Raises:
        BrokenPromiseError: the model broke a promise, or what was declared of it is wrong.
    """
    (ties,) = streams(seed, 1)
    with Caller(model, state, seed, horizon, deterministic=deterministic) as caller:
        seen = _Seen(caller, same_rewards, seconds, interrupt)
        try:
            seen.call_and_play(horizon, ties)
        except KeyboardInterrupt:
            if interrupt is None or interrupt.forced:
                raise
            interrupt.requested = True
    return seen.look


@dataclass
class _Seen:
    """Calls a model, and keeps count of what is seen."""

    caller: Caller
    same_rewards: bool
    seconds: float | None
    interrupt: Interrupt | None
    look: Look = Look(0, 0, 0, 0, 0, 0)
    began: float = 0.0
    first: dict[Any, Any] = field(default_factory=dict)
    after: dict[Any, set[int | None]] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)

    def call_and_play(self, horizon: int, ties: Stream) -> None:
        """Make the calls, until there is no time left or Ctrl-C is pressed."""
        root = self.caller.start()
        tried = min(self.caller.actions(root, 0), _ACTIONS)
        for draw in range(_DRAWS * tried):
            if self.over():
                return
            self.call(root, draw % tried, 0)
        for _ in range(_EPISODES):
            at: int | None = root
            for h in range(min(horizon, _STEPS)):
                if at is None or self.over():
                    break
                at = self.call(at, int(ties.random() * self.caller.actions(at, h)), h)
                if at is not None:
                    self.reached.add(at)
                    count, states = self.look.reached + 1, len(self.reached)
                    self.look = replace(self.look, reached=count, states=states)

    def over(self) -> bool:
        """Whether there is no time left, or Ctrl-C was pressed."""
        if self.interrupt is not None and self.interrupt.requested:
            return True
        return self.seconds is not None and self.look.seconds > self.seconds

    def call(self, at: int, action: int, h: int) -> int | None:
        """The state that a call leads to, None after an end."""
        look, pair = self.look, self.caller.pair(at, action, h)
        successor, reward = drawn = self.caller.call(at, action, h)
        now = time.perf_counter()
        if look.calls == 0:  # Compilation, if the first call needs it, does not count.
            self.began = now
        first, after = self.first.setdefault(pair, drawn), self.after.setdefault(pair, set())
        again = bool(after)
        self.look = replace(
            look,
            calls=look.calls + 1,
            again=look.again + again,
            recurred=look.recurred + (successor in after),
            varied=look.varied + (again and drawn != first),
            seconds=now - self.began,
        )
        after.add(successor)
        if len(after) > self.caller.problem["successors"]:
            raise self.caller.broken(TOO_MANY_SUCCESSORS, at, action, h)
        rounding = _SAME_REWARD * float(self.caller.problem["width"])
        if self.same_rewards and abs(reward - first[1]) > rounding:
            raise self.caller.broken(REWARD_VARIES, at, action, h, reward)
        return successor
