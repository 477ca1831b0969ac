"""A live display of the intervals closing in: in a notebook, or on the terminal's error stream."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pacplan.core.keys import same
from pacplan.core.text import printable
from pacplan.core.words import at_least, at_most
from pacplan.views.notebook import progress_html, progress_line

if TYPE_CHECKING:
    from rich.console import Group

    from pacplan.engine.driver import Snapshot

_BAR = 28
# Seconds between two pictures in a notebook, each of which goes through the kernel's socket.
_NOTEBOOK_SECONDS = 0.2


@contextmanager
def live_display(target: float | None, budget: int | None) -> "Iterator[Callable[[Snapshot], None]]":
    """Show snapshots in place while the context lasts, and nothing afterwards."""
    with notebook_output() as write:
        if write is None:
            with _terminal(target, budget) as show:
                yield show
            return
        shown = -_NOTEBOOK_SECONDS

        def show_html(snapshot: "Snapshot") -> None:
            nonlocal shown
            if time.monotonic() - shown >= _NOTEBOOK_SECONDS:
                write(progress_html(snapshot, target, budget))
                shown = time.monotonic()

        yield show_html


@contextmanager
def notebook_output() -> Iterator[Callable[[str], None] | None]:
    """Write HTML to one place of the running cell's output, empty in the end; None outside notebooks.

    This needs IPython alone, which every notebook runs in.
    """
    # Nobody imports IPython in vain: in a notebook it is there.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        yield None
        return
    from IPython.display import HTML, display

    handle: Any = None

    def write(html: str) -> None:
        nonlocal handle
        if handle is None:
            handle = display(HTML(html), display_id=True)
        else:
            handle.update(HTML(html))

    try:
        yield write
    finally:
        if handle is not None:
            handle.update(HTML(""))


@contextmanager
def _terminal(target: float | None, budget: int | None) -> "Iterator[Callable[[Snapshot], None]]":
    """Rich is imported here, not with pacplan."""
    from rich.console import Console
    from rich.live import Live

    with Live(
        console=Console(stderr=True, highlight=False), refresh_per_second=10, transient=True
    ) as live:
        yield lambda snapshot: live.update(progress_table(snapshot, target, budget))


def progress_table(snapshot: "Snapshot", target: float | None, budget: int | None) -> "Group":
    """A line on how far the search is, then one per action: its interval on a common scale."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None)
    for header in ("", "action", "lower", "interval", "upper"):
        table.add_column(header, justify="left" if header == "interval" else "right")
    head = progress_line(snapshot, target, budget)
    if snapshot.lower is None or snapshot.upper is None:
        return Group(head)
    low, high = float(snapshot.lower.min()), float(snapshot.upper.max())
    for action, lower, upper in zip(snapshot.actions, snapshot.lower, snapshot.upper, strict=True):
        mark = ">" if same(action, snapshot.action) else ""
        bar = interval_bar(float(lower), float(upper), low, high)
        table.add_row(mark, escape(printable(str(action))), at_least(lower), bar, at_most(upper))
    return Group(head, table)


def interval_bar(lower: float, upper: float, low: float, high: float, size: int = _BAR) -> str:
    """An interval drawn to the scale of [low, high]; a dot if its bounds cross."""
    scale = (size - 1) / max(high - low, 1e-12)
    left = min(int((lower - low) * scale), size - 1)
    right = max(left, int((upper - low) * scale))
    return "·" * left + "━" * (right - left + 1) + "·" * (size - 1 - right)
