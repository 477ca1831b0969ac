"""Fragments of HTML for notebooks: no script, no ids, the colours of the page around them."""

from collections.abc import Mapping
from html import escape
from typing import Any

from pacplan.core.words import short

TABLE = '<table style="border-collapse:collapse;table-layout:auto;font-size:inherit">'
CELL = 'style="text-align:left;padding:2px 12px 2px 0;vertical-align:top"'


def framed(content: str) -> str:
    """A fragment by itself, which scrolls rather than overflow."""
    return f'<div class="pacplan" style="overflow-x:auto;line-height:1.4">{content}</div>'


def settings_html(kind: str, about: str, settings: Mapping[str, Any]) -> str:
    """An object by the name of its class, in words, and its settings."""
    rows = "".join(
        f"<tr><th {CELL}>{escape(name)}</th><td {CELL}>{escape(short(value, 200))}</td></tr>"
        for name, value in settings.items()
    )
    return framed(f"<p><b>{escape(kind)}</b> {escape(about)}</p>{TABLE}<tbody>{rows}</tbody></table>")
