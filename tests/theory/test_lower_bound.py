"""The least calls that any rule needs: by hand, by independent optimisation, and for validity."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, special

import pacplan
from conftest import random_small
from pacplan import exact, theory
from pacplan.theory.alternatives import nearest_below
from pacplan.theory.histories import histories, recurring
from pacplan.theory.limit import kl

BANDIT = {"gamma": 1.0, "horizon": 1}


def bandit(*means, noise="bernoulli", **rest):
    return pacplan.TabularMDP(np.ones((1, len(means), 1)), np.array([means]), noise=noise, **rest)


def two_steps(seed):
    """Two actions everywhere, two successors each, all different."""
    rng = np.random.default_rng(seed)
    p = np.zeros((5, 2, 5))
    for action in range(2):
        p[0, action, [1 + 2 * action, 2 + 2 * action]] = rng.dirichlet([2.0, 2.0])
    p[1:, :, 0] = 1.0
    return pacplan.TabularMDP(p, rng.uniform(0.1, 0.9, (5, 2)), noise="bernoulli")


def recurs(seed, *, states=2, **rest):
    """A small random problem in which the two actions of the root are apart."""
    rng = np.random.default_rng(seed)
    rewards = rng.uniform(0.1, 0.9, (states, 2))
    rewards[0] = 0.7, 0.4
    return pacplan.TabularMDP(
        rng.dirichlet(np.ones(states), (states, 2)), rewards, noise="bernoulli", **rest
    )


def least(function, low, high):
    """The minimum of a convex function on an interval."""
    found = optimize.minimize_scalar(
        function, bounds=(low, high), method="bounded", options={"xatol": 1e-11}
    )
    return found.fun


# The nearest law with another mean --------------------------------------------------------------------

OUTCOMES = st.tuples(st.just(0.0) | st.floats(1e-9, 1), st.floats(-2, 2))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.lists(OUTCOMES, min_size=2, max_size=6), st.floats(0, 1))
def test_no_law_is_nearer(outcomes, place):
    weights, scores = np.array(outcomes).T
    assume(weights.sum() > 0.1 and np.ptp(scores) > 0.1)
    chances = weights / weights.sum()
    low, mean = scores.min(), chances @ scores
    assume(mean > low + 1e-3)
    target = low + (0.01 + 0.98 * place) * (mean - low)
    found = nearest_below(chances[np.newaxis], scores[np.newaxis], np.array([target]))
    (law,), (divergence,), (slope,) = found
    assert law.min() >= 0.0 and law.sum() == pytest.approx(1.0)
    assert law @ scores == pytest.approx(target, abs=1e-8)
    # By the dual form no law with this mean is nearer than this, for any slope.
    dual = special.xlog1py(chances, slope * (scores - target)).sum()
    assert divergence == pytest.approx(dual, abs=1e-8)
    assert divergence == pytest.approx(special.rel_entr(chances, law).sum())


def test_what_is_low_enough_stays():
    laws, divergences, slopes = nearest_below(
        np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]]), np.array([0.5])
    )
    assert laws.tolist() == [[0.5, 0.5]] and divergences == slopes == 0.0


# Bandits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("means", "epsilon", "time"),
    [((0.7, 0.5), 0.1, 21.20), ((0.5, 0.3, 0.3, 0.3, 0.3), 0.1, 48.73), ((0.15, 0.05), 0.05, 31.03)],
)
def test_characteristic_times_in_any_units(means, epsilon, time):
    for delta in (0.1, 1e-3):
        bound = theory.lower_bound(bandit(*means), epsilon=epsilon, delta=delta, **BANDIT)
        assert bound.time == pytest.approx(time, rel=5e-4)
        assert bound.calls == pytest.approx(time * kl(delta, 1 - delta), rel=5e-4)
        assert bound.calls <= bound.at_most <= bound.calls / (1 - 1e-4)
        assert sum(bound.visits.values()) == pytest.approx(bound.at_most)
    scaled = bandit(*(20 * np.array(means) - 5), reward_range=(-5.0, 15.0))
    again = theory.lower_bound(scaled, epsilon=20 * epsilon, delta=delta, **BANDIT)
    assert again.calls == pytest.approx(bound.calls, rel=2e-4)


def test_rewards_that_are_always_the_same():
    """The nearest law with another mean adds 0 or 1 with some probability: logarithms of ratios."""

    def rate(w):
        """The cheapest x: the better arm falls to x, the worse rises to x + epsilon."""
        return least(
            lambda x: w * math.log(0.7 / x) + (1 - w) * math.log(0.5 / (0.9 - x)) * (x > 0.4), 0.01, 0.7
        )

    bound = theory.lower_bound(bandit(0.7, 0.5, noise="none"), epsilon=0.1, delta=0.1, **BANDIT)
    assert bound.time == pytest.approx(1.0 / -least(lambda w: -rate(w), 0.0, 1.0), rel=5e-4)


def test_two_unequal_arms_that_are_both_right():
    """By a grid over the probability of the first answer and the share of its arm's calls."""
    delta, epsilon, (first, second) = 0.1, 0.1, (0.5, 0.45)
    bound = theory.lower_bound(bandit(first, second), epsilon=epsilon, delta=delta, **BANDIT)

    def rate(w, down, up):
        return least(lambda x: w * kl(down, x) + (1 - w) * kl(up, x + epsilon), up - epsilon, down)

    shares = np.linspace(0.3, 0.7, 81)
    rates = np.array([[rate(w, first, second), rate(1 - w, second, first)] for w in shares])
    likely = np.linspace(delta, 1 - 2 * delta, 401)
    prices = np.array([[kl(q, delta), kl(1 - delta - q, delta)] for q in likely])
    calls = (prices[:, np.newaxis] / rates).max(-1).min()
    assert bound.answers == (0, 1)
    assert bound.calls == pytest.approx(calls, rel=3e-3)
    assert bound.calls <= calls


