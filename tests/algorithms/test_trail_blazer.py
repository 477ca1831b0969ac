"""TrailBlazer: values, against exact solutions and its definition."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp

import pacplan
from pacplan import exact


def trail_blazer_by_definition(model, root, epsilon, delta, gamma, patience=math.inf):
    """The paper's recursion where nothing is random, so that any m samples are alike.

    Rounds that could drop only what is `patience` times the largest value below the best are left out.
    """
    rewards, successors = deterministic_tables(model)
    actions = rewards.shape[1]
    eta = gamma ** (1 / max(2, math.log(1 / epsilon)))
    extra = 2 * math.log(epsilon * (1 - gamma)) ** 2 / math.log(eta / gamma)
    extra *= max(0, math.log(math.log(actions) / (1 - eta)))
    drops = []

    def average(state, action, accuracy):
        if accuracy >= 1 / (1 - gamma):
            return 0.0
        return rewards[state, action] + gamma * maximum(successors[state, action], accuracy / gamma)

    @cache
    def maximum(state, accuracy):
        candidates, round_, spread = list(range(actions)), 1, math.inf
        while len(candidates) > 1 and spread >= (1 - eta) * accuracy:
            level = math.log(actions * round_ / (delta * accuracy)) + gamma / (eta - gamma)
            spread = 2 / (1 - gamma) * math.sqrt((level + extra + 1) / round_)
            last = spread < (1 - eta) * accuracy
            if not last and 4 * spread / (1 - eta) > patience / (1 - gamma):
                round_ += 1
                continue
            found = {a: average(state, a, spread * eta / (1 - eta)) for a in candidates}
            least = max(found.values()) - 4 * spread / (1 - eta)
            kept = [a for a in candidates if found[a] >= least]
            drops.extend([state] * (len(candidates) - len(kept)))
            candidates = kept
            round_ += 1
        if len(candidates) > 1:
            return max(found.values())
        return average(state, candidates[0], eta * accuracy)

    return maximum(root, epsilon / 2), len(drops)


def deterministic_tables(model):
    rewards, _, successors = model.sparse()
    return rewards, successors[..., 0]


@pytest.mark.parametrize(("epsilon", "gamma"), [(1.3, 0.1), (1.6, 0.1), (2.5, 0.2)])
def test_trail_blazer_is_the_papers_recursion(epsilon, gamma):
    model = pacplan.envs.garnet(states=8, actions=3, successors=1, seed=5)
    expected, _ = trail_blazer_by_definition(model, 0, epsilon, 0.1, gamma)
    plan = pacplan.TrailBlazer(epsilon=epsilon, delta=0.1, gamma=gamma).plan(
        model, 0, seed=0, budget=10**7
    )
    assert plan.stopped_by == "rule"
    assert plan.value == pytest.approx(expected, abs=1e-12)


def test_trail_blazer_drops_actions_as_the_paper_does():
    # One action pays always, the other never: the gap is as large as it can be.
    rewards = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    successors = np.array([[1, 2], [1, 2], [2, 2]])[..., np.newaxis]
    model = pacplan.TabularMDP(np.ones((3, 2, 1)), rewards, successors=successors)
    settings = {"epsilon": 0.3, "delta": 0.1, "gamma": 0.1}
    expected, drops = trail_blazer_by_definition(model, 0, **settings, patience=1.5)
    assert drops > 0
    plan = pacplan.TrailBlazer(**settings).plan(model, 0, seed=0, budget=10**7)
    assert plan.stopped_by == "rule"
    assert plan.value == pytest.approx(expected, abs=1e-12)
    assert plan.value == pytest.approx(1 / 0.9, abs=0.3)
    assert plan.action == 0


def test_trail_blazer_is_accurate():
    for seed in range(12):
        model = pacplan.envs.garnet(states=20, actions=3, seed=seed, noise="bernoulli")
        plan = pacplan.TrailBlazer(epsilon=0.8, delta=0.1, gamma=0.3).plan(model, 0, seed=seed)
        error = abs(plan.value - exact.discounted(model, gamma=0.3)[0].max())
        # Far within what is promised: its samples are many, and what is cut off is gamma^3 or less.
        assert error < 0.15
        assert plan.stopped_by == "rule"
        assert not plan.certified
        assert "within 0.8" in plan.guarantee


@pytest.mark.parametrize("low", [-1.0, 0.2])
def test_values_of_episodes_that_end(low):
    # Ending pays .5 once; going on pays the lowest reward for ever.
    model = pacplan.TabularMDP(
        np.ones((2, 2, 1)),
        np.array([[0.5, low], [low, low]]),
        successors=np.array([[1, 0], [1, 1]])[..., np.newaxis],
        terminal=[1],
        reward_range=(low, 1.0),
    )
    value = max(0.5, low + 0.3 * 0.5, low / 0.7)
    plan = pacplan.TrailBlazer(epsilon=1.2, delta=0.1, gamma=0.3).plan(model, 0, seed=0)
    assert plan.value == pytest.approx(value, abs=0.05)
    soft = exact.entropy_regularised(model, gamma=0.3, temperature=0.1)[0]
    cruise = pacplan.SmoothCruiser(epsilon=1.2, delta=0.1, gamma=0.3, temperature=0.1)
    plan = cruise.plan(model, 0, seed=0)
    assert plan.stopped_by == "rule"
    assert abs(plan.value - 0.1 * logsumexp(soft / 0.1)) < 1.2
    assert plan.values[0] == pytest.approx(0.5, abs=1e-9)


def test_one_action_only():
    model = pacplan.TabularMDP(np.ones((1, 1, 1)), [[0.5]], successors=[[[0]]])
    for planner in (
        pacplan.TrailBlazer(epsilon=0.2, delta=0.1, gamma=0.4),
        pacplan.SmoothCruiser(epsilon=1.2, delta=0.1, gamma=0.2),
    ):
        plan = planner.plan(model, 0, seed=0)
        assert plan.value == pytest.approx(0.5 / (1 - planner.gamma), abs=planner.epsilon)
        assert plan.stopped_by == "rule"
