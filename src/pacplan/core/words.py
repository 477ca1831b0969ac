"""Numbers in words that promise something, rounded so that the promise still holds; and short names.

A number stands for the shortest decimal that denotes it, which is what a user wrote or would read: 0.1
is 0.1, though its double is a little more.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from pacplan.core.text import printable

_DIGITS = 4
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING)
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
# More digits of a probability are of no use, and our own context does not depend on the user's.
_LONG_DOWN = Context(prec=50, rounding=ROUND_FLOOR)


def at_most(value: float) -> str:
    """A number with four digits, rounded up."""
    return _rounded(value, _UP)


def at_least(value: float) -> str:
    """A number with four digits, rounded down."""
    return _rounded(value, _DOWN)


def exactly(value: float) -> str:
    """A number with all its digits."""
    return repr(float(value)).removesuffix(".0")


def complement(delta: float) -> str:
    """1 - delta with all its digits, at most the first 50, so that it is never too large."""
    return str(_LONG_DOWN.subtract(Decimal(1), Decimal(repr(float(delta)))))


def estimated(value: float) -> str:
    """An estimate with four digits, which promises nothing; a dash where there is none (NaN)."""
    return "-" if value != value else f"{value:.{_DIGITS}g}"


def short(thing: Any, most: int = 40) -> str:
    """The user's state or action on one line of at most `most` printable characters."""
    text = printable(" ".join(str(thing).split()))
    return text if len(text) <= most else text[: most - 1] + "…"


def _rounded(value: float, context: Context) -> str:
    number = context.create_decimal(repr(float(value)))
    text = f"{float(number):.{_DIGITS}g}"
    # Where doubles are sparse, at both ends of their range, that is a different number.
    return text if Decimal(text) == number else str(number)
