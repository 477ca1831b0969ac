"""A progress bar on the error stream."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
