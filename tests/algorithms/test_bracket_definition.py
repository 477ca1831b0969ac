"""W of Bracket's pairs is what its definition says, computed anew from counts and bets."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlogy

import pacplan
from conftest import random_small
from hard_problems import GAMMA, Kind, lens_on_searches, pairs_of
from pacplan.algorithms.bracket import constants
from pacplan.bounds import product

lens = pytest.fixture(lens_on_searches)
ENDS = Kind(4, 3, 3, ends=True, reward_range=(-1.0, 1.0))
FIXED = Kind(4, 2, 2, noise="none", correlated=False, ends=True)


def log_m(cash, stakes, bets, n, y):
    """log M(y), by its definition."""
    held = bets > product.LOST
    with np.errstate(divide="ignore"):  # At y = 1 anything less than 1 is infinite evidence.
        terms = bets[held] - n * np.log1p(-y / stakes[held])
    return np.logaddexp(np.log(cash), np.log((1 - cash) / len(bets)) + np.logaddexp.reduce(terms))


def defined(search, model, h, link, penalty):
    """W of a pair before it is cut: gamma max f + max_y [...] + max_p p.(mean d - d)."""
    tree, arrays, gamma = search.tree, search.arrays, search.arrays["settings"][0]["gamma"]
    rules, level, pair = arrays["settings"][0], arrays["levels"][h], tree.pairs[link]
    n = int(pair["n"])
    value, last = (float(pair["reward"]) if rules["told"] else 0.0), h + 1 == search.horizon
    if not rules["told"] or (rules["learns"] and not last):
        value -= minimize_scalar(
            lambda y: (
                penalty
                * level["weight"]
                * log_m(level["cash"], arrays["stakes"][h], arrays["bets"][link], n, y)
                - y
            ),
            bounds=(-search.horizon, 1.0 - 1e-12),
            method="bounded",
            options={"xatol": 1e-10},
        ).fun + (1.0 if rules["told"] else 0.0)
    if last:
        return value
    unknown = arrays["levels"][h + 1]["span"]
    outcomes = {None if o.ended else o.state: tree.nodes[o.node] for o in tree.outcomes(link)}
    return value + learnt(
        list(outcomes.values()), pair, unknown, level["price"], model.successors, gamma
    )


def learnt(nodes, pair, unknown, price, b, gamma):
    """gamma max f + max over the ball of p.(mean d - d)."""
    n, counts = int(pair["n"]), np.array([int(node["count"]) for node in nodes])
    after = np.array([float(node["upper"]) for node in nodes])
    drift = np.array([float(node["drift"]) for node in nodes])
    if len(nodes) < b:
        after, drift = np.append(after, unknown), np.append(drift, pair["drift"])
    every = np.append(counts, np.zeros(b - len(counts)))
    mixture = gammaln(b / 2) - b * gammaln(0.5) + gammaln(every + 0.5).sum() - gammaln(n + b / 2)
    radius = (price + xlogy(counts, counts / n).sum() - mixture) / n
    gain = drift / n - gamma * (after.max() - after)
    return gamma * after.max() + ball_by_dual(counts / n, gain, max(radius, 0.0))


def ball_by_dual(p, f, radius):
    """max{ q.f : KL(p, q) <= radius } = min over v >= max f of v - exp(-radius) prod (v - f)^p."""

    def bound(log_excess):
        v = f.max() + np.exp(log_excess)
        return v - np.exp(xlogy(p, v - f[: len(p)]).sum() - radius)

    return min(bound(x) for x in np.linspace(-30.0, 10.0, 4001))


@pytest.mark.parametrize("budget", [7, 60, 500])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Kind(4, 2, 2), {}),
        (Kind(5, 3, 3), {"gamma": 1.0}),
        (ENDS, {}),
        (FIXED, {"rewards": "deterministic"}),
    ],
    ids=str,
)
def test_bounds_are_those_of_the_definition(lens, kind, options, budget):
    model = kind.draw(np.random.default_rng(4))
    given = {"epsilon": 0.2, "delta": 0.1, "gamma": GAMMA, "horizon": kind.horizon} | options
    plan = pacplan.Bracket(**given).plan(model, 0, seed=4, budget=budget)
    search, calls = lens.last[0], 0
    for h, at, link, penalty, _ in pairs_of(search):
        pair = search.tree.pairs[link]
        calls += int(pair["n"])
        most = search.tree.nodes[at]["cap"] + penalty * search.arrays["levels"]["excess"][h]
        expected = min(max(defined(search, model, h, link, penalty), 0.0), most)
        assert pair["upper"] == pytest.approx(expected, rel=0, abs=1e-3)
        assert pair["upper"] >= expected - 1e-6
    assert calls == plan.samples


# What the theorem on Bracket's calls says of a search.

STEPS = 4


def sigma(steps):
    return sum(GAMMA**i for i in range(steps))


def planned(lens, model, budget, seed=1):
    planner = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=GAMMA, horizon=STEPS)
    planner.plan(model, 0, seed=seed, budget=budget)
    return lens.last[0]


@pytest.mark.parametrize(("budget", "seed"), [(20, 0), (300, 1), (3000, 2), (30_000, 3)])
def test_surplus_is_what_lemma_c_allows(lens, budget, seed):
    model = random_small(np.random.default_rng(seed))
    search = planned(lens, model, budget, seed)
    tree, levels, rules = search.tree, search.arrays["levels"][:-1], search.arrays["settings"][0]
    rewards, probabilities, successors = model.sparse()
    weight = 0.25 / (5 + 0.25 * (search.arrays["stakes"].shape[1] - 5))
    cash, least, tightest = levels["cash"], float(rules["least"]), np.inf
    excess = [-np.log(cash[h:]).sum() for h in range(STEPS + 1)]
    for h, at, link, penalty, seen in pairs_of(search):
        pair = tree.pairs[link]
        where, n = (tree.state(at), int(pair["action"])), int(pair["n"])
        worth = rewards[where]
        for p, to in zip(probabilities[where], successors[where], strict=True):
            if h + 1 < STEPS and p > 0.0:
                node = seen.get(int(to))
                worth += (
                    GAMMA * p * (sigma(STEPS - h - 1) if node is None else tree.nodes[node]["upper"])
                )
        surplus = GAMMA**h * (pair["upper"] - worth)
        # What holds but for a probability below 1e-9, in place of l_e; phi and tol are below epsilon.
        luck = 25.0
        span = GAMMA**h * sigma(STEPS - h)
        kappa = -math.log((1.0 - cash[h]) * weight)
        swing = span - GAMMA**h + 0.55 * least * excess[h + 1]
        y = span**2 * (6.25 * kappa + 4 * luck + 2 * math.log(1 + n))
        if h + 1 < STEPS:
            y += 8 * swing**2 * (levels["price"][h] + luck + math.log(n) + 2 * math.log(2))
        zeta = (2 * span * span / least + 2.5 * span * kappa) / n + math.sqrt(y / n)
        zeta = min(zeta, span + 1.1 * least * excess[h + 1])
        extra = max(0.0, penalty - 1.1 * least) * excess[h + 1]
        allowed = penalty * -math.log(cash[h]) + 0.3 * float(rules["resolution"]) + extra + zeta
        assert surplus <= allowed
        tightest = min(tightest, allowed - surplus)
    assert tightest < 0.6


def test_lambda_settles(lens):
    model = random_small(np.random.default_rng(7))
    ratio, larger = constants.LARGEST * sigma(STEPS) / 0.5, False
    for budget in (30, 300, 3000, 30_000):
        search = planned(lens, model, budget)
        least = float(search.arrays["settings"]["least"][0])
        for penalty, calls in zip(search.root["penalty"], search.calls, strict=True):
            # As its last episode found it.
            k = max(0, int(calls) - STEPS)
            most = ratio / math.sqrt(1.0 + k / constants.SETTLING_CALLS)
            assert least <= penalty * (1.0 + 1e-9)
            assert penalty <= constants.NEAR * least * max(1.0, most) * (1.0 + 1e-9)
            larger |= penalty > 1.5 * least
            if k >= constants.REBUILD_GROWTH * constants.SETTLING_CALLS * ratio**2:
                assert penalty <= constants.SETTLED * least * (1.0 + 1e-9)
    assert larger
