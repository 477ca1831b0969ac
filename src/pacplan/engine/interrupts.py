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
class Presses:
    """Whether Ctrl-C was pressed, and whether again after the first.

    Attributes:
        any: whether it was.
        insisted: whether it was again.
        stops: what to call when it is, for what runs as a part of this in other threads.
    """

    any: bool = False
    insisted: bool = False
    stops: list[Callable[[], None]] = field(default_factory=list)

    def press(self) -> None:
        """End all that is a part of this. May come from any thread."""
        self.any = True
        for stop in tuple(self.stops):
            stop()


class _Parts(threading.local):
    """What the work of a thread is a part of, if another thread handles Ctrl-C for it."""

    whole: Presses | None = None


_parts = _Parts()


def part_of(presses: Presses) -> None:
    """Let all plans made in this thread from now on end when `presses` says so."""
    _parts.whole = presses


def absorb(pressed: bool) -> None:
    """Note whether a plan of the main thread took a Ctrl-C."""
    if _in_main_thread():
        _ctrl_c.absorbed = pressed


@contextmanager
def interrupts(raises: bool, stop: Callable[[], None] | None = None) -> Iterator[Presses]:
    """Turn the first Ctrl-C into an orderly end (see `_CtrlC`), unless every one is to raise.

    Only the main thread may handle signals; in others, a plan ends with what it is a part of, if
    anything (`part_of`). Used around a plan and what precedes it, it makes a Ctrl-C before the search
    end the plan as one during the search does.

    Args:
        raises: whether every Ctrl-C raises.
        stop: what to call at each one.
    """
    before = None if raises or not _in_main_thread() else signal.getsignal(signal.SIGINT)
    if not callable(before):
        with _listening(None if raises else _parts.whole, stop) as heard:
            yield heard
        return
    outer = whole()
    presses = Presses(any=outer is not None and outer.any)
    if presses.any and stop is not None:
        stop()

    def handle(number: int, frame: FrameType | None) -> None:
        presses.insisted = presses.any or _ctrl_c.absorbed
        presses.press()
        if stop is not None:
            stop()
        # It also ends what this is a part of, such as a plan whose simulator makes plans.
        if presses.insisted or outer is not None:
            _ctrl_c.absorbed = False
            before(number, frame)

    handle.presses = presses  # type: ignore[attr-defined]

    try:
        signal.signal(signal.SIGINT, handle)
        yield presses
    finally:
        try:
            if signal.getsignal(signal.SIGINT) is handle:
                signal.signal(signal.SIGINT, before)
        except BaseException:  # Another signal's handler has raised before this one was put back.
            signal.signal(signal.SIGINT, before)
            raise
        if presses.any and not presses.insisted:
            _ctrl_c.absorbed = True


@contextmanager
def _listening(to: Presses | None, stop: Callable[[], None] | None) -> Iterator[Presses]:
    """The presses of what this is a part of, which stop it as well; else those of nobody."""
    if to is None or stop is None:
        yield to or Presses()
        return
    to.stops.append(stop)
    try:
        if to.any:  # It may have come just before.
            stop()
        yield to
    finally:
        to.stops.remove(stop)


def whole() -> Presses | None:
    """Of what this is a part of, if that handles Ctrl-C; it may have been told to end already."""
    if _in_main_thread():
        presses: Presses | None = getattr(signal.getsignal(signal.SIGINT), "presses", None)
        if presses is not None:
            return presses
    return _parts.whole


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
