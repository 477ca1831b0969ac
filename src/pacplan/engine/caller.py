"""A model called from Python, one call at a time, with the checks that every search makes."""

from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from pacplan.compiled.jit import kernel, records
from pacplan.compiled.reference import refer
from pacplan.compiled.streams import Stream, streams
from pacplan.core import checks
from pacplan.engine.calls import CHUNK_DONE, REPORT, call_model, count_actions
from pacplan.engine.promises import TERMS, broken_promise
from pacplan.models.protocol import BrokenPromiseError, Model, facts


class _Rules(NamedTuple):
    """What a checked call works on."""

    terms: Any
    report: Any


@kernel
def _count(rules: Any, model: Any, state: int, h: int) -> Any:
    return count_actions(refer(rules), refer(model), state, h)


@kernel
def _call(rules: Any, model: Any, state: int, action: int, h: int, rng: Any) -> Any:
    return call_model(refer(rules), refer(model), state, action, h, rng)


class Caller:
    """Draws from a model, as a search of `steps` steps would. States are integers, as in kernels.

    Use it in a `with` statement: it holds a session.

    Args:
        model: the problem.
        start: where episodes begin.
        seed: of the draws.
        steps: most steps of an episode.
        deterministic: whether the user declared that every pair has one successor.

    Attributes:
        session: the model's.
        terms: the record of what the model promised.
        report: the record of the last broken promise.
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
        self._rng: Stream
        (self._rng,) = streams(seed, 1)
        self.session = model.open(seed)
        low, high = model.reward_range
        terms, report = np.zeros(1, TERMS), np.zeros(1, REPORT)
        terms["lowest"], terms["width"], terms["horizon"] = low, high - low, steps
        terms["successors"] = 1 if deterministic else model.successors or checks.LARGEST
        terms["most_actions"], terms["may_end"] = model.max_actions or 0, model.may_end
        self._rules = _Rules(records(terms), records(report))
        self.terms, self.report = self._rules.terms[0], self._rules.report[0]
        self._model, self._start, self._deterministic = model, start, deterministic
        # In models that are not stationary, a pair belongs to its step.
        self._stationary = facts(model).stationary

    def __enter__(self) -> "Caller":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.close()

    def start(self) -> int:
        """The state where episodes begin."""
        self.session.agree(self._start, self._model.actions(self._start))
        return self.session.encode(self._start)

    def actions(self, state: int, h: int) -> int:
        """How many actions a state has after h steps."""
        count, status = _count(self._rules, self.session.handle, state, h)
        if status != CHUNK_DONE:
            raise self._failure(state, None, h)
        return int(count)

    def call(self, state: int, action: int, h: int) -> tuple[int | None, float]:
        """The next state, None after an end, and the reward in the user's units."""
        found = _call(self._rules, self.session.handle, state, action, h, self._rng)
        successor, scaled, ended, status = found
        if status != CHUNK_DONE:
            raise self._failure(state, action, h)
        reward = float(self.terms["lowest"] + self.terms["width"] * scaled)
        return None if ended else int(successor), reward

    def pair(self, state: int, action: int, h: int) -> tuple[int, int, int]:
        """What identifies the law of a call."""
        return state, action, 0 if self._stationary else h

    def broken(
        self, promise: int, state: int, action: int, h: int, reward: float = 0.0
    ) -> BrokenPromiseError:
        """The error for a promise that a call broke, as further calls showed."""
        noted = {"promise": promise, "state": state, "action": action, "h": h, "reward": reward}
        for name, value in noted.items():
            self.report[name] = value
        return broken_promise(self.report, self.terms, self.session, self._deterministic)

    def _failure(self, state: int, action: int | None, h: int) -> BaseException:
        """What the model raised, or the promise that it broke."""
        self.session.diagnose(state, action, h)
        if self.session.error is not None:
            return self.session.error
        return broken_promise(self.report, self.terms, self.session, self._deterministic)
