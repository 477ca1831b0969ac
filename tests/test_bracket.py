"""Bracket: its bounds hold as often as they promise, and the checks of that can fail."""

from dataclasses import dataclass, field

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp, xlogy
from scipy.stats import binom

import pacplan
from conftest import callable_part, interpreted
from pacplan import BrokenPromiseError, exact
from pacplan.algorithms.bracket import constants, records
from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.bounds import product
from pacplan.engine.calls import CHUNK_DONE

log_stake = callable_part(product.log_stake)
penalised_max = callable_part(product.penalised_max)

GAMMA = 0.9
RARE = 1e-7


# Random problems, small and hard: actions that differ little, rewards that tell the successor.


@dataclass(frozen=True)
class Kind:
    """A family of problems. Where `correlated`, rewards depend on the successor."""

    horizon: int
    actions: int
    successors: int
    noise: str = "bernoulli"
    ends: bool = False
    reward_range: tuple[float, float] = (0.0, 1.0)
    correlated: bool = True
    states: int = 4

    def draw(self, rng):
        states = 1 if self.horizon == 1 else self.states
        shape = (states, self.actions, self.successors)
        p = rng.dirichlet(np.ones(self.successors), size=shape[:2])
        to = rng.permuted(np.broadcast_to(np.arange(states), (*shape[:2], states)), axis=-1)
        means = rng.uniform(0.1, 0.9) + rng.normal(0.0, 0.02, (*shape[:2], 1))
        if self.correlated:
            means = means + rng.choice([-0.4, 0.4], shape)
        low, high = self.reward_range
        return pacplan.TabularMDP(
            p,
            low + (high - low) * np.clip(np.broadcast_to(means, shape), 0.0, 1.0),
            successors=to[..., : self.successors],
            noise=self.noise,
            reward_range=self.reward_range,
            terminal=[states - 1] if self.ends else None,
        )


BANDITS = (Kind(1, 2, 1), Kind(1, 6, 1))
TREES = (
    Kind(2, 2, 2),
    Kind(2, 2, 2, noise="none"),
    Kind(3, 2, 1),
    Kind(3, 3, 3),
    Kind(3, 2, 2, ends=True, reward_range=(-2.0, -1.0)),
)


@dataclass
class Lens:
    """Sees into searches, keeps them from stopping, and can take back a part of what bounds cost."""

    above: float = 0.0  # nats
    below: float = 0.0
    weight: float = 1.0  # of penalties
    last: list = field(default_factory=list)

    def __call__(self, search):
        rules, levels = search._fixed["rules"], search._fixed["levels"]
        rules["epsilon"] = -np.inf  # (`cut` is what it was.)
        rules["log_share"] -= self.above
        levels["price"] -= self.above
        levels["weight"] *= self.weight
        rules["delta_exploit"] *= np.exp(self.below)
        rules["delta_forced"] *= np.exp(self.below)
        self.last[:] = [search]


@pytest.fixture
def lens(monkeypatch):
    glass = Lens()
    start = BracketSearch.__init__

    def init(self, *args):
        start(self, *args)
        glass(self)

    monkeypatch.setattr(BracketSearch, "__init__", init)
    return glass


def violations(kind, runs, *, delta, budget=1000, seed=0, merge="tree"):
    """How often U(a*) < Q(a*), and how often L(a) > Q(a) for some a, at the end and so at any time."""
    rng = np.random.default_rng(seed)
    planner = pacplan.Bracket(epsilon=0.2, delta=delta, gamma=GAMMA, horizon=kind.horizon, merge=merge)
    above = below = 0
    for run in range(runs):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]
        plan = planner.plan(model, 0, seed=run, budget=budget)
        best = np.argmax(q)
        above += plan.upper[best] < q[best] - 1e-9
        below += (plan.lower > q + 1e-9).any()
    return above, below


def most(runs, probability):
    """A count that is exceeded with a probability of at most RARE."""
    return binom.isf(RARE, runs, probability)


def check_bounds(kind, runs, delta, **more):
    above, below = violations(kind, runs, delta=delta, **more)
    assert above <= most(runs, delta / 2)
    assert below <= most(runs, delta / 2)


