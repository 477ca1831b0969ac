"""The least calls that any rule needs: by hand, by independent optimisation, and for validity."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import pacplan
from conftest import random_small
from pacplan import exact, theory
from pacplan.theory.alternatives import _Prices
from pacplan.theory.divergence import bernoulli as kl
from pacplan.theory.histories import histories, recurring

PROPERTY = settings(derandomize=True, deadline=None, max_examples=15)
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


def least(function, low, high):
    """The minimum of a convex function on an interval."""
    found = optimize.minimize_scalar(
        function, bounds=(low, high), method="bounded", options={"xatol": 1e-11}
    )
    return found.fun


def time_of_two_arms(better, worse, epsilon, divergence=kl):
    """max over w of the cheapest x: the better arm falls to x, the worse rises to x + epsilon."""

    def rate(w):
        low, high = max(0.0, worse - epsilon), min(better, 1.0 - epsilon)
        return least(
            lambda x: w * divergence(better, x) + (1 - w) * divergence(worse, x + epsilon), low, high
        )

    return 1.0 / -least(lambda w: -rate(w), 0.0, 1.0)


# Bandits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("means", "epsilon", "time"),
    [
        ((0.7, 0.5), 0.1, 21.20),
        ((0.5, 0.4), 0.05, 87.88),
        ((0.5, 0.3, 0.3, 0.3, 0.3), 0.1, 48.73),
        ((0.9, 0.7), 0.1, 13.83),
        ((0.15, 0.05), 0.05, 31.03),
    ],
)
def test_characteristic_times(means, epsilon, time):
    for delta in (0.1, 1e-3):
        bound = theory.lower_bound(bandit(*means), epsilon=epsilon, delta=delta, **BANDIT)
        assert bound.time == pytest.approx(time, rel=5e-4)
        assert bound.calls == pytest.approx(time * kl(delta, 1 - delta), rel=5e-4)
        assert bound.calls <= bound.at_most <= bound.calls / (1 - 1e-4)
        assert sum(bound.visits.values()) == pytest.approx(bound.at_most)


@PROPERTY
@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.floats(0.2, 0.9))
def test_two_arms_are_one_dimensional(one, other, part):
    better, worse = max(one, other), min(one, other)
    if better - worse < 0.02:
        return
    epsilon = part * (better - worse)
    bound = theory.lower_bound(bandit(worse, better), epsilon=epsilon, delta=0.1, **BANDIT)
    assert bound.answers == (1,)
    assert bound.time == pytest.approx(time_of_two_arms(better, worse, epsilon), rel=5e-4)


def test_several_equal_arms_share_the_calls():
    """Four worse arms that are all alike are called alike, and their number is an exchange rate."""

    def rate(w):
        return least(lambda x: w * kl(0.5, x) + (1 - w) / 4 * kl(0.3, x + 0.1), 0.2, 0.5)

    bound = theory.lower_bound(bandit(0.3, 0.3, 0.5, 0.3, 0.3), epsilon=0.1, delta=0.1, **BANDIT)
    assert bound.time == pytest.approx(1.0 / -least(lambda w: -rate(w), 0.0, 1.0), rel=5e-4)
    worse = [bound.visits[(a,)] for a in (0, 1, 3, 4)]
    assert worse == pytest.approx([np.mean(worse)] * 4, rel=0.02)


def test_rewards_that_are_always_the_same():
    """The nearest law with another mean adds 0 or 1 with some probability: logarithms of ratios."""

    def divergence(mean, other):
        return math.log((1 - mean) / (1 - other)) if other > mean else math.log(mean / other)

    model = bandit(0.7, 0.5, noise="none")
    bound = theory.lower_bound(model, epsilon=0.1, delta=0.1, **BANDIT)
    # x may lie so low that the worse arm need not rise.
    lowest = 0.4
    assert bound.time == pytest.approx(time_of_two_arms(0.7, 0.5, 0.1, divergence), rel=5e-4)
    assert bound.time >= 1.0 / divergence(0.7, lowest)


def test_two_arms_that_are_both_right():
    """Equal arms: by symmetry each is the answer with (1-delta)/2, and both are called alike."""
    delta, epsilon = 0.1, 0.1
    bound = theory.lower_bound(bandit(0.5, 0.5), epsilon=epsilon, delta=delta, **BANDIT)
    rate = least(lambda x: 0.5 * kl(0.5, x) + 0.5 * kl(0.5, x + epsilon), 0.4, 0.5)
    assert bound.answers == (0, 1)
    assert bound.calls == pytest.approx(kl((1 - delta) / 2, delta) / rate, rel=5e-4)
    # In the limit of small delta an answer may be settled on beforehand; before, this is not a bound.
    assert bound.calls < time_of_two_arms(0.5, 0.5, epsilon) * kl(delta, 1 - delta)


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


def test_many_arms_that_are_right():
    bound = theory.lower_bound(bandit(*[0.5] * 6), epsilon=0.2, delta=0.05, **BANDIT)
    assert len(bound.answers) == 6 and bound.calls > 0.0
    assert {len(one.denied) for one in bound.alternatives} == {1}  # No rival is left for all six.


@settings(PROPERTY, max_examples=6)
@given(st.lists(st.floats(0.05, 0.95), min_size=2, max_size=3), st.floats(0.05, 0.3))
def test_more_accuracy_and_confidence_need_more(means, epsilon):
    def calls(epsilon, delta):
        return theory.lower_bound(bandit(*means), epsilon=epsilon, delta=delta, **BANDIT).calls

    middle = calls(epsilon, 0.1)
    assert calls(1.5 * epsilon, 0.1) <= middle * (1 + 2e-4)
    assert middle <= calls(epsilon, 0.01) * (1 + 2e-4)


@pytest.mark.parametrize("noise", ["bernoulli", "none"])
def test_units_do_not_matter(noise):
    means = np.array([0.8, 0.5, 0.6])
    plain = theory.lower_bound(bandit(*means, noise=noise), epsilon=0.1, delta=0.1, **BANDIT)
    scaled = bandit(*(20 * means - 5), noise=noise, reward_range=(-5.0, 15.0))
    bound = theory.lower_bound(scaled, epsilon=2.0, delta=0.1, **BANDIT)
    assert bound.calls == pytest.approx(plain.calls, rel=2e-4)


def test_nothing_to_find_out():
    """One action; values that cannot be further apart than epsilon; answers no better than a coin's."""
    settings = {"delta": 0.1, **BANDIT}
    assert theory.lower_bound(bandit(0.5), epsilon=0.1, **settings).calls == 0.0
    assert theory.lower_bound(bandit(0.5, 0.2), epsilon=1.0, **settings).calls == 0.0
    guess = theory.lower_bound(bandit(0.5, 0.2), epsilon=0.1, delta=0.5, **BANDIT)
    assert guess.calls == 0.0 and math.isnan(guess.time)


