"""What a search, or many runs, show while they last: in a notebook's cell, or on the error stream."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

from pacplan.core.words import at_least, at_most
from pacplan.views.terminal import console, intervals

if TYPE_CHECKING:
    from rich.console import Console, Group

    from pacplan.engine.driver import Snapshot

# Seconds between two pictures in a notebook, each of which goes through the kernel's socket.
_NOTEBOOK_SECONDS = 0.2


@contextmanager
def live_display(target: float | None, budget: int | None) -> "Iterator[Callable[[Snapshot], None]]":
    """Show snapshots in place while the context lasts, and nothing afterwards."""
    with _live(transient=True) as show:
        yield lambda snapshot: show(lambda out: progress_table(snapshot, target, budget, out))


@contextmanager
def bar(total: int, done: int, what: str, *, show: bool) -> Iterator[Callable[[int], None]]:
    """A bar with rate and time left; yields a function to call with how many more are done."""
    if not show:
        yield lambda more: None
        return
    from rich import progress as rich

    words = (rich.TextColumn(text) for text in (what, "{task.fields[rate]}", "gone,", "left"))
    count, rate, gone, left = words
    columns = [rich.MofNCompleteColumn(), count, rich.BarColumn(), rate, rich.TimeElapsedColumn(), gone]
    progress = rich.Progress(*columns, rich.TimeRemainingColumn(), left)
    task = progress.add_task("", total=total, completed=done, rate="")
    with _live(transient=False) as draw:

        def advance(more: int) -> None:
            speed = progress.tasks[0].speed
            progress.update(task, advance=more, rate=f"{speed:.1f} per second," if speed else "")
            draw(lambda out: progress)

        advance(0)
        yield advance


@contextmanager
def _live(*, transient: bool) -> "Iterator[Callable[[Callable[[Console], Any]], None]]":
    """Show what is made for Rich in one place; what is transient is not left on a terminal."""
    # A notebook has imported IPython already, which is all that this needs of it.
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        from rich.live import Live

        out = console(sys.stderr)
        try:
            with Live(console=out, refresh_per_second=10, transient=transient) as live:
                yield lambda make: live.update(make(out))
        finally:
            if not transient and not out.is_interactive:
                out.print()  # What was drawn last has no end of its line.
        return
    from IPython.display import HTML, display

    handle, shown = display(HTML(""), display_id=True), -math.inf

    def show(make: "Callable[[Console], Any]") -> None:
        nonlocal shown
        if time.monotonic() - shown >= _NOTEBOOK_SECONDS:
            out = console(StringIO(), record=True)
            out.print(make(out))
            handle.update(HTML(out.export_html(inline_styles=True, code_format="<pre>{code}</pre>")))
            shown = time.monotonic()

    try:
        yield show
    finally:
        handle.update(HTML(""))


def progress_table(
    snapshot: "Snapshot", target: float | None, budget: int | None, out: "Console"
) -> "Group":
    """A line on how far the search is, then one per action: its interval on a common scale."""
    from rich.console import Group

    gap = "" if snapshot.gap is None else f", gap {at_most(snapshot.gap)}"
    goal = "" if target is None else f" (goal {at_least(target)})"
    spent = f"{snapshot.samples:,}" + ("" if budget is None else f" of {budget:,}")
    played = "" if snapshot.episodes == snapshot.samples else f", {snapshot.episodes:,} episodes"
    head = f"{spent} calls{played}, {snapshot.seconds:.1f} s{gap}{goal}"
    return Group(head, *([] if snapshot.lower is None else [intervals(snapshot, out)]))
