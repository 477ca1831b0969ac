"""One process of bets for both sides: it does not grow, and what it says of two actions holds."""

import numpy as np
import pytest

import pacplan
from conftest import in_chunks
from hard_problems import BANDITS, GAMMA, TREES, Kind, evidence, lens_on_searches, most
from pacplan import exact
from pacplan.algorithms.betting.allocation import FIRST_BET
from pacplan.algorithms.bracket import constants
from pacplan.algorithms.bracket.search import BracketSearch

lens = pytest.fixture(lens_on_searches)
KINDS = BANDITS + TREES


def truth(model, kind):
    return exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]


def gaps_too_small(kind, runs, lens, *, delta, budget=1000, seed=0):
    """How often a joint bound of some action's loss, of any that bets, lies below that loss.

    And how often it is what bounds it: less than U(a*) - L(b).
    """
    rng = np.random.default_rng(seed)
    planner = pacplan.Bracket(epsilon=0.2, delta=delta, gamma=GAMMA, horizon=kind.horizon)
    wrong = counts = 0
    for run in range(runs):
        model = kind.draw(rng)
        q = truth(model, kind)
        planner.plan(model, 0, seed=run, budget=budget)
        search, best = lens.last[0], int(np.argmax(q))
        failed = helped = False
        for b, arm in enumerate(search.root):
            if b != best and arm["exploits"] > FIRST_BET:
                loss = search.losses(b)[best]
                failed |= loss < q[best] - q[b] - 1e-9
                apart = search.root["upper"][best] - arm["lower"]
                helped |= loss < search.units[1] * apart - 1e-9
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


@pytest.mark.statistical
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
        wealth = search.arrays["forced_wealth"][arm["forced_account"]]
        i = int(value / (rules["step"] * rules["stride"]) + 1e-9) + 1
        forced = wealth[min(i, len(wealth) - 1)].mean()
    return exploit, forced


def joint_process(search, model, kind, lower):
    """Y by what the search has recorded and what is true, and so many points below what is true."""
    q = truth(model, kind)
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


UNTOLD = [*BANDITS, Kind(2, 2, 2), Kind(4, 2, 1), Kind(5, 3, 2)]
TOLD = [
    (Kind(4, 3, 2, noise="none", correlated=False), "deterministic"),
    (Kind(4, 2, 2, noise="none", correlated=False, reward_range=(-2.0, -1.0)), "deterministic"),
]


@pytest.mark.parametrize(("kind", "rewards"), [*((kind, "unknown") for kind in UNTOLD), *TOLD], ids=str)
def test_the_process_does_not_grow(lens, kind, rewards):
    """Nor do stakes know their returns, nor is anything bet on twice: its mean is at most 1."""
    rng = np.random.default_rng(0)
    planner = pacplan.Bracket(
        epsilon=0.2, delta=0.5, gamma=GAMMA, horizon=kind.horizon, rewards=rewards
    )
    planner.chunk = 250
    found = []
    for run in range(300):
        model = kind.draw(rng)
        # A number of episodes is a time that does not look ahead.
        planner.plan(model, 0, seed=run, callback=lambda snapshot: snapshot.episodes >= 250)
        assert lens.last[0].arrays["settings"][0]["bettors"] > 0
        found.append(list(joint_process(lens.last[0], model, kind, lower=64)))
    found = np.minimum(found, 50.0)
    mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(300)
    assert mean[0] <= 1.0 + 5.5 * error[0]
    # At points below what actions are worth it does grow.
    assert mean[1] > 1.0 + 5.5 * error[1]


@pytest.mark.parametrize("actions", [2, 3, 6])
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


def test_what_is_joint_and_what_is_not(lens):
    model = Kind(2, 2, 2).draw(np.random.default_rng(0))

    def joint(**settings):
        pacplan.Bracket(epsilon=0.2, delta=0.1, gamma=GAMMA, horizon=2, **settings).plan(
            model, 0, seed=0, budget=200
        )
        return bool(lens.last[0].arrays["settings"][0]["joint"])

    assert joint()
    assert not joint(goal="value")


def test_the_gap_of_a_plan_is_the_joint_one():
    model = Kind(2, 3, 2).draw(np.random.default_rng(1))
    plan = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=GAMMA, horizon=2).plan(model, 0, seed=0)
    apart = np.delete(plan.upper, plan.actions.index(plan.action)).max() - plan.lower[plan.action]
    assert plan.certified and plan.gap <= 0.1 < apart


def test_gaps_take_memory_as_accounts_are_opened():
    """One account for each of 20,000 actions, with its gaps to all others, would take gigabytes."""
    arms = pacplan.Simulator(
        lambda state, action, rng: (0, float(rng.random() < 0.5), True), actions=20_000
    )
    planner = pacplan.Bracket(epsilon=0.6, delta=0.1, gamma=0.9, horizon=1)
    assert planner.plan(arms, 0, seed=0, budget=200).memory < 10_000_000
