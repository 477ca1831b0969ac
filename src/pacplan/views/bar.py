"""A progress bar: in a notebook, or on the error stream."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pacplan.views.notebook import bar_html
from pacplan.views.progress import notebook_output

# Seconds between two pictures in a notebook.
_NOTEBOOK_SECONDS = 0.2


@contextmanager
def bar(total: int, done: int, what: str, *, show: bool) -> Iterator[Callable[[int], None]]:
    """A bar with rate and time left.

    Args:
        total: how many there are.
        done: how many of them are done already.
        what: their name, in the plural.
        show: False shows nothing.

    Yields:
        A function to call with how many more are done.
    """
    if not show:
        yield lambda more: None
        return
    with notebook_output() as write:
        if write is not None:
            yield _in_notebook(write, total, done, what)
            return
    with _on_terminal(total, done, what) as advance:
        yield advance


def _in_notebook(
    write: Callable[[str], None], total: int, done: int, what: str
) -> Callable[[int], None]:
    began, before, shown = time.monotonic(), done, 0.0
    write(bar_html(f"{done:,} of {total:,} {what}", done, total))

    def advance(more: int) -> None:
        nonlocal done, shown
        done += more
        now = time.monotonic()
        if now - shown >= _NOTEBOOK_SECONDS:
            left = (now - began) / max(done - before, 1) * (total - done)
            words = f"{done:,} of {total:,} {what}, {now - began:.0f} s gone, about {left:.0f} s left"
            write(bar_html(words, done, total))
            shown = now

    return advance


@contextmanager
def _on_terminal(total: int, done: int, what: str) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    with Progress(
        MofNCompleteColumn(),
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
    ) as shown:
        task = shown.add_task("", total=total, completed=done, rate="")

        def advance(more: int) -> None:
            speed = shown.tasks[0].speed
            shown.update(task, advance=more, rate="" if speed is None else f"{speed:.1f} per second,")

        yield advance
