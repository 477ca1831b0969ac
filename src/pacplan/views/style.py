"""What the pictures share: the libraries that draw them, colours, and labels that fit."""

from importlib import import_module
from typing import Any

# From Okabe and Ito's palette, which the colour-blind can tell apart.
TAKEN, CHALLENGER, OTHER = "#0072B2", "#D55E00", "#8A8A8A"


def library(name: str) -> Any:
    """A module of the extra `viz`."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"pictures need {package}: pip install pacplan[viz]") from error


def axes_for(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return library("matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]


def short(thing: Any, most: int = 40) -> str:
    """The user's state or action on one line of at most so many printable characters."""
    text = " ".join(str(thing).split())
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return text if len(text) <= most else text[: most - 1] + "…"


def plain(thing: Any, most: int = 24) -> str:
    """The same where Matplotlib would read dollar signs as mathematics."""
    return short(thing, most).replace("$", r"\$")