def test_nothing_to_find_out():
    """One action; values that cannot be further apart than epsilon; answers no better than a coin's."""
    settings = {"delta": 0.1, **BANDIT}
    assert theory.lower_bound(bandit(0.5), epsilon=0.1, **settings).calls == 0.0
    assert theory.lower_bound(bandit(0.5, 0.2), epsilon=1.0, **settings).calls == 0.0
    guess = theory.lower_bound(bandit(0.5, 0.2), epsilon=0.1, delta=0.5, **BANDIT)
    assert guess.calls == 0.0 and math.isnan(guess.time)


# Trees, and states that recur -------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [None, [2]])
def test_graphs_have_the_values_of_the_model(terminal):
    model = recurs(0, states=3, terminal=terminal)
    tree, loops = histories(model, 0, gamma=0.8, horizon=3), recurring(model, 0, gamma=0.8)
    for graph, q in (
        (tree, exact.finite_horizon(model, gamma=0.8, horizon=3)[0, 0]),
        (loops, exact.discounted(model, gamma=0.8)[0]),
    ):
        assert graph.solve(graph.chances)[graph.nodes == 0] == pytest.approx(q, abs=1e-9)


def cheapest_by_brute_force(graph, rival, denied, visits, *, epsilon):
    """The cheapest alternative over the laws themselves, for every policy of the rival."""
    weights = np.array([visits[history] for history in graph.histories])
    shape, size = graph.chances.shape, graph.chances.size
    below = epsilon * np.array([history == denied for history in graph.histories])
    by_node = [np.flatnonzero(graph.nodes == k) for k in range(len(graph.parents))]

    def cost(x):
        laws = np.maximum(x[:size].reshape(shape), 1e-12)
        return weights @ special.rel_entr(graph.chances, laws).clip(min=-1.0).sum(1)

    def worth(x):
        return (x[:size].reshape(shape) * graph.scores(x[size:])).sum(1)

    def gaps(x, policy):
        """By how much values are above the worth of all pairs, and the other way for the policy's."""
        above = x[size:][graph.nodes] - worth(x)
        return np.append(above - below, -above[[e for e in policy if e >= 0]])

    best, rng = math.inf, np.random.default_rng(0)
    values = graph.best(graph.solve(graph.chances))
    # Below the denied action values need only be high enough.
    under = [parent >= 0 and graph.histories[parent] == denied for parent, _ in graph.parents]
    choices = [(-1,) if under[k] else pairs for k, pairs in enumerate(by_node)]
    choices[0] = (graph.histories.index(rival),)
    for policy in itertools.product(*choices):
        laws = np.array([rng.dirichlet(0.1 + 20 * law) for law in graph.chances])
        conditions = [
            {"type": "eq", "fun": lambda x: x[:size].reshape(shape).sum(1) - 1.0},
            {"type": "ineq", "fun": gaps, "args": (policy,)},
        ]
        found = optimize.minimize(
            cost, np.append(laws, values), method="SLSQP", constraints=conditions,
            bounds=[(0.0, 1.0)] * size + [(None, None)] * len(values),
            options={"maxiter": 300, "ftol": 1e-10},
        )  # fmt: skip
        broken = abs(conditions[0]["fun"](found.x)).max(), -gaps(found.x, policy).min()
        if max(broken) < 1e-6:
            best = min(best, found.fun)
    return best


