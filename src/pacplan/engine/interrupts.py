"""Ctrl-C: the first one ends what is under way in an orderly way, in all its threads and processes."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType


class _CtrlC:
    """The one rule for Ctrl-C, in the main thread of a process.

    The first one ends the plan under way, which returns what it has found and says that it was
    interrupted. The next one raises KeyboardInterrupt, as Python does, if it comes during the same plan
    or during the one after it; so a loop of plans is left by pressing twice. A plan that was not
    interrupted makes the next Ctrl-C the first again.

    Attributes:
        absorbed: whether the last plan took one.
    """

    absorbed = False


_ctrl_c = _CtrlC()


@dataclass
class Interrupt:
    """Whether Ctrl-C was pressed, and whether again after the first.

    Attributes:
        requested: whether it was.
        forced: whether it was again.
        callbacks: what to call when it is, for what runs as a part of this in other threads.
    """

    requested: bool = False
    forced: bool = False
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def request(self) -> None:
        """End all that is a part of this. May come from any thread."""
        self.requested = True
        for callback in tuple(self.callbacks):
            callback()


class _Enclosing(threading.local):
    """What the work of a thread is a part of, if another thread handles Ctrl-C for it."""

    interrupt: Interrupt | None = None


_enclosing = _Enclosing()


def enclosed_by(interrupt: Interrupt) -> None:
    """Let all plans made in this thread from now on end when `interrupt` says so."""
    _enclosing.interrupt = interrupt


def enclosing() -> Interrupt | None:
    """Of what this is a part of, if that handles Ctrl-C; it may have been told to end already."""
    if _in_main_thread():
        handler = signal.getsignal(signal.SIGINT)
        interrupt: Interrupt | None = getattr(handler, "interrupt", _enclosing.interrupt)
        return interrupt
    return _enclosing.interrupt


def remember(interrupted: bool) -> None:
    """Note whether a plan of the main thread took a Ctrl-C."""
    if _in_main_thread():
        _ctrl_c.absorbed = interrupted


@contextmanager
def interrupts(raises: bool, stop: Callable[[], None] = lambda: None) -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into an orderly end (see `_CtrlC`), unless every one is to raise.

    Only the main thread may handle signals; in others, a plan ends with what it is a part of, if
    anything (`enclosed_by`). Used around a plan and what precedes it, it makes a Ctrl-C before the
    search end the plan as one during the search does.

    Args:
        raises: whether every Ctrl-C raises.
        stop: what to call at each one.
    """
    before = None if raises or not _in_main_thread() else signal.getsignal(signal.SIGINT)
    if not callable(before):
        with _listening(None if raises else _enclosing.interrupt, stop) as heard:
            yield heard
        return
    outer = enclosing()
    interrupt = Interrupt(outer is not None and outer.requested)
    if interrupt.requested:
        stop()

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt.forced = interrupt.requested or _ctrl_c.absorbed
        interrupt.request()
        stop()
        # It also ends what this is a part of, such as a plan whose simulator makes plans.
        if interrupt.forced or outer is not None:
            _ctrl_c.absorbed = False
            before(number, frame)

    handle.interrupt = interrupt  # type: ignore[attr-defined]

    try:
        signal.signal(signal.SIGINT, handle)
        yield interrupt
    finally:
        try:
            if signal.getsignal(signal.SIGINT) is handle:
                signal.signal(signal.SIGINT, before)
        except BaseException:  # Another signal's handler has raised before this one was put back.
            signal.signal(signal.SIGINT, before)
            raise
        if interrupt.requested and not interrupt.forced:
            _ctrl_c.absorbed = True


@contextmanager
def _listening(to: Interrupt | None, stop: Callable[[], None]) -> Iterator[Interrupt]:
    """The interrupt of what this is a part of, which stops it as well; else one that never comes."""
    if to is None:
        yield Interrupt()
        return
    to.callbacks.append(stop)
    try:
        if to.requested:  # It may have come just before.
            stop()
        yield to
    finally:
        to.callbacks.remove(stop)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
