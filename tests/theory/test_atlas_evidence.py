"""Atlas's bets on claims that are false by nothing: they win 1/delta with probability at most delta."""

import numpy as np
import pytest
from scipy.stats import binom

DELTA = 0.1
LUCK = 1e-7  # probability of a false alarm of one test

# What is drawn and its probabilities. The claim is that the mean is at most theta, which is the mean.
LAWS = {
    "coin": ((0.0, 1.0), (0.5, 0.5)),
    "rarely a jackpot": ((0.0, 1.0), (0.995, 0.005)),
    "rarely nothing": ((0.0, 1.0), (0.02, 0.98)),
    "jackpots of two sizes": ((0.0, 0.2, 1.0), (0.7, 0.29, 0.01)),
    "a jackpot seldom seen": ((0.0, 0.1, 10.0), (0.5, 0.499, 0.001)),
    "gains and losses": ((-5.0, 0.0, 5.0), (0.01, 0.98, 0.01)),
}


def kelly(counts, gains):
    """The stakes at which these counts of gains grow fastest, up to 0.95 of the largest allowed."""
    low, high = np.zeros(counts.shape[:-1]), np.full(counts.shape[:-1], 0.95 / -gains.min())
    for _ in range(25):
        middle = 0.5 * (low + high)
        rising = (counts * gains / (1.0 + middle[..., None] * gains)).sum(-1) > 0.0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return low


def won(counts, stakes, gains):
    return (counts * np.log1p(stakes[..., None] * gains)).sum(-1)


def accepted(law, learnt, batch, *, ahead, runs=10_000):
    """How many runs accept the claim. If they look ahead, the stakes of a batch know the batch."""
    values, p = (np.array(part) for part in LAWS[law])
    gains = p @ values - values
    rng = np.random.default_rng(1)
    seen = rng.multinomial(learnt, p, runs)
    wealth, done = np.zeros(runs), np.zeros(runs, bool)
    for _ in range(20):
        fresh = rng.multinomial(batch, p, runs)
        wealth += won(fresh, kelly(seen + fresh * ahead, gains), gains)
        done |= wealth >= np.log(1.0 / DELTA)
        seen += fresh
        batch += batch // 5
    return done.sum(), binom.isf(LUCK, runs, DELTA)


@pytest.mark.parametrize("learnt", [5, 200])
@pytest.mark.parametrize("law", LAWS)
def test_a_false_claim_is_seldom_accepted(law, learnt):
    often, most = accepted(law, learnt, 20, ahead=False)
    assert 0 < often <= most


@pytest.mark.parametrize("law", LAWS)
def test_a_stake_that_looks_ahead_is_noticed(law):
    often, most = accepted(law, 20, 200, ahead=True)
    assert often > most


def wrong_answers(*, only_fresh, runs=5000, pairs=10):
    """How many runs accept some round, each with a false claim about the pair that looks best by then.

    The bets on every pair go on all the time. What counts in a round is won since it began, or else
    since the plan began.
    """
    gains, rng = np.array([-0.5, 0.5]), np.random.default_rng(2)
    wealth, wrong = np.zeros((runs, pairs)), np.zeros(runs, bool)
    for share in (0.0, 0.7, 0.21, 0.063):  # of delta; at first there is no round
        chosen = wealth.argmax(1)[:, None]
        before = np.take_along_axis(wealth, chosen, 1) * only_fresh
        for _ in range(20):
            wealth += won(rng.multinomial(10, [0.5, 0.5], wealth.shape), np.array(0.3), gains)
            now = np.take_along_axis(wealth, chosen, 1) - before
            wrong |= np.exp(now[:, 0]) * share * DELTA >= 1.0
    return wrong.sum(), binom.isf(LUCK, runs, DELTA)


def test_a_round_may_choose_its_claims_by_all_that_was_seen():
    often, most = wrong_answers(only_fresh=True)
    assert 0 < often <= most


def test_calls_before_a_round_are_no_evidence_in_it():
    often, most = wrong_answers(only_fresh=False)
    assert often > most
