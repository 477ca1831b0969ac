"""Exploring in a tree: all bounds are up to date after it, also if it is halted."""

import numpy as np
import pytest

import pacplan
from conftest import in_chunks
from hard_problems import GAMMA, Kind, lens_on_searches
from pacplan.algorithms.bracket import records, upper_bound
from pacplan.algorithms.bracket.schedule import adapt, imagine
from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.compiled.interpreted import interpreted
from pacplan.engine.calls import ABORTED, CHUNK_DONE
from pacplan.engine.episodes import _play_episode
from pacplan.engine.tree import NONE

HORIZON = 4
WIDE = Kind(HORIZON, 3, 3, states=30)
lens = pytest.fixture(lens_on_searches)


@interpreted
def renew_all(search):
    """Renew all W of a tree, and f with them."""
    tree = search.tree
    for at in range(tree.used[0] - 1, -1, -1):
        node = tree.nodes[at]
        link = node.first
        while link != NONE:
            pair = tree.pairs[link]
            if pair.n > 0:
                penalty = search.root[pair.action if at == 0 else node.branch].penalty
                upper_bound.refresh_pair(search, at, link, node.depth, penalty, False)
            link = pair.sibling
        if node.actions > 0:
            upper_bound.refresh_node(search, at)


@pytest.fixture
def explored(lens, monkeypatch):
    """Look at a search after each episode that explores."""
    advance = BracketSearch.advance

    def explore(check, *, kind, budget):
        def look(search, episodes, most_calls):
            status = advance(search, episodes, most_calls)
            if status == CHUNK_DONE and search.arrays["decision"][0]["kind"] == records.EXPLORE:
                check(search)
            return status

        monkeypatch.setattr(BracketSearch, "advance", look)
        planner = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=GAMMA, horizon=HORIZON)
        in_chunks(planner, 1).plan(kind.draw(np.random.default_rng(0)), 0, seed=0, budget=budget)

    return explore


@pytest.mark.parametrize("kind", [WIDE, Kind(HORIZON, 3, 1, states=30)])
def test_all_bounds_are_up_to_date_after_it(explored, kind):
    """As when they are all computed anew, children before parents, from what was called."""
    checked = []

    def check(search):
        checked.append(search)
        if len(checked) % 50 == 0:
            state = search.kernel_state()
            upper = state.tree.pairs["upper"].copy()
            renew_all(state)
            # Both err outwards, by what the solver may leave open at all depths.
            left_open = (state.levels["tolerance"] * GAMMA ** np.arange(HORIZON + 1)).sum()
            apart = np.abs(state.tree.pairs["upper"] - upper)
            assert (apart <= left_open / GAMMA**HORIZON + 1e-9).all()

    explored(check, kind=kind, budget=7000)
    assert len(checked) > 500


@interpreted
def halted_change(search, model, action, rng, ties):
    """Play an episode of an action whose lambda changes, and halt while it does."""
    decision, arm = search.decision[0], search.root[action]
    decision.kind = records.EXPLORE
    decision.play = action
    decision.target = imagine(search, ties)
    arm.rebuilt = 0
    arm.penalty = 4.0 * arm.penalty
    search.report[0].halt = 1
    adapt(search)
    return _play_episode(search, model, 100, rng, ties)


@interpreted
def resumed(search):
    """What a search that goes on does first."""
    search.report[0].halt = 0
    adapt(search)


def test_a_deadline_while_lambda_changes_leaves_the_bounds_that_were_proven(explored):
    checked = []

    def check(search):
        action = int(search.arrays["decision"][0]["play"])
        if search.calls.sum() < 1000 or len(checked) > 20:
            return
        # So large that renewing them would show.
        state, handle = search.kernel_state(), search.session.handle
        search.root["upper"][action] = state.gaps[:, action] = 1e9
        upper, gaps = search.root["upper"].copy(), state.gaps.copy()
        status = halted_change(state, handle, action, search._rng, search._ties)
        assert status == ABORTED and search.root[action]["stale"]
        np.testing.assert_array_equal(search.root["upper"], upper)
        np.testing.assert_array_equal(state.gaps, gaps)
        # Gone on with, all W have the new lambda.
        resumed(state)
        assert not search.root[action]["stale"] and search.root[action]["upper"] < 1e9
        upper, tolerance = state.tree.pairs["upper"].copy(), state.levels["tolerance"].sum()
        renew_all(state)
        np.testing.assert_allclose(state.tree.pairs["upper"], upper, rtol=0, atol=tolerance)
        checked.append(action)

    explored(check, kind=WIDE, budget=5000)
    assert len(checked) > 20
