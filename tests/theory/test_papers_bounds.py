"""The paper's bounds, by hand, by brute force and against real searches."""

import itertools
import math
import re

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact, theory


def chain(gap, *, actions):
    """One state that leads to itself; action 0 pays 1, the others `gap` less."""
    rewards = np.full((1, actions), 1.0 - gap)
    rewards[0, 0] = 1.0
    to = np.zeros((1, actions, 1), int)
    return pacplan.TabularMDP(np.ones((1, actions, 1)), rewards, successors=to)


def tree(rng, *, noise="none", actions=2):
    """Random deterministic transitions among six states."""
    successors = rng.integers(6, size=(6, actions, 1))
    return pacplan.TabularMDP(
        np.ones((6, actions, 1)), rng.random((6, actions)), successors=successors, noise=noise
    )


# n of Sparse Sampling, exponents ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "horizon", "calls", "printed"),
    [(1.0, 6, 7.776e9, 8e9), (0.5, 8, 1.31072e13, 1e13), (0.2, 10, 2.5e16, 3e16)],
)
def test_sparse_sampling_as_in_the_papers_table(epsilon, horizon, calls, printed):
    found = theory.sparse_sampling_calls(epsilon=epsilon, horizon=horizon, actions=5, successors=2)
    assert found == pytest.approx(calls, rel=1e-12)
    assert printed == pytest.approx(found, rel=0.25)  # It has one digit.


def test_crude_exponent():
    # log 10 / log(1/0.7) = 2.302585 / 0.356675
    found = theory.crude_exponent(gamma=0.7, actions=5, successors=2)
    assert found == pytest.approx(8.4557, abs=1e-4)


def test_exponent_of_a_power_law():
    epsilons = [1.0, 0.66, 0.5, 0.33, 0.2]
    samples = np.outer([10.0, 20.0, 70.0], np.array(epsilons) ** -3.2)
    fit = theory.exponent(epsilons, samples)
    assert fit.value == pytest.approx(3.2) and fit.low == pytest.approx(fit.high)


def test_exponent_is_the_slope_of_the_means_and_its_interval_covers_it():
    rng = np.random.default_rng(1)
    epsilons = [1.0, 0.5, 0.2]
    samples = np.exp(rng.normal(size=(300, 3))) * np.array(epsilons) ** -2.5
    fit = theory.exponent(epsilons, samples)
    x, y = np.log(1 / np.array(epsilons)), np.log(samples.mean(0))
    assert fit.value == pytest.approx(np.polyfit(x, y, 1)[0])
    assert fit.low < fit.value < fit.high
    # The means have relative errors of sqrt(e - 1) / sqrt(300); the slope weighs them by x - mean.
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    error = math.sqrt((weights**2).sum() * (math.e - 1) / 300)
    assert fit.high - fit.low == pytest.approx(2 * 1.96 * error, rel=0.4)
    assert abs(fit.value - 2.5) < 6 * error


@pytest.mark.parametrize(
    ("epsilons", "samples"),
    [([1.0], [[5.0]]), ([1.0, 1.0], [[5.0, 6.0]]), ([1.0, 0.5], [[5.0]]), ([1.0, 0.5], [[5.0, 0.0]])],
)
def test_exponents_that_make_no_sense(epsilons, samples):
    with pytest.raises(ValueError, match="samples"):
        theory.exponent(epsilons, samples)


# Gaps -------------------------------------------------------------------------------------------------


def test_gaps_by_hand():
    rewards = np.array([[1.0, 0.7, 0.2]])
    model = pacplan.TabularMDP(np.ones((1, 3, 1)), rewards, successors=np.zeros((1, 3, 1), int))
    found = theory.gaps(model, gamma=0.5, horizon=2, epsilon=0.1)
    # The future is the same whatever one does. At the root the best action has the second's gap.
    assert found[0, 0] == pytest.approx([0.3, 0.3, 0.8])
    assert found[1, 0] == pytest.approx([0.0, 0.3, 0.8])
    assert theory.gaps(model, gamma=0.5, horizon=2, epsilon=0.5)[0, 0] == pytest.approx([0.5, 0.5, 0.8])


