"""A model called from Python, one call at a time, with the checks that every search makes."""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from pacplan.compiled.interpreted import interpreted
from pacplan.engine import calls
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch
from pacplan.engine.tree import LINKS
from pacplan.models.protocol import Session


class _Rules(NamedTuple):
    """What a checked call works on."""

    problem: Any
    report: Any


# Calls are few: they are not worth a kernel.
_count, _call = interpreted(calls.count_actions), interpreted(calls.call_model)
_break = interpreted(calls.break_promise)


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
            raise self.broken(calls.TOO_MANY_SUCCESSORS, state, action, h)
        (low,), (width,) = self.problem["lowest"], self.problem["width"]
        return None if ended else int(successor), float(low + width * scaled)

    def pair(self, state: int, action: int, h: int) -> tuple[int, int, int]:
        """What identifies the law of a call: in models that are not stationary, its step as well."""
        return state, action, 0 if self._stationary else h

    def broken(self, promise: int, state: int, action: int, h: int, reward: float = 0.0) -> Exception:
        """The error for a promise that a call broke, as further calls showed."""
        _break(self._rules, promise, state, action, h, reward)
        return self.broken_promise()

    def _check(self, status: int, state: int, action: int | None, h: int) -> None:
        """Raise what the model raised, or the promise that it broke."""
        if status != calls.CHUNK_DONE:
            if status == calls.ABORTED or action is None:
                self.session.diagnose(state, action, h)
            raise self.session.error or self.broken_promise()
