"""What the pictures share: the libraries that draw them, colours, and labels that fit."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from pacplan.core.words import short

# From Okabe and Ito's palette, which colour-blind readers can tell apart.
TAKEN, CHALLENGER, OTHER = "#0072B2", "#D55E00", "#8A8A8A"


def library(name: str) -> Any:
    """A module of the extra `viz`."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"pictures need {package}: pip install pacplan[viz]") from error


def check_target(path: str | os.PathLike[str], what: str, example: str) -> Path:
    """Raise ValueError unless a file can be written to this path; nothing is written yet."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        reason = "is a folder" if target.is_dir() else f"lies in {target.parent}, which is no folder"
        raise ValueError(f"cannot write the {what}: {target} {reason}; name a file such as {example}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise ValueError(f"cannot write the {what}: no permission to write {target}")
    return target


def check_picture(path: str | os.PathLike[str]) -> Path:
    """Raise unless Matplotlib is there and can write a picture to this path."""
    kinds = library("matplotlib.backend_bases").FigureCanvasBase.get_supported_filetypes()
    target = check_target(path, "picture", "regret.png")
    if target.suffix[1:].lower() not in kinds:
        raise ValueError(
            f"cannot write the picture: {target} ends in none of {', '.join(sorted(kinds))}"
        )
    return target


def axes_for(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return library("matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]


def plain(thing: Any, most: int = 24) -> str:
    """A state or action for Matplotlib, which would read dollar signs as mathematics."""
    return short(thing, most).replace("$", r"\$")
