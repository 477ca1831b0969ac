"""Checks of arguments: each returns the value in its final type or says what is wrong with it."""

import math
import operator
from typing import Any

import numpy as np

# A reward may lie outside its promised range by this fraction of its width, for rounding.
REWARD_ROUNDING = 1e-9
# More steps, actions or successors than this are taken for a mistake.
LARGEST = 1_000_000
# No probability of failure needs to be smaller than this.
SMALLEST = 1e-300


def real(name: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, bool | np.bool_ | str | bytes | bytearray):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number of ordinary size, got {value!r}") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def integer(name: str, value: Any, *, least: int, most: int = 2**62) -> int:
    """A whole number from `least` to `most`."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if not least <= number <= most:
        limit = f"at least {least}" if number < least else f"at most {most}"
        raise ValueError(f"{name} must be {limit}, got {number}")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f"{name} must be one of {words}; got {value!r}")
    return value


def probability(name: str, value: Any) -> float:
    """A number strictly between 0 and 1, large enough that a small part of it is not rounded to 0."""
    if not 0.0 < (number := real(name, value)) < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {number}")
    if number < SMALLEST:
        raise ValueError(f"{name} must be at least {SMALLEST}, got {number}")
    return number


def interval(name: str, value: Any, what: str) -> tuple[float, float]:
    """An interval (lowest, highest) of rewards or returns, as `what` says."""
    try:
        lowest, highest = value
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (lowest, highest), got {value!r}") from None
    low, high = real(f"the lowest {what}", lowest), real(f"the highest {what}", highest)
    if not low < high:
        raise ValueError(f"{name} must have lowest < highest, got ({low}, {high})")
    if not 1e-150 < high - low < 1e150 or not high - low > 1e-9 * max(abs(low), abs(high)):
        wrong = f"{name}=({low}, {high}) is too wide or too narrow"
        raise ValueError(f"{wrong} to compute with; rescale rewards")
    return low, high


def value_range(value: Any) -> tuple[float, float] | None:
    """The setting `value_range`: bounds on returns, or None."""
    return None if value is None else interval("value_range", value, "return")


def within_one(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    if not 0.0 <= (number := real(name, value)) <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value}")
    return number


def at_least_zero(name: str, value: Any) -> float:
    """A number that is not negative."""
    if (number := real(name, value)) < 0.0:
        raise ValueError(f"{name} must be at least 0, got {value}")
    return number


def positive(name: str, value: Any) -> float:
    """A number above 0."""
    if (number := real(name, value)) <= 0.0:
        raise ValueError(f"{name} must be positive, got {value}")
    return number
