"""Bernoulli confidence sets in exact arithmetic: accurate, and never too narrow."""

import itertools
import math

import numpy as np

from pacplan.bounds import bernoulli
from pacplan.bounds.intervals import kl_lower, kl_upper
from pacplan.compiled.interpreted import interpreted
from references import assert_outer_and_tight, random_mean, random_radius

kl_upper_from = interpreted(bernoulli.kl_upper_from)
warm_start = interpreted(bernoulli.warm_start)
share_upper = interpreted(bernoulli.share_upper)

MEANS = (0.0, 1e-17, 1e-9, 0.01, 0.3, 0.5, 0.99, 1 - 1e-9, 1 - 1e-16, 1.0)
RADII = (0.0, 1e-18, 1e-12, 1e-5, 0.01, 0.5, 1.0, 10.0, 50.0, 1e3)


def test_the_interval_errs_outwards_at_the_corners_and_anywhere():
    rng = np.random.default_rng(2)
    anywhere = [(random_mean(rng), random_radius(rng, 1e-18)) for _ in range(5000)]
    for p, c in [*itertools.product(MEANS, RADII), *anywhere]:
        assert_outer_and_tight(p, c, kl_upper(p, c), kl_lower(p, c))


def test_no_guess_makes_the_upper_end_wrong():
    rng = np.random.default_rng(3)
    for _ in range(3000):
        p, c = random_mean(rng), random_radius(rng, 1e-18)
        guess = rng.choice([math.nan, math.inf, -1.0, random_mean(rng), rng.random()])
        assert_outer_and_tight(p, c, kl_upper_from(p, c, guess))


def test_upper_ends_from_the_guesses_of_a_run():
    # Each solution is the guess of the next one, as in a search.
    rng = np.random.default_rng(5)
    for truth in (0.01, 0.3, 0.9, 0.999):
        total, last, mean, radius = 0.0, 0.0, 0.0, 0.0
        for n in range(1, 800):
            total += rng.random() < truth
            p, c = total / n, (3.0 + math.log(n)) / n
            guess = warm_start(p, last, p - mean, c, radius) if 0.0 < p < 1.0 else 0.0
            last, mean, radius = kl_upper_from(p, c, guess), p, c
            assert_outer_and_tight(p, c, last)


def test_shares_are_those_of_the_solver_at_first_and_again():
    shares = np.zeros(bernoulli.MOST_SHARES)
    for _ in range(2):
        for n in (2, 3, 17, bernoulli.MOST_KEPT):
            for k in range(1, n):
                assert share_upper(shares, k, n, 3.0 / n) == kl_upper(k / n, 3.0 / n)
