"""Sparse Sampling: its cost, its guarantee, its estimates."""

import math

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact


def small(seed):
    return random_small(np.random.default_rng(seed))


def test_estimates_are_exact_where_nothing_is_random():
    model = pacplan.envs.garnet(states=20, actions=3, successors=1, seed=0)
    plan = pacplan.SparseSampling(gamma=0.8, horizon=4, width=1).plan(model, 0, seed=0)
    truth = exact.finite_horizon(model, gamma=0.8, horizon=4)[0, 0]
    np.testing.assert_allclose(plan.values, truth)
    assert plan.stopped_by == "rule"
    # K (1 + K + K^2 + K^3) calls, one for every pair.
    assert plan.samples == 3 * (1 + 3 + 9 + 27)
    assert pacplan.SparseSampling(gamma=0.8, horizon=4, width=1).calls(model) == plan.samples


def test_the_predicted_number_of_calls_is_reached_and_never_exceeded():
    # Both successors of a pair are as likely, so 200 draws see them both.
    to = np.array([[[0, 1], [1, 2]], [[2, 3], [3, 0]], [[0, 2], [1, 3]], [[3, 1], [2, 0]]])
    model = pacplan.TabularMDP(np.full((4, 2, 2), 0.5), np.full((4, 2), 0.5), successors=to)
    for width, horizon in ((1, 3), (5, 2), (200, 3)):
        planner = pacplan.SparseSampling(gamma=0.8, horizon=horizon, width=width)
        bound = 2 * width * sum((2 * min(width, 2)) ** h for h in range(horizon))
        assert planner.calls(model) == bound
        taken = [planner.plan(model, 0, seed=seed).samples for seed in range(20)]
        assert max(taken) <= bound
        if width == 200:
            assert max(taken) == bound


def test_width_that_epsilon_and_delta_need():
    model = small(0)
    planner = pacplan.SparseSampling(gamma=0.5, horizon=2, epsilon=1.0, delta=0.1)
    # N = 2 + 8 pairs, E = sigma_2 + gamma sigma_1 = 1.5 + .5.
    assert planner.shape(model) == (math.ceil(2 * math.log(2 * 10 / 0.1) * 2.0**2), 2)
    assert pacplan.SparseSampling(gamma=0.7, epsilon=1.0, delta=0.1).shape(model)[1] == 6


def test_certified_estimates_hold():
    # Hoeffding's union is generous, so among 200 runs at delta = .2 not one should fail; 60 failures
    # would happen with probability 1e-3 even at the rate allowed, 80 with less than 1e-9.
    planner = pacplan.SparseSampling(gamma=0.5, horizon=2, epsilon=0.8, delta=0.2)
    failures = 0
    for seed in range(200):
        model = small(seed)
        truth = exact.finite_horizon(model, gamma=0.5, horizon=2)[0, 0]
        plan = planner.plan(model, 0, seed=seed)
        assert plan.certified
        assert plan.gap <= 0.8 + 1e-9
        inside = (plan.lower <= truth).all() and (truth <= plan.upper).all()
        failures += not (inside and truth.max() - truth[plan.action] <= 0.8)
    assert failures <= 80


def test_left_in_the_middle_it_says_what_it_has():
    model = small(0)
    planner = pacplan.SparseSampling(gamma=0.8, horizon=4, width=10)
    whole = planner.plan(model, 0, seed=0)
    seen = []

    def callback(snapshot):
        seen.append(snapshot.samples)
        return snapshot.samples > 0.7 * whole.samples

    plan = planner.plan(model, 0, seed=0, callback=callback)
    assert plan.stopped_by == "callback"
    assert plan.values[0] == whole.values[0]
    assert np.isnan(plan.values[1])
    assert "not finished" in plan.guarantee


@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": 0.7},
        {"gamma": 0.7, "width": 3},
        {"gamma": 0.7, "horizon": 2, "width": 0},
        {"gamma": 0.7, "horizon": 2, "width": 3, "epsilon": 1.0},
        {"gamma": 0.7, "epsilon": 1.0},
        {"gamma": 0.7, "epsilon": 0.0, "delta": 0.1},
        {"gamma": 0.7, "epsilon": 1.0, "delta": 1.0},
        {"gamma": 1.0, "epsilon": 1.0, "delta": 0.1},
    ],
    ids=str,
)
def test_settings_that_make_no_sense(settings):
    with pytest.raises(ValueError, match=r"width|epsilon|delta|horizon"):
        pacplan.SparseSampling(**settings)


def test_more_successors_than_promised():
    model = pacplan.Simulator(lambda s, a, rng: (rng.random(), 0.0, False), actions=2, successors=2)
    with pytest.raises(pacplan.BrokenPromiseError, match="2 successors"):
        pacplan.SparseSampling(gamma=0.7, horizon=2, width=5).plan(model, 0, seed=0)