# Trees ------------------------------------------------------------------------------------------------


def test_steps_that_do_not_count():
    """After the end, and with gamma 0, later steps change nothing; nor does a state's name."""
    expected = theory.lower_bound(bandit(0.7, 0.5), epsilon=0.1, delta=0.1, **BANDIT).calls
    p = np.zeros((2, 2, 2))
    p[:, :, 1] = 1.0
    rewards = np.array([[0.7, 0.5], [0.9, 0.1]])
    ends = pacplan.TabularMDP(p, rewards, terminal=[1], noise="bernoulli")
    found = theory.lower_bound(ends, epsilon=0.1, delta=0.1, gamma=1.0, horizon=2)
    assert found.calls == pytest.approx(expected, rel=2e-4)
    assert set(found.visits) == {(0,), (1,)}
    goes_on = pacplan.TabularMDP(p, rewards, noise="bernoulli")
    found = theory.lower_bound(goes_on, epsilon=0.1, delta=0.1, gamma=0.0, horizon=2)
    assert found.calls == pytest.approx(expected, rel=2e-3)
    assert set(found.visits) == {(0,), (1,), (0, 1, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1)}


def test_a_corridor_by_hand():
    """Two arms that pay nothing and lead to a coin each, which is called at most as often as its arm.

    The better coin is lowered, to x; of the worse arm the coin rises by u and the reward of the arm, 0
    till now, by v, with u + v = x + epsilon - worse.
    """
    p = np.zeros((3, 2, 3))
    p[0, 0, 1] = p[0, 1, 2] = p[1:, :, 0] = 1.0
    rewards = np.array([[0.0, 0.0], [0.8, 0.0], [0.5, 0.0]])
    available = np.array([[True, True], [True, False], [True, False]])
    model = pacplan.TabularMDP(p, rewards, available=available, noise="bernoulli")
    epsilon = 0.1

    def raised(rise, arm, coin):
        return least(
            lambda v: arm * -math.log1p(-v) + coin * kl(0.5, 0.5 + rise - v), max(0.0, rise - 0.5), rise
        )

    def calls(n):
        better, worse, coin_of_better, coin_of_worse = n
        if coin_of_better > better or coin_of_worse > worse:
            return math.inf
        rate = least(
            lambda x: coin_of_better * kl(0.8, x) + raised(x + epsilon - 0.5, worse, coin_of_worse),
            0.4 + 1e-9, 0.8,
        )  # fmt: skip
        return sum(n) / rate

    # Each arm as often as its coin, or more often: a grid over shares, refined around the best.
    centre, width = np.array([0.5, 1.0, 1.0]), 0.5
    for _ in range(4):
        axes = [np.clip(c + width * np.linspace(-1, 1, 5), 1e-3, 1.0) for c in centre]
        axes[0] = np.minimum(axes[0], 0.999)
        table = {
            (w, b, c): calls((w, 1 - w, w * b, (1 - w) * c)) for w, b, c in itertools.product(*axes)
        }
        centre, width = np.array(min(table, key=table.get)), width / 2.5
    bound = theory.lower_bound(model, epsilon=epsilon, delta=0.1, gamma=1.0, horizon=2)
    assert bound.time == pytest.approx(min(table.values()), rel=3e-3)


