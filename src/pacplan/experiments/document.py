"""A page of headings, text, tables and pictures, written as Markdown and as HTML."""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Heading:
    """A heading of the second level; the title is the document's own."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True)
class Code:
    """A command, or anything else to be shown as it is."""

    text: str


@dataclass(frozen=True)
class Table:
    """Cells of plain text; the first column is aligned left, the others right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A picture beside the page: `stem`.png and `stem`.svg."""

    stem: str
    caption: str


Part = Heading | Paragraph | Code | Table | Picture

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid #888; }
pre { background: #f3f3f3; padding: .8rem; overflow-x: auto; }
figure { margin: 1.5rem 0; } figcaption { color: #555; } img { max-width: 100%; }
"""


def markdown(title: str, parts: Sequence[Part]) -> str:
    """The page as Markdown; pictures are linked."""
    return "\n\n".join([f"# {title}", *map(_markdown, parts)]) + "\n"


def _markdown(part: Part) -> str:
    match part:
        case Heading(text):
            return f"## {text}"
        case Paragraph(text):
            return text
        case Code(text):
            return f"```sh\n{text}\n```"
        case Table(header, rows):
            ruler = ["---", *["---:"] * (len(header) - 1)]
            return "\n".join(f"| {' | '.join(line)} |" for line in [header, ruler, *rows])
        case Picture(stem, caption):
            return f"![{caption}]({stem}.png)\n\n*{caption}*"


def page(title: str, parts: Sequence[Part], folder: Path) -> str:
    """The page as HTML, with its pictures embedded."""
    body = "\n".join(_html(part, folder) for part in parts)
    name = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{name}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{name}</h1>\n{body}\n</html>\n"
    )


def _html(part: Part, folder: Path) -> str:
    match part:
        case Heading(text):
            return f"<h2>{html.escape(text)}</h2>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Code(text):
            return f"<pre><code>{html.escape(text)}</code></pre>"
        case Table(header, rows):
            body = "\n".join(_cells("td", row) for row in rows)
            return f"<table>\n<thead>{_cells('th', header)}</thead>\n{body}\n</table>"
        case Picture(stem, caption):
            data = base64.b64encode((folder / f"{stem}.svg").read_bytes()).decode()
            words = html.escape(caption, quote=True)
            return (
                f'<figure><img alt="{words}" src="data:image/svg+xml;base64,{data}">'
                f"<figcaption>{words}</figcaption></figure>"
            )


def _cells(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
