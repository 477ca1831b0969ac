"""Bracket: its bounds hold as often as they promise, and the checks of that can fail."""

import math

import numpy as np
import pytest
from scipy.special import gammaln

import pacplan
from conftest import in_chunks
from hard_problems import (
    BANDITS,
    GAMMA,
    TREES,
    UNTOLD,
    Kind,
    check_bounds,
    evidence,
    lens_on_searches,
    most,
    violations,
)
from pacplan import exact
from pacplan.algorithms.betting.returns import FIRST_BET
from pacplan.algorithms.bracket import constants
from pacplan.algorithms.bracket.constants import DISCOUNT, STRENGTH
from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.testing.problems import Hidden

lens = pytest.fixture(lens_on_searches)
KINDS = BANDITS + TREES
# Whether Bracket is told how many successors there are.
every_kind = pytest.mark.parametrize(
    ("kind", "told"), [*((kind, True) for kind in KINDS), *((kind, False) for kind in UNTOLD)], ids=str
)
statistical = pytest.mark.statistical


@every_kind
def test_bounds_hold(lens, kind, told):
    check_bounds(kind, 150, 0.5, told=told)


@statistical
@pytest.mark.parametrize("delta", [0.1, 0.5])
@every_kind
def test_bounds_hold_in_thousands_of_runs(lens, kind, told, delta):
    check_bounds(kind, 3000, delta, budget=3000, seed=1, told=told)


@pytest.mark.parametrize("kind", BANDITS, ids=str)
def test_checks_fail_when_bounds_are_sold_below_cost(lens, kind):
    lens.above, lens.below = 8.0, 6.0
    above, below = violations(kind, 150, delta=0.1)
    assert above > most(150, 0.1) and below > most(150, 0.1)


def test_checks_fail_where_the_number_of_successors_is_not_told(lens):
    lens.above = 12.0
    assert violations(UNTOLD[0], 100, delta=0.5, told=False)[0] > most(100, 0.125)


@pytest.mark.parametrize("kind", [Kind(2, 2, 3), Kind(3, 2, 2, noise="none")], ids=str)
def test_evidence_against_the_truth_does_not_grow(lens, kind):
    """The product of all of it, cut off at 50, has a mean of at most 1. With d forgotten it has not."""
    rng = np.random.default_rng(0)
    planner = pacplan.Bracket(epsilon=0.2, delta=0.5, gamma=GAMMA, horizon=kind.horizon)
    values = []
    for run in range(300):
        model = kind.draw(rng)
        planner.plan(model, 0, seed=run, budget=800)
        values.append([evidence(lens.last[0], model, kind.horizon, counted) for counted in (1.0, 0.0)])
    assert_only_the_first_is_fair(np.exp(values))


def assert_only_the_first_is_fair(found):
    found = np.minimum(found, 50.0)
    mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(len(found))
    assert mean[0] <= 1.0 + 5.5 * error[0]
    assert mean[1] > 1.0 + 5.5 * error[1]


# One process of bets for both sides.


def gaps_too_small(kind, runs, lens, *, delta, budget=1000, seed=0):
    """How often a joint bound of some action's loss lies below that loss, and how often it helps."""
    rng = np.random.default_rng(seed)
    planner = pacplan.Bracket(epsilon=0.2, delta=delta, gamma=GAMMA, horizon=kind.horizon)
    wrong = counts = 0
    for run in range(runs):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]
        planner.plan(model, 0, seed=run, budget=budget)
        search, best = lens.last[0], int(np.argmax(q))
        failed = helped = False
        for b, arm in enumerate(search.root):
            if b != best and arm["exploits"] > FIRST_BET:
                loss = search.losses(b)[best]
                failed |= loss < q[best] - q[b] - 1e-9
                helped |= loss < search.units[1] * (search.root["upper"][best] - arm["lower"]) - 1e-9
        wrong += failed
        counts += helped
    return wrong, counts


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_joint_bounds_hold(lens, kind):
    wrong, counts = gaps_too_small(kind, 150, lens, delta=0.1)
    assert wrong <= most(150, 0.1)
    # Often enough they say more than bounds of each side.
    assert counts > 20


@pytest.mark.parametrize("kind", BANDITS, ids=str)
def test_checks_fail_when_joint_bounds_are_sold_below_cost(lens, kind):
    lens.joint = 12.0
    assert gaps_too_small(kind, 150, lens, delta=0.01)[0] > most(150, 0.01)


@statistical
@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_joint_bounds_hold_in_thousands_of_runs(lens, kind, delta):
    assert gaps_too_small(kind, 3000, lens, delta=delta, budget=3000, seed=1)[0] <= most(3000, delta)


