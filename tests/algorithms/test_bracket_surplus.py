"""What the theorem on Bracket's calls says of a search: ranges of bets, surplus of pairs, lambda."""

import math

import numpy as np
import pytest

import pacplan
from conftest import random_small
from hard_problems import lens_on_searches
from pacplan.algorithms.bracket import constants

GAMMA, HORIZON = 0.8, 4
lens = pytest.fixture(lens_on_searches)


@pytest.fixture(params=[(20, 0), (300, 1), (3000, 2), (30_000, 3)], ids=lambda each: f"{each[0]} calls")
def search(lens, request):
    """A search and its model, after some calls."""
    budget, seed = request.param
    model = random_small(np.random.default_rng(seed))
    planner = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=GAMMA, horizon=HORIZON)
    planner.plan(model, 0, seed=seed, budget=budget)
    return lens.last[0], model


def sigma(steps):
    return sum(GAMMA**i for i in range(steps))


def pairs(search):
    """Every pair that was called: its depth, its node, itself, and its outcomes by state."""
    tree = search.tree
    todo = [(0, 0)]
    while todo:
        h, at = todo.pop()
        for link in tree.tried(at):
            if tree.pairs[link]["n"] > 0:
                seen = {outcome.state: outcome.node for outcome in tree.outcomes(link)}
                yield h, at, link, seen
                todo += [(h + 1, node) for node in seen.values()]


def test_surplus_is_what_lemma_c_allows(search):
    search, model = search
    fixed, tree = search.arrays, search.tree
    levels, rules = fixed["levels"][:-1], fixed["settings"][0]
    rewards, probabilities, successors = model.sparse()
    weight = 0.25 / (5 + 0.25 * (fixed["stakes"].shape[1] - 5))
    cash = levels["cash"]
    excess = [-np.log(cash[h:]).sum() for h in range(HORIZON + 1)]
    least = float(rules["least"])
    tightest = np.inf
    for h, at, link, seen in pairs(search):
        state, n = tree.state(at), int(tree.pairs[link]["n"])
        action = int(tree.pairs[link]["action"])
        first = action if h == 0 else int(tree.nodes[at]["branch"])
        penalty = float(search.root["penalty"][first])
        worth = rewards[state, action]
        for p, to in zip(probabilities[state, action], successors[state, action], strict=True):
            if h + 1 < HORIZON and p > 0.0:
                node = seen.get(int(to))
                f = sigma(HORIZON - h - 1) if node is None else search.tree.nodes[node]["upper"]
                worth += GAMMA * p * f
        surplus = GAMMA**h * (tree.pairs[link]["upper"] - worth)
        # What holds but for a probability below 1e-9, in place of l_e; phi and tol are below epsilon.
        luck = 25.0
        span = GAMMA**h * sigma(HORIZON - h)
        kappa = -math.log((1.0 - cash[h]) * weight)
        ball = h + 1 < HORIZON
        swing = span - GAMMA**h + 0.55 * least * excess[h + 1]
        y = span**2 * (6.25 * kappa + 4 * luck + 2 * math.log(1 + n))
        y += 8 * ball * swing**2 * (levels["price"][h] + luck + math.log(n) + 2 * math.log(2))
        zeta = (2 * span * span / least + 2.5 * span * kappa) / n + math.sqrt(y / n)
        extra = max(0.0, penalty - 1.1 * least) * excess[h + 1]
        zeta = min(zeta, span + 1.1 * least * excess[h + 1])
        allowed = penalty * -math.log(cash[h]) + 0.3 * float(rules["resolution"]) + extra + zeta
        assert surplus <= allowed
        tightest = min(tightest, allowed - surplus)
    assert tightest < 0.5


def test_lambda_settles(lens):
    model = random_small(np.random.default_rng(7))
    planner = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=GAMMA, horizon=HORIZON)
    ratio = constants.LARGEST * sigma(HORIZON) / 0.5
    larger = False
    for budget in (30, 100, 300, 1000, 3000, 10_000, 30_000):
        planner.plan(model, 0, seed=1, budget=budget)
        search = lens.last[0]
        least = float(search.arrays["settings"]["least"][0])
        for penalty, calls in zip(search.root["penalty"], search.calls, strict=True):
            # As its last episode found it.
            k = max(0, int(calls) - HORIZON)
            most = ratio / math.sqrt(1.0 + k / constants.SETTLING_CALLS)
            assert least <= penalty * (1.0 + 1e-9)
            assert penalty <= constants.NEAR * least * max(1.0, most) * (1.0 + 1e-9)
            larger |= penalty > 1.5 * least
            if k >= constants.REBUILD_GROWTH * constants.SETTLING_CALLS * ratio**2:
                assert penalty <= constants.SETTLED * least * (1.0 + 1e-9)
    assert larger
