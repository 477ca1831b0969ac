"""Certain answers where every probability is known: tables solved, outcomes explored."""

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact


def listed(table, reward_range=(0, 1)):
    """A table as a model by outcomes, its successors listed one by one."""
    rewards, p, to = table.sparse()

    def outcomes(state, action):
        row = list(zip(p[state, action], to[state, action].tolist(), strict=True))
        reward = rewards[state, action]
        ends = 1.0 - sum(q for q, _ in row)
        return [*((q, after, reward, False) for q, after in row), (max(0.0, ends), 0, reward, True)]

    return pacplan.Outcomes(outcomes, actions=rewards.shape[1], reward_range=reward_range)


def small(rng):
    """A small table with or without ends."""
    states, actions, successors = rng.integers(2, 9), rng.integers(1, 4), rng.integers(1, 4)
    successors = min(states, successors)
    return pacplan.TabularMDP(
        rng.dirichlet(np.ones(successors), (states, actions)),
        rng.random((states, actions)),
        successors=rng.permuted(np.broadcast_to(np.arange(states), (states, actions, states)), axis=-1)[
            ..., :successors
        ],
        terminal=[int(states) - 1] if rng.random() < 0.5 else None,
    )


@pytest.mark.parametrize("horizon", [None, 6])
@pytest.mark.parametrize("goal", ["action", "value"])
def test_bounds_hold_and_answers_are_right(horizon, goal):
    """Tables are solved to rounding; outcomes are explored until epsilon is proven, and no further."""
    explored = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        table, gamma = small(rng), rng.uniform(0.1, 0.97)
        if horizon is None:
            q = exact.discounted(table, gamma=gamma)[0]
        else:
            q = exact.finite_horizon(table, gamma=gamma, horizon=horizon)[0, 0]
        epsilon = rng.uniform(0.01, 0.3)
        planner = pacplan.ValueIteration(gamma=gamma, epsilon=epsilon, horizon=horizon, goal=goal)
        for model in (table, listed(table)):
            plan = planner.plan(model, 0, seed=seed)
            assert plan.certified and "That is certain" in plan.guarantee
            assert (plan.lower <= q + 1e-11).all() and (q <= plan.upper + 1e-11).all()
            assert q.max() - q[plan.action] <= max(plan.gap, 0.0) + 1e-11
            if goal == "value":
                assert abs(plan.value - q.max()) <= epsilon
            else:
                assert plan.gap <= epsilon
            if model is table:
                assert (plan.upper - plan.lower).max() <= 1e-10
        explored.append(plan.samples / (q.size * table.states))
    assert min(explored) < 0.7  # Not all of what can be reached matters.


def test_random_walk_without_end():
    """Infinitely many states: certain all the same, from the part that matters."""
    model = pacplan.Outcomes(
        lambda x, a: [
            (0.6, x + 2 * a - 1, 1 / (1 + abs(x - 3)), False),
            (0.4, x - 2 * a + 1, 0.0, False),
        ],
        actions=2,
        reward_range=(0, 1),
    )
    gamma, wide = 0.8, 200
    states = np.arange(-wide, wide + 1)
    to = np.clip(
        np.stack([states[:, None] + [-1, 1], states[:, None] + [1, -1]], -1) + wide, 0, 2 * wide
    )
    p = np.broadcast_to([0.6, 0.4], to.shape)
    r = np.broadcast_to(0.6 / (1 + abs(states - 3))[:, None], to.shape[:2])
    q = exact.discounted(pacplan.TabularMDP(p, r, successors=to), gamma=gamma)[wide]
    coarse, fine = (
        pacplan.ValueIteration(gamma=gamma, epsilon=epsilon).plan(model, 0) for epsilon in (0.5, 1e-6)
    )
    assert fine.certified and fine.action == 1 and coarse.samples < fine.samples < 200
    for plan in (coarse, fine):
        assert (plan.lower <= q + 1e-9).all() and (q <= plan.upper + 1e-9).all()


def test_non_stationary_table():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), (5, 4, 2))
    table = pacplan.TabularMDP(p, rng.random((5, 4, 2)))
    plan = pacplan.ValueIteration(gamma=1, horizon=5).plan(table, 1)
    q = exact.finite_horizon(table, gamma=1, horizon=5)[0, 1]
    np.testing.assert_allclose([plan.lower, plan.upper], [q, q], atol=1e-12)
    with pytest.raises(ValueError, match="pass horizon=5"):
        pacplan.ValueIteration(gamma=0.9).plan(table, 1)


def test_without_a_range_of_rewards_all_is_explored():
    """Before the last state is explored nothing is known; then everything is."""
    model = pacplan.Outcomes(lambda n, a: [(1.0, n - 1 - a, n * a, n - 1 - a <= 0)], actions=2)
    planner = pacplan.ValueIteration(gamma=0.9)
    plan = planner.plan(model, 5)
    assert plan.certified and plan.action == 1
    best = 5 + 0.9 * (3 + 0.9 * 1)
    np.testing.assert_allclose([plan.lower[1], plan.upper[1]], best, rtol=1e-12)
    early = planner.plan(model, 5, budget=4)
    assert early.gap is None and early.samples <= 4 and "pass reward_range=" in early.guarantee
    with pytest.raises(ValueError, match="reward_range"):
        pacplan.UCT(gamma=0.9).plan(model, 5, budget=10)


def test_stopped_at_any_time_bounds_hold():
    table = random_small(np.random.default_rng(3), states=30, actions=3, successors=3)
    q = exact.discounted(table, gamma=0.9)[0]
    gaps = []
    for budget in range(3, 90, 6):
        plan = pacplan.ValueIteration(gamma=0.9).plan(listed(table), 0, budget=budget)
        assert plan.samples <= budget
        assert (plan.lower <= q + 1e-9).all() and (q <= plan.upper + 1e-9).all()
        assert q.max() - q[plan.action] <= max(plan.gap, 0.0) + 1e-9
        gaps.append(plan.gap)
    assert gaps[-1] < 0.2 * gaps[0]


def test_it_refuses_what_it_cannot_read():
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.0, False), actions=2)
    with pytest.raises(ValueError, match=r"TabularMDP.*Outcomes; got Simulator"):
        pacplan.ValueIteration(gamma=0.9).plan(model, 0)