def wealth_at(search, arm, q, lower):
    """X_b and E_b: what both accounts have at the lowest point above Q(b), or so many below it."""
    rules, (low, width) = search.arrays["settings"][0], search.units
    value = (q - low) / width - arm["floor"]
    assert value >= -1e-9, "no account bets below what its action is worth"
    exploit, forced = rules["given"], 1.0
    # (Rounded, the last point may be the largest value.)
    if arm["refill"] > 0:
        wealth = search.arrays["wealth"][arm["account"]]
        i = int(value / rules["step"] + 1e-9) + 1 - lower
        exploit = wealth[np.clip(i, 1, len(wealth) - 1)].sum()
    if arm["forces"] > 0:
        wealth = search.arrays["forced_wealth"][arm["account"]]
        i = int(value / rules["forced_step"] + 1e-9) + 1
        forced = wealth[min(i, len(wealth) - 1)].mean()
    return exploit, forced


def joint_process(search, model, kind, lower):
    """Y by what the search has recorded and what is true, and so many points below what is true."""
    q = exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]
    best = int(np.argmax(q))
    above = np.exp(evidence(search, model, kind.horizon))
    share, c = constants.JOINT_BELOW, constants.JOINT_ABOVE
    part = constants.EXPLOIT_SHARE
    reserve, idle = search.arrays["settings"][0]["reserve"], search.root[best]["deposit"]
    # Of two actions each has money of its own, below half of it.
    each = 0.5 if len(q) == 2 else 1.0
    for points in (0, lower):
        found = [wealth_at(search, arm, q[b], points) for b, arm in enumerate(search.root)]
        exploit, forced = np.array(found).T
        below = part * each * (reserve + exploit.sum()) + (1.0 - part) * forced.mean()
        money = reserve + idle + np.delete(exploit, best).sum()
        yield share * below + (1.0 - share) * above * (c + (1.0 - c) * money)


@pytest.mark.parametrize(
    ("kind", "rewards"),
    [
        *((kind, "unknown") for kind in (*BANDITS, Kind(2, 2, 2), Kind(4, 2, 1), Kind(5, 3, 2))),
        (Kind(4, 3, 2, noise="none", correlated=False), "deterministic"),
        (Kind(4, 2, 2, "none", reward_range=(-2.0, -1.0), correlated=False), "deterministic"),
    ],
    ids=str,
)
def test_the_process_does_not_grow(lens, kind, rewards):
    """Nor do stakes know their returns, nor is anything bet on twice: its mean is at most 1."""
    rng = np.random.default_rng(0)
    planner = pacplan.Bracket(
        epsilon=0.2, delta=0.5, gamma=GAMMA, horizon=kind.horizon, rewards=rewards
    )
    found = []
    for run in range(300):
        model = kind.draw(rng)
        # A number of episodes is a time that does not look ahead.
        in_chunks(planner, 250).plan(
            model, 0, seed=run, callback=lambda snapshot: snapshot.episodes >= 250
        )
        assert lens.last[0].arrays["settings"][0]["accounts"] > 0
        found.append(list(joint_process(lens.last[0], model, kind, lower=64)))
    # At points below what actions are worth it does grow.
    assert_only_the_first_is_fair(found)


@pytest.mark.parametrize("actions", [2, 6])
def test_gaps_are_what_the_proof_says(lens, monkeypatch, actions):
    """If a is the best action, its own account counts with what was put there, not what it won."""
    model = Kind(1, actions, 1).draw(np.random.default_rng(actions))
    advance, c, checked = BracketSearch.advance, constants.JOINT_ABOVE, 0

    def look(search, episodes, calls):
        nonlocal checked
        before, kept = search.root["exploits"].copy(), search.arrays["gaps"].copy()
        status = advance(search, episodes, calls)
        rules, arms = search.arrays["settings"][0], search.root
        for b in np.flatnonzero(arms["exploits"] - before):
            if before[b] <= FIRST_BET:
                continue
            account, first = arms["account"][b], arms["proven"][b] + 1
            wealth = search.arrays["wealth"][account].sum(axis=1)
            points = arms["floor"][b] + rules["step"] * np.arange(len(wealth))
            for a in np.flatnonzero((np.arange(actions) != b) & (arms["pair"] >= 0)):
                money = rules["reserve"] + arms["deposit"][a] + wealth
                won = np.log(c + (1.0 - c) * money)[first:]
                least = (points[first - 1 : -1] + arms["penalty"][a] * won).min()
                upper = search.tree.pairs[arms["pair"][a]]["upper"]
                gap = upper + arms["penalty"][a] * rules["log_joint"] - least
                assert search.arrays["gaps"][account, a] == pytest.approx(min(kept[account, a], gap))
                checked += gap < kept[account, a]
        return status

    monkeypatch.setattr(BracketSearch, "advance", look)
    planner = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=GAMMA, horizon=1)
    in_chunks(planner, 1).plan(model, 0, seed=0, budget=1500)
    assert checked > 50


