"""Numbers in words that promise something: rounded so that the promise still holds."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_DIGITS = 4


def at_most(value: float) -> str:
    """A number with four digits, rounded up."""
    return _rounded(value, ROUND_CEILING)


def at_least(value: float) -> str:
    """A number with four digits, rounded down."""
    return _rounded(value, ROUND_FLOOR)


def complement(delta: float) -> str:
    """1 - delta, in full."""
    return str(1 - Decimal(repr(delta)))


def _rounded(value: float, rounding: str) -> str:
    exact = Context(prec=_DIGITS, rounding=rounding).create_decimal(Decimal(value))
    return f"{float(exact):.{_DIGITS}g}"