def alternative_values(model, alternative, *, gamma, horizon):
    """Values of the root's actions in an alternative, by recursion over histories."""

    def value(h, state, history):
        laws = [alternative.laws.get((*history, a)) for a in model.actions(state)]
        for a, law in zip(model.actions(state), laws, strict=True):
            taken = (*history, a)
            if law is None:
                rewards, probabilities, successors = model.sparse()
                total = rewards[state, a]
                pairs = zip(probabilities[state, a], successors[state, a], strict=True)
                following = [(p, int(s)) for p, s in pairs if p > 0.0]
            else:
                assert sum(outcome.probability for outcome in law) == pytest.approx(1.0)
                assert all(0.0 <= outcome.reward <= 1.0 for outcome in law)
                total = sum(outcome.probability * outcome.reward for outcome in law)
                following = [(o.probability, o.successor) for o in law if o.successor is not None]
            if h + 1 < horizon:
                total += gamma * sum(p * max(value(h + 1, s, (*taken, s))) for p, s in following)
            yield total

    return list(value(0, model.initial_state(), ()))


@pytest.mark.parametrize("noise", ["bernoulli", "none"])
@pytest.mark.parametrize("seed", range(2))
def test_alternatives_deny_the_answers(seed, noise):
    model = random_small(np.random.default_rng(seed), noise=noise)
    settings = {"gamma": 0.8, "horizon": 2}
    bound = theory.lower_bound(model, epsilon=0.1, delta=0.1, tolerance=0.05, **settings)
    q = exact.finite_horizon(model, **settings)[0, 0]
    assert bound.answers == tuple(np.flatnonzero(q.max() - q <= 0.1))
    assert bound.alternatives
    for one in bound.alternatives:
        values = alternative_values(model, one, **settings)
        assert all(values[one.rival] - values[a] > 0.1 for a in one.denied)
        # Enough calls to tell it apart, were it the only one to be told apart from.
        spent = sum(bound.visits[pair] * amount for pair, amount in one.divergences.items())
        if len(bound.answers) == 1:
            assert spent >= kl(0.1, 0.9) * (1 - 1e-3)