def test_the_gap_of_a_plan_is_the_joint_one():
    model = Kind(2, 3, 2).draw(np.random.default_rng(1))
    plan = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=GAMMA, horizon=2).plan(model, 0, seed=0)
    apart = np.delete(plan.upper, plan.actions.index(plan.action)).max() - plan.lower[plan.action]
    assert plan.certified and plan.gap <= 0.1 < apart


def test_memory_is_taken_as_accounts_are_opened():
    """One for each action, with its gaps to all others or on a fine grid, would take gigabytes."""
    for actions, epsilon, horizon, budget in ((20_000, 0.6, 1, 200), (200, 0.006, 100, 2000)):
        model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=actions)
        planner = pacplan.Bracket(epsilon=epsilon, delta=0.1, gamma=1.0, horizon=horizon)
        assert planner.plan(model, 0, seed=0, budget=budget).memory < 100_000_000


# The set of transitions, its shares, and what they rest on, if the number of successors is not known.

LAWS = {
    "one": np.ones(1),
    "two": np.array([0.97, 0.03]),
    "uniform": np.full(60, 1 / 60),
    "Zipf": 1.0 / np.arange(1, 500) ** 1.5,
    "geometric": 0.5 ** np.arange(1, 40),
}


def log_predicted(counts):
    """The log of Pitman and Yor's probability of a sequence, by its counts, in closed form."""
    n, m = counts.sum(), len(counts)
    return (
        gammaln(counts - DISCOUNT).sum()
        - m * gammaln(1.0 - DISCOUNT)
        + np.log(STRENGTH + DISCOUNT * np.arange(1, m)).sum()
        - gammaln(STRENGTH + n)
        + gammaln(STRENGTH + 1.0)
    )


def largest_wealth(law, runs, calls, rng, forgotten):
    """Largest log of Pred / prod p_k^(n_k - forgotten), at some times, of each run."""
    p = law / law.sum()
    largest = np.full(runs, -np.inf)
    for run in range(runs):
        draws = rng.choice(len(p), size=calls, p=p)
        for n in np.unique(np.geomspace(1, calls, 12).astype(int)):
            outcomes, counts = np.unique(draws[:n], return_counts=True)
            truth = ((counts - forgotten) * np.log(p[outcomes])).sum()
            largest[run] = max(largest[run], log_predicted(counts) - truth)
    return largest


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_truth_is_seldom_outside_the_ball(law):
    # By Ville's inequality the wealth exceeds 1/delta with probability delta at most.
    largest = largest_wealth(law, 800, 300, np.random.default_rng(1), forgotten=1)
    for delta in (0.5, 0.1):
        assert (largest >= math.log(1 / delta)).sum() <= most(800, delta)


def test_first_calls_of_an_outcome_must_not_be_counted():
    # A new outcome is predicted as new, not as the one that it is: its own probability is smaller.
    largest = largest_wealth(LAWS["Zipf"], 200, 300, np.random.default_rng(1), forgotten=0)
    assert (largest >= math.log(2)).sum() > most(200, 0.5)


def test_predictions_and_shares_are_those_of_the_order_of_discovery(lens):
    planner = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.9, horizon=4)
    planner.plan(Hidden(pacplan.envs.garnet(12, 3, 4, seed=3)), 0, seed=0, budget=4000)
    tree, depths = lens.last[0].tree, set()
    for node in np.flatnonzero((tree.nodes["actions"] > 0) & (tree.nodes["depth"] < 3)).tolist():
        above = tree.nodes[node]["price"]
        assert (above == 0.0) == (node == 0)
        for link in tree.tried(node):
            seen = tree.nodes[[outcome.node for outcome in tree.outcomes(link)]]
            assert tree.pairs[link]["predicted"] == pytest.approx(log_predicted(seen["count"]))
            expected = [1 / (j * (j + 1)) for j in range(1, len(seen) + 1)]
            assert sorted(np.exp(above - seen["price"]))[::-1] == pytest.approx(expected)
            depths.add(int(tree.nodes[node]["depth"]))
    assert depths == {0, 1, 2}


def test_unboundedly_many_successors():
    def poisson(stock, order, rng):
        sold = min(stock + order, int(rng.poisson(3.0)))
        return stock + order - sold, min(1.0, sold / 10), False

    model = pacplan.Simulator(poisson, actions=4)
    plan = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.8, horizon=3).plan(model, 2, seed=0)
    assert plan.certified and not any("successor" in clause for clause in plan.assumptions)


def test_wide_pairs_make_room(lens):
    def scatter(state, action, rng):
        return int(rng.integers(5000)), 0.5, False

    planner = pacplan.Bracket(epsilon=0.05, delta=0.1, gamma=0.9, horizon=2)
    planner.plan(pacplan.Simulator(scatter, actions=2), 0, seed=0, budget=3000)
    assert lens.last[0].arrays["settings"][0]["widest"] > 600
