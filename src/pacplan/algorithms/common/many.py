"""Many decisions: plans from many states, side by side, in the order of the states."""

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any
from weakref import WeakSet

import numpy as np

from pacplan.core import checks
from pacplan.core.notes import lost, shown
from pacplan.engine.driver import Interrupt, Limits, ctrl_c, interrupts
from pacplan.engine.query import Seed, seed_sequence
from pacplan.models.protocol import Model, check_model
from pacplan.parallel.pools import Workers, in_order, portable
from pacplan.result import Plan
from pacplan.views.progress import bar

# For each worker, how many states may be ahead of the one that is waited for: so many plans are kept if
# that one takes long.
_AHEAD = 8

_Task = tuple[Any, np.random.SeedSequence]
Seeds = Seed | Iterable[Seed]
Decide = Callable[..., Plan]
"""Makes the plan of a state: `decide(state, seed=...)`."""


class Plans(Iterator[Plan], AbstractContextManager["Plans"]):
    """The plans of many states, in the order of the states, each as soon as it is there.

    Work begins when you ask for the first plan, and then is up to eight states per worker ahead. If a
    state's plan raises, `next` raises that in the state's turn, and goes on with the following state
    when it is called again; so a `for` loop ends there, and another one over the same plans goes on. A
    loop over `outcomes()` gets the error in the plan's place. If the states themselves are an iterator
    that raises, that ends it, at once.

    Threads and processes end when the last plan was given, with `close`, with the `with` statement
    that this can be used in, when nobody refers to it any more, or when the program ends.
    """

    def __init__(self, found: Generator[Plan | Exception], heard: Interrupt) -> None:
        self._found, self._heard = found, heard
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
        return self._heard.requested

    def close(self) -> None:
        """End the plans under way, and begin no others."""
        self._found.close()

    def __exit__(self, *_: object) -> None:
        self.close()


_open: WeakSet[Plans] = WeakSet()


def _close_all() -> None:
    for plans in tuple(_open):
        with suppress(ValueError):  # A thread of the user's is about to get the next one.
            plans.close()


def plan_all(
    planner: Any,
    model: Model,
    states: Iterable[Any],
    seeds: Seeds,
    workers: Workers,
    limits: Limits,
    *,
    spread: str,
    progress: bool,
    trees: bool,
) -> Plans:
    """The plans of all states; see `Planner.plan_many`."""
    check_model(model)
    workers.check()
    checks.flag("progress", progress)
    if isinstance(states, str | bytes) or not isinstance(states, Iterable):
        raise TypeError(f"states must be a list of states, or another iterable, got {states!r}")
    number = len(states) if isinstance(states, Sized) else None
    union = checks.choice("spread", spread, ("none", "union")) == "union"
    if number is None and (union or progress):
        why = f"spread={spread!r} divides delta among all states" if union else "progress=True counts"
        raise TypeError(f"{why}, so states must have a length; pass list(states)")
    if union:
        delta = getattr(planner, "delta", None)
        if delta is None:
            raise ValueError(f"spread={spread!r} shares delta among plans, but {planner!r} has none")
        planner = planner.with_delta(delta / max(1, number or 0))
    if workers.executor is None and number is not None:
        workers = workers._replace(at_once=min(workers.number, max(1, number)))
    asked = {name: getattr(limits, name) for name in ("budget", "time_limit", "memory_limit")}
    decide = partial(planner.plan, model, **asked)
    job, heard = _Job(decide, checks.flag("trees", trees), os.getpid()), Interrupt()
    total = number if progress else None
    return Plans(_outcomes(job, _paired(states, seeds), total, workers, model.compiled, heard), heard)


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


@dataclass(frozen=True)
class _Job:
    """What is done for a state, by whoever does it."""

    decide: Decide
    trees: bool
    home: int
    """The process that asks."""

    def __call__(self, task: _Task) -> Plan | Exception | None:
        """The plan of a state, or what it raised; None if Ctrl-C came before it began."""
        if ctrl_c.enclosing is not None and ctrl_c.enclosing.requested:
            return None
        state, seed = task
        try:
            plan = self.decide(state, seed=seed)
        except Exception as error:
            error.add_note(f"raised by the plan from state {shown(state)}")
            return error if os.getpid() == self.home else portable(error)
        return plan if self.trees else replace(plan, tree=None, policy=None)


def _outcomes(
    job: _Job,
    tasks: Iterator[_Task],
    total: int | None,
    workers: Workers,
    compiled: bool,
    heard: Interrupt,
) -> Generator[Plan | Exception]:
    """The plans in the order of their tasks, or what they raised, until the first left undone.

    With a `total` it shows a bar. `heard` says in the end whether Ctrl-C has ended it.
    """
    interrupt = Interrupt()
    # What is computed at once cannot be ahead. Of others' executors, Ctrl-C does not end what runs.
    ours = workers.executor is None
    ahead = 1 if ours and workers.number == 1 else _AHEAD * workers.number
    with (
        workers.at_work(job, threads=compiled, interrupt=interrupt) as submit,
        bar(total or 0, 0, "plans", show=total is not None) as advance,
        closing(
            in_order(
                submit,
                takewhile(lambda _: not interrupt.requested, tasks),
                ahead,
                given_up=lambda: interrupt.requested and not ours,
            )
        ) as futures,
    ):
        # When the program ends, plans end before a library waits for those who make them: what was
        # registered last comes first, and the library has registered its own by now.
        threading._register_atexit(_close_all)  # type: ignore[attr-defined]
        while True:
            with interrupts(interrupt.request):
                future = next(futures, None)
                outcome = None if future is None else _result(future)
            heard.requested = ctrl_c.absorbed = interrupt.requested
            if outcome is None:
                break
            advance(1)
            yield outcome


def _result(future: Future[Plan | Exception | None]) -> Plan | Exception | None:
    """What a worker has made; raises if it is lost with the worker."""
    try:
        return future.result()
    except CancelledError as error:
        raise lost("plans", error, "They were cancelled by someone else") from error
    except BrokenExecutor as error:
        raise lost("plans", error) from error
    except Exception as error:  # Of this state alone: its plan cannot be sent, for instance.
        return error
