"""The driver: runs any search in chunks, and serves everything that happens between them.

A search advances some episodes at a time in compiled code. Between chunks the driver looks at the
budget, the user's callback, the display, checkpoints and Ctrl-C. Each of them ends the search in an
orderly way, so a plan interrupted at any point still has its best action and valid bounds.
A deadline does not wait for the end of a chunk: a timer halts the search at its next call. But the
first episode is always played, unless others make the calls: a plan without one would know nothing.

The first Ctrl-C ends what is under way in an orderly way, in all its threads and processes. A plan that
is interrupted returns what it has found and says so. The next Ctrl-C raises KeyboardInterrupt, if it
comes during the same plan or during the one after it; so a loop of plans is left by pressing twice. A
plan that was not interrupted makes the next Ctrl-C the first again.
"""

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from pacplan.core import checks
from pacplan.engine.calls import BROKEN, CHUNK_DONE, FULL, RULE, SPENT

if TYPE_CHECKING:
    from pacplan.engine.query import Query
    from pacplan.engine.search import KernelSearch

# A chunk should take about this long: short enough for Ctrl-C, long enough to cost nothing. It has at
# most so many times the episodes of the one before it.
_CHUNK_SECONDS, _GROWTH = 0.05, 16
# Seconds between two looks at how long a search would take to finish.
_LOOK_AGAIN = 0.01
# Seconds that it takes to wake up, halt the search and return, if there is little to finish.
_RETURN = 8e-4
# Calls of the callback are this fraction of the episodes apart, so their number stays moderate.
_CALLBACK_SPACING = 0.05
# More calls than are ever counted.
_ANY_NUMBER = 2**63 - 1


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
    """

    actions: tuple[Any, ...]
    lower: Any
    upper: Any
    action: Any
    gap: Any
    samples: int
    episodes: int
    seconds: float


Callback = Callable[[Snapshot], Any]
Display = AbstractContextManager[Callable[[Snapshot], None] | None]
"""Shows snapshots while it is open; None: nothing shows them."""


@dataclass(frozen=True)
class Limits:
    """What may end a search besides its own rule: arguments of `Planner.plan`.

    Raises:
        ValueError: one of them is out of range.
        TypeError: one of them is of the wrong type.
    """

    budget: int | None = None
    time_limit: float | None = None
    callback: Callback | None = None
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        for name in ("budget", "memory_limit"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, checks.integer(name, given, least=1))
        if self.time_limit is not None:
            object.__setattr__(self, "time_limit", checks.positive("time_limit", self.time_limit))
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be a function, got {self.callback!r}")

    @property
    def any(self) -> bool:
        """Whether something ends a search that does not stop by itself, other than Ctrl-C."""
        return (self.budget, self.time_limit, self.callback) != (None, None, None)


@dataclass
class Interrupt:
    """Whether Ctrl-C was pressed; `forced`: once more after that. `callbacks` are called each time."""

    requested: bool = False
    forced: bool = False
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def request(self) -> None:
        """End all that is a part of this. May come from any thread."""
        self.requested = True
        for callback in tuple(self.callbacks):
            callback()


class _CtrlC(threading.local):
    """What a thread knows of Ctrl-C.

    Attributes:
        enclosing: of what its plans are a part: they end when it is requested.
        absorbed: whether its last plan took one. Only the main thread's plans do.
    """

    enclosing: Interrupt | None = None
    absorbed = False


ctrl_c = _CtrlC()


@contextmanager
def interrupts(stop: Callable[[], None]) -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into an orderly end; `stop` is called at each one.

    Only the main thread may handle signals, and of plans inside of plans the outermost does; the others
    end with what they are a part of. Used around a plan and what precedes it, it makes a Ctrl-C before
    the search end the plan as one during the search does.
    """
    outer, before = ctrl_c.enclosing, None
    interrupt = Interrupt() if outer is None else outer
    interrupt.callbacks.append(stop)
    if interrupt.requested:  # It may have come just before.
        stop()
    if outer is None and threading.current_thread() is threading.main_thread():
        before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt.forced = interrupt.requested or ctrl_c.absorbed
        interrupt.request()
        if interrupt.forced and callable(before):
            ctrl_c.absorbed = False
            before(number, frame)

    try:
        if callable(before):
            signal.signal(signal.SIGINT, handle)
            ctrl_c.enclosing = interrupt
        yield interrupt
    finally:
        interrupt.callbacks.remove(stop)
        if callable(before):
            ctrl_c.enclosing = outer
            ctrl_c.absorbed |= interrupt.requested and not interrupt.forced
            signal.signal(signal.SIGINT, before)


