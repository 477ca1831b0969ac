"""Text for people: wrapped to the terminal, and not at all in a pipe or a file, where programs read."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from textwrap import wrap
from typing import IO


def columns(stream: IO[str] | None = None) -> int | None:
    """The width of the terminal that a stream, by default stdout, leads to; None if there is none."""
    stream = sys.stdout if stream is None else stream
    if not stream.isatty():
        return None
    # The last column stays free: some terminals wrap when it is filled.
    return max(20, shutil.get_terminal_size().columns - 1)


def wrapped(text: str, width: int | None, indent: str = "") -> str:
    """A paragraph in lines of at most `width`; all but the first are indented. None: one line."""
    text = printable(text)
    if width is None:
        return text
    lines = wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def printable(text: str) -> str:
    """A text without what a terminal would obey, such as a name may hold; lines still end."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def table(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines, in columns two blanks apart; those in `left` begin at the left."""
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(length, column)) for column in zip(*rows, strict=True)]

    def padded(place: int, cell: str) -> str:
        blanks = " " * (widths[place] - length(cell))
        return cell + blanks if place in left else blanks + cell

    return ["  ".join(padded(i, cell) for i, cell in enumerate(row)).rstrip() for row in rows]


def length(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def bold(text: str, stream: IO[str] | None = None) -> str:
    """A text in bold on a terminal that can show it."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or columns(stream) is None else f"\x1b[1m{text}\x1b[0m"
