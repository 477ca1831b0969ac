"""Exploration functions: formulas, users' own, their tables, and the coverage that they promise."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from conftest import short
from pacplan.bounds import Thresholds
from pacplan.bounds.intervals import ball_max, ball_min, kl_lower, kl_upper
from pacplan.bounds.thresholds import Radii, Setting, ThresholdTable, check, resolve, table

COUNTS = [1, 2, 3, 7, 10, 100, 12345, 10**7]


def setting(delta=0.1, successors=2, actions=3, horizon=4, episodes=None):
    return Setting(delta, successors, actions, horizon, episodes)


def at(function, n):
    (value,) = function(np.array([float(n)]))
    return float(value)


# -------------------------------------------------------------------------------------- Formulas


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize(
    ("delta", "b", "k", "h"), [(0.1, 2, 5, 6), (0.5, 3, 1, 1), (1e-6, 10, 2, 20), (0.9, 2, 1, 1)]
)
def test_lemma_is_the_table_of_the_paper(delta, b, k, h, n):
    beta = resolve("lemma", setting(delta, b, k, h))
    price = math.log(3 * (b * k) ** h / delta)
    assert at(beta.reward, n) == pytest.approx(price + math.log(math.e * (1 + n)), rel=1e-13)
    expected = price + (b - 1) * math.log(math.e * (1 + n / (b - 1)))
    assert at(beta.transition, n) == pytest.approx(expected, rel=1e-13)
    assert beta.proven
    assert not beta.per_path


@pytest.mark.parametrize("n", COUNTS)
def test_lemma_needs_no_transition_threshold_for_one_successor(n):
    beta = resolve("lemma", setting(0.1, successors=1, actions=3, horizon=4))
    assert at(beta.transition, n) == 0.0
    expected = math.log(3 * 3**4 / 0.1) + math.log(math.e * (1 + n))
    assert at(beta.reward, n) == pytest.approx(expected, rel=1e-13)


def test_lemma_survives_powers_that_overflow():
    beta = resolve("lemma", setting(0.1, successors=100, actions=100, horizon=1000))
    expected = math.log(30) + 1000 * math.log(10**4) + 1 + math.log(2)
    assert at(beta.reward, 1) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("horizon", [1, 2, 3, 10, 100])
def test_lemma_covers_every_step_of_a_single_path(horizon):
    # With B = K = 1 there are H pairs, and (BK)^H = 1 does not count them.
    beta = resolve("lemma", setting(0.1, successors=1, actions=1, horizon=horizon))
    for n in COUNTS:
        price = at(beta.reward, n) - math.log(math.e * (1 + n))
        assert price >= math.log(3 / 0.1) - 1e-12  # The formula of the table,
        assert horizon * math.exp(-price) <= 0.1 + 1e-12  # and a union bound over the steps.


@pytest.mark.parametrize(("b", "k"), [(1, 2), (1, 5), (2, 1), (2, 2), (3, 4)])
@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_lemma_covers_all_pairs_of_the_tree_together(b, k, horizon):
    pairs = sum(k * (b * k) ** h for h in range(horizon))
    beta = resolve("lemma", setting(0.1, b, k, horizon))
    share = math.exp(math.log(math.e * 2) - at(beta.reward, 1))
    uncertain = 1 if b == 1 else 2  # Rewards, and transitions unless they are sure.
    assert uncertain * pairs * share <= 0.1 + 1e-12


@pytest.mark.parametrize("n", COUNTS)
def test_lemma_without_a_number_of_actions_leaves_the_path_to_the_search(n):
    # The factors of the path to a pair are still to come, one for each step to share delta with.
    beta = resolve("lemma", setting(0.1, successors=3, actions=None, horizon=5))
    assert beta.per_path
    assert beta.proven
    price = math.log(3 * 5 / 0.1)
    assert at(beta.reward, n) == pytest.approx(price + math.log(math.e * (1 + n)), rel=1e-13)
    expected = price + 2 * math.log(math.e * (1 + n / 2))
    assert at(beta.transition, n) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("delta", [0.1, 0.5, 1e-6])
def test_paper_is_the_table_of_the_paper(delta, n):
    beta = resolve("paper", setting(delta))
    # log log n is undefined at n = 1 and negative at 2: read as log(max(log n, 1)).
    loglog = math.log(max(math.log(n), 1.0))
    assert at(beta.reward, n) == pytest.approx(math.log(1 / delta) + loglog, rel=1e-13)
    assert at(beta.transition, n) == pytest.approx(math.log(1 / delta) + math.log(n), rel=1e-13)
    assert not beta.proven


def test_paper_does_not_depend_on_the_size_of_the_problem():
    small, large = (resolve("paper", setting(0.1, b, k, h)) for b, k, h in ((2, 1, 1), (9, 8, 7)))
    assert at(small.reward, 50) == at(large.reward, 50)
    assert at(small.transition, 50) == at(large.transition, 50)


@pytest.mark.parametrize("episodes", [1, 2, 500, 10**9])
@pytest.mark.parametrize(
    ("name", "reward", "transition"), [("budget", 1, 1), ("published", 1, 0.1), ("sharp", 0.2, 0.2)]
)
def test_within_a_budget_multiples_of_the_logarithm_of_the_episodes(name, reward, transition, episodes):
    beta = resolve(name, setting(episodes=episodes))
    for n in COUNTS:
        assert at(beta.reward, n) == pytest.approx(reward * math.log(episodes), rel=1e-15)
        assert at(beta.transition, n) == pytest.approx(transition * math.log(episodes), rel=1e-15)
    assert not beta.proven


@pytest.mark.parametrize("name", ["budget", "published", "sharp"])
def test_budget_without_episodes_raises(name):
    with pytest.raises(ValueError, match=f"{name}.*budget"):
        resolve(name, setting(episodes=None))


@pytest.mark.parametrize("name", ["lemma", "paper", "budget", "published", "sharp"])
def test_named_thresholds_carry_their_name_and_grow_with_n(name):
    beta = resolve(name, setting(episodes=100))
    assert beta.name == name
    check(name)
    n = np.arange(1, 5000, dtype=float)
    for function in (beta.reward, beta.transition):
        assert (function(n) >= 0).all()
        assert (np.diff(function(n)) >= 0).all()
        assert (np.diff(function(n) / n) < 0).all()  # Intervals shrink all the same.


# -------------------------------------------------------------------------------------- Your own


def rows_of(thresholds, upto, **options):
    rows = ThresholdTable(resolve(thresholds, setting(**options)))
    rows.extend(upto)
    return rows.rows


def test_own_functions_of_n():
    pair = (lambda n: 2.0 + n, lambda n: math.sqrt(n))
    check(pair)
    rows = rows_of(pair, 50)
    for n in range(1, 51):
        assert rows[n, Radii().reward] == pytest.approx((2.0 + n) / n, rel=1e-15)
        assert rows[n, Radii().transition] == pytest.approx(math.sqrt(n) / n, rel=1e-15)


def test_own_functions_of_n_and_delta():
    pair = (lambda n, delta: math.log(n / delta), lambda n, delta: n * delta)
    check(pair)
    rows = rows_of(pair, 50, delta=0.25)
    for n in range(1, 51):
        assert rows[n, Radii().reward] == pytest.approx(math.log(n / 0.25) / n, rel=1e-14)
        assert rows[n, Radii().transition] == pytest.approx(0.25, rel=1e-14)


@pytest.mark.parametrize(
    "function",
    [math.log1p, np.log1p, functools.partial(lambda scale, n: scale * math.log1p(n), 1.0)],
    ids=["math", "numpy", "partial"],
)
def test_own_functions_may_be_any_callables(function):
    rows = rows_of((function, function), 5)
    assert rows[4, Radii().reward] == pytest.approx(math.log1p(4) / 4, rel=1e-15)


def test_own_functions_may_be_builtins_that_hide_their_arguments():
    # Python itself cannot tell how many arguments this one takes; n alone is right.
    check((math.log, math.log))
    rows = rows_of((math.log, math.log), 5)
    assert rows[4, Radii().reward] == pytest.approx(math.log(4) / 4, rel=1e-15)


def test_ready_made_thresholds_are_used_as_they_are():
    mine = Thresholds(lambda n: 0 * n + 1, lambda n: 0 * n, proven=True, name="mine")
    check(mine)
    assert resolve(mine, setting()) is mine


@pytest.mark.parametrize("name", ["Lemma", "hoeffding", ""])
def test_unknown_names_raise_and_name_the_known_ones(name):
    with pytest.raises(ValueError, match=r"'lemma'.*'paper'.*'budget'"):
        check(name)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        3,
        b"lemma",
        math.log,
        (1.0, 2.0),
        (lambda n: 1.0,),
        (lambda n: 1.0,) * 3,
        (lambda n: 1.0, "lemma"),
        {"reward": 1},
    ],
    ids=short,
)
def test_thresholds_of_the_wrong_type_raise(wrong):
    with pytest.raises(TypeError, match="thresholds must be"):
        check(wrong)


@pytest.mark.parametrize("bad", [math.nan, -1.0, -1e-300, math.inf, -math.inf, None], ids=str)
@pytest.mark.parametrize("place", ["reward", "transition"])
def test_values_that_are_no_threshold_raise(bad, place):
    functions = {"reward": lambda n: 1.0, "transition": lambda n: 1.0, place: lambda n: bad}
    with pytest.raises(ValueError, match="finite number >= 0"):
        rows_of((functions["reward"], functions["transition"]), 10)


@pytest.mark.parametrize("bad", ["much", 1j, [1.0, 2.0]], ids=str)
def test_values_that_are_no_number_raise(bad):
    with pytest.raises((TypeError, ValueError)):
        rows_of((lambda n: bad, lambda n: 1.0), 10)


@pytest.mark.parametrize("function", [lambda: 1.0, lambda n, delta, more: 1.0])
def test_functions_of_too_few_or_too_many_arguments_raise(function):
    with pytest.raises(TypeError):
        rows_of((function, function), 10)


def test_ready_made_thresholds_that_are_not_vectorised_raise():
    rows = ThresholdTable(Thresholds(lambda n: 1.0, lambda n: 1.0, proven=False, name="scalar"))
    with pytest.raises(ValueError, match="scalar"):
        rows.extend(5)


# ---------------------------------------------------------------------------------------- Tables


@pytest.mark.parametrize("name", ["lemma", "paper", "budget", "published", "sharp"])
@pytest.mark.parametrize("plan", [[1], [5000], [1, 2, 3, 1024, 1025, 4999], [3000, 10, 5000]])
def test_table_holds_beta_over_n_however_it_is_extended(name, plan):
    chosen = setting(0.05, 3, 4, 5, episodes=1000)
    beta = resolve(name, chosen)
    rows = ThresholdTable(beta)
    for n in plan:
        rows.extend(n)
        assert len(rows.rows) > n
    for column, function in ((Radii().reward, beta.reward), (Radii().transition, beta.transition)):
        c = [at(function, n) / n for n in range(1, len(rows.rows))]
        assert rows.rows[1:, column] == pytest.approx(c, rel=1e-14)
        assert rows.rows[1:, column + 2] == pytest.approx(np.exp(-np.array(c)), rel=1e-14)
        shrinks = [math.sqrt(now / last) for last, now in itertools.pairwise(c)]
        assert rows.rows[2:, column + 1] == pytest.approx(shrinks, rel=1e-14)


def test_table_of_zeros_has_no_nan():
    rows = rows_of("lemma", 3000, successors=1)
    assert np.isfinite(rows).all()
    assert (rows[1:, Radii().transition] == 0).all()
    assert (rows[1:, Radii().transition_decay] == 1).all()


def test_tables_of_equal_settings_are_shared():
    assert table("lemma", setting(0.2)) is table("lemma", setting(0.2))
    assert table("lemma", setting(0.2)) is not table("lemma", setting(0.3))


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


def escape_table(reward, steps, truth):
    """Whether the truth lies outside the interval after k ones in n draws, [n, k]."""
    outside = np.zeros((steps + 1, steps + 1), np.bool_)
    radius = reward(np.arange(1.0, steps + 1)) / np.arange(1, steps + 1)
    for n in range(1, steps + 1):
        for k in range(n + 1):
            c = float(radius[n - 1])
            outside[n, k] = not kl_lower(k / n, c) <= truth <= kl_upper(k / n, c)
    return outside


@pytest.mark.parametrize("delta", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("truth", [0.5, 0.2, 0.02])
def test_reward_intervals_of_the_lemma_cover_with_the_exact_probability(delta, truth):
    # The probability that the mean has left its interval by step N, by dynamic programming over the
    # number of ones: no noise, and hence no slack.
    steps = 120
    beta = resolve("lemma", setting(delta, successors=1, actions=1, horizon=1))

    def escape_probability(reward):
        outside = escape_table(reward, steps, truth)
        inside = np.zeros(steps + 1)  # Probabilities of k ones, never having left.
        inside[0] = 1.0
        for n in range(1, steps + 1):
            inside[1:] = (1 - truth) * inside[1:] + truth * inside[:-1]
            inside[0] *= 1 - truth
            inside[outside[n]] = 0.0
        return 1.0 - inside.sum()

    assert -1e-12 <= escape_probability(beta.reward) <= delta / 3
    assert escape_probability(cut) > 0.99
    # Even the right threshold for a single n fails if all n are to hold together.
    assert escape_probability(lambda n: np.full_like(n, math.log(3 / delta))) > 1.3 * delta / 3


@pytest.mark.parametrize("shape", [(1.0, 1.0), (0.2, 0.6), (0.5, 0.1)])
def test_reward_intervals_of_the_lemma_cover_means_of_bounded_rewards(shape):
    # Rewards are only promised to lie in [0, 1].
    share = 0.5 / 3
    beta = resolve("lemma", setting(0.5, successors=1, actions=1, horizon=1))
    rng = np.random.default_rng(2)
    runs, steps = 1500, 60
    means = np.cumsum(rng.beta(*shape, (runs, steps)), axis=1) / np.arange(1, steps + 1)
    truth = shape[0] / sum(shape)
    n = np.arange(1.0, steps + 1)

    def escapes(reward):
        radius = (reward(n) / n).tolist()
        count = 0
        for run in np.clip(means, 0.0, 1.0).tolist():
            count += any(
                not kl_lower(mean, c) <= truth <= kl_upper(mean, c)
                for mean, c in zip(run, radius, strict=True)
            )
        return count

    assert escapes(beta.reward) <= limit(runs, share)
    assert escapes(cut) > 1.5 * limit(runs, share)


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


@pytest.mark.parametrize("values", [(0.0, 0.5, 1.0), (1.0, 0.9, 0.0), (0.2, 0.2, 3.0)])
def test_expectations_over_the_transition_sets_cover_the_true_one(values):
    p, steps, runs = (0.15, 0.25, 0.6), 40, 2000
    f = np.array(values)
    truth = float(np.dot(p, f))
    # The bounds of a search: outcomes not seen get the best and the worst value that there can be.
    best, worst = float(f.max()), float(f.min())
    share = 0.9 / (3 * 3)
    beta = resolve("lemma", setting(0.9, successors=3, actions=1, horizon=1))
    counts = counts_of_categorical_runs(p, np.random.default_rng(4), runs, steps)
    n = np.arange(1.0, steps + 1)
    scratch = np.empty(3)

    def escapes(transition):
        radius = transition(n) / n
        outside = {}

        def leaves(key):
            if key not in outside:
                seen = [k for k in range(3) if key[k]]
                q, g = [key[k] / sum(key) for k in seen], f[seen].tolist()
                c = float(radius[sum(key) - 1])
                full = len(seen) == 3
                high = ball_max(q, g, len(seen), -math.inf if full else best, c)
                low = ball_min(q, g, len(seen), math.inf if full else worst, c, scratch)
                outside[key] = not low - 1e-12 <= truth <= high + 1e-12
            return outside[key]

        return sum(any(leaves(tuple(key)) for key in run) for run in counts.tolist())

    assert escapes(beta.transition) <= limit(runs, share)
    assert escapes(cut) > 1.5 * limit(runs, share)
