"""SmoothCruiser: values, against exact solutions and its definition."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import pacplan
from pacplan import exact


def smooth_cruiser_by_definition(model, root, epsilon, gamma, temperature):
    """The paper's recursion with means over infinitely many draws in place of N."""
    rewards, probabilities, successors = model.sparse()
    actions = rewards.shape[1]
    top = (1 + temperature * math.log(actions)) / (1 - gamma)
    kappa = (1 - math.sqrt(gamma)) * temperature / actions
    single = [0]

    @cache
    def values(state, accuracy):
        after = [
            sum(
                p * sample(int(s), accuracy / math.sqrt(gamma))
                for p, s in zip(probabilities[state, a], successors[state, a], strict=True)
            )
            for a in range(actions)
        ]
        return np.clip(rewards[state] + gamma * np.array(after), 0, top)

    @cache
    def sample(state, accuracy):
        if accuracy >= top:
            return 0.0
        if accuracy >= kappa:
            return smooth(values(state, accuracy))
        single[0] += 1
        q = values(state, math.sqrt(kappa * accuracy))
        chances = softmax(q / temperature)
        better = rewards[state] + gamma * np.array(
            [
                sum(
                    p * sample(int(s), accuracy / math.sqrt(gamma))
                    for p, s in zip(probabilities[state, a], successors[state, a], strict=True)
                )
                for a in range(actions)
            ]
        )
        return smooth(q) + chances @ (better - q)

    def smooth(q):
        return temperature * logsumexp(q / temperature)

    return smooth(values(root, epsilon)), values(root, epsilon), single[0]


@pytest.mark.parametrize(
    ("epsilon", "gamma", "temperature", "expands"),
    [(1.1, 0.2, 0.3, False), (1.3, 0.3, 0.2, False), (0.43, 0.1, 4.0, True)],
)
def test_smooth_cruiser_is_the_papers_recursion(epsilon, gamma, temperature, expands):
    model = pacplan.envs.garnet(states=6, actions=2, seed=3, noise="bernoulli")
    # A state-dependent Q: the branch below kappa needs a policy that is not uniform.
    value, q, expansions = smooth_cruiser_by_definition(model, 0, epsilon, gamma, temperature)
    assert bool(expansions) == expands
    cruise = pacplan.SmoothCruiser(epsilon=epsilon, delta=0.1, gamma=gamma, temperature=temperature)
    plan = cruise.plan(model, 0, seed=1, budget=40_000_000)
    assert plan.samples == min(cruise.calls(model), 40_000_000)
    # Means over 600 draws at least (also where the budget ends it) of numbers spread by .6 at most.
    assert plan.value == pytest.approx(value, abs=0.13)
    assert np.abs(plan.values - q).max() < 0.13


def test_soft_value_iteration():
    model = pacplan.envs.garnet(states=12, actions=3, seed=0)
    rewards, p, to = model.sparse()
    transitions = (p[..., np.newaxis] * np.eye(12)[to]).sum(-2)
    q = exact.entropy_regularised(model, gamma=0.9, temperature=0.3)
    v = 0.3 * logsumexp(q / 0.3, axis=-1)
    np.testing.assert_allclose(rewards + 0.9 * transitions @ v, q, atol=1e-10)
    # Cold, it is the optimal value; warm, the value of the uniform policy plus its entropy.
    cold = exact.entropy_regularised(model, gamma=0.9, temperature=1e-6)
    np.testing.assert_allclose(cold, exact.discounted(model, gamma=0.9), atol=1e-4)
    warm = exact.entropy_regularised(model, gamma=0.9, temperature=1e6)
    uniform = np.linalg.solve(
        np.eye(12) - 0.9 * transitions.mean(1), rewards.mean(1) + 1e6 * math.log(3)
    )
    np.testing.assert_allclose(warm, rewards + 0.9 * transitions @ uniform, rtol=1e-6)
    with pytest.raises(ValueError, match="temperature"):
        exact.entropy_regularised(model, gamma=0.9, temperature=0.0)


def test_what_is_out_of_reach_is_said_beforehand():
    model = pacplan.envs.garnet(seed=0)
    cruise = pacplan.SmoothCruiser(epsilon=0.1, delta=0.1, gamma=0.99)
    assert cruise.calls(model) == math.inf
    with pytest.raises(ValueError, match="would take inf calls"):
        cruise.plan(model, 0)
    plan = cruise.plan(model, 0, budget=10_000, seed=0)
    assert plan.stopped_by == "budget"
    assert "not finished" in plan.guarantee