def cheapest_by_brute_force(graph, rival, denied, visits, *, epsilon):
    """The cheapest alternative over the laws themselves, for every policy of the rival."""
    index = {pair.history: e for e, pair in enumerate(graph.pairs)}
    weights = np.array([visits[pair.history] for pair in graph.pairs])
    places = np.cumsum([0, *(len(pair.chances) for pair in graph.pairs)])
    true = np.concatenate([pair.chances for pair in graph.pairs])
    given = true > 0.0

    def worth(x, e):
        """Of a pair, given the values of nodes that x holds after the laws."""
        following = np.append(x[len(true) :], 0.0)[list(graph.pairs[e].nodes)]
        return x[places[e] : places[e + 1]] @ (
            np.array(graph.pairs[e].rewards) + graph.gamma * following
        )

    def cost(x):
        terms = np.zeros(len(true))
        terms[given] = true[given] * np.log(true[given] / np.maximum(x[: len(true)][given], 1e-12))
        return weights @ np.add.reduceat(terms, places[:-1])

    def gaps(x, policy):
        """By how much values are above the worth of all pairs, and the other way for the policy's."""
        values = x[len(true) :]
        above = [
            values[k] - worth(x, e) - epsilon * (e == index[denied])
            for k, node in enumerate(graph.nodes) for e in node.pairs
        ]  # fmt: skip
        return np.array(above + [worth(x, e) - values[k] for k, e in enumerate(policy) if e >= 0])

    best = math.inf
    rng = np.random.default_rng(0)
    truth = graph.values({})
    values = [max(truth[e] for e in node.pairs) for node in graph.nodes]
    # Below the denied action values need only be high enough.
    choices = [(-1,) if node.parent == index[denied] else node.pairs for node in graph.nodes[1:]]
    for policy in itertools.product((index[rival],), *choices):
        laws = [rng.dirichlet(0.1 + 20 * np.array(pair.chances)) for pair in graph.pairs]
        start = np.concatenate([*laws, values])
        conditions = [
            {"type": "eq", "fun": lambda x: np.add.reduceat(x[: len(true)], places[:-1]) - 1.0},
            {"type": "ineq", "fun": gaps, "args": (policy,)},
        ]
        found = optimize.minimize(
            cost, start, method="SLSQP", constraints=conditions,
            bounds=[(0.0, 1.0)] * len(true) + [(None, None)] * len(values),
            options={"maxiter": 300, "ftol": 1e-10},
        )  # fmt: skip
        broken = abs(conditions[0]["fun"](found.x)).max(), -gaps(found.x, policy).min()
        if max(broken) < 1e-6:
            best = min(best, found.fun)
    return best


@pytest.mark.parametrize("seed", range(2))
def test_no_alternative_in_two_steps_was_missed(seed):
    """The N said to be enough is just enough for what an independent search finds."""
    model = two_steps(seed)
    settings = {"gamma": 1.0, "horizon": 2}
    bound = theory.lower_bound(model, epsilon=0.1, delta=0.1, tolerance=1e-3, **settings)
    (answer,) = bound.answers
    graph = histories(model, 0, **settings)
    cost = cheapest_by_brute_force(graph, (1 - answer,), (answer,), bound.visits, epsilon=0.1)
    assert cost == pytest.approx(kl(0.1, 0.9), rel=5e-3)


def test_calls_flow_down_the_tree():
    model = two_steps(0)
    bound = theory.lower_bound(model, epsilon=0.1, delta=0.1, gamma=1.0, horizon=2, tolerance=1e-2)
    _, p = model.dense()
    for action, successor in itertools.product(range(2), range(1, 5)):
        calls = sum(bound.visits.get((action, successor, b), 0.0) for b in range(2))
        assert calls <= p[0, action, successor] * bound.visits[(action,)] * (1 + 1e-6)


