"""A live display of the root's intervals closing in, on the terminal's error stream."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pacplan.core.keys import same
from pacplan.core.words import at_least, at_most

if TYPE_CHECKING:
    from rich.console import Group

    from pacplan.engine.driver import Snapshot

_BAR = 28


@contextmanager
def live_display(target: float | None, budget: int | None) -> "Iterator[Callable[[Snapshot], None]]":
    """Show snapshots in place while the context lasts. Rich is imported here, not with pacplan."""
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

    gap = "" if snapshot.gap is None else f", gap {at_most(snapshot.gap)}"
    goal = "" if target is None else f" (goal {at_least(target)})"
    spent = f"{snapshot.samples:,}" + ("" if budget is None else f" of {budget:,}")
    head = f"{spent} calls, {snapshot.episodes:,} episodes, {snapshot.seconds:.1f} s{gap}{goal}"
    table = Table(box=None)
    for header in ("", "action", "lower", "interval", "upper"):
        table.add_column(header, justify="left" if header == "interval" else "right")
    if snapshot.lower is None or snapshot.upper is None:
        return Group(head)
    low, high = float(snapshot.lower.min()), float(snapshot.upper.max())
    for action, lower, upper in zip(snapshot.actions, snapshot.lower, snapshot.upper, strict=True):
        mark = ">" if same(action, snapshot.action) else ""
        bar = interval_bar(float(lower), float(upper), low, high)
        table.add_row(mark, escape(str(action)), at_least(lower), bar, at_most(upper))
    return Group(head, table)


def interval_bar(lower: float, upper: float, low: float, high: float, size: int = _BAR) -> str:
    """An interval drawn to the scale of [low, high]; a dot if its bounds cross."""
    scale = (size - 1) / max(high - low, 1e-12)
    left = min(int((lower - low) * scale), size - 1)
    right = max(left, int((upper - low) * scale))
    return "·" * left + "━" * (right - left + 1) + "·" * (size - 1 - right)