def test_gaps_at_the_root_only():
    model = random_small(np.random.default_rng(0))
    found = theory.gaps(model, 2, gamma=0.9, horizon=3, epsilon=0.01)
    assert np.isnan(found[0, [0, 1, 3]]).all() and np.isfinite(found[0, 2]).all()
    assert (found[1:] == exact.gaps(model, gamma=0.9, horizon=3)[1:]).all()


# Pseudo-counts and Corollary 1 ------------------------------------------------------------------------


def test_corollary_1_by_hand():
    # B = 2, K = 2, H = 1: the two actions have gap 1/2, so m = C0 / (1/4); c = log(3 * 4 / 0.1).
    successors = np.array([[[0, 1], [0, 1]], [[0, 1], [0, 1]]])
    rewards = np.array([[1.0, 0.5], [1.0, 0.5]])
    model = pacplan.TabularMDP(np.full((2, 2, 2), 0.5), rewards, successors=successors)
    bound = theory.corollary_1(model, 0, gamma=0.7, horizon=1, epsilon=0.1, delta=0.1)
    # C0 = (64 * 1.414214 * 2.414214)^2 = 47746.4; c = 4.787492; 2 sqrt(e) = 3.297443.
    m = 4 * 47746.4
    visits = m * (4.787492 + 2 * math.log(m * (4.787492 + 3.297443)) + 1)
    assert bound.proven == pytest.approx(2 * visits, rel=1e-4)
    # (BK)^0 (4 + 4) (log 10 + 2 log 4)
    assert bound.order == pytest.approx(8 * (2.302585 + 2 * 1.386294), rel=1e-6)


@pytest.mark.parametrize(("successors", "actions", "horizon"), [(2, 2, 3), (3, 2, 2), (2, 4, 2)])
def test_its_visits_are_what_the_theorem_allows(successors, actions, horizon):
    """Theorem 1 says n gap <= 64 sqrt(2) (1 + sqrt(2)) sqrt(BK)^(H-1) sqrt(n beta(n))."""
    bandit = np.r_[1.0, np.full(actions - 1, 0.7)]
    model = pacplan.TabularMDP(
        np.full((1, actions, successors), 1.0 / successors),
        bandit[np.newaxis],
        successors=np.zeros((1, actions, successors), int),
    )
    bound = theory.corollary_1(model, gamma=0.8, horizon=horizon, epsilon=0.05, delta=0.1)
    b = model.successors

    def allowed(n):
        beta = math.log(3 * (b * actions) ** horizon / 0.1)
        beta += (b - 1) * math.log(math.e * (1 + n / (b - 1))) if b > 1 else 0.0
        constant = 64 * math.sqrt(2) * (1 + math.sqrt(2)) * math.sqrt(b * actions) ** (horizon - 1)
        return 0.3 * n <= constant * math.sqrt(n * beta) * (1 + 1e-9)

    # All actions have the gap 0.3. The closed form gives away a little, not much.
    visits = bound.proven / actions
    assert not allowed(1.001 * visits) and allowed(visits / 3)


def test_rewards_of_another_range_count_in_units_of_it():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), size=(3, 2))
    rewards = rng.random((3, 2))
    plain = pacplan.TabularMDP(p, rewards)
    scaled = pacplan.TabularMDP(p, 10 * rewards - 4, reward_range=(-4, 6))
    one = theory.corollary_1(plain, gamma=0.9, horizon=3, epsilon=0.1, delta=0.1)
    other = theory.corollary_1(scaled, gamma=0.9, horizon=3, epsilon=1.0, delta=0.1)
    assert one.order == pytest.approx(other.order) and one.proven == pytest.approx(other.proven)


