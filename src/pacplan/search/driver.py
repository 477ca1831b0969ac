"""The driver: runs any search in chunks, and serves everything that happens between them.

A search advances some episodes at a time in compiled code. Between chunks the driver looks at the
budget, the clock, the user's callback, the display and Ctrl-C. Each of them ends the search in an
orderly way, so that a plan interrupted at any point still has its best action and its valid bounds.
"""

import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pacplan.models.protocol import Session
from pacplan.search import kernel
from pacplan.search.progress import live_display

# A chunk should take about this long: short enough for Ctrl-C, long enough to cost nothing.
_CHUNK_SECONDS = 0.05
# Calls to the model of the first chunk, where calls to the model are compiled.
_FIRST_CHUNK = 8192
# Calls of the callback are this fraction of the episodes apart, so their number stays moderate.
_CALLBACK_SPACING = 0.05


@dataclass(frozen=True, eq=False)
class Snapshot:
    """How a search stands: what `callback` receives.

    Attributes:
        actions: the actions of the state planned from.
        lower: their lower bounds (None for planners without bounds).
        upper: their upper bounds.
        action: the one the planner would return now.
        gap: U(c) - L(b), as in `Plan`.
        samples: calls to the model so far.
        episodes: episodes so far.
        seconds: time so far.
    """

    actions: tuple[Hashable, ...]
    lower: NDArray[np.float64] | None
    upper: NDArray[np.float64] | None
    action: Hashable
    gap: float | None
    samples: int
    episodes: int
    seconds: float


class Search(Protocol):
    """A search under way, as the driver sees it."""

    session: Session
    horizon: int
    """Most calls to the model of an episode."""
    target: float | None
    """The gap at which the search stops by its own rule."""

    def prepare(self) -> int:
        """Compile what the search needs, or load it from the cache; say how it ended, as `advance`.

        The clock has not started.
        """

    def advance(self, episodes: int, calls: int) -> int:
        """Play at most so many episodes, until so many calls in all; say how it ended."""

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands."""

    def broken_promise(self) -> Exception:
        """The error for a model that broke a promise."""


Callback = Callable[[Snapshot], Any]


@dataclass(frozen=True)
class Limits:
    """What may end a search besides its own rule."""

    budget: int | None = None
    time_limit: float | None = None
    callback: Callback | None = None
    progress: bool = False
    chunk: int | None = None


def drive(search: Search, limits: Limits) -> tuple[str, float]:
    """Run a search to its end.

    Returns:
        Why it ended ("rule", "budget", "deadline", "callback", "interrupt") and the seconds it took.
    """
    most_calls = np.iinfo(np.int64).max if limits.budget is None else limits.budget
    if _reason(search, search.prepare()) == "interrupt":
        return "interrupt", 0.0
    display: AbstractContextManager[Callable[[Snapshot], None] | None] = nullcontext()
    if limits.progress:
        display = live_display(search.target, limits.budget)
    start = time.perf_counter()
    deadline = None if limits.time_limit is None else start + limits.time_limit
    search.session.stop_at(deadline)
    pace = _Pace(
        limits, deadline, first=1 if search.session.slow else max(1, _FIRST_CHUNK // search.horizon)
    )
    with _interrupts(search.session) as interrupted, display as show:
        while True:
            began = time.perf_counter()
            episodes = pace.episodes(began)
            status = search.advance(episodes, most_calls)
            now = time.perf_counter()
            reason = _reason(search, status)
            late = reason == "aborted" or (deadline is not None and now >= deadline)
            if reason in ("", "aborted") and (late or interrupted()):
                reason = "interrupt" if interrupted() else "deadline"
            due = pace.record(episodes, now - began)
            if show is not None or (limits.callback is not None and (due or reason)):
                snapshot = search.snapshot(now - start)
                if show is not None:
                    show(snapshot)
                if limits.callback is not None and (due or reason):
                    try:
                        stop = bool(limits.callback(snapshot))
                    except KeyboardInterrupt:
                        reason = reason or "interrupt"
                    else:
                        reason = reason or ("callback" if stop else "")
            if not reason and interrupted():
                reason = "interrupt"
            if reason:
                return reason, time.perf_counter() - start


def _reason(search: Search, status: int) -> str:
    """Why a search must end after a chunk, or "" to go on. Raises what the model raised."""
    if status == kernel.CHUNK_DONE:
        return ""
    if status == kernel.RULE:
        return "rule"
    if status == kernel.SPENT:
        return "budget"
    if isinstance(search.session.error, KeyboardInterrupt):
        return "interrupt"
    if search.session.error is not None:
        raise search.session.error
    if status == kernel.BROKEN:
        raise search.broken_promise()
    return "aborted"


class _Pace:
    """How many episodes to play before looking up again.

    A callback comes at the same episodes in every run; everything else only follows the clock, and
    no result depends on it.
    """

    def __init__(self, limits: Limits, deadline: float | None, first: int) -> None:
        self._fixed = limits.chunk
        self._calls_back = limits.callback is not None
        self._deadline = deadline
        self._next = first if limits.chunk is None else limits.chunk
        self._played = 0
        self._due = 1
        self._rate = 0.0

    def episodes(self, now: float) -> int:
        """Size of the next chunk."""
        size = self._next
        if self._fixed is None and self._deadline is not None and self._rate > 0.0:
            size = min(size, max(1, int(self._rate * (self._deadline - now))))
        if self._calls_back:
            size = min(size, self._due - self._played)
        return size

    def record(self, episodes: int, seconds: float) -> bool:
        """Learn from a chunk; returns whether the callback is due."""
        self._played += episodes
        self._rate = episodes / max(seconds, 1e-7)
        if self._fixed is None:
            wanted = int(self._rate * _CHUNK_SECONDS)
            self._next = max(1, min(wanted, 4 * self._next))
        if self._played < self._due:
            return False
        self._due = self._played + max(1, int(self._played * _CALLBACK_SPACING))
        return True


@contextmanager
def _interrupts(session: Session) -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into an orderly end; a second one raises as usual.

    Only the main thread may handle signals; elsewhere nothing changes.
    """
    seen: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield lambda: False  # Ctrl-C is someone else's business here.
        return

    def handle(number: int, frame: FrameType | None) -> None:
        # A plan made inside another one's simulator ends both.
        if seen or getattr(before, "ends_a_plan", False):
            before(number, frame)
        seen.append(number)
        session.interrupt()

    handle.ends_a_plan = True  # type: ignore[attr-defined]

    signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)
