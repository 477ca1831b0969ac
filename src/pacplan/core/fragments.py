"""What notebooks show of an object: no script, no ids, the colours of the page around it."""

from collections.abc import Mapping
from html import escape
from typing import Any

from pacplan.core.words import short

_CELL = 'style="text-align:left;padding:2px 12px 2px 0;vertical-align:top"'


def settings_html(kind: str, about: str, settings: Mapping[str, Any]) -> str:
    """An object by the name of its class, in words, and its settings."""
    rows = "".join(
        f"<tr><th {_CELL}>{escape(name)}</th><td {_CELL}>{escape(short(value, 200))}</td></tr>"
        for name, value in settings.items()
    )
    return (
        f'<div class="pacplan" style="overflow-x:auto;line-height:1.4"><p><b>'
        f'{escape(kind)}</b> {escape(about)}</p><table style="border-collapse:collapse"><tbody>'
        f"{rows}</tbody></table></div>"
    )
