"""Random streams that kernels draw from: xoshiro256++ (Blackman, Vigna 2021) over four words.

A kernel takes a stream like any named tuple. To unbox a `numpy.random.Generator` instead would cost
15 microseconds per call, and Numba does not check for errors while it does so: an exception raised by a
signal handler at that moment would crash the interpreter.

The methods of `Stream` are compiled into kernels and jitted simulators, and run as they are if nothing
is compiled; both give the same numbers, to the bit.
"""

from collections.abc import Callable
from inspect import signature
from math import ceil, exp, log, log1p, sqrt
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numba import types
from numba.extending import overload, overload_method, register_jitable
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

_WORDS = 4
_LARGE = 10.0  # larger means of Poisson numbers are drawn in parts


def _add(a: Any, b: Any) -> Any:
    """Sum of two words, modulo 2^64."""
    return np.uint64((int(a) + int(b)) & 0xFFFFFFFFFFFFFFFF)


@overload(_add)  # type: ignore[untyped-decorator]
def _compile_add(a: Any, b: Any) -> Any:
    # NumPy would warn of the overflow that is intended here; compiled code wraps around silently.
    def add(a: Any, b: Any) -> Any:
        return a + b

    return add


@register_jitable  # type: ignore[untyped-decorator]
def _rotated(word: Any, bits: int) -> Any:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@register_jitable  # type: ignore[untyped-decorator]
def _next_word(words: Any) -> Any:
    """The next 64 bits."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    result = _add(_rotated(_add(a, d), 23), a)
    c ^= a
    d ^= b
    words[0] = a ^ d
    words[1] = b ^ c
    words[2] = c ^ (b << np.uint64(17))
    words[3] = _rotated(d, 45)
    return result


@register_jitable  # type: ignore[untyped-decorator]
def draw_seed(rng: Any, words: Any) -> None:
    """Draw the words of a new stream: several streams set to them give the same numbers."""
    for i in range(_WORDS):
        words[i] = _next_word(rng.words)


def _compiled(method: F) -> F:
    """Make a method of `Stream` one that kernels have as well."""

    def choose(*args: Any) -> Any:
        return method if args[0].instance_class is Stream else None

    # Numba compares the signatures of the two.
    choose.__signature__ = signature(method)  # type: ignore[attr-defined]
    overload_method(types.BaseNamedTuple, method.__name__)(choose)
    return method


class Stream(NamedTuple):
    """A stream of random numbers, with the methods of `numpy.random.Generator` that simulators need.

    Drawing moves it on. It is what a jitted simulator gets as `rng`.

    Attributes:
        words: the 256 bits of its whole state.
    """

    words: NDArray[np.uint64]

    @_compiled
    def random(self) -> float:
        """Uniform in [0, 1)."""
        return float(_next_word(self.words) >> np.uint64(11)) * 2.0**-53

    @_compiled
    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """Uniform in [low, high)."""
        return low + (high - low) * self.random()

    @_compiled
    def integers(self, low: int, high: int | None = None) -> int:
        """A whole number in low..high-1, or in 0..low-1 without `high`."""
        # By rejection.
        if high is None:
            least, bound = 0, int(low)
        else:
            least, bound = int(low), int(high) - int(low)
        if bound < 1:
            raise ValueError("integers: low must be below high")
        mask = bound - 1
        for shift in (1, 2, 4, 8, 16, 32):
            mask |= mask >> shift
        while True:
            number = int(_next_word(self.words) >> np.uint64(1)) & mask
            if number < bound:
                return least + number

    @_compiled
    def standard_normal(self) -> float:
        """Normal with mean 0 and variance 1."""
        # Marsaglia's polar method; its second number is dropped, so the words are all of the state.
        while True:
            x = 2.0 * self.random() - 1.0
            y = 2.0 * self.random() - 1.0
            square = x * x + y * y
            if 0.0 < square < 1.0:
                return x * sqrt(-2.0 * log(square) / square)

    @_compiled
    def normal(self, loc: float = 0.0, scale: float = 1.0) -> float:
        """Normal with mean `loc` and standard deviation `scale`."""
        return loc + scale * self.standard_normal()

    @_compiled
    def exponential(self, scale: float = 1.0) -> float:
        """Exponential with mean `scale`."""
        return -scale * log1p(-self.random())

    @_compiled
    def geometric(self, p: float) -> int:
        """Number of trials up to the first success, each with probability p."""
        if not 0.0 < p <= 1.0:
            raise ValueError("geometric: p must lie in (0, 1]")
        if p == 1.0:
            return 1
        return max(1, ceil(log1p(-self.random()) / log1p(-p)))

    @_compiled
    def binomial(self, n: int, p: float) -> int:
        """Number of successes in n trials with probability p."""
        if n < 0 or not 0.0 <= p <= 1.0:
            raise ValueError("binomial: n must not be negative, and p must lie in [0, 1]")
        rare = min(p, 1.0 - p)
        count = 0
        if rare > 0.0:
            # From one success to the next: this draws about n p numbers.
            place = self.geometric(rare)
            while place <= n:
                count += 1
                place += self.geometric(rare)
        return count if p <= 0.5 else int(n) - count

    @_compiled
    def poisson(self, lam: float = 1.0) -> int:
        """Poisson with mean `lam`."""
        if not 0.0 <= lam <= 1e9:
            raise ValueError("poisson: lam must lie between 0 and 1e9")
        # This draws about `lam` numbers.
        count, left = 0, float(lam)
        while left > 0.0:
            part = min(left, _LARGE)
            left -= part
            least, product = exp(-part), self.random()
            while product > least:
                product *= self.random()
                count += 1
        return count

    def permutation(self, n: int) -> NDArray[np.int64]:
        """The numbers 0..n-1 in random order; not in compiled code."""
        order = np.arange(n)
        for last in range(n - 1, 0, -1):
            other = self.integers(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


STREAM = numba.typeof(Stream(np.zeros(_WORDS, np.uint64)))
"""The type of a stream in compiled code."""


def streams(seed: np.random.SeedSequence, count: int) -> list[Stream]:
    """Independent streams from one seed."""
    words = seed.generate_state(_WORDS * count, np.uint64).astype(np.uint64).reshape(count, _WORDS)
    return [Stream(row.copy()) for row in words]