def test_three_steps():
    """More steps to go are more to find out, here with one action below the root."""
    p = np.zeros((2, 2, 2))
    p[:, :, 1] = 1.0
    rewards = np.array([[0.8, 0.2], [0.5, 0.0]])
    available = np.array([[True, True], [True, False]])
    model = pacplan.TabularMDP(p, rewards, available=available, noise="bernoulli")
    settings = {"epsilon": 0.2, "delta": 0.1, "gamma": 0.9, "tolerance": 1e-2}
    calls = [theory.lower_bound(model, horizon=h, **settings).calls for h in (1, 2, 3)]
    assert calls[0] < calls[1] < calls[2]


# States that recur ------------------------------------------------------------------------------------


def recurs(seed, *, states=2, **rest):
    """A small random problem in which the two actions of the root are apart."""
    rng = np.random.default_rng(seed)
    rewards = rng.uniform(0.1, 0.9, (states, 2))
    rewards[0] = 0.7, 0.4
    return pacplan.TabularMDP(
        rng.dirichlet(np.ones(states), (states, 2)), rewards, noise="bernoulli", **rest
    )


@pytest.mark.parametrize("gamma", [0.0, 0.8])
def test_one_state_is_a_bandit(gamma):
    """What comes later is the same for all actions."""
    bound = theory.lower_bound(bandit(0.7, 0.5, 0.4), epsilon=0.1, delta=0.1, gamma=gamma)
    known = theory.lower_bound(bandit(0.7, 0.5, 0.4), epsilon=0.1, delta=0.1, **BANDIT)
    assert bound.calls == pytest.approx(known.calls, rel=3e-4)
    assert bound.visits.keys() == {(0, 0), (0, 1), (0, 2)}


@pytest.mark.parametrize("terminal", [None, [2]])
def test_states_that_do_not_count(terminal):
    known = theory.lower_bound(bandit(0.7, 0.4), epsilon=0.1, delta=0.1, **BANDIT).calls
    model = recurs(0, states=3, terminal=terminal)
    bound = theory.lower_bound(model, epsilon=0.1, delta=0.1, gamma=0.0)
    assert bound.calls == pytest.approx(known, rel=3e-4)


def test_any_state_may_follow():
    """A rich state that is never reached must be excluded, too."""
    p = np.zeros((2, 2, 2))
    p[0, :, 0] = p[1, :, 1] = 1.0
    rewards = np.array([[0.7, 0.5], [1.0, 1.0]])
    settings = {"epsilon": 0.1, "delta": 0.1, "gamma": 0.9}
    bound = theory.lower_bound(pacplan.TabularMDP(p, rewards, noise="bernoulli"), **settings)
    assert bound.calls > 1.1 * theory.lower_bound(bandit(0.7, 0.5), **settings).calls
    laws = [law for one in bound.alternatives for (s, _), law in one.laws.items() if s == 0]
    assert any(outcome.successor == 1 for law in laws for outcome in law)


@pytest.mark.parametrize("terminal", [None, [2]])
@pytest.mark.parametrize("seed", range(2))
def test_recurring_alternatives_deny_the_answers(seed, terminal):
    model = recurs(seed, states=3, terminal=terminal)
    bound = theory.lower_bound(model, epsilon=0.1, delta=0.1, gamma=0.8, tolerance=1e-2)
    assert bound.alternatives
    for one in bound.alternatives:
        p, rewards = np.zeros((4, 2, 4)), np.zeros((4, 2))
        p[:, :, 3] = 1.0
        for s, a in bound.visits:
            dense = model.dense()
            p[s, a] = np.append(dense[1][s, a], 1.0 - dense[1][s, a].sum())
            rewards[s, a] = dense[0][s, a]
        for (s, a), law in one.laws.items():
            assert sum(o.probability for o in law) == pytest.approx(1.0)
            assert all(0.0 <= o.reward <= 1.0 and (o.successor is not None or terminal) for o in law)
            rewards[s, a] = sum(o.probability * o.reward for o in law)
            p[s, a] = 0.0
            for o in law:
                p[s, a, 3 if o.successor is None else o.successor] += o.probability
        changed = pacplan.TabularMDP(p, np.clip(rewards, 0.0, 1.0), terminal=[3])
        values = exact.discounted(changed, gamma=0.8)[0]
        assert all(values[one.rival] - values[a] > 0.1 for a in one.denied)


