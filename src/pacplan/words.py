"""Numbers in words that promise something: rounded so that the promise still holds."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_DIGITS = 4
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING)
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR)


def at_most(value: float) -> str:
    """A number with four digits, rounded up."""
    return _rounded(value, _UP)


def at_least(value: float) -> str:
    """A number with four digits, rounded down."""
    return _rounded(value, _DOWN)


def complement(delta: float) -> str:
    """1 - delta, in full."""
    return str(1 - Decimal(repr(delta)))


def _rounded(value: float, context: Context) -> str:
    return f"{float(context.create_decimal(Decimal(value))):.{_DIGITS}g}"
