"""What the texts of a command line stand for."""

import ast
import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import Any


def accuracy(text: str) -> float | str:
    """A number, or the text itself, which may be per cent."""
    try:
        return float(text)
    except ValueError:
        return text


def names(text: str) -> list[str]:
    """The words of an option that takes several, separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def size(text: str) -> int:
    """A number of bytes, with a suffix for powers of 1024."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ArgumentTypeError(f"takes a number of bytes such as 500M or 2G, got {text!r}")
    number, suffix = match.groups()
    return int(float(number) * 1024 ** " KMGT".index(suffix.upper() or " "))


def literal(text: str) -> Any:
    """A Python literal, or the text itself if it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if text.lstrip()[:1] in tuple("([{'\""):
            raise ArgumentTypeError(f"cannot read {text!r} as a Python literal") from None
        return text


def setting(text: str) -> tuple[str, Any]:
    """A name and a value, from NAME=VALUE."""
    name, separator, value = (part.strip() for part in text.partition("="))
    if not separator or not name:
        raise ArgumentTypeError(f"takes NAME=VALUE, got {text!r}")
    return name, literal(value)


def settings(flag: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Settings by name, each of which may be given once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{flag} {name}= is given twice")
        found[name] = value
    return found
