"""Our own random streams: the published generator, right distributions, the same compiled or not."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pacplan.compiled.streams import Stream, streams

DRAWS = 200_000
# One alarm in a million among some fifty tests of fit.
LEVEL = 1e-8


def stream(seed: int) -> Stream:
    return streams(np.random.SeedSequence(seed), 1)[0]


def published(words: list[int], count: int) -> list[int]:
    """xoshiro256++ on whole numbers, as its authors define it."""
    mask = 2**64 - 1

    def rotated(x: int, k: int) -> int:
        return ((x << k) | (x >> (64 - k))) & mask

    s = list(words)
    found = []
    for _ in range(count):
        found.append((rotated((s[0] + s[3]) & mask, 23) + s[0]) & mask)
        t = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)
    return found


@given(st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4).filter(any))
def test_the_words_are_those_of_the_published_generator(words):
    drawn = Stream(np.array(words, np.uint64))
    expected = [(word >> 11) * 2.0**-53 for word in published(words, 20)]
    assert [drawn.random() for _ in range(20)] == expected


# What is drawn, and from which law.
LAWS = {
    "random": (lambda rng: rng.random(), stats.uniform()),
    "uniform": (lambda rng: rng.uniform(-2.0, 3.0), stats.uniform(-2, 5)),
    "integers": (lambda rng: rng.integers(7), stats.randint(0, 7)),
    "negative integers": (lambda rng: rng.integers(-3, 4), stats.randint(-3, 4)),
    "standard normal": (lambda rng: rng.standard_normal(), stats.norm()),
    "normal": (lambda rng: rng.normal(1.0, 2.0), stats.norm(1, 2)),
    "exponential": (lambda rng: rng.exponential(3.0), stats.expon(scale=3)),
    "geometric": (lambda rng: rng.geometric(0.3), stats.geom(0.3)),
    "binomial": (lambda rng: rng.binomial(12, 0.7), stats.binom(12, 0.7)),
    "poisson": (lambda rng: rng.poisson(2.5), stats.poisson(2.5)),
    "large poisson": (lambda rng: rng.poisson(40.0), stats.poisson(40)),
}


@pytest.mark.parametrize("name", LAWS)
def test_numbers_have_their_law_and_are_the_same_compiled_or_not(name):
    draw, law = LAWS[name]
    compiled = numba.njit(draw)

    @numba.njit
    def many(rng, found):
        for i in range(found.size):
            found[i] = compiled(rng)

    found, again = np.zeros(DRAWS), stream(1)
    many(stream(1), found)
    assert found[:500].tolist() == [draw(again) for _ in range(500)]
    if not hasattr(law.dist, "pmf"):
        assert stats.kstest(found, law.cdf).pvalue > LEVEL
        return
    low, high = int(law.ppf(1e-3)), int(law.ppf(1 - 1e-3))
    values = np.arange(low, high + 1)
    counts = (found.clip(low, high) == values[:, np.newaxis]).sum(1)
    expected = law.pmf(values)
    expected[0], expected[-1] = law.cdf(low), law.sf(high - 1)
    assert stats.chisquare(counts, DRAWS * expected).pvalue > LEVEL


def test_edges():
    rng = stream(0)
    assert {rng.integers(1) for _ in range(20)} == {0}
    assert {rng.integers(-5, -4) for _ in range(20)} == {-5}
    assert all(-(2**62) <= rng.integers(-(2**62), 2**62) < 2**62 for _ in range(100))
    assert rng.binomial(10, 0.0) == 0 and rng.binomial(10, 1.0) == 10 and rng.binomial(0, 0.5) == 0
    assert rng.poisson(0.0) == 0 and rng.geometric(1.0) == 1
    assert sorted(rng.permutation(9)) == list(range(9))
    for wrong in (
        lambda: rng.integers(0),
        lambda: rng.integers(3, 3),
        lambda: rng.geometric(0.0),
        lambda: rng.binomial(-1, 0.5),
        lambda: rng.binomial(3, 1.5),
        lambda: rng.poisson(-1.0),
        lambda: rng.poisson(math.nan),
    ):
        with pytest.raises(ValueError, match="must"):
            wrong()