@pytest.mark.parametrize("kind", BANDITS + TREES, ids=str)
def test_bounds_hold(lens, kind):
    check_bounds(kind, 150, 0.5)


MERGED = (
    Kind(3, 2, 2),
    Kind(4, 3, 3),
    Kind(5, 2, 2, noise="none", ends=True, reward_range=(-1.0, 1.0)),
)


@pytest.mark.parametrize("merge", ["depth", "stationary"])
@pytest.mark.parametrize("kind", MERGED, ids=str)
def test_bounds_hold_where_nodes_are_merged(lens, kind, merge):
    check_bounds(kind, 150, 0.5, merge=merge)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("merge", ["depth", "stationary"])
@pytest.mark.parametrize("kind", MERGED, ids=str)
def test_bounds_hold_in_thousands_of_merged_runs(lens, kind, merge, delta):
    check_bounds(kind, 2000, delta, budget=3000, seed=1, merge=merge)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("kind", BANDITS + TREES, ids=str)
def test_bounds_hold_in_thousands_of_runs(lens, kind, delta):
    check_bounds(kind, 3000, delta, budget=3000, seed=1)


@pytest.mark.parametrize("kind", BANDITS, ids=str)
def test_checks_fail_when_bounds_are_sold_below_cost(lens, kind):
    lens.above, lens.below = 6.0, 2.5
    above, below = violations(kind, 150, delta=0.5)
    assert above > most(150, 0.25)
    assert below > most(150, 0.25)


@pytest.mark.parametrize("kind", TREES, ids=str)
def test_check_below_fails_in_trees_too(lens, kind):
    lens.below = 3.5
    assert violations(kind, 100, delta=0.5)[1] > most(100, 0.25)


@pytest.mark.parametrize("kind", MERGED[:2], ids=str)
def test_check_above_fails_where_evidence_is_pooled(lens, kind):
    lens.above = 12.0
    assert violations(kind, 100, delta=0.5, merge="stationary")[0] > most(100, 0.25)


def evidence(search, model, horizon, counted=1.0):
    """Sum over the pairs of pi* of reach log M at the truth, from what the search has recorded.

    `counted` is the part of d that is taken into account.
    """
    rewards, probabilities, successors = model.sparse()
    q = exact.finite_horizon(model, gamma=GAMMA, horizon=horizon)
    tree, stakes = search.tree, search._fixed["stakes"]
    total = 0.0
    todo = [(0, 0, 1.0)]
    while todo:
        at, h, reach = todo.pop()
        state = tree.state(at)
        best = int(np.argmax(q[h, state]))
        links = [i for i in tree.tried(at) if tree.pairs[i]["action"] == best]
        if not links or tree.pairs[links[0]]["n"] == 0:
            continue
        link = links[0]
        n = int(tree.pairs[link]["n"])
        seen = {outcome.state: outcome.node for outcome in tree.outcomes(link)}
        y = rewards[state, best]
        for p, to in zip(probabilities[state, best], successors[state, best], strict=True):
            if h + 1 < horizon and p > 0.0:
                child = seen.get(int(to))
                drift = tree.pairs[link]["drift"] if child is None else tree.nodes[child]["drift"]
                y -= counted * p * drift / n
                if child is not None:
                    todo.append((child, h + 1, reach * p))
        held = search._bets[link] > product.LOST
        bets = search._bets[link][held] - n * np.log(stakes[h][held] - y)
        cash = search._fixed["levels"]["cash"][h]
        total += reach * np.logaddexp(np.log(cash), np.log((1 - cash) / len(held)) + logsumexp(bets))
    return total


def mean_evidence(lens, kind, runs, counted=1.0, seed=0):
    """Mean and standard error of the product of all evidence against the truth, cut off at 50."""
    rng = np.random.default_rng(seed)
    planner = pacplan.Bracket(epsilon=0.2, delta=0.5, gamma=GAMMA, horizon=kind.horizon)
    values = []
    for run in range(runs):
        model = kind.draw(rng)
        planner.plan(model, 0, seed=run, budget=800)
        values.append(min(np.exp(evidence(lens.last[0], model, kind.horizon, counted)), 50.0))
    return np.mean(values), np.std(values) / np.sqrt(runs)


