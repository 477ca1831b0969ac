"""The driver: runs any search in chunks, and serves everything that happens between them.

A search advances some episodes at a time in compiled code. Between chunks the driver looks at the
budget, the user's callback, the display, checkpoints and Ctrl-C. Each of them ends the search in an
orderly way, so a plan interrupted at any point still has its best action and valid bounds.
A deadline does not wait for the end of a chunk: a timer halts the search at its next call. But the
first episode is always played, unless others make the calls: a plan without one would know nothing.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.core import checks
from pacplan.engine.calls import BROKEN, CHUNK_DONE, FULL, RULE, SPENT
from pacplan.engine.checkpoint import CheckpointKeeper
from pacplan.engine.curve import FIRST_MARK
from pacplan.engine.interrupts import Interrupt, enclosing, interrupts, remember

if TYPE_CHECKING:
    from pacplan.engine.search import KernelSearch

# A chunk should take about this long: short enough for Ctrl-C, long enough to cost nothing.
_CHUNK_SECONDS = 0.05
# Calls to the model in the first chunk, if these calls are compiled.
_FIRST_CHUNK = 8192
# Seconds between two looks at how long a search would take to finish.
_LOOK_AGAIN = 0.01
# Seconds that it takes to wake up, halt the search and return, if there is little to finish.
_RETURN = 8e-4
# Calls of the callback are this fraction of the episodes apart, so their number stays moderate.
_CALLBACK_SPACING = 0.05

# More than are ever counted.
_ANY_NUMBER = 2**63 - 1

_numbers = itertools.count(1)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """How a search stands: what `callback` receives.

    Attributes:
        actions: the actions of the state planned from.
        lower: their lower bounds (None for planners without bounds).
        upper: their upper bounds.
        action: the one the planner would return now.
        gap: how much worse than the best one `action` can be at most, as in `Plan`.
        samples: calls to the model so far.
        episodes: episodes so far.
        seconds: time so far.
        search: a number that all snapshots of a search share; later searches in the process have
            larger ones.
    """

    actions: tuple[Any, ...]
    lower: NDArray[np.float64] | None
    upper: NDArray[np.float64] | None
    action: Any
    gap: float | None
    samples: int
    episodes: int
    seconds: float
    search: int = 0


Callback = Callable[[Snapshot], Any]
Display = AbstractContextManager[Callable[[Snapshot], None] | None]
"""Shows snapshots while it is open; None: nothing shows them."""


@dataclass(frozen=True)
class Limits:
    """What may end a search besides its own rule, and what happens while it runs."""

    budget: int | None = None
    time_limit: float | None = None
    memory_limit: int | None = None
    callback: Callback | None = None
    chunk: int | None = None
    raise_interrupts: bool = False
    keeper: CheckpointKeeper | None = None

    @property
    def any(self) -> bool:
        """Whether something ends a search that does not stop by itself, other than Ctrl-C."""
        return (self.budget, self.time_limit, self.callback) != (None, None, None)

    @classmethod
    def checked(
        cls,
        budget: int | None,
        time_limit: float | None,
        callback: Callback | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "return",
    ) -> "Limits":
        """The limits that a user gave.

        Raises:
            ValueError: one of them is out of range.
            TypeError: one of them is of the wrong type.
        """
        if time_limit is not None and checks.real("time_limit", time_limit) <= 0.0:
            raise ValueError(f"time_limit must be positive, got {time_limit}")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function, got {callback!r}")
        if memory_limit is not None:
            memory_limit = checks.integer("memory_limit", memory_limit, least=1)
        raises = checks.choice("on_interrupt", on_interrupt, ("return", "raise")) == "raise"
        return cls(
            budget=None if budget is None else checks.integer("budget", budget, least=1),
            time_limit=None if time_limit is None else float(time_limit),
            memory_limit=memory_limit,
            callback=callback,
            raise_interrupts=raises,
        )


class Ending(NamedTuple):
    """How a search ended."""

    reason: str  # "rule", "budget", "deadline", "memory", "callback" or "interrupt"
    seconds: float
    interrupted: bool  # whether Ctrl-C was pressed while it ran, whatever ended it


def drive(search: "KernelSearch", limits: Limits, began: float, display: Display) -> Ending:
    """Run a search to its end. `began` is the reading of `time.perf_counter` that time counts from."""
    outer = None if limits.raise_interrupts else enclosing()
    before = time.perf_counter()
    status = search.prepare()
    start = began + time.perf_counter() - before
    reason = _reason(search, status, limits.raise_interrupts)
    if reason == "interrupt" or (outer is not None and outer.requested):
        # This makes the root, without which there would be no bounds.
        _reason(search, search.advance(0, 0), True)
        remember(True)
        return Ending("interrupt", 0.0, True)
    deadline = None if limits.time_limit is None else start + limits.time_limit
    if limits.keeper is not None:
        start -= limits.keeper.start(search)
    pace = _Pace(limits, search)
    reason = ""
    raised: BaseException | None = None
    with (
        interrupts(limits.raise_interrupts, search.session.interrupt) as interrupt,
        ExitStack() as alarms,
        display as show,
    ):
        try:
            reason = _loop(search, limits, pace, start, deadline, alarms, interrupt, show)
        except BaseException as error:
            raised = error
    if raised is not None:
        # Only here: a context manager writes to the exceptions that pass through it, and a user's may
        # not allow that.
        raise raised
    if reason == "deadline":
        search.halt()  # Skips what is left to do, such as a last sweep.
    pressed = reason == "interrupt" or interrupt.requested
    remember(pressed)
    return Ending(reason, time.perf_counter() - start, pressed)


def _loop(
    search: "KernelSearch",
    limits: Limits,
    pace: "_Pace",
    start: float,
    deadline: float | None,
    alarms: ExitStack,
    interrupt: Interrupt,
    show: Callable[[Snapshot], None] | None,
) -> str:
    """Chunks, and what happens between them; returns what ended the search."""
    most_calls = _ANY_NUMBER if limits.budget is None else limits.budget
    saved = time.perf_counter()
    number = next(_numbers)
    armed = deadline is None or not search.waits
    if deadline is not None and armed:
        alarms.enter_context(_alarm(search, deadline))
    while True:
        began = time.perf_counter()
        episodes = pace.episodes() if armed else 1
        status = search.advance(episodes, most_calls)
        if deadline is not None and not armed and search.snapshot(0.0).samples > 0:
            alarms.enter_context(_alarm(search, deadline))
            armed = True
        now = time.perf_counter()
        reason = _reason(search, status, limits.raise_interrupts or interrupt.forced)
        late = reason == "aborted" or (deadline is not None and armed and now >= deadline)
        if reason in ("", "aborted") and (late or interrupt.requested):
            reason = "interrupt" if interrupt.requested else "deadline"
        due = pace.record(episodes, now - began)
        if pace.marked and reason == "" and not search.note():
            pace.mark_no_more()
        asks = limits.callback is not None and (due or reason != "")
        if show is not None or asks:
            snapshot = replace(search.snapshot(now - start), search=number)
            if show is not None:
                show(snapshot)
            if asks:
                answer = _answer(limits, snapshot, interrupt)
                reason = reason or answer
        if not reason and interrupt.requested:
            reason = "interrupt"
        # Only between whole episodes: what a halted one leaves behind is valid, but not repeatable.
        keeper = limits.keeper
        due = keeper is not None and (reason == "interrupt" or now - saved >= keeper.every)
        if keeper is not None and due and status == CHUNK_DONE:
            keeper.save(search, now - start)
            saved = time.perf_counter()
        if reason:
            return reason


def _answer(limits: Limits, snapshot: Snapshot, interrupt: Interrupt) -> str:
    """What the callback says, as a reason to end the search, or ""."""
    assert limits.callback is not None
    try:
        return "callback" if limits.callback(snapshot) else ""
    except KeyboardInterrupt:
        if limits.raise_interrupts or interrupt.forced:
            raise
        return "interrupt"


def _reason(search: "KernelSearch", status: int, raise_interrupts: bool) -> str:
    """Why a search must end after a chunk, or "" to go on. Raises what the model raised."""
    if status == CHUNK_DONE:
        return ""
    if status == RULE:
        return "rule"
    if status == SPENT:
        return "budget"
    if status == FULL:
        return "memory"
    if isinstance(search.session.error, KeyboardInterrupt) and not raise_interrupts:
        return "interrupt"
    if search.session.error is not None:
        raise search.session.error
    if status == BROKEN:
        raise search.broken_promise()
    return "aborted"


class _Pace:
    """How many episodes to play before looking up again.

    A callback and a point of the curve come at the same episodes in every run; everything else follows
    the clock, and no result depends on it.

    Attributes:
        marked: whether a point of the curve is due.
    """

    def __init__(self, limits: Limits, search: "KernelSearch") -> None:
        self._fixed = limits.chunk
        self._calls_back = limits.callback is not None
        first = 1 if search.slow else max(1, _FIRST_CHUNK // search.horizon)
        self._next = first if limits.chunk is None else limits.chunk
        self._played = int(search.report["episodes"])
        self._due = 1
        while self._due <= self._played:
            self._due = _after(self._due)
        self._mark = FIRST_MARK if search.notes else _ANY_NUMBER
        self.marked = False
        self._pass_marks()

    def episodes(self) -> int:
        """Size of the next chunk."""
        most = min(self._next, self._mark - self._played)
        return min(most, self._due - self._played) if self._calls_back else most

    def mark_no_more(self) -> None:
        """There is no curve."""
        self._mark = _ANY_NUMBER

    def _pass_marks(self) -> None:
        while self._mark <= self._played:
            self._mark += self._mark // 2

    def record(self, episodes: int, seconds: float) -> bool:
        """Learn from a chunk; returns whether the callback is due."""
        self._played += episodes
        if self._fixed is None:
            wanted = int(episodes / max(seconds, 1e-7) * _CHUNK_SECONDS)
            self._next = max(1, min(wanted, 4 * self._next))
        self.marked = self._played >= self._mark
        self._pass_marks()
        if self._played < self._due:
            return False
        self._due = _after(self._played)
        return True


def _after(due: int) -> int:
    """Episodes at the call of the callback after this one."""
    return due + max(1, int(due * _CALLBACK_SPACING))


@contextmanager
def _alarm(search: "KernelSearch", deadline: float) -> Iterator[None]:
    """Halt a search at its deadline, from a thread of its own: kernels run without Python's lock."""
    search.stop_at(deadline)
    over = threading.Event()
    early = min(_RETURN, 0.3 * (deadline - time.perf_counter()))

    def watch() -> None:
        while True:
            left = deadline - early - search.finishing() - time.perf_counter()
            if left <= 0.0:
                search.halt()
                return
            # A larger search takes longer to finish, so look again.
            if over.wait(min(left, _LOOK_AGAIN)):
                return

    watcher = threading.Thread(target=watch, name="pacplan deadline", daemon=True)
    try:
        watcher.start()
        yield
    finally:
        over.set()
