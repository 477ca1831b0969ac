"""StOP: policies, their trajectories and bounds."""

import math
import re

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact


def test_bounds_hold_and_the_action_is_good():
    # A delta at which no violation is to be expected.
    planner = pacplan.StOP(epsilon=0.6, delta=1e-8, gamma=0.3)
    depths = set()
    for seed in range(40):
        model = random_small(np.random.default_rng(seed))
        plan = planner.plan(model, 0, seed=seed)
        values = exact.discounted(model, gamma=0.3)[0]
        assert plan.certified
        assert plan.gap <= 0.6
        assert values.max() - values[plan.action] <= 0.6
        assert np.all(plan.lower <= values)
        assert np.all(values <= plan.upper)
        depths.add(plan.horizon)
    assert len(depths) > 1


def test_shares_and_trajectories():
    model = random_small(np.random.default_rng(0), actions=3)
    planner = pacplan.StOP(epsilon=0.5, delta=0.2, gamma=0.5)
    assert planner.depth(model) == math.ceil(math.log(6 / (0.5 * 0.5)) / math.log(2))
    policies = 3 ** (1 + 2 + 4)
    level = math.log(2 * planner.depth(model) * policies / 0.2)
    assert planner.trajectories(model, 3) == math.ceil(level / 2 * (1 - 1 / 8) ** 2 * 64)


def test_bounds_where_nothing_is_random():
    # Both actions are alike, so it goes down to the depth at which the bounds are epsilon wide.
    model = pacplan.TabularMDP(np.ones((1, 2, 1)), [[0.5, 0.5]], successors=[[[0], [0]]])
    planner = pacplan.StOP(epsilon=0.6, delta=0.1, gamma=0.4)
    plan = planner.plan(model, 0, seed=0)
    earned = 0.5 * (1 - 0.4**plan.horizon) / 0.6
    tail = 0.4**plan.horizon / 0.6
    assert plan.gap <= 0.6
    assert plan.lower.max() == pytest.approx(earned - tail)
    depths = np.arange(1, plan.horizon + 1)
    uppers = 0.5 * (1 - 0.4**depths) / 0.6 + 2 * 0.4**depths / 0.6
    for upper in plan.upper:
        assert np.abs(uppers - upper).min() < 1e-9
    assert plan.horizon <= planner.depth(model)


def test_too_many_policies():
    model = pacplan.envs.garnet(states=20, actions=4, seed=0)
    planner = pacplan.StOP(epsilon=0.2, delta=0.1, gamma=0.5, max_policies=1000)
    values = exact.discounted(model, gamma=0.5)[0]
    for budget, why in ((None, "memory"), (1000, "budget")):
        plan = planner.plan(model, 0, seed=0, budget=budget)
        assert plan.stopped_by == why
        assert not plan.certified
        assert np.all((plan.lower <= values) & (values <= plan.upper))
        told = re.search(r"policies of 3 steps, has [\d,]+ policies", plan.guarantee)
        assert (told is not None) == (why == "memory")


@pytest.mark.parametrize(("low", "high"), [(0.5, 1.0), (-1.0, -0.5)])
def test_an_end_may_be_worth_less_or_more_than_any_reward(low, high):
    """What may follow a trajectory is 0 if it has ended, also where no reward is 0."""
    ends = np.array([[[1], [1]], [[1], [1]]])
    pays = [[0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high]] * 2
    model = pacplan.TabularMDP(
        np.ones((2, 2, 1)), pays, successors=ends, terminal=[1], reward_range=(low, high)
    )
    plan = pacplan.StOP(epsilon=0.1, delta=0.1, gamma=0.4).plan(model, 0, seed=0)
    # Of the mean of draws that all ended, the bounds are an error of gamma^d w / (1 - gamma) away.
    error = 0.4**plan.horizon * max(high, -low) / 0.6
    assert plan.certified and plan.horizon >= 2
    rest = 0.4**plan.horizon * np.array([min(low, 0.0), max(high, 0.0)]) / 0.6
    assert plan.lower.max() == pytest.approx(pays[0][1] - error + rest[0], abs=1e-12)
    assert plan.upper.max() == pytest.approx(pays[0][1] + error + rest[1], abs=1e-12)


def test_one_action_and_unknown_successors():
    model = pacplan.TabularMDP(np.ones((1, 1, 1)), [[0.5]], successors=[[[0]]])
    plan = pacplan.StOP(epsilon=0.1, delta=0.1, gamma=0.5).plan(model, 0, seed=0)
    assert plan.samples == 0
    assert plan.certified
    unknown = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=2, successors=None)
    with pytest.raises(ValueError, match="successors="):
        pacplan.StOP(epsilon=0.1, delta=0.1, gamma=0.5).plan(unknown, 0)


def test_a_broken_promise_of_successors():
    model = pacplan.Simulator(
        lambda s, a, rng: (int(rng.integers(3)), 0.5, False), actions=2, successors=2
    )
    with pytest.raises(pacplan.BrokenPromiseError, match="promised 2 successors"):
        pacplan.StOP(epsilon=0.1, delta=0.1, gamma=0.5).plan(model, 0, seed=0)