@pytest.mark.parametrize("kind", [Kind(2, 2, 2), Kind(2, 2, 3), Kind(3, 2, 2, noise="none")], ids=str)
def test_evidence_against_the_truth_does_not_grow(lens, kind):
    mean, error = mean_evidence(lens, kind, 300)
    assert mean <= 1.0 + 5.5 * error
    # With d forgotten it does.
    mean, error = mean_evidence(lens, kind, 300, counted=0.0)
    assert mean > 1.0 + 5.5 * error


# Evidence pooled over depths.


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
                search._bets[link],
                outcomes,
                float(pair["drift"]),
            )


def log_m(search, bets, n, y):
    """log M(y), by its definition."""
    cash, stakes = search._fixed["levels"]["cash"][0], search._fixed["stakes"][0]
    held = bets > product.LOST
    terms = bets[held] - n * np.log(stakes[held] - y)
    return np.logaddexp(np.log(cash), np.log((1 - cash) / len(bets)) + logsumexp(terms))


def pooled_evidence(search, model, exponents, counted=1.0, more=0.0):
    """As `evidence`: sum over all pairs of their exponent times log M, at rewards higher by `more`."""
    rewards, probabilities, successors = model.sparse()
    total = 0.0
    for state, action, n, bets, outcomes, unseen in records_of(search):
        if n > 0 and exponents[state, action] > 0.0:
            y = rewards[state, action] + more
            for p, to in zip(probabilities[state, action], successors[state, action], strict=True):
                y -= counted * p * outcomes.get(int(to), (0, unseen))[1] / n
            total += exponents[state, action] * log_m(search, bets, n, y)
    return total


def pooled(kind, *, delta=0.5, gamma=GAMMA, **more):
    given = {"epsilon": 0.2, "delta": delta, "gamma": gamma, "horizon": kind.horizon}
    return pacplan.Bracket(**given, merge="stationary", **more)


@pytest.mark.parametrize("kind", [Kind(4, 2, 2), Kind(6, 2, 3), Kind(4, 2, 2, noise="none")], ids=str)
def test_pooled_evidence_against_the_truth_does_not_grow(lens, kind):
    rng = np.random.default_rng(3)
    found = []
    for run in range(300):
        model = kind.draw(rng)
        pooled(kind).plan(model, 0, seed=run, budget=800)
        search, exponents = lens.last[0], occupancy(model, kind.horizon)
        # With d forgotten it does.
        found.append([pooled_evidence(search, model, exponents, counted) for counted in (1.0, 0.0)])
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
        rules, best = search._fixed["rules"][0], int(np.argmax(q))
        exponents = occupancy(model, kind.horizon)
        sigma = (GAMMA ** np.arange(kind.horizon)).sum()
        for link in search.tree.tried(0):
            if search.tree.pairs[link]["action"] == best:
                for more in np.linspace(0.0, 1.0 - model.sparse()[0].max(), 12):
                    paid = rules["kappa"] * rules["resolution"]
                    paid *= pooled_evidence(search, model, exponents, more=more)
                    claimed = q[best] + sigma * more
                    slack = min(slack, search._bounds.pairs[link, 0] + paid - claimed)
    return slack


SELF_LOOPS = Kind(6, 2, 2, states=2)


def test_pooled_bounds_and_evidence_make_up_for_each_other(lens):
    assert least_slack(lens, SELF_LOOPS) >= -1e-9


def test_which_fails_where_visits_are_not_shared_out(lens):
    lens.weight = float((GAMMA ** np.arange(SELF_LOOPS.horizon)).sum())
    assert least_slack(lens, SELF_LOOPS) < -1e-3


def pooled_bounds(search, planner, model):
    """W of the root's actions, from what was recorded, with SciPy's optimisers."""
    rules, levels = search._fixed["rules"][0], search._fixed["levels"]
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


