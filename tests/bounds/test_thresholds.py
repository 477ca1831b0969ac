"""Exploration functions: formulas, users' own, their tables, and the coverage that they promise."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from pacplan.bounds import Thresholds
from pacplan.bounds.intervals import kl_lower, kl_upper
from pacplan.bounds.thresholds import REWARD, TRANSITION, Radii, Setting, radii_of, resolve

COUNTS = np.array([1.0, 2.0, 3.0, 7.0, 10.0, 100.0, 12345.0, 1e7])


def setting(delta=0.1, successors=2, actions=3, horizon=4, episodes=None):
    return Setting(delta, successors, actions, horizon, episodes)


@pytest.mark.parametrize(
    ("delta", "b", "k", "h"),
    [(0.1, 2, 5, 6), (1e-6, 10, 2, 20), (0.9, 2, 1, 1), (0.1, 1, 3, 4), (0.1, 100, 100, 1000)],
)
def test_lemma_is_the_table_of_the_paper(delta, b, k, h):
    beta = resolve("lemma", setting(delta, b, k, h))
    price = math.log(3 / delta) + h * math.log(b * k)
    assert beta.reward(COUNTS) == pytest.approx(price + np.log(math.e * (1 + COUNTS)), rel=1e-13)
    expected = price + (b - 1) * np.log(math.e * (1 + COUNTS / max(b - 1, 1)))
    # Where there is one successor, transitions are sure.
    assert beta.transition(COUNTS) == pytest.approx(expected * (b > 1), rel=1e-13)
    assert beta.proven


@pytest.mark.parametrize(("b", "k"), [(1, 1), (1, 2), (1, 5), (2, 1), (2, 2), (3, 4)])
def test_lemma_covers_all_pairs_of_the_tree_together(b, k):
    for horizon in (1, 2, 5, 100):
        beta = resolve("lemma", setting(0.1, b, k, horizon))
        log_share = math.log(math.e * 2) - float(beta.reward(np.ones(1))[0])
        uncertain = 1 if b == 1 else 2  # Rewards, and transitions unless they are sure.
        pairs = sum(k * (b * k) ** h for h in range(horizon))
        assert math.log(uncertain * pairs) + log_share <= math.log(0.1) + 1e-12


def test_paper_is_the_table_of_the_paper():
    beta = resolve("paper", setting(0.1))
    # log log n is undefined at n = 1 and negative at 2: read as log(max(log n, 1)).
    loglog = np.log(np.maximum(np.log(COUNTS), 1.0))
    assert beta.reward(COUNTS) == pytest.approx(math.log(10) + loglog, rel=1e-13)
    assert beta.transition(COUNTS) == pytest.approx(math.log(10) + np.log(COUNTS), rel=1e-13)
    assert not beta.proven


@pytest.mark.parametrize(
    ("name", "reward", "transition"), [("budget", 1, 1), ("published", 1, 0.1), ("sharp", 0.2, 0.2)]
)
def test_within_a_budget_multiples_of_the_logarithm_of_the_episodes(name, reward, transition):
    beta = resolve(name, setting(episodes=500))
    assert beta.reward(COUNTS) == pytest.approx(reward * math.log(500))
    assert beta.transition(COUNTS) == pytest.approx(transition * math.log(500))
    assert not beta.proven and beta.name == name
    with pytest.raises(ValueError, match=f"{name}.*budget"):
        resolve(name, setting(episodes=None))


@pytest.mark.parametrize("bad", [math.nan, -1e-300, math.inf], ids=str)
@pytest.mark.parametrize("place", [0, 1])
def test_values_that_are_no_threshold_raise(bad, place):
    functions = [np.ones_like, np.ones_like]
    functions[place] = lambda n: np.full_like(n, bad)
    for wrong in (functions, [lambda n: 1.0, np.ones_like]):  # Or they are not vectorised.
        radii = radii_of(Thresholds(*wrong, proven=False, name="my own"), setting())
        with pytest.raises(ValueError, match=r"finite number >= 0.*my own"):
            radii.extend(5)


# ---------------------------------------------------------------------------------------- Tables


@pytest.mark.parametrize("name", ["lemma", "paper", "budget"])
@pytest.mark.parametrize("successors", [1, 3])
def test_radii_are_beta_over_n_however_the_table_is_extended(name, successors):
    beta = resolve(name, setting(0.05, successors, 4, 5, episodes=1000))
    radii = Radii(beta)
    for most in (1, 2, 3, 1024, 1025, 4999):
        radii.extend(most)
        assert len(radii.rows) > most
    rows = radii.rows
    n = np.arange(1.0, len(rows))
    assert rows[1:, REWARD] == pytest.approx(beta.reward(n) / n, rel=1e-14)
    assert rows[1:, TRANSITION] == pytest.approx(beta.transition(n) / n, rel=1e-14)


# -------------------------------------------------------------------------------------- Coverage
#
# One pair's share of delta is delta / (3 (BK)^H), for rewards and for transitions: so often, at most,
# may the truth ever leave its set. The settings make that share large, so that a threshold which is
# too small shows. The limits of the simulations are passed by chance less often than once in 10^7.

TOO_SMALL = 0.3
FALSE_ALARM = 1e-7


def limit(runs, share):
    return int(binom.isf(FALSE_ALARM, runs, share))


def cut(n):
    return np.full_like(n, TOO_SMALL)


@pytest.mark.parametrize("delta", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("truth", [0.5, 0.2, 0.02])
def test_reward_intervals_of_the_lemma_cover_with_the_exact_probability(delta, truth):
    # The probability that the mean has left its interval by step N, by dynamic programming over the
    # number of ones: no noise, and hence no slack.
    steps = 120
    beta = resolve("lemma", setting(delta, successors=1, actions=1, horizon=1))

    def escape_probability(reward):
        radius = reward(np.arange(1.0, steps + 1)) / np.arange(1, steps + 1)
        inside = np.zeros(steps + 1)  # Probabilities of k ones, never having left.
        inside[0] = 1.0
        for n in range(1, steps + 1):
            inside[1:] = (1 - truth) * inside[1:] + truth * inside[:-1]
            inside[0] *= 1 - truth
            c = float(radius[n - 1])
            left = [not kl_lower(k / n, c) <= truth <= kl_upper(k / n, c) for k in range(n + 1)]
            inside[: n + 1][left] = 0.0
        return 1.0 - inside.sum()

    assert -1e-12 <= escape_probability(beta.reward) <= delta / 3
    assert escape_probability(cut) > 0.99
    # Even the right threshold for a single n fails if all n are to hold together.
    assert escape_probability(lambda n: np.full_like(n, math.log(3 / delta))) > 1.3 * delta / 3


def counts_of_categorical_runs(p, rng, runs, steps):
    """Counts [run, step, outcome] after each draw."""
    drawn = rng.choice(len(p), size=(runs, steps), p=p)
    return np.cumsum(drawn[..., np.newaxis] == np.arange(len(p)), axis=1)


@pytest.mark.parametrize(
    "p", [(0.5, 0.5), (0.05, 0.95), (0.2, 0.3, 0.5), (0.02, 0.02, 0.96), (0.1,) * 10], ids=len
)
def test_transition_sets_of_the_lemma_cover_categorical_distributions(p):
    b, runs, steps = len(p), 3000, 150
    share = 0.9 / (3 * b)
    beta = resolve("lemma", setting(0.9, successors=b, actions=1, horizon=1))
    counts = counts_of_categorical_runs(p, np.random.default_rng(3), runs, steps)
    n = np.arange(1.0, steps + 1)
    frequencies = counts / n[:, np.newaxis]
    ratio = np.where(counts > 0, frequencies / np.array(p), 1.0)
    divergence = (frequencies * np.log(ratio)).sum(-1)

    def escapes(transition):
        return int((n * divergence > transition(n)).any(axis=1).sum())

    assert escapes(beta.transition) <= limit(runs, share)
    assert escapes(cut) > 1.5 * limit(runs, share)
