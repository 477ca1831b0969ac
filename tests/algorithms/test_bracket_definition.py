"""W of Bracket's pairs is what its definition says, computed anew from counts and bets."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlogy

import pacplan
from hard_problems import GAMMA, Kind, lens_on_searches
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


def defined(search, model, h, at, link):
    """W of a pair before it is cut: gamma max f + max_y [...] + max_p p.(mean d - d)."""
    tree, arrays, gamma = search.tree, search.arrays, search.arrays["settings"][0]["gamma"]
    rules, level, pair = arrays["settings"][0], arrays["levels"][h], tree.pairs[link]
    action, n = int(pair["action"]), int(pair["n"])
    penalty = search.root["penalty"][action if h == 0 else tree.nodes[at]["branch"]]
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
    search, calls, todo = lens.last[0], 0, [(0, 0)]
    while todo:
        h, at = todo.pop()
        for link in search.tree.tried(at):
            pair = search.tree.pairs[link]
            todo += [(h + 1, o.node) for o in search.tree.outcomes(link) if not o.ended]
            if pair["n"] > 0:
                calls += int(pair["n"])
                first = pair["action"] if h == 0 else search.tree.nodes[at]["branch"]
                penalty, level = search.root["penalty"][first], search.arrays["levels"][h]
                most = search.tree.nodes[at]["cap"] + penalty * level["excess"]
                expected = min(max(defined(search, model, h, at, link), 0.0), most)
                assert pair["upper"] == pytest.approx(expected, rel=0, abs=1e-3)
                assert pair["upper"] >= expected - 1e-6
    assert calls == plan.samples