ENDS = Kind(4, 3, 3, ends=True, reward_range=(-1.0, 1.0))
FIXED = Kind(4, 2, 2, noise="none", correlated=False, ends=True)


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
        (FIXED, {"rewards": "deterministic", "transitions": "known"}),
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
        w = search._bounds.pairs[link, 0]
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


# The answer.


def bandit(*means, **more):
    count = len(means)
    return pacplan.TabularMDP(
        np.ones((1, count, 1)),
        np.array([means]),
        successors=np.zeros((1, count, 1), int),
        **{"noise": "bernoulli"} | more,
    )


@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("actions", [2, 5])
def test_wrong_answers_are_rare(delta, actions):
    epsilon, runs = 0.2, 150
    rng = np.random.default_rng(7)
    wrong = 0
    for run in range(runs):
        means = np.full(actions, 0.4)
        best = rng.integers(actions)
        means[best] += epsilon + 0.01
        plan = pacplan.Bracket(epsilon=epsilon, delta=delta, gamma=0.0).plan(
            bandit(*means), 0, seed=run
        )
        assert plan.certified and plan.gap <= epsilon
        wrong += plan.action != best
    assert wrong <= most(runs, delta)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("kind", TREES, ids=str)
def test_wrong_answers_are_rare_in_trees(kind, delta):
    rng = np.random.default_rng(8)
    runs, wrong = 1000, 0
    for run in range(runs):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]
        # As hard as it gets: the second best action is just not good enough.
        epsilon = max(0.9 * float(np.diff(np.sort(q))[-1]), 0.1)
        planner = pacplan.Bracket(epsilon=epsilon, delta=delta, gamma=GAMMA, horizon=kind.horizon)
        plan = planner.plan(model, 0, seed=run, budget=200_000)
        wrong += q.max() - q[plan.action] > max(0.0, plan.gap) + 1e-9
    assert wrong <= most(runs, delta)


@pytest.mark.parametrize(
    ("means", "epsilon"), [((0.09, 0.09), 0.02), ((0.5, 0.5), 0.02), ((0.5, 0.5, 0.5), 0.05)]
)
def test_ties_end(means, epsilon):
    plan = pacplan.Bracket(epsilon=epsilon, delta=0.1, gamma=0.0).plan(
        bandit(*means), 0, seed=0, budget=2_000_000
    )
    assert plan.certified


@pytest.mark.parametrize("merge", ["tree", "depth", "stationary"])
def test_ties_end_where_there_is_more_than_one_step(merge):
    model = pacplan.TabularMDP(np.full((2, 2, 2), 0.5), np.full((2, 2), 0.5), noise="bernoulli")
    planner = pacplan.Bracket(epsilon=0.2, delta=0.1, gamma=0.9, horizon=2, merge=merge)
    assert planner.plan(model, 0, seed=0, budget=2_000_000).certified


@pytest.mark.parametrize("merge", ["depth", "stationary"])
def test_forced_episodes_of_a_graph_follow_a_sweep(lens, merge, monkeypatch):
    advance, seen = BracketSearch.advance, []

    def look(search, episodes, calls):
        sweeps = int(search._fixed["rules"][0]["sweeps"])
        status = advance(search, episodes, calls)
        if search._decision[0]["kind"] == records.FORCED and status == CHUNK_DONE:
            seen.append(sweeps)
        return status

    monkeypatch.setattr(BracketSearch, "advance", look)
    model = Kind(4, 2, 2).draw(np.random.default_rng(0))
    planner = pacplan.Bracket(epsilon=0.2, delta=0.1, gamma=GAMMA, horizon=4, merge=merge, chunk=1)
    planner.plan(model, 0, seed=0, budget=3000)
    every = constants.FORCED_SWEEPS
    assert seen == [every * i for i in range(1, len(seen) + 1)]
    assert len(seen) >= 10


