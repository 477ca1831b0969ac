"""Wealth for bets on returns: it is moved, never made, and no account gives what it may not have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pacplan
from conftest import in_chunks
from hard_problems import GAMMA, Kind, lens_on_searches
from pacplan.algorithms.betting import returns
from pacplan.compiled.interpreted import interpreted

lens = pytest.fixture(lens_on_searches)
ACCOUNT = np.dtype(returns.ACCOUNT_FIELDS)


@interpreted
def withdraw(wealth, accounts, part):
    return returns._withdraw(wealth, accounts[0], part)


@settings(deadline=None)
@given(
    wealth=st.lists(st.tuples(*2 * [st.floats(0.0, 1e6)]), min_size=2, max_size=8),
    held=st.floats(0.0, 1.0),
    part=st.floats(0.0, 1.0),
    proven=st.integers(0, 6),
)
def test_what_is_taken_was_there_at_every_point_that_counts(wealth, held, part, proven):
    before = np.array(wealth)
    after, accounts = before.copy(), np.zeros(1, ACCOUNT)
    accounts["deposit"], accounts["proven"] = held, min(proven, len(before) - 2)
    taken = withdraw(after, accounts, part)
    open_points = slice(int(accounts["proven"][0]) + 1, None)
    assert 0.0 <= taken <= held
    assert accounts["deposit"][0] == held - taken
    assert (after >= 0.0).all() and (after <= before).all()
    spent = (before - after).sum(axis=1)[open_points]
    assert spent == pytest.approx(taken, rel=1e-9, abs=1e-9)
    # All that can be is, if it is asked for.
    if part == 1.0:
        assert taken == min(held, before.sum(axis=1)[open_points].min())


@pytest.mark.parametrize("actions", [2, 3, 6])
def test_wealth_is_neither_made_nor_lost(lens, actions):
    model = Kind(3, actions, 2).draw(np.random.default_rng(actions))
    seen = []

    def look(snapshot):
        search = lens.last[0]
        reserve, deposits = search.arrays["settings"][0]["reserve"], search.root["deposit"]
        seen.append(reserve + deposits.sum())
        assert reserve >= 0.0 and (deposits >= 0.0).all()

    planner = in_chunks(pacplan.Bracket(epsilon=0.02, delta=0.1, gamma=GAMMA, horizon=3), 50)
    planner.plan(model, 0, seed=0, budget=3000, callback=look)
    # Each of two actions has a unit of its own.
    assert len(seen) > 5
    assert seen == pytest.approx([0.0 if actions == 2 else 1.0] * len(seen))
    assert (lens.last[0].root["deposit"].max() > 0.3) == (actions > 2)
