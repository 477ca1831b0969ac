"""TrailBlazer and SmoothCruiser: values, against exact solutions and their definitions."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import pacplan
from pacplan import exact

# ---------------------------------------------------------------------------- TrailBlazer


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


def test_trail_blazer_in_other_units():
    scaled = pacplan.envs.garnet(states=20, actions=3, seed=1)
    rewards, probabilities, successors = scaled.sparse()
    shifted = pacplan.TabularMDP(
        probabilities, 10 * rewards - 8, successors=successors, reward_range=(-8, 2)
    )
    plan = pacplan.TrailBlazer(epsilon=0.6, delta=0.1, gamma=0.3).plan(scaled, 0, seed=3)
    same = pacplan.TrailBlazer(epsilon=6, delta=0.1, gamma=0.3).plan(shifted, 0, seed=3)
    assert same.samples == plan.samples
    assert same.value == pytest.approx(10 * plan.value - 8 / 0.7)


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
    plan = pacplan.TrailBlazer(epsilon=0.8, delta=0.1, gamma=0.3).plan(model, 0, seed=0)
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


# -------------------------------------------------------------------------- SmoothCruiser


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


def test_smooth_cruiser_finds_the_soft_value():
    for seed in range(20):
        model = pacplan.envs.garnet(states=10, actions=2, seed=seed, noise="bernoulli")
        cruise = pacplan.SmoothCruiser(epsilon=1.1, delta=0.1, gamma=0.2, temperature=0.5)
        plan = cruise.plan(model, 0, seed=seed)
        soft = exact.entropy_regularised(model, gamma=0.2, temperature=0.5)[0]
        assert abs(plan.value - 0.5 * logsumexp(soft / 0.5)) < 1.1
        assert not plan.certified


def test_soft_value_iteration():
    model = pacplan.envs.garnet(states=12, actions=3, seed=0)
    rewards, transitions = model.dense()
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


@pytest.mark.parametrize("cls", [pacplan.TrailBlazer, pacplan.SmoothCruiser, pacplan.StOP])
@pytest.mark.parametrize(
    "bad",
    [{"epsilon": 0.0}, {"epsilon": -1.0}, {"delta": 0.0}, {"delta": 1.0}, {"gamma": 1.0}],
)
def test_bad_accuracies(cls, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        cls(**({"epsilon": 1.0, "delta": 0.1, "gamma": 0.5} | bad))


@pytest.mark.parametrize("cls", [pacplan.TrailBlazer, pacplan.SmoothCruiser, pacplan.StOP])
def test_the_number_of_actions_must_be_known(cls):
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=lambda s: 2, successors=1)
    with pytest.raises(ValueError, match="max_actions"):
        cls(epsilon=1.0, delta=0.1, gamma=0.5).plan(model, 0)