def test_forced_bets_alone_reach_the_mean(lens):
    # Coins at 1/2, epsilon = .1: the proof of termination promises L >= 1/2 - (1/8 + 1/12) epsilon.
    planner = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.0, goal="value")
    planner.plan(bandit(0.5), 0, seed=0, budget=1_500_000)
    search = lens.last[0]
    rules = search._fixed["rules"]
    forced = search.root["forced"][0] * rules["stride"][0] * rules["step"][0]
    assert 0.5 - (1 / 8 + 1 / 12) * 0.1 <= forced <= 0.5


@pytest.mark.parametrize("epsilon", [0.7, 0.05, 0.004, 0.0005])
def test_forced_grid_is_fine_enough(lens, epsilon):
    pacplan.Bracket(epsilon=epsilon, delta=0.1, gamma=0.0).plan(bandit(0.5, 0.5), 0, seed=0, budget=1)
    rules = lens.last[0]._fixed["rules"]
    assert rules["stride"][0] * rules["step"][0] <= epsilon / 8 + 1e-12
    halved = lens.last[0].kernel_state().forced_wealth.shape[2] - 1
    assert constants.LARGEST_FRACTION * 0.5**halved <= epsilon / 24


# What was declared.


@pytest.mark.parametrize("rewards", ["unknown", "deterministic", "known"])
@pytest.mark.parametrize("transitions", ["unknown", "deterministic", "known"])
@pytest.mark.parametrize("ends", [False, True])
def test_what_is_declared_agrees_with_dynamic_programming(rewards, transitions, ends):
    rng = np.random.default_rng(3)
    kind = Kind(3, 2, 1 if transitions == "deterministic" else 2, "none", ends, (-1.0, 2.0), False)
    for seed in range(5):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=3)[0, 0]
        plan = pacplan.Bracket(
            epsilon=0.5, delta=1e-6, gamma=GAMMA, horizon=3, rewards=rewards, transitions=transitions
        ).plan(model, 0, seed=seed, budget=20_000)
        assert plan.upper[np.argmax(q)] >= q.max() - 1e-9
        assert (plan.lower <= q + 1e-9).all()
        if plan.certified:
            assert q[plan.action] >= q.max() - 0.5
        if "unknown" not in (rewards, transitions):
            assert plan.certified


def test_known_everything_is_exact_above(lens):
    model = Kind(3, 2, 2).draw(np.random.default_rng(0))
    q = exact.finite_horizon(model, gamma=GAMMA, horizon=3)[0, 0]
    plan = pacplan.Bracket(
        epsilon=0.1, delta=0.1, gamma=GAMMA, horizon=3, rewards="known", transitions="known"
    ).plan(model, 0, seed=0, budget=5000)
    np.testing.assert_allclose(plan.upper.max(), q.max(), atol=1e-9)


def test_broken_promises_are_noticed():
    model = Kind(2, 2, 2).draw(np.random.default_rng(0))
    settings_ = {"epsilon": 0.1, "delta": 0.1, "gamma": GAMMA, "horizon": 2}
    with pytest.raises(BrokenPromiseError, match="declared deterministic"):
        pacplan.Bracket(**settings_, rewards="deterministic").plan(model, 0, seed=0)
    with pytest.raises(BrokenPromiseError, match="second successor"):
        pacplan.Bracket(**settings_, transitions="deterministic").plan(model, 0, seed=0)


# Horizons and goals.


def test_certificate_for_the_infinite_horizon():
    rng = np.random.default_rng(5)
    planner = pacplan.Bracket(epsilon=1.0, delta=0.01, gamma=0.5, target="infinite")
    for seed in range(20):
        model = Kind(2, 2, 2, noise="none", reward_range=(-1.0, 1.0)).draw(rng)
        q = exact.discounted(model, gamma=0.5)[0]
        plan = planner.plan(model, 0, seed=seed)
        assert plan.certified
        assert q[plan.action] >= q.max() - 1.0
        tail = 2.0 * 0.5**plan.horizon / 0.5
        assert plan.gap <= 1.0 - tail + 1e-12


def test_infinite_horizon_is_for_actions():
    with pytest.raises(ValueError, match="H steps"):
        pacplan.Bracket(epsilon=1.0, delta=0.1, gamma=0.5, target="infinite", goal="value")


