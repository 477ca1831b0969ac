"""The theorem on Bracket's calls: its lemmas on samples, its evaluation as on the page and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import pacplan
from conftest import random_small
from pacplan import exact, theory
from pacplan.algorithms.betting import setup as grid
from pacplan.algorithms.bracket import constants
from pacplan.theory import calls

PROPERTY = settings(derandomize=True, deadline=None, max_examples=150)


def bandit(*means, **rest):
    return pacplan.TabularMDP(np.ones((1, len(means), 1)), np.array([means]), noise="bernoulli", **rest)


# Lemma A ----------------------------------------------------------------------------------------------


def excess(x, stakes, weights, cash, penalty):
    """max_y [ y - l log M(y) ] - mean of x - l log(1/c), on a fine grid of y."""
    n = len(x)
    y = np.concatenate([1.0 - np.geomspace(1e-9, 30.0, 3000), np.linspace(x.mean(), 1.0, 3000)])
    bets = np.log(stakes[:, np.newaxis] - x).sum(1)[:, np.newaxis]
    bets = bets + np.log((1.0 - cash) * weights)[:, np.newaxis] - n * np.log(stakes[:, np.newaxis] - y)
    log_m = np.logaddexp(np.log(cash), np.logaddexp.reduce(bets, 0))
    return (y - penalty * log_m).max() - x.mean() + penalty * np.log(cash)


def lemma_a(x, reach, span, scales, weights, cash, penalty):
    """What Lemma A allows for it."""
    n, v = len(x), x.var()
    kappa = -np.log((1.0 - cash) * weights.min())
    return (
        v / (span * scales[-1])
        + calls.SLOW * reach * span / (penalty * n)
        + calls.ROOT * np.sqrt(v * kappa / n)
        + calls.QUICK * span * kappa / n
    )


@PROPERTY
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 2000),
    reach=st.floats(0.5, 8.0),
    wider=st.sampled_from([1.0, 1.0, 2.5, 7.0]),
    largest=st.integers(0, 5),
    cash=st.floats(0.3, 0.999),
    penalty=st.floats(-8.0, 3.0).map(math.exp),
    shape=st.sampled_from(["even", "two", "one", "ends"]),
)
def test_lemma_a(seed, n, reach, wider, largest, cash, penalty, shape):
    rng = np.random.default_rng(seed)
    below = {
        "even": lambda: rng.random(n),
        "two": lambda: (rng.random(n) < rng.random() ** 3).astype(float),
        "one": lambda: np.full(n, rng.random()),
        "ends": lambda: rng.beta(0.05, 0.05 * rng.random() + 0.01, n),
    }[shape]()
    x, scales = 1.0 - reach * below, 4.0 ** np.arange(largest + 1)
    weights = rng.dirichlet(np.ones(largest + 1))
    span = wider * reach
    allowed = lemma_a(x, reach, span, scales, weights, cash, penalty)
    assert excess(x, 1.0 + span * scales, weights, cash, penalty) <= allowed * (1.0 + 1e-9)


# Lemma B ----------------------------------------------------------------------------------------------


def winnings(rng, shape):
    """log of the most that a fair game is ever worth: by 1.2 up, or all is lost."""
    return math.log(1.2) * (rng.geometric(1.0 - 1.0 / 1.2, shape) - 1)


@pytest.mark.parametrize(
    ("weights", "chance"),
    [([1.0], 1e-3), (np.ones(200), 0.05), (0.8 ** np.arange(30), 0.01), ([1.0, *[0.1] * 40], 0.01)],
    ids=["one", "many", "falling", "mixed"],
)
def test_lemma_b(weights, chance):
    weights, runs = np.array(weights), 20_000
    total = winnings(np.random.default_rng(0), (runs, len(weights))) @ weights

    def failures(each, all_):
        most = each * weights.sum() - all_ * weights.max() * math.log(chance)
        return (total > most).sum()

    # If the lemma holds, more are seen with a probability below 1e-7.
    most = binom.isf(1e-7, runs, chance)
    assert failures(calls.EACH, calls.ALL) <= most
    if len(weights) == 1:
        assert failures(calls.EACH, 0.25 * calls.ALL) > most
    if len(weights) == 200:
        assert failures(0.5 * calls.EACH, calls.ALL) > most


def test_constants_that_the_page_takes_from_the_planner():
    assert pytest.approx(7 / 24) == grid.FORCED_GRID + 2.0 * grid.FORCED_MARGIN
    assert constants.SETTLED == 1.1
    assert (constants.STAKES_OPEN, constants.SOLVER_OPEN) == (0.25, 0.05)
    assert (constants.FORCED_EVERY, constants.NEAR) == (100, 1.25)
    assert (constants.REBUILD_GROWTH, constants.SETTLING_CALLS, constants.LARGEST) == (1.15, 25.0, 2.0)
    left_open = 1.1 * constants.PENALTY + 0.25 + 0.05
    room = 1.0 - left_open - 7 / 24
    assert 0.0 < room < 0.5
    spared = calls.SPARED
    assert (1.0 - spared) ** 2 - spared >= calls.LEAST_SURPLUS
    met = (1.0 + left_open) / (calls.LEAST_SURPLUS * room) + spared / calls.LEAST_SURPLUS + 1.0
    assert met <= calls.OVERALL / room
    assert 1.0 / (1.0 - math.exp(-1.0)) <= calls.TYPICAL
    assert 2.0 * math.log(2.0) <= calls.EACH


# The evaluation ---------------------------------------------------------------------------------------

ARMS = {"gamma": 1.0, "horizon": 1, "epsilon": 0.1, "delta": 0.1}
STEPS = {"gamma": 0.8, "horizon": 3, "epsilon": 0.3, "delta": 0.1}


def as_on_the_page(model, *, gamma, horizon, epsilon, delta):
    """The theorem, history by history: its third number, given T and omega, and the others.

    Shares of delta are those of the planner.
    """
    planner = pacplan.Bracket(epsilon=epsilon, delta=delta, gamma=gamma, horizon=horizon)
    setup = calls.setup_for(planner, model)
    settings, levels = setup.arrays["settings"][0], setup.arrays["levels"]
    d, actions, many = delta / 4, len(model.actions(0)), model.successors
    eps, depths = epsilon / setup.scale.width, range(horizon)
    sigma = [sum(gamma**i for i in range(k)) for k in range(horizon + 1)]
    cash = [1 - 0.8 * max(0.8**h, 1e-6) for h in depths]
    excesses = [sum(-math.log(c) for c in cash[h:]) for h in range(horizon + 1)]
    evidence, varpi = settings["log_share"] + excesses[0], constants.PENALTY
    least = varpi * eps / evidence
    xi = 1 - 1.1 * varpi - 0.3 - 1 / 8 - 1 / 6
    further = setup.arrays["stakes"].shape[1] - 5
    w = (0.25 if further else 1.0) / (5 + 0.25 * further)
    kappa = [-math.log((1 - c) * w) for c in cash]
    reach = [gamma**h * (sigma[horizon - h] if many > 1 else 1.0) for h in depths]
    ball = [many > 1 and h <= horizon - 2 for h in depths]
    most = [gamma**h * sigma[horizon - h] + 1.1 * least * excesses[h + 1] for h in depths]
    swing = [gamma ** (h + 1) * sigma[horizon - h - 1] + 0.55 * least * excesses[h + 1] for h in depths]
    x = [gamma**h * sigma[horizon - h] * (2 * reach[h] / least + 2.5 * kappa[h]) for h in depths]
    log_d = math.log(1 / d)
    q = exact.finite_horizon(model, gamma=gamma, horizon=horizon) / setup.scale.width
    _, probabilities, successors = model.sparse()
    pairs, todo = [], [(0, 0, 0.0)]
    while todo:
        h, s, behind = todo.pop()
        for a in range(len(model.actions(s))):
            gap = behind + gamma**h * (q[h, s].max() - q[h, s, a])
            pairs.append((h, gap))
            if h + 1 < horizon:
                leads = zip(probabilities[s, a], successors[s, a], strict=True)
                todo += [(h + 1, int(to), gap) for p, to in leads if p > 0]

    def third(forced, omega):
        episodes = 100 * forced
        kt = (many - 1) / 2 * math.log(1 + episodes) + math.log(many)
        total, first, second = 0.0, 0.0, 0.0
        for h, gap in pairs:
            tau = xi * omega[h] * (eps + gap) / 5
            if tau < most[h]:
                eta = 8 / (7 * tau)
                y = reach[h] ** 2 * (6.25 * kappa[h] + 5.6 + 2 * math.log(1 + episodes))
                y += 8 * ball[h] * swing[h] ** 2 * (levels["price"][h] + 1.4 + 2 * kt)
                total += most[h] + x[h] * math.log(8 * most[h] / tau) + eta * y
                first = max(first, eta * reach[h] ** 2)
                second = max(second, eta * ball[h] * swing[h] ** 2)
        total += 8 * log_d * first + 16 * log_d * second
        return 1.6 / 0.35 / (xi * eps) * (total + log_d * sum(most))

    squared, fractions = (sigma[horizon] / eps) ** 2, setup.arrays["forced_wealth"].shape[2]
    smallest = 0.9 * 2.0 ** -(fractions - 1)
    assert eps / 48 < smallest * sigma[horizon] <= eps / 24 * (1 + 1e-9)
    proof = math.log(fractions * actions / settings["delta_forced"])
    account = squared * max(48 * max(27, 6 / xi) * proof, 112.5 / xi**2 * math.log(actions / d))
    lasting = (
        2.5 * (1 + 100 * math.sqrt(1.15)) * varpi * (1 + sum(excesses[1:]) / evidence) * squared * eps
    )
    changes = sigma[horizon] * (2 + math.log(115 * squared) / math.log(1.15))
    return third, 10 * actions * account, 10 * actions * (lasting + changes) / (xi * eps)


@pytest.mark.parametrize(
    ("model", "question"),
    [
        (bandit(0.7, 0.5), ARMS),
        (bandit(0.9, 0.5, 0.4), ARMS | {"epsilon": 0.02, "delta": 0.01}),
        (random_small(np.random.default_rng(1)), STEPS),
        (random_small(np.random.default_rng(2), successors=1, actions=3), STEPS | {"gamma": 1.0}),
    ],
    ids=["two arms", "three arms", "tree", "no chance"],
)
def test_it_is_the_theorem_of_the_page(model, question, monkeypatch):
    used = []
    episodes = calls._Theorem.tree_episodes
    monkeypatch.setattr(
        calls._Theorem, "tree_episodes", lambda *args: used.append(episodes(*args)) or used[0]
    )
    found = theory.bracket_calls(model, **question)
    [(_, omega)] = used
    third, account, settling = as_on_the_page(model, **question)
    assert found.account == pytest.approx(account)
    assert found.settling == pytest.approx(settling)
    assert omega.sum() == pytest.approx(1.0)
    # Gaps are rounded down, which makes the bound larger.
    steps = question["horizon"]
    assert 1.0 - 1e-6 <= found.tree / third(found.tree, omega) <= 1.0 + steps / 64
    rng = np.random.default_rng(0)
    others = [third(found.tree, rng.dirichlet(np.full(steps, 3.0))) for _ in range(30)]
    assert found.tree <= 1.05 * min(others)
    assert found.forced == math.floor(max(found.tree, account, settling)) + 1
    assert found.calls == 100 * steps * found.forced


def test_where_nothing_is_to_be_decided():
    assert theory.bracket_calls(bandit(0.5), **ARMS).calls == 0.0
    assert theory.bracket_calls(bandit(0.5, 0.4), **ARMS | {"epsilon": 1.0}).calls == 0.0


@pytest.mark.parametrize(
    ("model", "question"), [(bandit(0.7, 0.5), ARMS), (random_small(np.random.default_rng(1)), STEPS)]
)
def test_real_searches_take_less(model, question):
    most = theory.bracket_calls(model, **question).calls
    assert max(pacplan.Bracket(**question).plan(model, seed=seed).samples for seed in range(20)) < most
