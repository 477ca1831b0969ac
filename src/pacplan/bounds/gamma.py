"""The logarithm of the gamma function, the same to the last bit compiled and interpreted."""

from math import log

from pacplan.compiled.jit import inlined

_HALF_LOG_TWO_PI = 0.9189385332046727
# From here on the series is exact to double precision.
_LARGE = 16.0


@inlined
def log_gamma(x: float) -> float:
    """Log Gamma(x) for x > 0: Stirling's series, after Gamma(x) = Gamma(x + 1) / x for small x."""
    passed = 1.0
    while x < _LARGE:
        passed *= x
        x += 1.0
    square = 1.0 / (x * x)
    series = 1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0)
    series = (1.0 / 12.0 - square * (1.0 / 360.0 - square * series)) / x
    return (x - 0.5) * log(x) - x + _HALF_LOG_TWO_PI + series - log(passed)
