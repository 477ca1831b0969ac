"""The one call: `pacplan.plan`."""

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact


def test_it_plans_with_bracket_and_says_so():
    model = random_small(np.random.default_rng(1), states=6, actions=3)
    settings = {"epsilon": 0.3, "delta": 0.1, "gamma": 0.8, "horizon": 4}
    plan = pacplan.plan(model, 0, seed=2, **settings)
    same = pacplan.Bracket(**settings, merge="depth").plan(model, 0, seed=2)
    np.testing.assert_array_equal(plan.lower, same.lower)
    np.testing.assert_array_equal(plan.upper, same.upper)
    assert plan.planner.startswith("Bracket(")
    assert plan.guarantee.startswith(same.guarantee)
    assert "Bracket" in plan.guarantee and "merged" in plan.guarantee
    q = exact.finite_horizon(model, gamma=0.8, horizon=4)[0, 0]
    assert plan.certified and q.max() - q[plan.action] <= 0.3
    tree = pacplan.plan(model, 0, seed=2, merge="tree", budget=500, **settings)
    assert "merge" not in tree.planner and tree.samples <= 500


def test_simulators_are_not_merged():
    table = random_small(np.random.default_rng(1))
    model = pacplan.Simulator(table.step, actions=2, successors=2)
    plan = pacplan.plan(model, 0, epsilon=0.5, delta=0.1, gamma=0.7, horizon=2, seed=0)
    assert "merge" not in plan.planner
    assert plan.certified


def test_games():
    game = pacplan.envs.game_tree([[0.9, 0.2], 0.6])
    plan = pacplan.plan(game, epsilon=0.1, delta=0.1, seed=0)
    assert plan.action == 1
    assert "UGapEMCTS" in plan.guarantee
    with pytest.raises(ValueError, match="gamma"):
        pacplan.plan(game, epsilon=0.1, delta=0.1, gamma=0.9)


def test_what_is_missing_is_named():
    model = random_small(np.random.default_rng(1))
    with pytest.raises(TypeError, match="gamma"):
        pacplan.plan(model, 0, epsilon=0.3, delta=0.1)
    with pytest.raises(TypeError, match="thresholds"):
        pacplan.plan(model, 0, epsilon=0.3, delta=0.1, gamma=0.7, thresholds="paper")
    with pytest.raises(TypeError, match="model"):
        pacplan.plan("model", 0, epsilon=0.3, delta=0.1, gamma=0.7)


@pytest.mark.parametrize("cls", [pacplan.Bracket, pacplan.MDPGapE])
@pytest.mark.parametrize("goal", ["action", "value"])
def test_the_certificate_names_the_action_as_the_user_does(cls, goal):
    def step(state, action, rng):
        return state, float(action == "Right"), True

    model = pacplan.Simulator(step, actions=["Left", "Right"], successors=1)
    planner = cls(epsilon=0.4, delta=0.1, gamma=0.7, horizon=1, goal=goal)
    plan = planner.plan(model, 0, seed=0)
    assert plan.action == "Right"
    assert "'Right'" in plan.guarantee