@pytest.mark.parametrize("terminal", [None, [1]])
def test_no_recurring_alternative_was_missed(terminal):
    model = recurs(3, terminal=terminal)
    bound = theory.lower_bound(model, epsilon=0.1, delta=0.1, gamma=0.6, tolerance=1e-3)
    assert bound.answers == (0,)
    graph = recurring(model, 0, gamma=0.6)
    cost = cheapest_by_brute_force(graph, (0, 1), (0, 0), bound.visits, epsilon=0.1)
    assert cost == pytest.approx(kl(0.1, 0.9), rel=5e-3)


def test_more_accuracy_and_confidence_need_more_where_states_recur():
    def calls(epsilon, delta):
        return theory.lower_bound(recurs(1), epsilon=epsilon, delta=delta, gamma=0.8).calls

    assert calls(0.2, 0.1) < calls(0.1, 0.1) < calls(0.1, 0.01)


def test_atlas_needs_no_less():
    settings = {"epsilon": 0.1, "delta": 0.1, "gamma": 0.5}
    planner = pacplan.Atlas(**settings)
    calls = [planner.plan(recurs(1), seed=seed).samples for seed in range(5)]
    assert theory.lower_bound(recurs(1), **settings).calls < np.mean(calls)


@pytest.mark.parametrize("horizon", [2, None])
def test_derivatives(horizon):
    model = random_small(np.random.default_rng(5))
    tree = histories(model, 0, gamma=0.9, horizon=2) if horizon else recurring(model, 0, gamma=0.9)
    rng = np.random.default_rng(1)
    prices = _Prices(tree, 0, (1,), rng.random(len(tree.pairs)), 0.1)
    worth = tree.values({})
    values = np.array([max(worth[e] for e in node.pairs) for node in tree.nodes])
    values += rng.uniform(-0.05, 0.05, len(values))
    for i in range(len(values)):
        step = 1e-6 * np.eye(len(values))[i]
        change = prices.at(values + step).cost - prices.at(values - step).cost
        assert prices.at(values).slopes[i] == pytest.approx(change / 2e-6, rel=1e-4, abs=1e-7)


# Refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"gamma": 1.5}, ValueError, "gamma"),
        ({"gamma": 1.0, "horizon": None}, ValueError, "need gamma < 1; give a horizon"),
        ({"horizon": 0}, ValueError, "horizon"),
        ({"tolerance": 0.0}, ValueError, "tolerance"),
        ({"state": 9}, ValueError, "state must be one of"),
        ({"horizon": 8}, ValueError, "more than 1000 pairs"),
        (
            {"model": pacplan.Simulator(lambda s, a, rng: (s, 0.0), actions=2)},
            TypeError,
            "must be a TabularMDP",
        ),
    ],
    ids=str,
)
def test_refusals(change, kind, words):
    settings = {"epsilon": 0.1, "delta": 0.1, "gamma": 0.9, "horizon": 2} | change
    model = settings.pop("model", random_small(np.random.default_rng(0)))
    with pytest.raises(kind, match=words):
        theory.lower_bound(model, **settings)


def test_more_steps_than_a_model_has():
    model = pacplan.TabularMDP(np.ones((2, 1, 2, 1)), np.full((2, 1, 2), 0.5))
    with pytest.raises(ValueError, match="defined for 2 steps"):
        theory.lower_bound(model, epsilon=0.1, delta=0.1, gamma=1.0, horizon=3)
    with pytest.raises(ValueError, match="not stationary; give a horizon"):
        theory.lower_bound(model, epsilon=0.1, delta=0.1, gamma=0.9)
