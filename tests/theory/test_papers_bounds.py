"""The paper's bounds, by hand and against real searches."""

import math
import re

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import theory


def test_what_the_paper_prints():
    for epsilon, horizon, printed in ((1.0, 6, 8e9), (0.5, 8, 1e13), (0.2, 10, 3e16)):
        sizes = {"horizon": horizon, "actions": 5, "successors": 2}
        found = theory.sparse_sampling_calls(epsilon=epsilon, **sizes)
        assert found == pytest.approx(horizon**5 * 10**horizon / epsilon**2)
        assert printed == pytest.approx(found, rel=0.25)  # It has one digit.
    # 2 + log 10 / log(1/0.7) = 2 + 2.302585 / 0.356675
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


def pair_of_states(rewards, **options):
    """Two actions in each of two states, all leading to either state."""
    successors = np.array([[[0, 1], [0, 1]], [[0, 1], [0, 1]]])
    table = np.array([rewards, rewards])
    return pacplan.TabularMDP(np.full((2, 2, 2), 0.5), table, successors=successors, **options)


def test_corollary_1_by_hand():
    # B = 2, K = 2, H = 1: the two actions have gap 1/2, so m = C0 / (1/4); c = log(3 * 4 / 0.1).
    settings = {"gamma": 0.7, "horizon": 1, "epsilon": 0.1, "delta": 0.1}
    bound = theory.corollary_1(pair_of_states([1.0, 0.5]), 0, **settings)
    # C0 = (64 * 1.414214 * 2.414214)^2 = 47746.4; c = 4.787492; 2 sqrt(e) = 3.297443.
    m = 4 * 47746.4
    visits = m * (4.787492 + 2 * math.log(m * (4.787492 + 3.297443)) + 1)
    assert bound.proven == pytest.approx(2 * visits, rel=1e-4)
    # (BK)^0 (4 + 4) (log 10 + 2 log 4)
    assert bound.order == pytest.approx(8 * (2.302585 + 2 * 1.386294), rel=1e-6)


@pytest.mark.parametrize("successors", [1, 2])
def test_a_search_stays_below_the_corollary(successors):
    for seed in range(3):
        model = random_small(np.random.default_rng(seed), successors=successors)
        settings = {"gamma": 0.6, "horizon": 3, "epsilon": 0.3, "delta": 0.1}
        plan = pacplan.MDPGapE(**settings).plan(model, 0, seed=seed)
        assert plan.certified and plan.episodes <= theory.corollary_1(model, 0, **settings).proven


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


FUNCTIONS = ("table_2", "corollary_1", "bracket_calls", "lower_bound")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state": 20}, "state must be one of 0..3, got 20"),
        ({"gamma": "x"}, "gamma must be a number"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"delta": 1.0}, "delta must lie"),
        ({"model": "garnet"}, "must be a TabularMDP"),
    ],
    ids=str,
)
def test_wrong_arguments(name, change, words):
    model = random_small(np.random.default_rng(0))
    question = {"model": model, "gamma": 0.7, "horizon": 3, "epsilon": 0.5, "delta": 0.1} | change
    if name == "table_2" and question.pop("delta") == 1.0:
        return
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        getattr(theory, name)(**question)


def test_wrong_sizes_and_samples():
    with pytest.raises(ValueError, match="successors"):
        theory.crude_exponent(gamma=0.7, actions=5, successors=-2)
    for samples in ([[5.0]], np.empty((0, 2)), [[5.0, 0.0]]):
        with pytest.raises(ValueError, match="a row for every problem"):
            theory.exponent([1.0, 0.5], samples)


def test_what_no_float_can_hold_is_infinite():
    calls = theory.sparse_sampling_calls(epsilon=1e-200, horizon=400, actions=5, successors=2)
    assert calls == np.inf
    model, settings = random_small(np.random.default_rng(0)), {"gamma": 0.7, "horizon": 600}
    bound = theory.corollary_1(model, **settings, epsilon=0.5, delta=0.1)
    assert bound.order == bound.proven == np.inf
    assert any(line.most == np.inf for line in theory.table_2(model, **settings, epsilon=0.5))
