"""The paper's bounds, by hand, by brute force and against real searches."""

import itertools
import math
import re

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import theory


def tree(rng, *, noise="none", actions=2):
    """Random deterministic transitions among six states."""
    successors = rng.integers(6, size=(6, actions, 1))
    return pacplan.TabularMDP(
        np.ones((6, actions, 1)), rng.random((6, actions)), successors=successors, noise=noise
    )


# n of Sparse Sampling, exponents ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "horizon", "printed"), [(1.0, 6, 8e9), (0.5, 8, 1e13), (0.2, 10, 3e16)]
)
def test_sparse_sampling_as_in_the_papers_table(epsilon, horizon, printed):
    found = theory.sparse_sampling_calls(epsilon=epsilon, horizon=horizon, actions=5, successors=2)
    assert found == pytest.approx(horizon**5 * 10**horizon / epsilon**2)
    assert printed == pytest.approx(found, rel=0.25)  # It has one digit.


def test_crude_exponent():
    # log 10 / log(1/0.7) = 2.302585 / 0.356675
    found = theory.crude_exponent(gamma=0.7, actions=5, successors=2)
    assert found == pytest.approx(8.4557, abs=1e-4)


def test_exponent_is_the_slope_of_the_means_and_its_interval_covers_it():
    rng = np.random.default_rng(1)
    epsilons = [1.0, 0.5, 0.2]
    samples = np.exp(rng.normal(size=(300, 3))) * np.array(epsilons) ** -2.5
    fit = theory.exponent(epsilons, samples)
    x, y = np.log(1 / np.array(epsilons)), np.log(samples.mean(0))
    assert fit.value == pytest.approx(np.polyfit(x, y, 1)[0])
    # The means have relative errors of sqrt(e - 1) / sqrt(300); the slope weighs them by x - mean.
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    error = math.sqrt((weights**2).sum() * (math.e - 1) / 300)
    assert fit.high - fit.low == pytest.approx(2 * 1.96 * error, rel=0.4)
    assert abs(fit.value - 2.5) < 6 * error


@pytest.mark.parametrize(
    ("epsilons", "samples", "words"),
    [
        ([1.0], [[5.0]], "two or more"),
        ([1.0, "x"], [[1, 2]], "epsilons must be a number"),
        ([1.0, 0.5], np.empty((0, 2)), "a row for every problem"),
        ([1.0, 0.5], [["a", "b"]], "samples must be an array of numbers"),
        ([1.0, 0.5], [[5.0, 0.0]], "positive and finite"),
    ],
)
def test_exponents_that_make_no_sense(epsilons, samples, words):
    with pytest.raises((TypeError, ValueError), match=words):
        theory.exponent(epsilons, samples)


# Gaps -------------------------------------------------------------------------------------------------


def test_gaps_by_hand():
    rewards = np.array([[1.0, 0.7, 0.2]])
    model = pacplan.TabularMDP(np.ones((1, 3, 1)), rewards, successors=np.zeros((1, 3, 1), int))
    found = theory.gaps(model, gamma=0.5, horizon=2, epsilon=0.1)
    # The future is the same whatever one does. At the root the best action has the second's gap.
    assert found[0, 0] == pytest.approx([0.3, 0.3, 0.8])
    assert found[1, 0] == pytest.approx([0.0, 0.3, 0.8])
    assert theory.gaps(model, gamma=0.5, horizon=2, epsilon=0.5)[0, 0] == pytest.approx([0.5, 0.5, 0.8])


# Corollary 1 ------------------------------------------------------------------------------------------


def test_corollary_1_by_hand():
    # B = 2, K = 2, H = 1: the two actions have gap 1/2, so m = C0 / (1/4); c = log(3 * 4 / 0.1).
    successors = np.array([[[0, 1], [0, 1]], [[0, 1], [0, 1]]])
    rewards = np.array([[1.0, 0.5], [1.0, 0.5]])
    model = pacplan.TabularMDP(np.full((2, 2, 2), 0.5), rewards, successors=successors)
    bound = theory.corollary_1(model, 0, gamma=0.7, horizon=1, epsilon=0.1, delta=0.1)
    # C0 = (64 * 1.414214 * 2.414214)^2 = 47746.4; c = 4.787492; 2 sqrt(e) = 3.297443.
    m = 4 * 47746.4
    visits = m * (4.787492 + 2 * math.log(m * (4.787492 + 3.297443)) + 1)
    assert bound.proven == pytest.approx(2 * visits, rel=1e-4)
    # (BK)^0 (4 + 4) (log 10 + 2 log 4)
    assert bound.order == pytest.approx(8 * (2.302585 + 2 * 1.386294), rel=1e-6)


# Table 2 ----------------------------------------------------------------------------------------------


def pair_of_states(rewards, **options):
    """Two actions in each of two states, all leading to either state."""
    successors = np.array([[[0, 1], [0, 1]], [[0, 1], [0, 1]]])
    table = np.array([rewards, rewards])
    return pacplan.TabularMDP(np.full((2, 2, 2), 0.5), table, successors=successors, **options)


BY_HAND = [
    # B = K = 2, gamma = 1/2, H = 2, epsilon = 1/4 and a gap of 1/2, so that (BK)^H = 16,
    # log K / log(1/gamma) = 1 and log(BK) / log(1/gamma) = 2.
    ("sparse-sampling", 2**5 * 16 * 16, 2**5 * 16 * 16),
    ("sparse-sampling", 4**3, 4**3),
    ("olop", 4**2, 4**2),  # max(2, 0) and max(2, 1)
    ("op-mdp", 1, 4**2),
    ("brue", 2**4 * 16 * 4, 2**4 * 16 * 4),
    ("stop", 4**2, 4**4),
    ("trailblazer", 4**2, 4**2),  # max(2, 1) and max(2, 2)
    ("smooth-cruiser", 4**4, 4**4),
    ("mdp-gape", 2 * (2**2 * 4 * 2 * 4), 2 * (2**2 * 4 * 2 * 4)),
]


