"""Canopy: its trees, its bounds against exact values, its answers, and what makes no difference."""

import numpy as np
import pytest
from scipy import stats

import pacplan
from canopy_trees import scores, searching, tree_means
from conftest import random_small
from gaussian import GAMMA, walk, walk_values
from pacplan import exact

# Standard errors that a mean strays less often than once in a million, also over few searches.
FAR = 7.0

SMALL = pacplan.envs.garnet(states=6, actions=3, successors=3, seed=4, noise="bernoulli")


def path_model():
    """Two actions at the root and one everywhere else, so that trees have no maximum to gain from."""
    rng = np.random.default_rng(0)
    transitions = np.zeros((6, 2, 6))
    transitions[0, 0, 1:] = [0.3, 0.3, 0.1, 0.2, 0.1]
    transitions[0, 1, 1:] = [0.1, 0.2, 0.3, 0.1, 0.3]
    transitions[1:, 0, 1:] = rng.dirichlet(np.full(5, 0.5), size=5)
    transitions[1:, 1, 1] = 1.0
    available = np.ones((6, 2), bool)
    available[1:, 1] = False
    rewards = np.repeat([[0.5], [1.0], [0.9], [0.95], [0.97], [0.05]], 2, axis=1)
    return pacplan.TabularMDP(transitions, rewards, available=available, noise="bernoulli")


# The lemma: trees are worth no less than Q on average, and never more than R_0, which kernels check.


@pytest.mark.parametrize(
    ("widths", "kept"),
    [([1, 1, 1, 1], [1, 1, 1, 1]), ([1, 4, 2, 2], [1, 1, 1, 2]), ([4, 6, 5], [2, 1, 2]), ([2], [2])],
    ids=str,
)
def test_trees_are_worth_no_less_than_the_action(widths, kept):
    q = exact.finite_horizon(SMALL, gamma=0.9, horizon=4)[0, 0]
    means = tree_means(SMALL, 20, 30, widths=widths, kept=kept, gamma=0.9, horizon=4)
    assert (scores(means, q) > -FAR).all()


@pytest.mark.parametrize(("widths", "kept"), [([3, 8, 6, 4], [1, 1, 1, 2]), ([1, 1, 9, 1], [1] * 4)])
def test_without_choices_trees_are_worth_the_action(widths, kept):
    model = path_model()
    q = exact.finite_horizon(model, gamma=1.0, horizon=4)[0, 0]
    means = tree_means(model, 100, 60, widths=widths, kept=kept, gamma=1.0, horizon=4)
    assert (abs(scores(means, q)) < FAR).all() and (abs(means.mean(0) - q) < 0.05).all()


def test_trees_of_continuous_noise():
    means = tree_means(walk(), 30, 30, widths=[4, 3, 2], kept=[1, 1, 2], gamma=GAMMA, horizon=3)
    assert (scores(means, walk_values(3)) > -FAR).all()


# The bounds.


def violations(make_model, values, runs, **settings):
    """How often the bounds of short runs miss, above for the best action and below for any."""
    above = below = 0
    for seed in range(runs):
        plan = pacplan.Canopy(epsilon=0.0, delta=0.5, **settings).plan(
            make_model, seed=seed, budget=300
        )
        above += plan.upper[values.argmax()] < values.max() - 1e-9
        below += bool((plan.lower > values + 1e-9).any())
    return above, below


@pytest.mark.parametrize("problem", ["garnet", "bandit", "ends", "walk"])
def test_bounds_fail_no_more_often_than_delta_allows(problem):
    settings = {"gamma": 0.9, "horizon": 3}
    if problem == "walk":
        model, values = walk(), walk_values(3)
    elif problem == "bandit":
        model = pacplan.TabularMDP(np.ones((1, 2, 1)), [[0.5, 0.45]], noise="bernoulli")
        settings["horizon"] = 1
    elif problem == "ends":
        model = pacplan.TabularMDP(
            [[[0.5, 0.5], [0.9, 0.1]], [[0.0, 1.0], [0.0, 1.0]]],
            [[-0.2, 0.3], [0.0, 0.0]],
            terminal=[1],
            reward_range=(-1, 0.5),
            noise="bernoulli",
        )
    else:
        model = random_small(np.random.default_rng(3))
    if problem != "walk":
        values = exact.finite_horizon(model, gamma=0.9, horizon=settings["horizon"])[0, 0]
    runs = 1000
    # A quarter for each side.
    most = stats.binom.isf(1e-7, runs, 0.25)
    assert max(violations(model, values, runs, **settings)) <= most


