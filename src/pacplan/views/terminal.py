"""Text and tables on a terminal, drawn by Rich: lines that fit. In a pipe lines are left alone."""

import sys
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from pacplan.core.words import printable, short
from pacplan.views.evidence import Intervals

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Wide enough for any line, where no terminal says how wide it is.
_ENDLESS, _RECORDED = 10_000, 110
# Columns of the longest and the shortest bar, and what the other columns take beside it and a name.
_LONGEST, _SHORTEST, _BESIDE, _LEAST_NAME = 28, 8, 44, 12


def console(file: Any = None, *, record: bool = False) -> "Console":
    """A console on stdout or another file, which shows names of the user's as they are.

    Args:
        file: where it writes.
        record: keep what is printed, for export.
    """
    from rich.console import Console

    stream = sys.stdout if file is None else file
    # On a terminal the last column stays free: some wrap when it is filled.
    width = None if stream.isatty() else _RECORDED if record else _ENDLESS
    plain: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    made = Console(file=stream, width=width, record=record, force_jupyter=False, **plain)
    if width is None:
        made.width = max(20, made.width - 1)
    return made


def show(*parts: Any, bold: bool = False) -> None:
    """Print paragraphs and tables to stdout."""
    out = console()
    for part in parts:
        if isinstance(part, str):
            out.print(printable(part), style="bold" if bold else None)
        else:  # Numbers are not cut; a narrow terminal wraps the lines.
            wide = console()
            wide.width = max(wide.width, _BESIDE + _LEAST_NAME + _SHORTEST)
            wide.print(part)


def plan_parts(plan: Any, out: "Console | None" = None) -> list[Any]:
    """A plan in paragraphs, with the table of its actions; a console gets a bar for each interval."""
    table = intervals(plan, console(StringIO()) if out is None else out, bars=out is not None)
    warning = [plan.warning, ""] if plan.warning else []
    return [*warning, table, "", *map(printable, plan.sentences)]


def text_of(table: "Table") -> str:
    """A table as lines of text."""
    lines = StringIO()
    console(lines).print(table)
    return lines.getvalue().rstrip("\n")


def table(rows: Sequence[Sequence[str]], left: Sequence[int] = (), bold: int | None = None) -> "Table":
    """Rows of cells below their heads, two blanks apart; the columns in `left` begin at the left."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for place, head in enumerate(rows[0]):
        made.add_column(head, justify="left" if place in left else "right", no_wrap=True)
    for place, row in enumerate(rows[1:]):
        cells = (Text(printable(cell)) for cell in row)
        made.add_row(*cells, style="bold" if place == bold else None)
    return made


def intervals(standing: Any, out: "Console", *, bars: bool = True) -> "Table":
    """The actions of a plan, or of a snapshot of a search: bounds, estimates, calls.

    Names give way where the console is narrow, and bars before them.

    Args:
        standing: the plan or snapshot.
        out: the console to draw for.
        bars: draw each interval to a common scale.
    """
    known = Intervals(standing)
    bars = bars and "lower" in known.heads
    room = out.width - _BESIDE
    size = max(_SHORTEST, min(_LONGEST, room - _LEAST_NAME))
    full, empty = "=." if out.options.ascii_only else "━·"
    rows = [["", "action", *known.heads]]
    for row in known.rows:
        name = short(row["name"], max(_LEAST_NAME, room - size))
        rows.append([">" if row["role"] == "taken" else "", name, *row["told"].values()])
    if bars:
        rows[0].insert(3, "interval")
        for cells, row in zip(rows[1:], known.rows, strict=True):
            left, right = (int(known.at(bound) * (size - 1)) for bound in row["bounds"])
            after = size - 1 - right
            cells.insert(3, empty * left + full * (right - left + 1) + empty * after)
    taken = next(i for i, row in enumerate(known.rows) if row["role"] == "taken")
    made = table(rows, left=[3] if bars else [], bold=taken if bars else None)
    made.caption, made.caption_justify, made.caption_style = known.rest or None, "left", ""
    return made