@pytest.mark.parametrize(
    ("model", "epsilon"),
    [(pair_of_states([1.0, 0.5]), 0.25), (pair_of_states([6.0, 1.0], reward_range=(-4.0, 6.0)), 2.5)],
    ids=["rewards in [0, 1]", "rewards in [-4, 6]"],
)
def test_table_2_by_hand(model, epsilon):
    lines = theory.table_2(model, 0, gamma=0.5, horizon=2, epsilon=epsilon)
    assert [(line.planner, line.least, line.most) for line in lines] == [
        (name, pytest.approx(least), pytest.approx(most)) for name, least, most in BY_HAND
    ]


def test_table_2_of_a_tie():
    lines = theory.table_2(pair_of_states([0.5, 0.5]), 0, gamma=0.5, horizon=2, epsilon=0.25)
    calls = {line.planner: line.most for line in lines}
    assert calls["brue"] == math.inf
    # Neither gap exceeds epsilon: 2 actions, H^2 (BK)^(H-1) B / epsilon^2 for each.
    assert calls["mdp-gape"] == pytest.approx(2 * (4 * 4 * 2 * 16))


# The deterministic theorem ----------------------------------------------------------------------------


@pytest.mark.parametrize(("actions", "horizon"), [(2, 4), (3, 3)])
def test_deterministic_theorem_by_brute_force(actions, horizon):
    rng = np.random.default_rng(actions)
    model = tree(rng, actions=actions)
    settings = {"gamma": 0.7, "horizon": horizon, "epsilon": 0.1}
    widths = theory.gaps(model, 2, **settings)
    price = math.log(3 * actions**horizon / 0.05)
    order = proven = 0.0
    for actions_taken in itertools.product(range(actions), repeat=horizon):
        state, path = 2, []
        for h, action in enumerate(actions_taken):
            path.append((h, state, action))
            state = int(model.sparse()[2][state, action, 0])
        sigma = [sum(0.7**i for i in range(horizon - h)) for h in range(horizon)]
        shares = [(sigma[h] / widths[h, s, a]) ** 2 for h, s, a in path if widths[h, s, a] > 0.0]
        order += min(shares)
        n = np.arange(1, 200_000)
        beta = price + np.log(math.e * (1 + n))
        fits = np.ones(len(n), bool)
        for h, s, a in path:
            factor = 2 if h == 0 else 1
            fits &= widths[h, s, a] <= factor * sigma[h] * np.sqrt(2 * beta / n)
        assert not fits[-1]
        proven += 1 + (n[fits].max() if fits.any() else 0)
    found = theory.deterministic_theorem(model, 2, delta=0.05, **settings)
    assert found.order == pytest.approx(order * (math.log(20) + horizon * math.log(actions)))
    assert found.proven == pytest.approx(proven)


def random_tree(rng):
    return tree(rng, noise="bernoulli")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("draw", "bound"), [(random_small, theory.corollary_1), (random_tree, theory.deterministic_theorem)]
)
def test_a_search_stays_below_the_bounds(draw, bound, seed):
    model = draw(np.random.default_rng(seed))
    settings = {"gamma": 0.6, "horizon": 3, "epsilon": 0.3, "delta": 0.1}
    plan = pacplan.MDPGapE(**settings).plan(model, 0, seed=seed)
    assert plan.certified and plan.episodes <= bound(model, 0, **settings).proven


def test_the_deterministic_theorem_needs_one_successor():
    model = random_small(np.random.default_rng(0))
    with pytest.raises(ValueError, match="2 successors"):
        theory.deterministic_theorem(model, gamma=0.5, horizon=2, epsilon=0.1, delta=0.1)


# Refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaps", "table_2", "corollary_1", "deterministic_theorem"])
@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"state": 20}, ValueError, "state must be one of 0..3, got 20"),
        ({"state": "here"}, TypeError, "state must be a whole number, got 'here'"),
        ({"gamma": "x"}, TypeError, "gamma must be a number"),
        ({"horizon": 0}, ValueError, "horizon must be at least 1"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be positive"),
        ({"model": "garnet"}, TypeError, "must be a TabularMDP"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_before_anything_is_computed(
    name, change, kind, words, monkeypatch
):
    question = {"gamma": 0.7, "horizon": 3, "epsilon": 0.5}
    if name in ("corollary_1", "deterministic_theorem"):
        question["delta"] = 0.1
    monkeypatch.setattr("pacplan.exact.gaps", lambda *_, **__: pytest.fail("it computes"))
    with pytest.raises(kind, match=re.escape(words)):
        getattr(theory, name)(**{"model": random_small(np.random.default_rng(0))} | question | change)


@pytest.mark.parametrize("change", [{"actions": 0}, {"successors": -2}, {"actions": 2.5}], ids=str)
def test_wrong_sizes(change):
    sizes = {"actions": 5, "successors": 2} | change
    with pytest.raises((TypeError, ValueError), match=next(iter(change))):
        theory.crude_exponent(gamma=0.7, **sizes)


def test_what_no_float_can_hold_is_infinite():
    calls = theory.sparse_sampling_calls(epsilon=1e-200, horizon=400, actions=5, successors=2)
    assert calls == np.inf
    model, settings = random_small(np.random.default_rng(0)), {"gamma": 0.7, "horizon": 600}
    bound = theory.corollary_1(model, **settings, epsilon=0.5, delta=0.1)
    assert bound.order == bound.proven == np.inf
    assert any(line.most == np.inf for line in theory.table_2(model, **settings, epsilon=0.5))