@pytest.mark.parametrize("kind", [Kind(1, 1, 1), Kind(1, 3, 1), Kind(2, 2, 2), Kind(2, 1, 2)], ids=str)
def test_value_goal(kind):
    rng = np.random.default_rng(6)
    planner = pacplan.Bracket(epsilon=0.25, delta=0.01, gamma=1.0, horizon=kind.horizon, goal="value")
    for seed in range(10):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=1.0, horizon=kind.horizon)[0, 0]
        plan = planner.plan(model, 0, seed=seed, budget=200_000)
        assert plan.certified
        assert abs(plan.value - q.max()) <= 0.25 + 1e-12
        assert plan.upper.max() - plan.lower.max() <= 0.5 + 1e-12


def test_one_action_needs_no_call():
    plan = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.5).plan(bandit(0.5), 0, seed=0)
    assert plan.certified and plan.samples == 0 and plan.action == 0


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_ends_of_the_discount(gamma):
    rng = np.random.default_rng(9)
    for seed in range(5):
        model = Kind(3, 2, 2, noise="none").draw(rng)
        q = exact.finite_horizon(model, gamma=gamma, horizon=3)[0, 0]
        planner = pacplan.Bracket(epsilon=0.6, delta=0.01, gamma=gamma, horizon=3)
        plan = planner.plan(model, 0, seed=seed, budget=100_000)
        assert q[plan.action] >= q.max() - max(0.0, plan.gap) - 1e-9


def test_an_absurd_horizon_is_refused():
    model = Kind(3, 2, 2).draw(np.random.default_rng(0))
    with pytest.raises(ValueError, match="at most 151"):
        pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.1, horizon=400).plan(model, 0, seed=0)
    plan = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.1, horizon=151).plan(
        model, 0, seed=0, budget=2000
    )
    assert np.isfinite(plan.upper).all()


def test_an_absurd_accuracy_is_refused():
    with pytest.raises(ValueError, match="at least 1e-05, or 0"):
        pacplan.Bracket(epsilon=1e-9, delta=0.1, gamma=0.0).plan(bandit(0.5, 0.5), 0, seed=0)


def test_many_actions_and_a_fine_grid_need_little_memory():
    # 200 accounts of 20 fractions by 140 000 points would take more than 4 GB.
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=200, successors=1)
    planner = pacplan.Bracket(epsilon=0.006, delta=0.1, gamma=1.0, horizon=100)
    resident, seen = psutil.Process().memory_info, []
    before = resident().rss
    planner.plan(model, 0, seed=0, budget=2000, callback=lambda _: seen.append(resident().rss))
    assert max(seen) - before < 500e6


def test_many_successors_need_no_room():
    model = pacplan.Simulator(lambda s, a, rng: (s + 1, 0.5, False), actions=4, successors=1_000_000)
    plan = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.5).plan(model, 0, seed=0, budget=100)
    assert plan.samples == 100


@pytest.mark.parametrize(
    ("merge", "depths", "reached"),
    [("tree", 3, [1, 3, 9]), ("depth", 3, [1, 3, 4]), ("stationary", 4, [1, 3, 4])],
)
def test_delta_is_shared_as_the_proof_says(lens, merge, depths, reached):
    # Half above, nine tenths of it for the product, the rest for the sets of transitions: of all pairs
    # that one policy can take at the depths where transitions matter.
    model = Kind(4, 2, 3).draw(np.random.default_rng(0))
    planner = pacplan.Bracket(epsilon=0.2, delta=0.2, gamma=GAMMA, horizon=4, merge=merge)
    planner.plan(model, 0, seed=0, budget=1)
    levels, rules = lens.last[0]._fixed["levels"], lens.last[0]._fixed["rules"][0]
    assert rules["log_share"] == pytest.approx(-np.log(0.9 * 0.1))
    assert rules["delta_exploit"] + rules["delta_forced"] == pytest.approx(0.1)
    np.testing.assert_allclose(levels["price"][:3], np.log(depths * np.array(reached) / 0.01))


