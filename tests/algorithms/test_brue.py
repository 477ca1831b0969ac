"""BRUE: what defines it."""

import math

import numpy as np

import pacplan
from bandits import pairs_of_root
from pacplan import exact


def test_brue_estimates_of_the_root_use_only_iterations_that_switch_at_step_1():
    model = pacplan.envs.garnet(states=50, seed=0)
    for episodes in (1, 4, 5, 6, 10, 37, 500):
        plan = pacplan.BRUE(gamma=0.7, horizon=5).plan(model, 0, seed=0, budget=5 * episodes)
        assert plan.episodes == episodes
        # Iteration i switches at 5 - ((i - 1) mod 5): at step 1 for i = 5, 10, ...
        counted = sum(int(pair["n"]) for pair in pairs_of_root(plan).values())
        assert counted == episodes // 5
        # And every iteration counts in exactly one pair.
        assert plan.tree.pairs["n"].sum() == episodes


def test_brue_explores_uniformly():
    model = pacplan.envs.garnet(states=50, seed=0)
    plan = pacplan.BRUE(gamma=0.7, horizon=5).plan(model, 0, seed=0, budget=100_000)
    expected = plan.episodes / 5
    # 20 000 uniform draws among 5: a count differs from its mean by 6 standard deviations at most.
    assert np.abs(plan.calls / 5 - expected).max() < 6 * math.sqrt(expected * 0.8)


def test_brue_converges_to_the_exact_values():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(2), size=(3, 2))
    to = rng.permuted(np.broadcast_to(np.arange(3), (3, 2, 3)), axis=-1)[..., :2]
    model = pacplan.TabularMDP(p, rng.random((3, 2)), successors=to)
    truth = exact.finite_horizon(model, gamma=0.8, horizon=3)[0, 0]
    plan = pacplan.BRUE(gamma=0.8, horizon=3).plan(model, 0, seed=0, budget=300_000)
    np.testing.assert_allclose(plan.values, truth, atol=0.02)
