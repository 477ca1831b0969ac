"""A report, written as Markdown with its pictures beside it, and as one HTML file that holds them."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }}
th:first-child, td:first-child {{ text-align: left; }}
pre {{ background: #f3f3f3; padding: .8rem; overflow-x: auto; }}
figcaption {{ color: #555; }} img {{ max-width: 100%; }}
</style>
<h1>{title}</h1>"""


class Page:
    """A page that grows part by part.

    Args:
        title: its title.
        folder: where it will be written, beside its pictures.
    """

    def __init__(self, title: str, folder: Path) -> None:
        self._folder = folder
        self._markdown, self._html = [f"# {title}"], [_HEAD.format(title=escape(title))]

    def _add(self, markdown: str, html: str) -> None:
        self._markdown.append(markdown)
        self._html.append(html)

    def heading(self, text: str) -> None:
        """A heading of the second level."""
        self._add(f"## {text}", f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        """A paragraph."""
        self._add(text, f"<p>{escape(text)}</p>")

    def command(self, text: str) -> None:
        """A command of the shell."""
        self._add(f"```sh\n{text}\n```", f"<pre><code>{escape(text)}</code></pre>")

    def table(self, header: str, rows: Sequence[Sequence[str]]) -> None:
        """Cells of plain text, below a header like "a | b"; the first column is aligned left."""
        names = header.split(" | ")
        ruler = ["---", *["---:"] * (len(names) - 1)]
        lines = [f"| {' | '.join(cells)} |" for cells in [names, ruler, *rows]]
        body = [_row("th", names), *(_row("td", cells) for cells in rows)]
        self._add("\n".join(lines), "\n".join(["<table>", *body, "</table>"]))

    def picture(self, stem: str, caption: str) -> None:
        """A picture in the folder: `stem`.png and `stem`.svg."""
        data = base64.b64encode((self._folder / f"{stem}.svg").read_bytes()).decode()
        words = escape(caption, quote=True)
        self._add(
            f"![{caption}]({stem}.png)\n\n*{caption}*",
            f'<figure><img alt="{words}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{words}</figcaption></figure>",
        )

    def write(self) -> None:
        """Write index.md and report.html."""
        (self._folder / "index.md").write_text("\n\n".join(self._markdown) + "\n", "utf-8")
        (self._folder / "report.html").write_text("\n".join(self._html) + "\n", "utf-8")


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