def test_what_is_unknown_among_merged_nodes_covers_all_evidence(lens):
    model = Kind(3, 2, 2).draw(np.random.default_rng(0))
    planner = pacplan.Bracket(epsilon=0.2, delta=0.1, gamma=GAMMA, horizon=3, merge="depth")
    planner.plan(model, 0, seed=0, budget=1)
    levels, rules = lens.last[0]._fixed["levels"], lens.last[0]._fixed["rules"][0]
    penalty = rules["kappa"] * rules["resolution"]
    cash = -np.log(levels["cash"])
    for h, sigma in enumerate([1 + GAMMA + GAMMA**2, 1 + GAMMA, 1.0]):
        worst = penalty * GAMMA**-h * cash[h:].sum()
        assert levels["span"][h] + penalty * levels["excess"][h] == pytest.approx(sigma + worst)
    assert levels["excess"][1:].max() == 0.0


def test_what_is_unknown_where_evidence_is_pooled_covers_all_of_it(lens):
    model = Kind(3, 2, 2).draw(np.random.default_rng(0))
    planner = pacplan.Bracket(epsilon=0.2, delta=0.1, gamma=GAMMA, horizon=3, merge="stationary")
    planner.plan(model, 0, seed=0, budget=1)
    levels, rules = lens.last[0]._fixed["levels"], lens.last[0]._fixed["rules"][0]
    penalty = rules["kappa"] * rules["resolution"]
    sigma = np.array([1 + GAMMA + GAMMA**2, 1 + GAMMA, 1.0])
    # The weights of evidence from depth h on sum to sigma_(H-h) / sigma_H.
    worst = -penalty * sigma / sigma[0] * np.log(levels["cash"])
    np.testing.assert_allclose(levels["span"] + penalty * levels["excess"], sigma + worst)
    states = np.array([1, 2, 4])
    np.testing.assert_allclose(levels["price"], np.log(3 * states / (0.1 * 0.05)))


def test_long_horizons_have_something_at_stake_everywhere(lens):
    model = Kind(3, 2, 2).draw(np.random.default_rng(0))
    pacplan.Bracket(epsilon=5.0, delta=0.1, gamma=1.0, horizon=400).plan(model, 0, seed=0, budget=4000)
    levels = lens.last[0]._fixed["levels"]
    assert (levels["cash"] < 1.0).all() and (levels["tolerance"] * 400 <= 0.05 * 5.0 + 1e-12).all()


# Product bets.


def penalised(y, z, stakes, cash, penalty):
    """y - penalty log M(y), by definition."""
    bets = np.log((stakes - np.array(z)[:, np.newaxis]) / (stakes - y)).sum(0)
    return y - penalty * np.logaddexp(np.log(cash), np.log((1 - cash) / len(stakes)) + logsumexp(bets))


def solve(z, stakes, cash, penalty, guess=1.0, tolerance=1e-6):
    sums = np.array([sum(log_stake(a, z_i) for z_i in z) for a in stakes])
    work = np.zeros(len(stakes))
    return penalised_max(sums, stakes, len(z), cash, penalty, guess, tolerance, work)[0]


@settings(max_examples=60, deadline=None)
@given(
    z=st.lists(st.floats(-30.0, 0.999), min_size=1, max_size=30),
    span=st.floats(1.0, 30.0),
    cash=st.floats(0.5, 0.999999),
    penalty=st.floats(1e-4, 100.0),
    guess=st.floats(-40.0, 1.0),
)
def test_penalised_max_is_the_maximum_and_never_less(z, span, cash, penalty, guess):
    stakes = 1.0 + span * product.scales(4.0)
    result = solve(z, stakes, cash, penalty, guess)
    # The slope is positive up to 1 - penalty n, and the function concave.
    low, high = -penalty * len(z), 1.0
    for _ in range(120):
        third = (high - low) / 3.0
        left, right = low + third, high - third
        if penalised(left, z, stakes, cash, penalty) < penalised(right, z, stakes, cash, penalty):
            low = left
        else:
            high = right
    best = penalised(0.5 * (low + high), z, stakes, cash, penalty)
    rounding = 1e-12 * max(1.0, penalty * len(z))
    assert best - rounding <= result <= best + 1e-6 + rounding


