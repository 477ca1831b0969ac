"""Many decisions: plans from many states, side by side, in the order of the states."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self
from weakref import WeakSet

import numpy as np

from pacplan.core import checks
from pacplan.core.notes import add_note, lost, shown
from pacplan.engine.interrupts import Interrupt, enclosing, interrupts, remember
from pacplan.engine.seeds import Seed, seed_sequence
from pacplan.parallel.pools import (
    Batches,
    InProcess,
    Team,
    Workers,
    as_computed,
    portable,
    process_pool,
    run_installed,
    sent_model,
    thread_pool,
    user_executor,
)
from pacplan.result import Plan
from pacplan.views.progress import bar

# For each worker, how many batches of states may be ahead of the one that is waited for: so many plans
# are kept if that one takes long.
_AHEAD = 8
# A batch for a thread should take about this long, and have at most so many states. Handing over takes
# about as long as a tenth of a millisecond of planning.
_BATCH_SECONDS = 0.01
_MOST_STATES = 4

_Task = tuple[Any, np.random.SeedSequence]
Seeds = Seed | Iterable[Seed]
Decide = Callable[..., Plan]
"""Makes the plan of a state: `decide(state, seed=..., on_interrupt=...)`."""


class Plans(Iterator[Plan]):
    """The plans of many states, in the order of the states, each as soon as it is there.

    Work begins when the first plan is asked for, and then is up to eight states per worker ahead, or 32
    if each takes milliseconds only. If a state's plan raises, `next` raises that in the state's turn,
    and goes on with the following state when it is called again; so a `for` loop ends there, and
    another one over the same plans goes on. A loop over `outcomes()` gets the error in the plan's
    place. If the states themselves are an iterator that raises, that ends it, once the plans of the
    states before were given.

    Threads and processes end when the last plan was given, with `close`, with the `with` statement
    that this can be used in, when nobody refers to it any more, or when the program ends.

    """

    def __init__(self, stream: "_Stream") -> None:
        self._stream = stream
        self._found = stream.outcomes()
        _open.add(self)

    def __next__(self) -> Plan:
        outcome = next(self._found)
        if not isinstance(outcome, Exception):
            return outcome
        try:
            raise outcome
        finally:
            # A traceback that somebody keeps holds this frame, and must not hold the plans.
            del self, outcome

    def outcomes(self) -> Iterator[Plan | Exception]:
        """The plans from here on; in place of a plan that raised, what it raised."""
        return self._found

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C has ended it."""
        return self._stream.interrupted

    def close(self) -> None:
        """End the plans under way, and begin no others."""
        self._found.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_open: WeakSet[Plans] = WeakSet()


@cache
def _end_before(library: str) -> None:
    """When the program ends, end the plans under way before a library waits for those who make them.

    What was registered last comes first, so this is called once the library has work.
    """
    threading._register_atexit(_close_all)  # type: ignore[attr-defined]


def _close_all() -> None:
    for plans in tuple(_open):
        with suppress(ValueError):  # A thread of the user's is about to get the next one.
            plans.close()


def plan_all(
    decide: Decide,
    states: Iterable[Any],
    seeds: Seeds,
    workers: Workers,
    *,
    compiled: bool,
    progress: bool,
    on_interrupt: Literal["return", "raise"],
    trees: bool,
) -> Plans:
    """The plans of all states; the arguments are those of `Planner.plan_many`.

    If drawing from the model runs no Python code, so that it is `compiled`, threads will do.

    Raises:
        ValueError: there are not as many seeds as states, or an argument is out of range.
        TypeError: an argument is of the wrong type.
    """
    workers.check()
    raises = checks.choice("on_interrupt", on_interrupt, ("return", "raise")) == "raise"
    if checks.flag("progress", progress):
        count_of(states, "progress=True shows how many are left")
    if isinstance(states, str | bytes) or not isinstance(states, Iterable):
        raise TypeError(f"states must be a list of states, or another iterable, got {states!r}")
    count = workers.number
    if workers.executor is None and isinstance(states, Sized):
        count = min(count, max(1, len(states)))
    workers = workers._replace(at_once=count)
    work = _Work(decide, checks.flag("trees", trees), os.getpid())
    return Plans(_Stream(work, states, _paired(states, seeds), workers, compiled, progress, raises))


def count_of(states: Iterable[Any], why: str) -> int:
    """How many states there are; raises TypeError if that is not known."""
    if not isinstance(states, Sized):
        raise TypeError(f"{why}, so states must have a length; pass list(states)")
    return len(states)


def shared_delta(delta: float, states: Iterable[Any], spread: str) -> float:
    """The delta of each plan: the given one, or for "union" an equal part of it.

    Raises:
        TypeError: the number of states is not known, by which it would be divided.
    """
    if checks.choice("spread", spread, ("none", "union")) == "none":
        return delta
    return delta / max(1, count_of(states, "spread='union' divides delta among all states"))


