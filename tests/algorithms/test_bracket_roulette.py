"""Exploit episodes that end early by chance: what is bet on has the mean of the return."""

from types import SimpleNamespace

import numpy as np
import pytest

import pacplan
from conftest import in_chunks
from hard_problems import lens_on_searches
from pacplan import exact
from pacplan.algorithms.betting import bets as returns
from pacplan.algorithms.betting.allocation import FIRST_BET
from pacplan.algorithms.bracket import constants, roulette
from pacplan.algorithms.bracket.records import EXPLOIT, EXPLORE, FORCED
from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.engine.calls import CHUNK_DONE

lens = pytest.fixture(lens_on_searches)
GAMMA, HORIZON = 0.8, 8
DEPTH = constants.ROULETTE_DEPTH


def coin(value):
    """A source of one random number."""
    return SimpleNamespace(random=lambda: value)


def standing(kind=EXPLOIT, floor=0.0, paid=0.0, earned=0.0, discount=1.0, go_on=0.8):
    """A search in the middle of an episode, as far as roulette sees it."""
    settings, arm = SimpleNamespace(gamma=GAMMA, go_on=go_on), SimpleNamespace(floor=floor)
    decision = SimpleNamespace(kind=kind, play=0, paid=paid, earned=earned, discount=discount)
    return SimpleNamespace(settings=[settings], root=[arm], decision=[decision])


def played(before, h, estimate, number):
    """Whether the episode is concluded, and A and D after that."""
    search = standing(**before)
    ended = roulette.concluded.py_func(search, h, estimate, coin(number))
    return ended, search.decision[0].earned, search.decision[0].discount