# Answers.


@pytest.mark.parametrize("jitted", [True, False], ids=["jitted", "python"])
def test_it_certifies_where_no_state_recurs(jitted):
    plan = pacplan.Canopy(epsilon=0.3, delta=0.1, gamma=GAMMA, horizon=3).plan(
        walk(jitted), seed=0, budget=5000
    )
    q = walk_values(3)
    assert plan.certified and plan.action == 0 and plan.gap <= 0.3
    assert plan.lower[0] <= q[0] and (plan.lower <= q).all() and plan.upper[0] >= q[0]
    assert "rewards lie in [0, 1]" in plan.assumptions
    assert "successors" not in " ".join(plan.assumptions)


def test_many_successors_cost_nothing():
    calls = []
    for seed in range(9):
        model = pacplan.envs.garnet(successors=200, seed=seed)
        plan = pacplan.Canopy(epsilon=0.5, delta=0.1, gamma=0.7).plan(model, seed=seed, budget=100_000)
        q = exact.finite_horizon(model, gamma=0.7, horizon=plan.horizon)[0, 0]
        assert plan.certified and q.max() - q[plan.action] <= 0.5
        calls.append(plan.samples)
    assert np.median(calls) < 4750


@pytest.mark.parametrize(("actions", "epsilon"), [(1, 0.1), (2, 3.0)])
def test_where_nothing_is_to_be_decided_no_call_is_needed(actions, epsilon):
    model = pacplan.Simulator(
        lambda s, a, rng: (s + 1, rng.random(), False), actions=actions, successors=None
    )
    plan = pacplan.Canopy(epsilon=epsilon, delta=0.1, gamma=0.9, horizon=3).plan(model, 0, seed=0)
    assert plan.certified and plan.samples == 0


def test_value_bounds_are_what_leaves_are_worth():
    planner = {"epsilon": 0.3, "delta": 0.1, "gamma": GAMMA, "horizon": 4}
    known = pacplan.Canopy(**planner, value_bounds=(lambda s, h: 0.0, lambda s, h: 0.75 * (4 - h)))
    plan = known.plan(walk(jitted=False), seed=1, budget=20_000)
    assert plan.certified and plan.action == 0
    assert (plan.upper <= 3.0).all()
    assert "value_bounds bound the values" in plan.assumptions


def test_an_infinite_horizon_is_a_longer_one():
    model = pacplan.envs.garnet(states=20, actions=2, successors=20, seed=0)
    plan = pacplan.Canopy(epsilon=1.0, delta=0.1, gamma=0.5, target="infinite").plan(model, seed=0)
    assert plan.certified and plan.gap + 0.5**plan.horizon / 0.5 <= 1.0 + 1e-9


# What makes no difference.


def test_states_that_are_no_numbers():
    def named(state, action, rng):
        place = min(max(int(state[1:]) + action - 1 + rng.integers(-1, 2), 0), 9)
        return f"s{place}", place / 9, False

    settings = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.8, "horizon": 3}
    model = pacplan.Simulator(named, actions=3, successors=None, may_end=False)
    plan = pacplan.Canopy(**settings).plan(model, "s4", seed=0, budget=20_000)
    assert plan.certified and plan.action == 2


def test_no_node_of_a_tree_is_forgotten(monkeypatch):
    # What shares a slot with another would be drawn anew if it were, and the plan a different one.
    model = pacplan.envs.garnet(states=12, actions=3, successors=12, seed=4)
    planner = pacplan.Canopy(epsilon=0.0, delta=0.1, gamma=0.9, horizon=4)
    plans = []
    for room in (8, 1 << 14):
        monkeypatch.setattr("pacplan.algorithms.canopy.constants.SHARED", room)
        plans.append(planner.plan(model, 0, seed=3, budget=30_000))
    for name in ("lower", "upper", "calls", "values"):
        np.testing.assert_array_equal(getattr(plans[0], name), getattr(plans[1], name))


def test_forced_tasks_take_a_hundredth_of_the_calls():
    def flip(state, action, rng):
        return state, float(rng.random() < (0.5, 0.45)[action]), False

    search = searching(
        pacplan.Simulator(flip, actions=2, initial=0), 0, gamma=1.0, horizon=1, epsilon=0.0
    )
    while search.reports["calls"][0] < 5000:
        search.advance(1, 1 << 62)
    assert 10 <= search.arrays["task"][0]["forced_spent"] <= 0.01 * search.reports["calls"][0]
