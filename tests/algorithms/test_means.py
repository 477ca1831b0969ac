"""UCT and BRUE: what defines them."""

import math

import numpy as np
import pytest

import pacplan
from bandits import bandit, pairs_of_root
from conftest import random_small
from pacplan import exact


def test_uct_visits_on_a_bandit_follow_ucb1():
    # Replayed by hand: both arms once in either order, then the larger UCB1 index.
    means = (0.2, 0.8)
    planner = pacplan.UCT(gamma=0.5, horizon=1, exploration=0.5)
    for budget in range(2, 40):
        plan = planner.plan(bandit(*means), 0, seed=1, budget=budget)
        n = [1, 1]
        for t in range(2, budget):
            index = [means[a] + 0.5 * math.sqrt(math.log(t) / n[a]) for a in (0, 1)]
            n[int(np.argmax(index))] += 1
        assert {a: int(pair["n"]) for a, pair in pairs_of_root(plan).items()} == dict(enumerate(n))
        np.testing.assert_allclose(plan.values, means)


def test_uct_backs_up_discounted_returns():
    # One action, rewards 1 from the second step on: the return is gamma + gamma^2.
    def step(state, action, rng):
        return state + 1, float(state > 0), False

    plan = pacplan.UCT(gamma=0.5, horizon=3).plan(
        pacplan.Simulator(step, actions=1, successors=1), 0, seed=0, budget=30
    )
    assert plan.value == pytest.approx(0.75)
    assert plan.episodes == 10


def test_uct_rollouts_grow_the_tree_by_one_node_an_episode():
    model = pacplan.envs.garnet(states=50, seed=0)
    plan = pacplan.UCT(gamma=0.7, horizon=10, rollout="random").plan(model, 0, seed=0, budget=5000)
    assert plan.episodes == 500
    assert plan.samples == 5000
    # The root, then one node an episode, but for those that ended on the last step in the tree.
    assert 400 <= len(plan.tree) <= 501
    full = pacplan.UCT(gamma=0.7, horizon=10).plan(model, 0, seed=0, budget=5000)
    assert len(full.tree) > 1500


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
    model = random_small(np.random.default_rng(0), states=3)
    truth = exact.finite_horizon(model, gamma=0.8, horizon=3)[0, 0]
    plan = pacplan.BRUE(gamma=0.8, horizon=3).plan(model, 0, seed=0, budget=300_000)
    np.testing.assert_allclose(plan.values, truth, atol=0.02)