def cases():
    """Episodes anywhere on their way, with estimates of all sizes."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        h = int(rng.integers(DEPTH, HORIZON))
        floor = rng.choice([0.0, rng.random()])
        paid = rng.choice([0.0, 2.0 * rng.random()])
        least = max(floor - paid, 0.0) / GAMMA**h
        discount = GAMMA**h * rng.choice([1.0, 1.0 + rng.random()])
        # What may be earned is at least the floor.
        earned = floor - discount * least + rng.choice([0.0, rng.random()])
        before = {"floor": floor, "paid": paid, "earned": earned, "discount": discount}
        yield before, h, least, least + rng.choice([0.0, 0.1, 1.0, 5.0]) * rng.random()


def test_the_mean_stays_the_same_whatever_is_estimated():
    stopped = 0
    for before, h, least, estimate in cases():
        ended, earned, weight = played(before, h, estimate, 0.0)
        assert not ended
        q = before["discount"] / weight
        assert 0.8 - 1e-12 <= q <= 1.0 + 1e-12
        assert not played(before, h, estimate, q - 1e-9)[0]
        if q > 1.0 - 1e-9:
            continue
        stopped += 1
        ended, settled, rest = played(before, h, estimate, q + 1e-9)
        assert ended and rest == 0.0
        for value in (least, 0.7, 3.0):
            mean = (1.0 - q) * settled + q * (earned + weight * value)
            assert mean == pytest.approx(before["earned"] + before["discount"] * value, abs=1e-9)
    assert stopped > 100


def test_what_is_bet_on_never_falls_below_the_floor():
    raised = 0
    for before, h, least, estimate in cases():
        _, earned, weight = played(before, h, estimate, 0.0)
        assert earned + weight * least >= before["floor"] - 1e-12
        raised += before["discount"] / weight > 0.8 + 1e-9
        ended, settled, _ = played(before, h, estimate, 1.0 - 1e-12)
        assert not ended or settled >= before["floor"] - 1e-12
    # Often enough it took a larger probability of going on.
    assert raised > 50


@pytest.mark.parametrize(
    ("kind", "h"), [(FORCED, HORIZON - 1), (EXPLORE, HORIZON - 1), (EXPLOIT, DEPTH - 1)]
)
def test_others_go_on(kind, h):
    assert played({"kind": kind, "earned": 1.0}, h, 1.0, 1.0 - 1e-12) == (False, 1.0, 1.0)


def chain(rng, states=20):
    """No choice at all, so that every policy has the same value."""
    p = rng.dirichlet(np.ones(2), size=(states, 1))
    to = rng.permuted(np.broadcast_to(np.arange(states), (states, 1, states)), axis=-1)
    rewards = rng.random((states, 1))
    return pacplan.TabularMDP(
        p, rewards, successors=to[..., :2], noise="bernoulli", terminal=[states - 1]
    )


def episodes_of(planner, model, seed, budget, monkeypatch, before=None):
    """The exploit episodes of a plan: A and D at the end, the return so far, and the return bet on.

    `before` is called with the search before each, and after it with the number bet on.
    """
    advance, found = BracketSearch.advance, []

    def look(search, episodes, calls):
        known = None if before is None else before(search)
        total, count = search.root["returns"].sum(), search.root["exploits"].sum()
        status = advance(search, episodes, calls)
        if search.root["exploits"].sum() > count and status == CHUNK_DONE:
            decision = search.arrays["decision"][0]
            bet = search.root["returns"].sum() - total
            found.append((decision["earned"], decision["discount"], decision["paid"], bet, known))
        return status

    monkeypatch.setattr(BracketSearch, "advance", look)
    planner.plan(model, 0, seed=seed, budget=budget)
    return found


def test_bets_are_on_the_value_of_the_policy(lens, monkeypatch):
    """Against dynamic programming; 5.5 standard errors are exceeded once in 10^7 times."""
    model = chain(np.random.default_rng(3))
    truth = exact.finite_horizon(model, gamma=GAMMA, horizon=HORIZON)[0, 0, 0]
    settings = {"epsilon": 0.3, "delta": 0.1, "gamma": GAMMA, "horizon": HORIZON, "goal": "value"}
    planner = in_chunks(pacplan.Bracket(**settings), 1)
    found = episodes_of(planner, model, 1, 12_000, monkeypatch)
    numbers = np.array([row[:4] for row in found])
    concluded, bet = numbers[:, 1] == 0.0, numbers[:, 3]
    assert len(bet) > 1000 and 0.2 < concluded.mean() < 0.9
    assert bet.min() >= -1e-9
    error = bet.std() / np.sqrt(len(bet))
    assert abs(bet.mean() - truth) <= 5.5 * error
    # What was paid until then would not do.
    assert abs(numbers[:, 2].mean() - truth) > 5.5 * error


def test_no_stake_depends_on_the_return_that_it_is_on(lens, monkeypatch):
    """The factors by which wealth grew, against those of stakes made of earlier returns alone."""
    model = pacplan.envs.garnet(seed=4, noise="bernoulli")
    planner = in_chunks(pacplan.Bracket(epsilon=0.2, delta=0.1, gamma=0.7, horizon=8), 1)

    def before(search):
        state = search.kernel_state()
        return state.moments.copy(), state.wealth.copy(), search.root.copy()

    def factors(moments, seen, points, earned):
        """By point and bettor, if its moments are these."""
        mean = moments["centre"] + returns.LEAN * np.sqrt(moments["spread"] * moments["newest"] / seen)
        edge = mean - points[:, np.newaxis]
        wide = moments["spread"] - edge * moments["skew"] / moments["spread"] - edge**2
        stake = edge / np.maximum(wide, moments["spread"] + edge**2)
        stake = np.minimum(np.maximum(stake, 0.0), returns.MOST_STAKE / points[:, np.newaxis])
        return 1.0 + stake * (earned - points[:, np.newaxis])

    found = episodes_of(planner, model, 1, 6000, monkeypatch, before)
    search = lens.last[0]
    last = search.kernel_state()
    after = [row[4] for row in found[1:]] + [(last.moments, last.wealth, search.root)]
    checked = learnt = 0
    for (*_, earned, (moments, wealth, root)), (later, grown, now) in zip(found, after, strict=True):
        action = int(np.flatnonzero(now["exploits"] - root["exploits"])[0])
        seen, account = root["exploits"][action], root["account"][action]
        if seen < FIRST_BET:
            continue
        points = (
            np.arange(root["proven"][action] + 1, wealth.shape[1])
            * search.arrays["settings"][0]["step"]
        )
        # Half of what was moved to the account before the episode, for each bettor.
        moved = 0.5 * (now["deposit"] - root["deposit"])[action]
        growth = grown[account][-len(points) :] / (wealth[account][-len(points) :] + moved)
        used = (growth != 1.0).any(axis=1)
        expected = factors(moments[action], seen, points[used], earned)
        np.testing.assert_allclose(growth[used], expected, rtol=1e-6)
        checked += used.any()
        # Stakes of moments that know the return are others.
        told = factors(later[action], seen + 1, points[used], earned)
        learnt += not np.allclose(growth[used], told, rtol=1e-6)
    assert checked > 200 and learnt > 0.9 * checked


def test_only_real_returns_are_held_against_the_range_that_was_promised():
    """Nothing is paid but 1 at the last step: roulette bets on more, and on less, than is ever paid."""

    def late(state, action, rng):
        return state + 1, (1.0 if state == HORIZON - 1 else 0.1 * (rng.random() < 0.5)), False

    model = pacplan.Simulator(late, actions=2, initial=0, successors=1)
    planner = pacplan.Bracket(
        epsilon=0.02, delta=0.1, gamma=GAMMA, horizon=HORIZON, value_range=(0.2, 0.7)
    )
    plan = planner.plan(model, seed=1, budget=4000)
    assert plan.lower.min() >= 0.2
    with pytest.raises(pacplan.BrokenPromiseError, match="a return of"):
        pacplan.Bracket(
            epsilon=0.02, delta=0.1, gamma=GAMMA, horizon=HORIZON, value_range=(0.2, 0.3)
        ).plan(model, seed=1, budget=4000)


def test_no_return_is_less_than_a_first_reward_that_is_told(lens, monkeypatch):
    """So stakes may be larger, and L begins there: at the table's numbers, however many coins fall."""
    # Little is paid after the first step.
    rewards_, p, to = pacplan.envs.garnet(30, 3, 2, reward_density=0.2, seed=5).sparse()
    rewards_[0] = (0.9, 0.8, 0.7)
    model = pacplan.TabularMDP(p, rewards_, successors=to, noise="none")
    advance, above = BracketSearch.advance, []

    def look(search, episodes, calls):
        total, count = search.root["returns"].copy(), search.root["exploits"].copy()
        status = advance(search, episodes, calls)
        for action in np.flatnonzero(search.root["exploits"] - count):
            bet = (search.root["returns"] - total)[action]
            above.append(
                (bet - search.root["floor"][action], search.arrays["decision"][0]["discount"] == 0.0)
            )
        return status

    monkeypatch.setattr(BracketSearch, "advance", look)
    planner = pacplan.Bracket(
        epsilon=0.1, delta=0.1, gamma=GAMMA, horizon=HORIZON, rewards="deterministic"
    )
    plan = in_chunks(planner, 1).plan(model, 0, seed=0, budget=6000)
    assert lens.last[0].root["floor"] == pytest.approx(rewards_[0])
    assert (plan.lower >= rewards_[0] - 1e-9).all()
    left, concluded = np.transpose(above)
    assert len(left) > 100 and concluded.any()
    assert -1e-9 <= left.min() < 0.5
