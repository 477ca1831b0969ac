"""Exploit episodes that end early by chance: what is bet on has the mean of the return."""

from types import SimpleNamespace

import numpy as np
import pytest

import pacplan
from conftest import in_chunks
from hard_problems import lens_on_searches
from pacplan import exact
from pacplan.algorithms.bracket import constants, schedule
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
    ended = schedule.concluded.py_func(search, h, estimate, coin(number))
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


def test_the_mean_stays_the_same_and_nothing_falls_below_the_floor():
    stopped = raised = 0
    for before, h, least, estimate in cases():
        ended, earned, weight = played(before, h, estimate, 0.0)
        q, floor = before["discount"] / weight, before["floor"] - 1e-12
        assert not ended and 0.8 - 1e-12 <= q <= 1.0 + 1e-12
        assert earned + weight * least >= floor
        raised += q > 0.8 + 1e-9
        assert not played(before, h, estimate, q - 1e-9)[0]
        if q > 1.0 - 1e-9:
            continue
        stopped += 1
        ended, settled, rest = played(before, h, estimate, q + 1e-9)
        assert ended and rest == 0.0 and settled >= floor
        for value in (least, 0.7, 3.0):
            mean = (1.0 - q) * settled + q * (earned + weight * value)
            assert mean == pytest.approx(before["earned"] + before["discount"] * value, abs=1e-9)
    # Often enough it took a larger probability of going on.
    assert stopped > 100 and raised > 50


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


def exploits_of(planner, model, budget, monkeypatch):
    """The exploit episodes of a plan: action, number bet on, the return so far, D and whether whole."""
    advance, found = BracketSearch.advance, []

    def look(search, episodes, calls):
        before = search.root.copy()
        status = advance(search, episodes, calls)
        for action in np.flatnonzero(search.root["exploits"] - before["exploits"]):
            bet = (search.root["returns"] - before["returns"])[action]
            decision = search.arrays["decision"][0]
            found.append((action, bet, decision["paid"], decision["discount"], status == CHUNK_DONE))
        return status

    monkeypatch.setattr(BracketSearch, "advance", look)
    plan = in_chunks(planner, 1).plan(model, 0, seed=1, budget=budget)
    return plan, np.array(found)


def test_bets_are_on_the_value_of_the_policy(lens, monkeypatch):
    """Against dynamic programming; 5.5 standard errors are exceeded once in 10^7 times."""
    model = chain(np.random.default_rng(3))
    truth = exact.finite_horizon(model, gamma=GAMMA, horizon=HORIZON)[0, 0, 0]
    settings = {"epsilon": 0.3, "delta": 0.1, "gamma": GAMMA, "horizon": HORIZON, "goal": "value"}
    _, found = exploits_of(pacplan.Bracket(**settings), model, 12_000, monkeypatch)
    _, bet, paid, discount, whole = found.T
    bet, paid, concluded = bet[whole > 0], paid[whole > 0], discount[whole > 0] == 0.0
    assert len(bet) > 1000 and 0.2 < concluded.mean() < 0.9
    assert bet.min() >= -1e-9
    error = bet.std() / np.sqrt(len(bet))
    assert abs(bet.mean() - truth) <= 5.5 * error
    # What was paid until then would not do.
    assert abs(paid.mean() - truth) > 5.5 * error


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
    settings = {"epsilon": 0.1, "delta": 0.1, "gamma": GAMMA, "horizon": HORIZON}
    planner = pacplan.Bracket(rewards="deterministic", **settings)
    plan, found = exploits_of(planner, model, 6000, monkeypatch)
    assert lens.last[0].root["floor"] == pytest.approx(rewards_[0])
    assert (plan.lower >= rewards_[0] - 1e-9).all()
    action, bet, _, discount, _ = found.T
    left = bet - lens.last[0].root["floor"][action.astype(int)]
    assert len(left) > 100 and (discount == 0.0).any()
    assert -1e-9 <= left.min() < 0.5