def test_penalised_max_where_a_stake_is_lost():
    stakes = 1.0 + product.scales(4.0)
    # All ones: the first stake is lost, and nothing contradicts y = 1.
    result = solve([1.0] * 50, stakes, 0.5, 0.01)
    assert result >= penalised(1.0, [1.0] * 50, stakes[1:], 1 - 0.5 * 4 / 5, 0.01) - 1e-12
    assert 1.0 <= result <= 1.0 + 0.01 * np.log(2.0) + 1e-6


@pytest.mark.parametrize("n", [1, 1000, 2_000_000_000])
@pytest.mark.parametrize("penalty", [1e-6, 1e-2, 10.0])
def test_penalised_max_for_any_number_of_draws(n, penalty):
    """Draws that are all alike: the sums are exact for any n."""
    stakes = 1.0 + 2.0 * product.scales(4.0)
    value = -3.0
    sums = n * np.log(stakes - value)
    result, y = penalised_max(sums, stakes, n, 0.5, penalty, 1.0, 1e-6, np.zeros(len(stakes)))
    assert np.isfinite(y)
    # At y = value every M_j is 1, so M = 1.
    assert value - 1e-9 <= result <= 1.0 + penalty * np.log(2.0)
    if n > 1000:
        assert result == pytest.approx(value, abs=1e-5 + 21.0 * penalty)


def test_scales_reach_what_is_asked():
    np.testing.assert_array_equal(product.scales(4.0), [0.0, 0.07, 0.3, 1.0, 4.0])
    assert product.scales(4.1)[-1] == 16.0 and len(product.scales(4.1)) == 6
    assert product.scales(1e4)[-1] >= 1e4
    for largest in (1.0, 50.0, 1e6):
        assert np.exp(product.opening(product.scales(largest))).mean() == pytest.approx(1.0)


INTERPRETED = """
import pacplan
model = pacplan.envs.garnet(states=50, seed=1, noise="bernoulli")
for merge in ("tree", "depth", "stationary"):
    planner = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.7, merge=merge)
    plan = planner.plan(model, 0, seed=2, budget=400)
    print(plan.action, plan.lower.tolist(), plan.upper.tolist(), plan.values.tolist())
"""


def test_compiled_and_interpreted_runs_agree(capsys, tmp_path):
    printed = interpreted(INTERPRETED, tmp_path)
    exec(INTERPRETED)
    assert capsys.readouterr().out == printed


def behind_one_action(means, steps, merge, doubled):
    """One action, or two alike, then a choice of some at every step, of which the first is best."""
    k = len(means)
    available = np.ones((steps, k), bool)
    available[0, 1 + doubled :] = False
    model = pacplan.TabularMDP(
        np.ones((steps, k, 1)),
        np.array([[0.5] * k] + [means] * (steps - 1)),
        successors=np.minimum(np.arange(steps) + 1, steps - 1)[:, None, None] * np.ones((1, k, 1), int),
        available=available,
    )
    return model, {"gamma": 0.9, "horizon": steps, "merge": merge, "goal": "value", "delta": 0.1}


@pytest.mark.parametrize("merge", ["tree", "depth", "stationary"])
def test_the_value_of_a_single_action_takes_no_more_calls_than_that_of_two_alike(merge):
    # What exploiting never tries keeps the upper bound up: with it alone, 5 to 150 times the calls.
    calls = []
    for doubled in (False, True):
        model, settings = behind_one_action([0.9] + [0.7] * 9, 2, merge, doubled)
        planner = pacplan.Bracket(epsilon=0.03, **settings)
        plans = [planner.plan(model, 0, seed=seed, budget=20_000) for seed in range(5)]
        assert all(plan.certified for plan in plans)
        assert all(abs(plan.value - (0.5 + 0.9 * 0.9)) <= 0.03 for plan in plans)
        calls.append(np.median([plan.samples for plan in plans]))
    assert calls[0] <= 1.5 * calls[1]
