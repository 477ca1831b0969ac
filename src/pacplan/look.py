"""What about a hundred calls show of a model, before it is planned in: a planner's choice rests on it.

No certificate does. What was not seen may be so all the same, and the calls are thrown away, so that no
delta is spent on them.
"""

import math
import time
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pacplan.compiled.interpreted import interpreted
from pacplan.compiled.streams import streams
from pacplan.engine import calls
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.tree import LINKS
from pacplan.models.protocol import Model, Session

# Calls of each of the first actions of the state, random episodes, and their steps.
_DRAWS, _ACTIONS, _EPISODES, _STEPS = 12, 4, 8, 8
MOST_CALLS = _DRAWS * _ACTIONS + _EPISODES * _STEPS
# Rewards are the same if they differ by no more than rounding, in parts of the width of their range.
_SAME_REWARD = 1e-9


@dataclass
class Look:
    """What was seen.

    Attributes:
        calls: how many calls were made.
        again: calls of a pair that had been called before.
        recurred: of those, how many led where an earlier call of the pair had.
        varied: of those, how many differed from the first, in reward or successor.
        reached: states reached in random episodes.
        states: different ones among them.
        seconds: time that it took, without the first call, which may compile.
    """

    calls: int = 0
    again: int = 0
    recurred: int = 0
    varied: int = 0
    reached: int = 0
    states: int = 0
    seconds: float = 0.0

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
    seconds: float = math.inf,
    deterministic: bool = False,
    same_rewards: bool = False,
) -> Look:
    """Call the first actions of a state again and again, then play a few random episodes.

    It ends some `seconds` after the first call. The user may have declared that every pair has one
    successor (`deterministic`), or always pays the same (`same_rewards`).

    Raises:
        BrokenPromiseError: the model broke a promise, or what was declared of it is wrong.
    """
    seen, began, reached = Look(), 0.0, set[int]()
    first = dict[Any, Any]()
    (ties,) = streams(seed, 1)

    def call(at: int, action: int, h: int) -> int | None:
        """The state that a call leads to, None after an end."""
        nonlocal began
        pair = caller.pair(at, action, h)
        known = len(caller.after[pair])
        successor, reward = drawn = caller.call(at, action, h)
        began = began if seen.calls else time.perf_counter()
        seen.seconds = time.perf_counter() - began
        seen.calls += 1
        seen.again += pair in first
        seen.varied += drawn != first.setdefault(pair, drawn)
        seen.recurred += len(caller.after[pair]) == known
        rounding = _SAME_REWARD * float(caller.problem["width"][0])
        if same_rewards and abs(reward - first[pair][1]) > rounding:
            promise = calls.REWARD_VARIES
            raise caller.broken_promise(promise=promise, state=at, action=action, h=h, reward=reward)
        return successor

    query = Query(model, state, seed)
    with closing(model.open(seed)) as session:
        session.agree(state, query.actions)
        caller = Caller(query, session, horizon, deterministic=deterministic)
        root, tried = caller.root_state, min(len(query.actions), _ACTIONS)
        for draw in range(_DRAWS * tried):
            if seen.seconds > seconds:
                return seen
            call(root, draw % tried, 0)
        for _ in range(_EPISODES):
            at = root
            for h in range(min(horizon, _STEPS)):
                if seen.seconds > seconds:
                    return seen
                below = call(at, int(ties.random() * caller.offered(at, h)), h)
                if below is None:
                    break
                at = below
                reached.add(at)
                seen.reached, seen.states = seen.reached + 1, len(reached)
    return seen


class _Rules(NamedTuple):
    """What a checked call works on."""

    problem: Any
    report: Any


# Calls are few: they are not worth a kernel.
_count, _call = interpreted(calls.count_actions), interpreted(calls.call_model)


class Caller(KernelSearch):
    """Draws from a model, as a search of `steps` steps would. States are integers, as in kernels.

    Attributes:
        after: the successors seen, None for an end, by what identifies the law of a call.
    """

    def __init__(
        self, query: Query, session: Session, steps: int, *, deterministic: bool = False
    ) -> None:
        settings: Any = {"gamma": 1.0, "horizon": steps, "deterministic": deterministic}
        super().__init__(query, session, np.dtype(LINKS), **settings)
        self._rules, self._stationary = _Rules(self.problem, self.reports), query.model.stationary
        self.after = defaultdict[tuple[int, int, int], set[int | None]](set)

    def offered(self, state: int, h: int) -> int:
        """How many actions a state has after h steps."""
        count, status = _count(self._rules, self.session.handle, state, h)
        self._check(status, state, None, h)
        return int(count)

    def call(self, state: int, action: int, h: int) -> tuple[int | None, float]:
        """The next state, None after an end, and the reward in the user's units."""
        found = _call(self._rules, self.session.handle, state, action, h, self._rng)
        successor, scaled, ended, status = found
        self._check(status, state, action, h)
        seen = self.after[self.pair(state, action, h)]
        seen.add(None if ended else int(successor))
        if len(seen) > self.successors:
            raise self.broken_promise(
                promise=calls.TOO_MANY_SUCCESSORS, state=state, action=action, h=h
            )
        (low,), (width,) = self.problem["lowest"], self.problem["width"]
        return None if ended else int(successor), float(low + width * scaled)

    def pair(self, state: int, action: int, h: int) -> tuple[int, int, int]:
        """What identifies the law of a call: in models that are not stationary, its step as well."""
        return state, action, 0 if self._stationary else h

    def _check(self, status: int, state: int, action: int | None, h: int) -> None:
        """Raise what the model raised, or the promise that it broke."""
        if status != calls.CHUNK_DONE:
            if status == calls.ABORTED or action is None:
                self.session.diagnose(state, action, h)
            raise self.session.error or self.broken_promise()