def _paired(states: Iterable[Any], seeds: Seeds) -> Iterator[_Task]:
    """Each state with the seed of its plan."""
    if seeds is None or isinstance(seeds, np.random.SeedSequence) or not isinstance(seeds, Iterable):
        root = seed_sequence(seeds)
        return (
            (state, np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i)))
            for i, state in enumerate(states)
        )
    if isinstance(states, Sized) and isinstance(seeds, Sized) and len(states) != len(seeds):
        raise ValueError(
            f"seeds must have one entry for each of {len(states)} states, got {len(seeds)}"
        )
    # As plans go on while states come, what is found wrong later is said then.
    return ((state, seed_sequence(seed)) for state, seed in zip(states, seeds, strict=True))


class _Made(NamedTuple):
    """What a worker hands back."""

    outcomes: list[Plan | Exception]
    seconds: float
    ended: bool = False
    """Whether Ctrl-C came before it had begun with all states."""


@dataclass(frozen=True)
class _Work:
    """What is done for some states, by whoever does it."""

    decide: Decide
    trees: bool
    home: int
    """The process that asks."""

    def __call__(self, tasks: list[_Task]) -> _Made:
        """The outcomes for states with their seeds, and how long that took."""
        began = time.perf_counter()
        outer = enclosing()
        outcomes = []
        for state, seed in tasks:
            if outer is not None and outer.requested:
                break
            outcomes.append(self._outcome(state, seed))
        return _Made(outcomes, time.perf_counter() - began, len(outcomes) < len(tasks))

    def _outcome(self, state: Any, seed: np.random.SeedSequence) -> Plan | Exception:
        """The plan of a state, or what it raised."""
        try:
            plan = self.decide(state, seed=seed)
        except Exception as error:
            add_note(error, f"raised by the plan from state {shown(state)}")
            return error if os.getpid() == self.home else portable(error)
        return plan if self.trees else replace(plan, tree=None, policy=None)


class _Stream:
    """Gives states to workers, and their plans to whoever asks, in order."""

    def __init__(
        self,
        work: _Work,
        states: Iterable[Any],
        tasks: Iterator[_Task],
        workers: Workers,
        compiled: bool,
        progress: bool,
        raises: bool,
    ) -> None:
        self._work, self._states, self._tasks, self._workers = work, states, tasks, workers
        self._progress, self._raises = progress, raises
        self._alone = workers.executor is None and workers.number == 1
        self._threads = compiled and workers.executor is None and not self._alone
        self._interrupt = Interrupt()
        self._failure: Exception | None = None
        self.interrupted = False

    def outcomes(self) -> Generator[Plan | Exception]:
        """The plans, or what they raised."""
        total = len(self._states) if self._progress and isinstance(self._states, Sized) else 0
        with (
            self._team() as team,
            bar(total, 0, "plans", show=self._progress) as advance,
            closing(self._batches(team)) as batches,
        ):
            _end_before(type(team.pool).__name__)
            while True:
                with interrupts(self._raises, self._interrupt.request):
                    ready = next(batches, None)
                self.interrupted = self._interrupt.requested
                remember(self.interrupted)
                if ready is None:
                    break
                while ready:
                    advance(1)
                    yield ready.popleft()
        if self._failure is not None:
            raise self._failure

    def _batches(self, team: Team) -> Generator[deque[Plan | Exception]]:
        """What workers hand back, in order, until the end, or the first that Ctrl-C left undone."""
        # What is sent to others goes by itself, so that nothing else is lost if it cannot be sent. And
        # of those that work one after the other, none is kept waiting, nor is Ctrl-C.
        batches = Batches(self._read(), _BATCH_SECONDS, _MOST_STATES if self._threads else 1)
        for future in as_computed(
            team.pool,
            team.call,
            batches,
            _AHEAD * self._workers.number,
            in_order=True,
            given_up=lambda: self._interrupt.requested and not team.hears,
        ):
            made = _result(future)
            batches.learn(None, made.seconds / max(1, len(made.outcomes)))
            yield deque(made.outcomes)
            if made.ended:
                return

    def _read(self) -> Iterator[_Task]:
        """States with their seeds, until there are no more, or Ctrl-C is pressed.

        What the user's own iterable raises is kept until the plans of the states before it are given.
        """
        while not self._interrupt.requested:
            try:
                task = next(self._tasks, None)
            except Exception as error:
                self._failure = error
                return
            if task is None:
                return
            yield task

    @contextmanager
    def _team(self) -> Iterator[Team]:
        work, count = self._work, self._workers.number
        if self._workers.executor is not None:
            yield user_executor(self._workers.executor, work)
        elif self._alone:
            if self._raises:
                work = replace(work, decide=partial(work.decide, on_interrupt="raise"))
            yield Team(InProcess(), (work,))
        elif self._threads:
            with thread_pool(count, self._interrupt) as threads:
                yield Team(threads, (work,))
        else:
            with process_pool(count, self._interrupt, sent_model(work)) as processes:
                yield Team(processes, (run_installed,))


def _result(future: Future[_Made]) -> _Made:
    """What a worker has made; raises if it is lost with the worker."""
    try:
        return future.result()
    except CancelledError as error:
        raise lost("plans", error, "They were cancelled by someone else") from error
    except BrokenExecutor as error:
        raise lost("plans", error) from error
    except Exception as error:  # Of this state alone: its plan cannot be sent, for instance.
        return _Made([error], 0.0)
