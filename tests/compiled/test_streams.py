"""Our own random streams: the published generator, right distributions, the same compiled or not."""

import math
import os
import subprocess
import sys

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


@numba.njit
def many(rng, kind, count, found):
    for i in range(count):
        if kind == 0:
            found[i] = rng.random()
        elif kind == 1:
            found[i] = rng.uniform(-2.0, 3.0)
        elif kind == 2:
            found[i] = rng.integers(7)
        elif kind == 3:
            found[i] = rng.integers(-3, 4)
        elif kind == 4:
            found[i] = rng.standard_normal()
        elif kind == 5:
            found[i] = rng.normal(1.0, 2.0)
        elif kind == 6:
            found[i] = rng.exponential(3.0)
        elif kind == 7:
            found[i] = rng.geometric(0.3)
        elif kind == 8:
            found[i] = rng.binomial(12, 0.7)
        elif kind == 9:
            found[i] = rng.poisson(2.5)
        elif kind == 10:
            found[i] = rng.poisson(40.0)


CONTINUOUS = {
    0: stats.uniform(),
    1: stats.uniform(-2, 5),
    4: stats.norm(),
    5: stats.norm(1, 2),
    6: stats.expon(scale=3),
}
DISCRETE = {
    2: stats.randint(0, 7),
    3: stats.randint(-3, 4),
    7: stats.geom(0.3),
    8: stats.binom(12, 0.7),
    9: stats.poisson(2.5),
    10: stats.poisson(40),
}


def drawn(kind: int, count: int = DRAWS) -> np.ndarray:
    found = np.zeros(count)
    many(stream(kind), kind, count, found)
    return found


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_continuous_distributions(kind):
    assert stats.kstest(drawn(kind), CONTINUOUS[kind].cdf).pvalue > LEVEL


@pytest.mark.parametrize("kind", DISCRETE)
def test_discrete_distributions(kind):
    law, found = DISCRETE[kind], drawn(kind)
    low, high = int(law.ppf(1e-4)), int(law.ppf(1 - 1e-4))
    values = np.arange(low, high + 1)
    counts = np.array([np.sum(found == value) for value in values])
    rest = DRAWS - counts.sum()
    expected = law.pmf(values) * DRAWS
    # Cells with few expected draws are put together with the rest.
    small = expected < 10
    counts = np.append(counts[~small], counts[small].sum() + rest)
    expected = np.append(expected[~small], DRAWS - expected[~small].sum())
    keep = expected > 0.5
    assert counts[~keep].sum() < 20
    statistic = np.sum((counts[keep] - expected[keep]) ** 2 / expected[keep])
    assert stats.chi2.sf(statistic, keep.sum() - 1) > LEVEL


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


METHODS = """
import numpy as np
from pacplan.compiled.streams import streams
(rng,) = streams(np.random.SeedSequence(11), 1)
for _ in range(50):
    print([rng.random(), rng.uniform(-1.0, 2.0), rng.integers(9), rng.standard_normal(),
           rng.exponential(), rng.geometric(0.2), rng.binomial(9, 0.6), rng.poisson(3.0),
           rng.poisson(30.0), rng.permutation(4).tolist()])
"""


def test_interpreted_streams_give_the_same_numbers():
    outputs = []
    for switch in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": switch}
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", METHODS],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout)
    assert outputs[0] == outputs[1]

    @numba.njit
    def compiled(rng):
        a = rng.random(), rng.uniform(-1.0, 2.0), rng.integers(9), rng.standard_normal()
        return a, (rng.exponential(), rng.geometric(0.2), rng.binomial(9, 0.6), rng.poisson(3.0))

    a, b = compiled(stream(11))
    assert outputs[0].splitlines()[0].startswith(str([*a, *b])[:-1])