@pytest.mark.parametrize("seed", range(3))
def test_a_search_stays_below_corollary_1(seed):
    model = random_small(np.random.default_rng(seed))
    settings = {"gamma": 0.6, "horizon": 3, "epsilon": 0.3, "delta": 0.1}
    plan = pacplan.MDPGapE(**settings).plan(model, 0, seed=seed)
    assert plan.certified
    assert plan.episodes <= theory.corollary_1(model, 0, **settings).proven


# Table 2 ----------------------------------------------------------------------------------------------


def pair_of_states(rewards, **options):
    """Two actions in each of two states, all leading to either state."""
    successors = np.array([[[0, 1], [0, 1]], [[0, 1], [0, 1]]])
    table = np.array([rewards, rewards])
    return pacplan.TabularMDP(np.full((2, 2, 2), 0.5), table, successors=successors, **options)


BY_HAND = [
    # B = K = 2, gamma = 1/2, H = 2, epsilon = 1/4 and a gap of 1/2, so that (BK)^H = 16,
    # log K / log(1/gamma) = 1 and log(BK) / log(1/gamma) = 2.
    ("sparse-sampling", 2**5 * 16 * 16, 2**5 * 16 * 16),
    ("sparse-sampling", 4**3, 4**3),
    ("olop", 4**2, 4**2),  # max(2, 0) and max(2, 1)
    ("op-mdp", 1, 4**2),
    ("brue", 2**4 * 16 * 4, 2**4 * 16 * 4),
    ("stop", 4**2, 4**4),
    ("trailblazer", 4**2, 4**2),  # max(2, 1) and max(2, 2)
    ("smooth-cruiser", 4**4, 4**4),
    ("mdp-gape", 2 * (2**2 * 4 * 2 * 4), 2 * (2**2 * 4 * 2 * 4)),
]


@pytest.mark.parametrize(
    ("model", "epsilon"),
    [(pair_of_states([1.0, 0.5]), 0.25), (pair_of_states([6.0, 1.0], reward_range=(-4.0, 6.0)), 2.5)],
    ids=["rewards in [0, 1]", "rewards in [-4, 6]"],
)
def test_table_2_by_hand(model, epsilon):
    lines = theory.table_2(model, 0, gamma=0.5, horizon=2, epsilon=epsilon)
    assert [(line.planner, line.least, line.most) for line in lines] == [
        (name, pytest.approx(least), pytest.approx(most)) for name, least, most in BY_HAND
    ]


def test_table_2_where_kappa_matters():
    # gamma = 1/sqrt(2) doubles the exponents: log K / log(1/gamma) = 2, log(BK) / log(1/gamma) = 4.
    lines = theory.table_2(pair_of_states([1.0, 0.5]), 0, gamma=0.5**0.5, horizon=2, epsilon=0.25)
    ends = {line.formula: (line.least, line.most) for line in lines}
    assert ends["ε^-max(2, log κ / log(1/γ))"] == pytest.approx((4**2, 4**2))
    assert ends["ε^-(log κ / log(1/γ))"] == pytest.approx((1, 4**4))
    assert ends["ε^-(2 + log κ / log(1/γ) + o(1))"] == pytest.approx((4**2, 4**6))
    assert ends["ε^-max(2, log(Bκ) / log(1/γ) + o(1))"] == pytest.approx((4**2, 4**4))


def test_table_2_of_a_tie():
    lines = theory.table_2(pair_of_states([0.5, 0.5]), 0, gamma=0.5, horizon=2, epsilon=0.25)
    calls = {line.planner: line.most for line in lines}
    assert calls["brue"] == math.inf
    # Neither gap exceeds epsilon: 2 actions, H^2 (BK)^(H-1) B / epsilon^2 for each.
    assert calls["mdp-gape"] == pytest.approx(2 * (4 * 4 * 2 * 16))


# The deterministic theorem ----------------------------------------------------------------------------


