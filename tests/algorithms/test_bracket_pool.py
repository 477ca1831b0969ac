"""Bracket's evidence that is pooled over depths: bounds that hold, and fewer calls."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlogy

import pacplan
from hard_problems import GAMMA, Kind, lens_on_searches
from pacplan import exact
from pacplan.bounds import product
from pacplan.testing.problems import Hidden

lens = pytest.fixture(lens_on_searches)


def occupancy(model, horizon):
    """Discounted visits of an optimal policy to each state and action, over sigma_H."""
    _, p = model.dense()
    q = exact.finite_horizon(model, gamma=GAMMA, horizon=horizon)
    at = np.eye(len(p))[0]
    visits = np.zeros(q.shape[1:])
    for h in range(horizon):
        best = q[h].argmax(axis=-1)
        states = np.arange(len(p))
        visits[states, best] += GAMMA**h * at
        at = at @ p[states, best]
    return visits / visits.sum()


def records_of(search):
    """Of all pairs: state, action, n, bets, {successor: (count, drift)}, drift of the unseen."""
    tree = search.tree
    for node in range(len(tree)):
        for link in tree.tried(node):
            pair = tree.pairs[link]
            outcomes = {
                outcome.state: (outcome.count, float(tree.nodes[outcome.node]["drift"]))
                for outcome in tree.outcomes(link)
            }
            yield (
                tree.state(node),
                int(pair["action"]),
                int(pair["n"]),
                search.arrays["bets"][link],
                outcomes,
                float(pair["drift"]),
            )


def log_m(search, bets, n, y):
    """log M(y), by its definition."""
    cash, stakes = search.arrays["levels"]["cash"][0], search.arrays["stakes"][0]
    held = bets > product.LOST
    with np.errstate(divide="ignore"):  # At y = 1 anything less than 1 is infinite evidence.
        terms = bets[held] - n * np.log1p(-y / stakes[held])
    return np.logaddexp(np.log(cash), np.log((1 - cash) / len(bets)) + np.logaddexp.reduce(terms))


def pooled_evidence(search, records, model, exponents, counted=1.0, more=0.0):
    """As `evidence`: sum over all pairs of their exponent times log M, at rewards higher by `more`."""
    rewards, probabilities, successors = model.sparse()
    total = 0.0
    for state, action, n, bets, outcomes, unseen in records:
        if n > 0 and exponents[state, action] > 0.0:
            y = rewards[state, action] + more
            for p, to in zip(probabilities[state, action], successors[state, action], strict=True):
                y -= counted * p * outcomes.get(int(to), (0, unseen))[1] / n
            total += exponents[state, action] * log_m(search, bets, n, y)
    return total


def pooled(kind, *, delta=0.5, gamma=GAMMA, **more):
    given = {"epsilon": 0.2, "delta": delta, "gamma": gamma, "horizon": kind.horizon}
    return pacplan.Bracket(**given, merge="stationary", **more)


@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
@pytest.mark.parametrize("kind", [Kind(4, 2, 2), Kind(6, 2, 3), Kind(4, 2, 2, noise="none")], ids=str)
def test_pooled_evidence_against_the_truth_does_not_grow(lens, kind, told):
    rng = np.random.default_rng(3)
    found = []
    for run in range(300):
        model = kind.draw(rng)
        pooled(kind).plan(model if told else Hidden(model), 0, seed=run, budget=800)
        search, exponents = lens.last[0], occupancy(model, kind.horizon)
        records = list(records_of(search))
        # With d forgotten it does.
        found.append(
            [pooled_evidence(search, records, model, exponents, counted) for counted in (1.0, 0.0)]
        )
    values = np.minimum(np.exp(found), 50.0)
    mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))
    assert mean[0] <= 1.0 + 5.5 * error[0]
    assert mean[1] > 1.0 + 5.5 * error[1]


def least_slack(lens, kind, runs=60):
    """Least of W(a*) + lambda (evidence against what is claimed) - Q(a*), never negative.

    That holds for every claim whose transitions lie in their sets: here those of the truth, with a
    delta so small that they do, and rewards that are higher by the same for all pairs.
    """
    rng = np.random.default_rng(5)
    slack = np.inf
    for run in range(runs):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]
        pooled(kind, delta=1e-9).plan(model, 0, seed=run, budget=int(rng.integers(20, 600)))
        search = lens.last[0]
        rules, best = search.arrays["settings"][0], int(np.argmax(q))
        exponents, records = occupancy(model, kind.horizon), list(records_of(search))
        sigma = (GAMMA ** np.arange(kind.horizon)).sum()
        for link in search.tree.tried(0):
            if search.tree.pairs[link]["action"] == best:
                for more in np.linspace(0.0, 1.0 - model.sparse()[0].max(), 12):
                    paid = rules["kappa"] * rules["resolution"]
                    paid *= pooled_evidence(search, records, model, exponents, more=more)
                    claimed = q[best] + sigma * more
                    slack = min(slack, search.arrays["bounds"].pairs[link, 0] + paid - claimed)
    return slack


SELF_LOOPS = Kind(6, 2, 2, states=2)
ENDS = Kind(4, 3, 3, ends=True, reward_range=(-1.0, 1.0))
FIXED = Kind(4, 2, 2, noise="none", correlated=False, ends=True)


def test_pooled_bounds_and_evidence_make_up_for_each_other(lens):
    assert least_slack(lens, SELF_LOOPS) >= -1e-9


def test_which_fails_where_visits_are_not_shared_out(lens):
    lens.weight = float((GAMMA ** np.arange(SELF_LOOPS.horizon)).sum())
    assert least_slack(lens, SELF_LOOPS) < -1e-3


def pooled_bounds(search, planner, model):
    """W of the root's actions, from what was recorded, with SciPy's optimisers."""
    rules, levels = search.arrays["settings"][0], search.arrays["levels"]
    gamma, horizon, b = planner.gamma, planner.horizon, model.successors
    rewards, probabilities, successors = model.sparse()
    sigma = np.cumsum(gamma ** np.arange(horizon))
    least = rules["kappa"] * rules["resolution"]
    cushion = -least * np.log(levels["cash"][0]) / sigma[-1]
    told, learns = planner.rewards != "unknown", planner.transitions == "unknown"
    low, width = rules["low"], rules["width"]
    pairs = {(state, action): rest for state, action, *rest in records_of(search)}
    f = dict.fromkeys([None, *range(model.states)], 0.0)
    unknown = 0.0
    for h in range(horizon - 1, -1, -1):
        most_here = sigma[horizon - h - 1] * (1.0 + cushion)
        w = np.full((model.states, model.max_actions), most_here)
        for (state, action), (n, bets, outcomes, unseen) in pairs.items():
            paid = (rewards[state, action] - low) / width
            if n == 0:
                w[state, action] = paid + gamma * unknown
                continue
            stake = -minimize_scalar(
                lambda y, bets=bets, n=n: least / sigma[-1] * log_m(search, bets, n, y) - y,
                bounds=(-horizon, 1.0 - 1e-12),
                method="bounded",
                options={"xatol": 1e-10},
            ).fun
            value = stake + paid - 1.0 if told else stake
            if learns:
                value += learnt(search, outcomes, unseen, f, unknown, n, b, levels["price"][h], gamma)
            else:
                value = paid if told else stake
                seen = [
                    (p, f[int(to)] if int(to) in outcomes else unknown)
                    for p, to in zip(
                        probabilities[state, action], successors[state, action], strict=True
                    )
                ]
                # The rest is the end.
                seen.append(
                    (1.0 - probabilities[state, action].sum(), f[None] if None in outcomes else unknown)
                )
                value += gamma * sum(p * after for p, after in seen)
            w[state, action] = value
        w = np.clip(w, 0.0, most_here)
        f, unknown = dict(enumerate(w.max(axis=-1))), most_here
        f[None] = -low / width * sigma[horizon - h - 1]
    return w[0]


def learnt(search, outcomes, unseen, f, unknown, n, b, price, gamma):
    """gamma max f + max over the ball of p.(mean d - d)."""
    counts = np.array([count for count, _ in outcomes.values()])
    after = np.array([f[to] for to in outcomes])
    drift = np.array([drift for _, drift in outcomes.values()])
    if len(outcomes) < b:
        after, drift = np.append(after, unknown), np.append(drift, unseen)
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
        (ENDS, {"rewards": "known"}),
        (ENDS, {"transitions": "known"}),
    ],
    ids=str,
)
def test_pooled_bounds_are_those_of_the_definition(lens, kind, options, budget):
    model = kind.draw(np.random.default_rng(4))
    planner = pooled(kind, delta=0.1, **options)
    plan = planner.plan(model, 0, seed=4, budget=budget)
    search = lens.last[0]
    assert sum(n for _, _, n, *_ in records_of(search)) == plan.samples
    expected = pooled_bounds(search, planner, model)
    for link in search.tree.tried(0):
        w = search.arrays["bounds"].pairs[link, 0]
        action = search.tree.pairs[link]["action"]
        assert w == pytest.approx(expected[action], rel=0, abs=1e-3)
        assert w >= expected[action] - 1e-6


def test_pooling_saves_calls_where_states_recur():
    calls = {"depth": 0, "stationary": 0}
    for merge in calls:
        planner = pacplan.Bracket(epsilon=0.6, delta=0.1, gamma=0.8, horizon=10, merge=merge)
        for seed in range(8):
            model = pacplan.envs.garnet(10, 3, 2, seed=seed, noise="bernoulli")
            plan = planner.plan(model, 0, seed=seed)
            assert plan.certified
            calls[merge] += plan.samples
    assert calls["stationary"] < 0.75 * calls["depth"]


def test_pooling_is_for_stationary_models_and_says_so():
    planner = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.9, horizon=3, merge="stationary")
    model = Kind(3, 2, 2).draw(np.random.default_rng(0))
    said = "a state and action have the same law at every step"
    assert said in planner.plan(model, 0, seed=0, budget=10).assumptions
    rewards, p = model.dense()
    timed = pacplan.TabularMDP(np.stack([p] * 3), np.stack([rewards] * 3))
    with pytest.raises(ValueError, match=r"not stationary.*merge='depth'"):
        planner.plan(timed, 0, budget=10)
    clock = pacplan.Simulator(
        lambda s, a, rng, h: (s, float(h == 1), False), actions=2, successors=1, stationary=False
    )
    with pytest.raises(ValueError, match="not stationary"):
        planner.plan(clock, 0, budget=10)
