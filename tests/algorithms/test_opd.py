"""OPD: the order of its expansions, its bounds, what it refuses."""

import numpy as np
import pytest

import pacplan
from pacplan import exact


def test_expansions_follow_the_rule_of_the_paper():
    # States tell the whole history, so each call says which leaf is being expanded.
    gamma = 0.8
    asked = []

    def reward(history):
        return np.random.default_rng(list(history)).random()

    def step(state, action, rng):
        asked.append((state, action))
        return (*state, action), reward((*state, action)), False

    model = pacplan.Simulator(step, actions=3, successors=1)
    pacplan.OPD(gamma=gamma).plan(model, (), seed=0, budget=300)
    leaves = {(): 0.0}
    for expansion in range(100):
        calls = asked[3 * expansion : 3 * expansion + 3]
        leaf = calls[0][0]
        assert calls == [(leaf, action) for action in range(3)]
        bounds = {s: u + gamma ** len(s) / (1 - gamma) for s, u in leaves.items()}
        assert bounds[leaf] == pytest.approx(max(bounds.values()), abs=1e-9)
        earned = leaves.pop(leaf)
        for action in range(3):
            leaves[*leaf, action] = earned + gamma ** len(leaf) * reward((*leaf, action))


@pytest.mark.parametrize("seed", range(10))
def test_bounds_are_certain_and_close(seed):
    model = pacplan.envs.garnet(states=30, actions=3, successors=1, seed=seed)
    truth = exact.discounted(model, gamma=0.7)[0]
    widths = []
    for budget in (1, 2, 3, 4, 30, 31, 1000, 30_000):
        plan = pacplan.OPD(gamma=0.7).plan(model, 0, seed=0, budget=budget)
        assert (plan.lower <= truth + 1e-9).all()
        assert (truth <= plan.upper + 1e-9).all()
        assert truth.max() - truth[plan.action] <= max(plan.gap, 0.0) + 1e-9
        widths.append(plan.upper.max() - plan.lower.max())
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.05


def test_a_finite_horizon_is_solved_exactly():
    model = pacplan.envs.garnet(states=30, actions=3, successors=1, seed=0)
    plan = pacplan.OPD(gamma=1.0, horizon=4).plan(model, 0, seed=0, budget=10_000)
    truth = exact.finite_horizon(model, gamma=1.0, horizon=4)[0, 0]
    assert plan.certified
    assert plan.samples == 3 + 9 + 27 + 81
    np.testing.assert_allclose(plan.lower, truth)
    np.testing.assert_allclose(plan.upper, truth)


def test_terminal_states_and_costs():
    # Paying .5 and ending beats paying .1 for ever.
    def step(state, action, rng):
        return (state, -0.5, True) if action == 0 else (state, -0.1, False)

    model = pacplan.Simulator(step, actions=2, successors=1, reward_range=(-1.0, 0.0))
    plan = pacplan.OPD(gamma=0.95).plan(model, "here", seed=0, budget=2000)
    # Waiting and then ending costs .1 + .95 * .5.
    assert plan.action == 0
    assert plan.lower[0] == plan.upper[0] == pytest.approx(-0.5)
    assert plan.lower[1] <= -0.575 + 1e-9 <= plan.upper[1] + 2e-9


def test_refusals():
    with pytest.raises(ValueError, match="one successor"):
        pacplan.OPD(gamma=0.7).plan(pacplan.envs.garnet(seed=0), 0, budget=10)
    noisy = pacplan.envs.garnet(successors=1, seed=0, noise="bernoulli")
    with pytest.raises(ValueError, match="rewards"):
        pacplan.OPD(gamma=0.7).plan(noisy, 0, budget=10)
    with pytest.raises(ValueError, match="horizon"):
        pacplan.OPD(gamma=1.0)