def trajectories(model, root, horizon):
    """All trajectories of a deterministic model, one by one."""
    _, _, successors = model.sparse()
    for actions in itertools.product(range(successors.shape[1]), repeat=horizon):
        state, path = root, []
        for h, action in enumerate(actions):
            path.append((h, state, action))
            state = int(successors[state, action, 0])
        yield path


def branches(model, state, horizon, h=0):
    """All trajectories of a model from a state on, one by one; they are shorter where they may end."""
    rewards, probabilities, successors = model.sparse()
    for action in np.flatnonzero(np.isfinite(rewards[state])):
        here = [(state, int(action))]
        chances = probabilities[state, action]
        if h + 1 == horizon or chances.sum() < 0.999:
            yield here
        if h + 1 < horizon:
            for after in successors[state, action][chances > 0.0]:
                for rest in branches(model, int(after), horizon, h + 1):
                    yield here + rest


@pytest.mark.parametrize(("actions", "horizon"), [(2, 4), (3, 3)])
def test_deterministic_theorem_by_brute_force(actions, horizon):
    rng = np.random.default_rng(actions)
    model = tree(rng, actions=actions)
    settings = {"gamma": 0.7, "horizon": horizon, "epsilon": 0.1}
    widths = theory.gaps(model, 2, **settings)
    price = math.log(3 * actions**horizon / 0.05)
    order = proven = 0.0
    for path in trajectories(model, 2, horizon):
        sigma = [sum(0.7**i for i in range(horizon - h)) for h in range(horizon)]
        shares = [(sigma[h] / widths[h, s, a]) ** 2 for h, s, a in path if widths[h, s, a] > 0.0]
        order += min(shares)
        n = np.arange(1, 200_000)
        beta = price + np.log(math.e * (1 + n))
        fits = np.ones(len(n), bool)
        for h, s, a in path:
            factor = 2 if h == 0 else 1
            fits &= widths[h, s, a] <= factor * sigma[h] * np.sqrt(2 * beta / n)
        assert not fits[-1]
        proven += 1 + (n[fits].max() if fits.any() else 0)
    found = theory.deterministic_theorem(model, 2, delta=0.05, **settings)
    assert found.order == pytest.approx(order * (math.log(20) + horizon * math.log(actions)))
    assert found.proven == pytest.approx(proven)


@pytest.mark.parametrize("seed", range(3))
def test_a_search_stays_below_the_deterministic_theorem(seed):
    model = tree(np.random.default_rng(seed), noise="bernoulli")
    settings = {"gamma": 0.6, "horizon": 3, "epsilon": 0.3, "delta": 0.1}
    plan = pacplan.MDPGapE(**settings).plan(model, 0, seed=seed)
    bound = theory.deterministic_theorem(model, 0, **settings)
    assert plan.certified and plan.episodes <= bound.proven


def test_deterministic_theorem_of_many_trajectories():
    # 5^12 of them, each with the same steepest gap but those that begin well.
    model = chain(0.25, actions=5)
    found = theory.deterministic_theorem(model, gamma=0.5, horizon=12, epsilon=0.1, delta=0.1)
    assert math.isfinite(found.proven) and found.proven > 5**12


def test_the_deterministic_theorem_needs_one_successor():
    model = random_small(np.random.default_rng(0))
    with pytest.raises(ValueError, match="2 successors"):
        theory.deterministic_theorem(model, gamma=0.5, horizon=2, epsilon=0.1, delta=0.1)


