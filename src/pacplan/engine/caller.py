"""A model called from Python, one call at a time, with the checks that every search makes."""

from collections import defaultdict
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from pacplan.compiled.interpreted import interpreted
from pacplan.compiled.streams import streams
from pacplan.core import checks
from pacplan.engine import calls
from pacplan.models.protocol import BrokenPromiseError, Model


class _Rules(NamedTuple):
    """What a checked call works on."""

    problem: Any
    report: Any


# Calls are few: they are not worth a kernel.
_count, _call = interpreted(calls.count_actions), interpreted(calls.call_model)


class Caller(AbstractContextManager["Caller"]):
    """Draws from a model, as a search of `steps` steps would. States are integers, as in kernels.

    Use it in a `with` statement: it holds a session of the model. Episodes begin at `start`.

    Attributes:
        after: the successors seen, None for an end, by what identifies the law of a call.
    """

    def __init__(
        self,
        model: Model,
        start: Any,
        seed: np.random.SeedSequence,
        steps: int,
        *,
        deterministic: bool = False,
    ) -> None:
        (self._rng,) = streams(seed, 1)
        self.session = model.open(seed)
        successors = 1 if deterministic else model.successors or checks.LARGEST
        problem = calls.problem_of(model, successors=successors, horizon=steps)
        self._rules = _Rules(problem, np.zeros(1, calls.REPORT))
        self.problem, self.report = problem[0], self._rules.report[0]
        self._model, self._start, self._deterministic = model, start, deterministic
        self.after = defaultdict[tuple[int, int, int], set[int | None]](set)

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def start(self) -> int:
        """The state where episodes begin."""
        self.session.agree(self._start, self._model.actions(self._start))
        return self.session.encode(self._start)

    def actions(self, state: int, h: int) -> int:
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
        if len(seen) > self.problem["successors"]:
            raise self.broken(calls.TOO_MANY_SUCCESSORS, state, action, h)
        reward = float(self.problem["lowest"] + self.problem["width"] * scaled)
        return None if ended else int(successor), reward

    def pair(self, state: int, action: int, h: int) -> tuple[int, int, int]:
        """What identifies the law of a call: in models that are not stationary, its step as well."""
        return state, action, 0 if self._model.stationary else h

    def broken(
        self, promise: int, state: int, action: int, h: int, reward: float = 0.0
    ) -> BrokenPromiseError:
        """The error for a promise that a call broke, as further calls showed."""
        noted = {"promise": promise, "state": state, "action": action, "h": h, "reward": reward}
        for name, value in noted.items():
            self.report[name] = value
        return calls.broken_promise(self.report, self.problem, self.session, self._deterministic)

    def _check(self, status: int, state: int, action: int | None, h: int) -> None:
        """Raise what the model raised, or the promise that it broke."""
        if status != calls.CHUNK_DONE:
            if status == calls.ABORTED or action is None:
                self.session.diagnose(state, action, h)
            raise self.session.error or calls.broken_promise(
                self.report, self.problem, self.session, self._deterministic
            )
