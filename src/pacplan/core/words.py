"""Numbers in words that promise something, rounded so that the promise still holds; and short names.

A number stands for the shortest decimal that denotes it, which is what a user wrote or would read: 0.1
is 0.1, though its double is a little more.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

_NEAREST = Context(prec=4)
_UP, _DOWN = Context(prec=4, rounding=ROUND_CEILING), Context(prec=4, rounding=ROUND_FLOOR)
# From here on, and not before, a number needs powers of ten to be read.
_LARGE = 1e7
# More digits of a probability are of no use, and our own context does not depend on the user's.
_LONG_DOWN = Context(prec=50, rounding=ROUND_FLOOR)
# A share of a probability, such as a third of 0.1, has endless digits.
_SHARE_UP = Context(prec=6, rounding=ROUND_CEILING)


def at_most(value: float) -> str:
    """A number with four digits, rounded up."""
    return _rounded(value, _UP)


def at_least(value: float) -> str:
    """A number with four digits, rounded down."""
    return _rounded(value, _DOWN)


def exactly(value: float) -> str:
    """A number with all its digits."""
    return repr(float(value)).removesuffix(".0")


def risk(delta: float) -> str:
    """A probability of failure with six digits, rounded up."""
    return _rounded(delta, _SHARE_UP)


def complement(delta: float) -> str:
    """1 - `risk`, at most the first 50 digits, so that it is never too large."""
    return str(_LONG_DOWN.subtract(Decimal(1), Decimal(risk(delta))))


def estimated(value: float) -> str:
    """An estimate with four digits, which promises nothing; a dash where there is none (NaN)."""
    return "-" if value != value else _rounded(value, _NEAREST)


def printable(text: str) -> str:
    """A text without what a terminal would obey, such as a name may hold; lines still end."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def short(thing: Any, most: int = 40) -> str:
    """The user's state or action on one line of at most `most` printable characters."""
    text = printable(" ".join(str(thing).split()))
    return text if len(text) <= most else text[: most - 1] + "…"


def _rounded(value: float, context: Context) -> str:
    """A number with the digits of a context, as a person would write it."""
    number = context.create_decimal(repr(float(value)))
    text = f"{float(number):.{context.prec}g}"
    if "e+" in text and abs(number) < _LARGE:
        text = f"{number:.0f}"
    # Where doubles are sparse, at both ends of their range, that is a different number.
    return text if Decimal(text) == number else str(number)
