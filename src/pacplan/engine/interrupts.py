"""Ctrl-C: the first one ends what is under way in an orderly way, in all its threads and processes.

A plan that is interrupted returns what it has found and says so. The next Ctrl-C raises
KeyboardInterrupt, as Python does, if it comes during the same plan or during the one after it; so a
loop of plans is left by pressing twice. A plan that was not interrupted makes the next Ctrl-C the
first again.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType


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