def test_no_alternative_in_two_steps_was_missed():
    """The N said to be enough is just enough for what an independent search finds."""
    model = two_steps(0)
    settings = {"gamma": 1.0, "horizon": 2}
    bound = theory.lower_bound(model, epsilon=0.1, delta=0.1, tolerance=1e-3, **settings)
    (answer,) = bound.answers
    graph = histories(model, 0, **settings)
    cost = cheapest_by_brute_force(graph, (1 - answer,), (answer,), bound.visits, epsilon=0.1)
    assert cost == pytest.approx(kl(0.1, 0.9), rel=5e-3)
    # Calls flow down the tree.
    for action, successor in itertools.product(range(2), range(1, 5)):
        calls = sum(bound.visits.get((action, successor, b), 0.0) for b in range(2))
        _, table, to = model.sparse()
        p = table[0, action][to[0, action] == successor].sum()
        assert calls <= p * bound.visits[(action,)] * (1 + 1e-6)


@pytest.mark.parametrize("terminal", [None, [1]])
def test_no_recurring_alternative_was_missed(terminal):
    model = recurs(3, terminal=terminal)
    bound = theory.lower_bound(model, epsilon=0.1, delta=0.1, gamma=0.6, tolerance=1e-3)
    assert bound.answers == (0,)
    graph = recurring(model, 0, gamma=0.6)
    cost = cheapest_by_brute_force(graph, (0, 1), (0, 0), bound.visits, epsilon=0.1)
    assert cost == pytest.approx(kl(0.1, 0.9), rel=5e-3)


def test_one_state_is_a_bandit_and_any_state_may_follow():
    """What comes later is the same for all actions. A rich state must be excluded, too."""
    settings = {"epsilon": 0.1, "delta": 0.1}
    known = theory.lower_bound(bandit(0.7, 0.5), **settings, **BANDIT).calls
    for gamma in (0.0, 0.9):
        bound = theory.lower_bound(bandit(0.7, 0.5), **settings, gamma=gamma)
        assert bound.calls == pytest.approx(known, rel=3e-4)
        assert bound.visits.keys() == {(0, 0), (0, 1)}
    p = np.zeros((2, 2, 2))
    p[0, :, 0] = p[1, :, 1] = 1.0
    model = pacplan.TabularMDP(p, np.array([[0.7, 0.5], [1.0, 1.0]]), noise="bernoulli")
    assert theory.lower_bound(model, **settings, gamma=0.9).calls > 1.1 * known


def test_atlas_needs_no_less():
    settings = {"epsilon": 0.1, "delta": 0.1, "gamma": 0.5}
    planner = pacplan.Atlas(**settings)
    calls = [planner.plan(recurs(1), seed=seed).samples for seed in range(5)]
    assert theory.lower_bound(recurs(1), **settings).calls < np.mean(calls)


BY_STEP = pacplan.TabularMDP(np.ones((2, 1, 2, 1)), np.full((2, 1, 2), 0.5))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gamma": 1.0, "horizon": None}, "need gamma < 1; give a horizon"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"horizon": 8}, "more than 1000 pairs"),
        ({"model": BY_STEP, "horizon": 3}, "defined for 2 steps"),
        ({"model": BY_STEP, "horizon": None}, "not stationary; give a horizon"),
    ],
    ids=str,
)
def test_refusals(change, words):
    settings = {"epsilon": 0.1, "delta": 0.1, "gamma": 0.9, "horizon": 2} | change
    model = settings.pop("model", random_small(np.random.default_rng(0)))
    with pytest.raises((TypeError, ValueError), match=words):
        theory.lower_bound(model, **settings)
