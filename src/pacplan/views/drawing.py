"""Drawings of the user's states, made safe to embed: text as text, SVG as a picture."""

from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any

# Bytes of all drawings on a page, at most.
_MOST_BYTES = 600_000
_SVG = "data:image/svg+xml;base64,"


def drawing(render: Callable[[Any], str], state: Any) -> str:
    """What `render` makes of a state: text, or the address of a picture that holds its SVG.

    A picture runs no scripts and loads nothing, whatever the SVG says.

    Raises:
        TypeError: it is not text.
    """
    try:
        found = render(state)
    except Exception as error:
        error.add_note(f"raised by render= for state {state!r}")
        raise
    if not isinstance(found, str):
        raise TypeError(f"render must return text or SVG, as a string; got {found!r} for {state!r}")
    start = found.lstrip()[:5].lower()
    if start not in ("<svg ", "<svg>", "<?xml"):
        return found
    svg = found.strip()
    if "xmlns=" not in svg.partition(">")[0] and not start.startswith("<?"):
        svg = f'<svg xmlns="http://www.w3.org/2000/svg"{svg[4:]}'  # Without it, it is no picture.
    return _SVG + b64encode(svg.encode()).decode()


def drawings(
    render: Callable[[Any], str] | None, states: Iterable[tuple[int, Any]]
) -> tuple[dict[int, str], int]:
    """Drawings by number, as many as a page has room for, and how many states go without.

    Args:
        render: the user's function; None: nothing is drawn.
        states: numbers and states, the most important first.
    """
    if render is None:
        return {}, 0
    found: dict[int, str] = {}
    room, left_out = _MOST_BYTES, 0
    for number, state in states:
        if room <= 0:
            left_out += 1
            continue
        made = drawing(render, state)
        room -= len(made.encode())
        if room < 0 and found:
            left_out += 1
        else:
            found[number] = made
    return found, left_out
