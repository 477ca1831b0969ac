"""What it means that an episode was cut off, by the budget or an interrupt, for all planners."""

from itertools import pairwise

import numpy as np
import pytest

import pacplan

HORIZON = 20


def costs(first, later=-0.5):
    """`first[a]` for the first action, then `later` for ever."""
    rewards = np.array([first, [later] * len(first)])
    successors = np.ones((2, len(first), 1), int)
    return pacplan.TabularMDP(
        np.ones(successors.shape), rewards, successors=successors, reward_range=(-1, 1)
    )


MEANS = [
    pacplan.UCT(gamma=1, horizon=HORIZON),
    pacplan.UCT(gamma=1, horizon=HORIZON, rollout="random"),
    pacplan.BRUE(gamma=1, horizon=HORIZON),
    pacplan.OLOP(gamma=0.99, horizon=HORIZON),
    pacplan.KLOLOP(gamma=0.99, horizon=HORIZON),
]


@pytest.mark.parametrize("planner", MEANS, ids=repr)
@pytest.mark.parametrize("episodes", [0, 1, 2, 3, 30])
def test_the_remainder_of_a_budget_changes_no_estimate(planner, episodes):
    model = pacplan.envs.garnet(states=10, actions=3, seed=0, noise="bernoulli")
    for seed in range(5):
        whole = None
        if episodes > 0:
            whole = planner.plan(model, 0, seed=seed, budget=HORIZON * episodes)
        for more in (1, 7, HORIZON - 1):
            budget = HORIZON * episodes + more
            plan = planner.plan(model, 0, seed=seed, budget=budget)
            assert plan.samples == plan.calls.sum() == budget
            assert plan.stopped_by == "budget"
            assert plan.episodes == episodes + 1
            if whole is None:
                assert np.isnan(plan.values).all()
                assert np.isnan(plan.value)
                continue
            np.testing.assert_array_equal(plan.values, whole.values)
            assert plan.action == whole.action
            assert plan.tree.pairs["n"].sum() == whole.tree.pairs["n"].sum()


def test_episodes_that_end_by_themselves_count_whatever_is_left_of_the_budget():
    # Every episode has one step, and the horizon is longer than the budget.
    model = pacplan.TabularMDP(
        np.ones((2, 2, 1)),
        np.array([[0.3, 0.6], [0.0, 0.0]]),
        successors=np.ones((2, 2, 1), int),
        terminal=[1],
    )
    for planner in (
        pacplan.UCT(gamma=1, horizon=100),
        pacplan.UCT(gamma=1, horizon=100, rollout="random"),
        pacplan.OLOP(gamma=0.9, horizon=100),
    ):
        plan = planner.plan(model, 0, seed=0, budget=20)
        assert plan.action == 1
        np.testing.assert_allclose(plan.values, [0.3, 0.6], atol=1e-12)
        assert plan.episodes == 20


def test_an_action_that_was_cut_off_is_untried():
    model = costs([0.5, 0.4, 0.3], later=0.5)
    planner = pacplan.UCT(gamma=1, horizon=HORIZON, exploration=0.0)
    for seed in range(10):
        plan = planner.plan(model, 0, seed=seed, budget=2 * HORIZON + 1)
        (untried,) = np.flatnonzero(np.isnan(plan.values))
        assert plan.calls[untried] == 1
        assert plan.tree.nodes[0]["tried"] == 3


def test_bracket_bets_on_no_return_that_was_cut_off():
    # All rewards are 1, so a whole episode pays 3. Bets from below need four of them before the first.
    model = pacplan.TabularMDP(
        np.ones((1, 2, 1)), [[1.0, 1.0]], successors=np.zeros((1, 2, 1), int), reward_range=(0, 1)
    )
    planner = pacplan.Bracket(epsilon=0, delta=0.1, gamma=1.0, horizon=3)
    cut_off = 0
    for seed in range(5):
        plans = [planner.plan(model, 0, seed=seed, budget=budget) for budget in range(30, 91)]
        whole = None
        for plan, after in pairwise(plans):
            if after.episodes > plan.episodes:
                whole = plan
            elif whole is not None:
                # Another call would have been part of the same episode.
                cut_off += 1
                np.testing.assert_array_equal(plan.lower, whole.lower)
    assert cut_off > 50