def drive(
    search: "KernelSearch", query: "Query", began: float, display: Display, chunk: int | None
) -> tuple[str, float, bool]:
    """Run a search to its end.

    Time counts from `began`, a reading of `time.perf_counter`. A `chunk` is so many episodes, or what
    takes some milliseconds.

    Returns what ended it ("rule", "budget", "deadline", "memory", "callback" or "interrupt"), its
    seconds, and whether Ctrl-C was pressed meanwhile.
    """
    outer, limits = ctrl_c.enclosing, query.limits
    before = time.perf_counter()
    reason = _reason(search, search.advance(0, 0), False)
    start = began + time.perf_counter() - before
    if reason == "interrupt" or (outer is not None and outer.requested):
        # This makes the root, without which there would be no bounds.
        _reason(search, search.advance(0, 0), True)
        ctrl_c.absorbed = True
        return "interrupt", 0.0, True
    deadline = None if limits.time_limit is None else start + limits.time_limit
    if query.checkpoints is not None:
        start -= query.checkpoints.start(search)
    over = threading.Event()
    with interrupts(search.session.interrupt) as interrupt, display as show:
        try:
            reason = _play(search, query, chunk, start, deadline, interrupt, show, over)
        finally:
            over.set()
    if reason == "deadline":
        search.halt()  # Skips what is left to do, such as a last sweep.
    ctrl_c.absorbed = reason == "interrupt" or interrupt.requested
    return reason, time.perf_counter() - start, ctrl_c.absorbed


def _play(
    search: "KernelSearch",
    query: "Query",
    fixed: int | None,
    start: float,
    deadline: float | None,
    interrupt: Interrupt,
    show: Callable[[Snapshot], None] | None,
    over: threading.Event,
) -> str:
    """Chunks, and what happens between them; returns what ended the search.

    A callback and a point of the curve come at the same episodes in every run; everything else follows
    the clock, and no result depends on it.
    """
    report, keeper, callback = search.report, query.checkpoints, query.limits.callback
    played, chunk, due, watched = int(report["episodes"]), fixed or 1, 1, deadline is None
    while due <= played:
        due += max(1, int(due * _CALLBACK_SPACING))
    saved = time.perf_counter()
    while True:
        if deadline is not None and not watched and (report["calls"] > 0 or not search.waits):
            _halt_at(search, deadline, over)
            watched = True
        most = min(chunk if watched else 1, search.mark - played)
        most = most if callback is None else min(most, due - played)
        began = time.perf_counter()
        status = search.advance(most, query.budget or _ANY_NUMBER)
        now = time.perf_counter()
        if fixed is None:
            fitting = int(most / max(now - began, 1e-7) * _CHUNK_SECONDS)
            chunk = max(1, min(fitting, _GROWTH * chunk))
        played = int(report["episodes"])
        reason = _reason(search, status, interrupt.forced)
        late = reason == "aborted" or (deadline is not None and watched and now >= deadline)
        if reason in ("", "aborted") and (late or interrupt.requested):
            reason = "interrupt" if interrupt.requested else "deadline"
        marked, asked = played >= search.mark and not reason, played >= due or reason != ""
        if marked or show is not None or (asked and callback is not None):
            snapshot = search.snapshot(now - start)
            if marked:
                search.note(snapshot)
            if show is not None:
                show(snapshot)
            if asked and callback is not None:
                try:
                    stop = callback(snapshot)
                    reason = reason or ("callback" if stop else "")
                except KeyboardInterrupt:
                    if interrupt.forced:
                        raise
                    reason = reason or "interrupt"
                due = played + max(1, int(played * _CALLBACK_SPACING))
        if not reason and interrupt.requested:
            reason = "interrupt"
        # Only between whole episodes: what a halted one leaves behind is valid, but not repeatable.
        due_to_save = keeper is not None and (reason == "interrupt" or now - saved >= keeper.every)
        if keeper is not None and due_to_save and status == CHUNK_DONE:
            keeper.save(search, now - start)
            saved = time.perf_counter()
        if reason:
            return reason


_REASONS = {CHUNK_DONE: "", RULE: "rule", SPENT: "budget", FULL: "memory"}


def _reason(search: "KernelSearch", status: int, raises: bool) -> str:
    """Why a search must end after a chunk, or "" to go on. Raises what the model raised."""
    if status in _REASONS:
        return _REASONS[status]
    error = search.session.error
    if isinstance(error, KeyboardInterrupt) and not raises:
        return "interrupt"
    if error is None and status == BROKEN:
        error = search.broken_promise()
    if error is not None:
        raise error
    return "aborted"


def _halt_at(search: "KernelSearch", deadline: float, over: threading.Event) -> None:
    """Halt a search at its deadline, from a thread of its own: kernels run without Python's lock."""
    search.session.deadline = deadline
    late = deadline - min(_RETURN, 0.3 * (deadline - time.perf_counter()))

    def watch() -> None:
        # A larger search takes longer to finish, so look again.
        used, each = search.tree.arrays.used, search.seconds_a_node
        while (left := late - each * float(used[0]) - time.perf_counter()) > 0.0:
            if over.wait(min(left, _LOOK_AGAIN)):
                return
        search.halt()

    if late <= time.perf_counter():
        search.halt()
    else:  # This does not wait until the thread runs, as `threading.Thread.start` does.
        _thread.start_new_thread(watch, ())
