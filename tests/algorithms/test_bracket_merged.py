"""Where equal states are merged: rows of forced episodes, and exploring that makes one call."""

import numpy as np
import pytest

import pacplan
from hard_problems import GAMMA, Kind, lens_on_searches
from pacplan.algorithms.bracket import constants, records
from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.engine.calls import ABORTED, CHUNK_DONE

HORIZON = 4
MERGES = pytest.mark.parametrize("merge", ["depth", "stationary"])
lens = pytest.fixture(lens_on_searches)


def episodes_of(merge, budget, monkeypatch, before, after, **more):
    """Let `before(search)` and `after(search, kind, calls, known)` look at every episode."""
    advance = BracketSearch.advance

    def look(search, episodes, most_calls):
        known, calls = before(search), int(search.calls.sum())
        status = advance(search, episodes, most_calls)
        if status == CHUNK_DONE and episodes > 0:
            kind = int(search.arrays["decision"][0]["kind"])
            after(search, kind, int(search.calls.sum()) - calls, known)
        return status

    monkeypatch.setattr(BracketSearch, "advance", look)
    model = Kind(HORIZON, 2, 2).draw(np.random.default_rng(0))
    settings = {"epsilon": 0.2, "delta": 0.1, "gamma": GAMMA, "horizon": HORIZON} | more
    pacplan.Bracket(merge=merge, chunk=1, **settings).plan(model, 0, seed=0, budget=budget)


@MERGES
def test_forced_episodes_follow_a_sweep_in_rows_in_which_no_bound_changes(lens, merge, monkeypatch):
    forced, rows = [], []

    def before(search):
        state = search.kernel_state()
        nodes, pairs = state.tree.used
        return (
            int(state.settings[0]["row"]),
            int(state.settings[0]["swept"]),
            search.root["upper"].copy(),
            state.bounds.nodes[:nodes].copy(),
            state.bounds.pairs[:pairs].copy(),
        )

    def after(search, kind, calls, known):
        if kind != records.FORCED:
            rows.append(0)
            return
        row, swept, upper, nodes, pairs = known
        state = search.kernel_state()
        forced.append(calls)
        rows.append(rows[-1] + 1 if row > 0 else 1)
        if rows[-1] > 1:
            # The sweep before the row was made before its first episode.
            assert state.settings[0]["swept"] == swept
            np.testing.assert_array_equal(search.root["upper"], upper)
            np.testing.assert_array_equal(state.bounds.nodes[: len(nodes)], nodes)
            np.testing.assert_array_equal(state.bounds.pairs[: len(pairs)], pairs)

    budget = 40_000
    episodes_of(merge, budget, monkeypatch, before, after)
    assert max(rows) >= 3
    share = constants.FORCED_SHARE
    # All but what was called since the last sweep, and an episode that is still owed.
    assert share * budget / 1.06 - 2 * HORIZON <= sum(forced) <= share * budget


@MERGES
def test_stakes_are_renewed_where_bounds_are_not(lens, merge, monkeypatch):
    """After a row, the next sweep finds the first maxima as they should be."""

    def before(search):
        return None

    def after(search, kind, calls, known):
        state = search.kernel_state()
        if kind == records.FORCED:
            for h in range(HORIZON):
                step = state.path[h]
                pair, level = state.tree.pairs[step["pair"]], state.levels[h]
                n, stakes = int(pair["n"]), state.stakes[h]
                y = np.linspace(-4.0, 1.0, 20_001)[:-1]
                terms = state.bets[step["pair"]] - n * np.log1p(-y[:, np.newaxis] / stakes)
                cash = level["cash"]
                won = np.log(cash + (1 - cash) * np.exp(terms).mean(axis=1))
                weight = state.settings[0]["least"] * level["weight"]
                found = (y - weight * won).max()
                assert found - 1e-9 <= pair["stake"] <= found + 2 * level["tolerance"] + 1e-3
                checked.append(h)

    checked = []
    episodes_of(merge, 8000, monkeypatch, before, after)
    assert len(checked) >= 40


@MERGES
def test_exploring_makes_one_call_and_counts_nothing_that_it_imagined(lens, merge, monkeypatch):
    explored, deep = [], []

    def before(search):
        tree = search.kernel_state().tree
        return tree.pairs["n"].copy()

    def after(search, kind, calls, known):
        tree = search.kernel_state().tree
        if kind == records.EXPLORE:
            explored.append(calls)
            deep.append(int(search.arrays["decision"][0]["target"]))
            changed = tree.pairs["n"][: len(known)] - known
            assert changed.sum() == tree.pairs["n"].sum() - known.sum() == 1

    episodes_of(merge, 3000, monkeypatch, before, after)
    assert len(explored) > 300 and set(explored) == {1}
    assert set(deep) == set(range(HORIZON))
    tree = lens.last[0].kernel_state().tree
    for link in range(tree.used[1]):
        outcomes, node = 0, tree.pairs[link]["child"]
        while node != -1:
            outcomes += tree.nodes[node]["count"]
            node = tree.nodes[node]["sibling"]
        assert outcomes in (0, tree.pairs[link]["n"])


@MERGES
def test_a_sweep_that_was_halted_is_made_when_the_search_goes_on(merge, monkeypatch):
    advance, seen = BracketSearch.advance, []

    def halted_once(search, episodes, most_calls):
        rules = search.arrays["settings"][0]
        if not seen and 0 < rules["swept"] < search.report["calls"] and rules["row"] == 0:
            rules["due"] = search.report["calls"]  # Now.
            before = rules.copy()
            search.halt()
            assert advance(search, episodes, most_calls) == ABORTED
            assert all(rules[name] == before[name] for name in ("swept", "due", "owed", "row"))
            search.report["halt"] = search.report["refused"] = 0
            seen.append(int(search.report["calls"]))
        status = advance(search, episodes, most_calls)
        if len(seen) == 1:
            seen.append(int(rules["swept"]))
        return status

    monkeypatch.setattr(BracketSearch, "advance", halted_once)
    model = Kind(HORIZON, 2, 2).draw(np.random.default_rng(0))
    settings = {"epsilon": 0.2, "delta": 0.1, "gamma": GAMMA, "horizon": HORIZON}
    pacplan.Bracket(merge=merge, chunk=1, **settings).plan(model, 0, seed=0, budget=400)
    assert len(seen) == 2 and seen[1] == seen[0]


@MERGES
def test_without_a_gap_to_stop_at_half_of_the_calls_explore(merge, monkeypatch):
    calls_of = {records.EXPLORE: 0, records.EXPLOIT: 0, records.FORCED: 0}

    def after(search, kind, calls, known):
        calls_of[kind] += calls

    episodes_of(merge, 4000, monkeypatch, lambda search: None, after, epsilon=0.0)
    others = calls_of[records.EXPLOIT] + calls_of[records.FORCED]
    assert others >= 500 and abs(calls_of[records.EXPLORE] - others) <= 0.1 * others


@pytest.mark.parametrize(("merge", "most"), [("depth", 12_000), ("stationary", 6000)])
def test_a_river_that_is_soon_known_is_soon_decided(merge, most):
    # Every state is met on many ways: exploring must not call again what is known.
    planner = pacplan.Bracket(epsilon=0.8, delta=0.1, gamma=0.9, horizon=12, merge=merge)
    model = pacplan.envs.riverswim()
    calls = [planner.plan(model, seed=seed, budget=100_000).samples for seed in range(50, 59)]
    assert np.median(calls) <= most
