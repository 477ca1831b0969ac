"""Solutions that are looked up are those that a solver finds, whatever was asked before."""

import numpy as np

from pacplan.bounds import memo as memos
from pacplan.bounds.intervals import kl_lower, kl_upper
from pacplan.bounds.memo import MOST_VISITS, new_memo
from pacplan.compiled.interpreted import interpreted

ask_share, ask_mean = interpreted(memos.share_upper), interpreted(memos.mean_bounds)


def test_shares_are_those_of_the_solver_at_first_and_again():
    memo = new_memo()
    for _ in range(2):
        for n in (2, 3, 17, MOST_VISITS - 1, MOST_VISITS):
            c = 3.0 / n
            for k in range(1, n):
                assert ask_share(memo, k, n, c) == kl_upper(k / n, c)


def test_means_are_those_of_the_solver_however_questions_collide():
    # Many more questions than places, in random order, so that they push each other out.
    rng = np.random.default_rng(0)
    memo = new_memo()
    means = rng.random(5000)
    for _ in range(20_000):
        mean, n = float(rng.choice(means)), int(rng.integers(1, 5))
        c = 3.0 / n
        upper, lower = ask_mean(memo, mean, n, c)
        assert upper == kl_upper(mean, c)
        assert min(lower, mean) == kl_lower(mean, c)