@pytest.mark.parametrize("bad", [{"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"horizon": 0}])
def test_settings_out_of_range(bad):
    settings = {"gamma": 0.7, "horizon": 2, "epsilon": 0.1, "delta": 0.1} | bad
    with pytest.raises(ValueError, match=next(iter(bad))):
        theory.corollary_1(random_small(np.random.default_rng(0)), **settings)


ARGUMENTS = {"gamma": 0.7, "horizon": 3, "epsilon": 0.5, "delta": 0.1}
OF_A_MODEL = ["gaps", "table_2", "corollary_1", "deterministic_theorem"]


@pytest.mark.parametrize("name", OF_A_MODEL)
@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"state": 20}, ValueError, "state must be one of 0..19, got 20"),
        ({"state": -1}, ValueError, "state must be at least 0"),
        ({"state": "here"}, TypeError, "state must be a whole number, got 'here'"),
        ({"state": 1.0}, TypeError, "state must be a whole number"),
        ({"state": 19}, ValueError, "state 19 is terminal"),
        ({"gamma": 1.5}, ValueError, "gamma must lie in"),
        ({"gamma": "x"}, TypeError, "gamma must be a number"),
        ({"horizon": 0}, ValueError, "horizon must be at least 1"),
        ({"horizon": 2.5}, TypeError, "horizon must be a whole number"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be positive"),
        ({"epsilon": np.nan}, ValueError, "epsilon must be finite"),
        ({"delta": 1.0}, ValueError, "delta must lie strictly"),
        ({"delta": None}, TypeError, "delta must be a number"),
        ({"model": "garnet"}, TypeError, "must be a TabularMDP"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_before_anything_is_computed(
    name, change, kind, words, monkeypatch
):
    successors = np.arange(1, 20).repeat(2).reshape(19, 2, 1)
    model = pacplan.TabularMDP(
        np.ones((20, 2, 1)),
        np.full((20, 2), 0.5),
        successors=np.concatenate([successors, [[[0], [0]]]]),
        terminal=[19],
    )
    given = {"model": model} | ARGUMENTS | change
    if name in ("gaps", "table_2"):
        if "delta" in change:
            pytest.skip("it takes no delta")
        del given["delta"]
    if name == "table_2" and change == {"gamma": 1.5}:
        words = "gamma"
    getattr(theory, name)(**{"model": model} | {k: ARGUMENTS[k] for k in given if k in ARGUMENTS})
    monkeypatch.setattr("pacplan.exact.gaps", lambda *_, **__: pytest.fail("it computes"))
    with pytest.raises(kind, match=re.escape(words)):
        getattr(theory, name)(**given)


@pytest.mark.parametrize("change", [{"actions": 0}, {"successors": -2}, {"actions": 2.5}], ids=str)
def test_wrong_sizes(change):
    sizes = {"actions": 5, "successors": 2} | change
    with pytest.raises((TypeError, ValueError), match=next(iter(change))):
        theory.crude_exponent(gamma=0.7, **sizes)
    with pytest.raises((TypeError, ValueError), match=next(iter(change))):
        theory.sparse_sampling_calls(epsilon=1.0, horizon=3, **sizes)


@pytest.mark.parametrize(
    ("epsilons", "samples", "words"),
    [
        ([1.0, 0.0], [[1, 2]], "epsilons must be positive"),
        ([1.0, "x"], [[1, 2]], "epsilons must be a number"),
        ([1.0, 0.5], np.empty((0, 2)), "a row for every problem"),
        ([1.0, 0.5], [["a", "b"]], "samples must be an array of numbers"),
        ([1.0, 0.5], [[1.0, np.inf]], "positive and finite"),
    ],
)
def test_exponents_of_nothing(epsilons, samples, words):
    with pytest.raises((TypeError, ValueError), match=words):
        theory.exponent(epsilons, samples)


def test_what_no_float_can_hold_is_infinite():
    calls = theory.sparse_sampling_calls(epsilon=1e-200, horizon=400, actions=5, successors=2)
    assert calls == np.inf
    offered = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    model = pacplan.TabularMDP(np.full((2, 5, 2), 0.5), np.zeros((2, 5)), available=offered)
    bound = theory.corollary_1(model, gamma=0.7, horizon=400, epsilon=0.5, delta=0.1)
    assert bound.order == bound.proven == np.inf
    lines = theory.table_2(model, gamma=0.7, horizon=400, epsilon=0.5)
    assert any(line.most == np.inf for line in lines)
