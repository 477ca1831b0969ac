"""Every planner through the same list."""

import json

import numpy as np
import pytest

import pacplan
from every_planner import (
    FIXED_COST,
    GAME,
    GAMES,
    KNOWN,
    NAMES,
    NOISY,
    SAMPLING,
    SETTINGS,
    UNLIMITED,
    make,
    problem,
    simulator,
)
from pacplan.engine.calls import ABORTED
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.registry import FIXED_BUDGET
from pacplan.testing import PLANNER_CHECKS, check_planner


def test_every_planner_is_here():
    assert {*SETTINGS, "value-iteration"} == set(pacplan.planners)
    for name, cls in pacplan.planners.items():
        assert cls.name == name
        assert getattr(pacplan, cls.__name__) is cls


# What a planner rightly refuses, or has no use for.
SIMULATED = ("budget", "python model", "ends", "state actions", "deadline", "interrupt")
SIMULATED += ("model raises",)
SKIPPED = {
    # They hold few records: of sequences, of steps, of policies.
    "olop": ("state actions", "memory"),
    "kl-olop": ("state actions", "memory"),
    "op-mdp": SIMULATED,
    "canopy": ("python model",),
    "atlas": ("python model",),
    "sparse-sampling": ("memory",),
}


@pytest.mark.parametrize("check", PLANNER_CHECKS)
@pytest.mark.parametrize("name", NAMES)
def test_planner(name, check):
    planner = make(name, width=4) if name in FIXED_COST else make(name)
    report = check_planner(planner, problem(name), 0, only=[check])
    assert (check in report.skipped) == (check in SKIPPED.get(name, ())), str(report)


@pytest.mark.parametrize("name", [*NAMES, "auto"])
def test_planners_with_equal_settings_are_equal(name):
    planner = (
        pacplan.Auto(epsilon=1, delta=0.1, gamma=0.7, goal="value") if name == "auto" else make(name)
    )
    params = planner.get_params()
    again = type(planner)(**params)
    assert again == planner and hash(again) == hash(planner) and again.get_params() == params
    other = type(planner)(
        **params | ({"gamma": 0.6} if params.get("epsilon") is None else {"epsilon": 0.75})
    )
    assert other != planner and repr(other) != repr(planner)


@pytest.mark.parametrize("name", SAMPLING)
def test_deadline(name, clock):
    """A call takes 2 ms: there is time for 50 of them, and for one that begins in the last moment."""

    def step(state, action, rng):
        clock.now += 0.002
        return problem(name).step(state, action, rng)

    model = simulator(step, name)
    planner = make(name, width=6, horizon=3) if name in FIXED_COST else make(name)
    plan = planner.plan(model, 0, seed=0, budget=10**6, time_limit=0.1)
    assert plan.stopped_by == "deadline"
    assert 49 <= plan.samples <= 51


@pytest.mark.parametrize("name", NAMES)
def test_with_a_time_limit_alone_every_planner_plans_and_plays_its_first_episode(name):
    settings = SETTINGS[name] | FIXED_BUDGET.get(name, {})
    if name not in FIXED_COST:
        settings.pop("horizon", None)  # Left to the planner.
    plan = pacplan.planners[name](**settings).plan(problem(name), 0, seed=0, time_limit=1e-9)
    assert plan.stopped_by == "deadline"
    assert plan.episodes == 1
    assert plan.samples >= 1


def search_of(name, seed=0, **settings):
    """A search of a planner that has not begun, and its query."""
    model = problem(name)
    root = np.random.SeedSequence(seed)
    planner = make(name, **settings)
    query = Query(model, 0, root, Limits(10**6))
    return planner, query, planner.start(query, model.open(root))


@pytest.mark.parametrize("name", NAMES)
def test_a_halted_search_makes_no_further_call_and_its_plan_stands(name):
    """What the deadline does to compiled models: it comes at any moment, from another thread."""
    planner, query, search = search_of(
        name, **({"width": 6, "horizon": 3} if name in FIXED_COST else {})
    )
    search.advance(0, 0)
    search.advance(20, 10**6)
    before = search.snapshot(0.0)
    search.halt()
    assert search.advance(10**6, 10**6) == ABORTED
    after = search.snapshot(0.0)
    assert after.samples == before.samples > 0
    assert after.action == before.action
    for side in ("lower", "upper"):
        assert (
            np.array_equal(getattr(after, side), getattr(before, side)) or getattr(before, side) is None
        )
    plan = planner.finish(query, search, "deadline", 0.0)
    assert plan.action == before.action and plan.stopped_by == "deadline"


@pytest.mark.parametrize("name", [name for name in NAMES if pacplan.planners[name].keeps_checkpoints])
def test_no_array_that_a_checkpoint_holds_is_shared_between_searches(name):
    # A search that resumes writes to them.
    one, other = (search_of(name, seed)[2].state_arrays() for seed in (0, 1))
    for key, array in one.items():
        assert array.size == 0 or not np.shares_memory(array, other[key]), key


@pytest.mark.parametrize("name", SAMPLING)
def test_counters_that_are_full_end_the_plan(name, monkeypatch):
    monkeypatch.setattr("pacplan.engine.search.MOST_COUNTED", 100)
    settings = {"width": 6, "horizon": 3} if name in FIXED_COST else {}
    plan = make(name, **settings).plan(problem(name), 0, seed=0, budget=10**6)
    assert plan.stopped_by == "memory"
    assert plan.samples == 100


@pytest.mark.parametrize("name", NAMES)
def test_bad_settings(name):
    for option, value in {"gamma": 1.1, "horizon": 0}.items():
        with pytest.raises((TypeError, ValueError), match=option):
            make(name, **{option: value})


@pytest.mark.parametrize("name", NAMES)
def test_bad_queries(name):
    planner = make(name)
    with pytest.raises((TypeError, ValueError)):
        planner.plan(problem(name), 30, budget=10)
    with pytest.raises(TypeError):
        planner.plan("model", 0, budget=10)
    if name not in FIXED_COST + UNLIMITED or name in GAMES:
        with pytest.raises(ValueError, match="budget"):
            planner.plan(problem(name), 0)
    tables = np.full((2, 1, 2, 1), 1.0), np.zeros((2, 1, 2))
    short = pacplan.TabularMDP(*tables, successors=np.zeros((2, 1, 2, 1), int))
    with pytest.raises(ValueError, match="one player" if name in GAMES else "steps|stationary"):
        (make(name, horizon=3) if name in FIXED_COST else planner).plan(short, 0, budget=10_000)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in NAMES
        if n not in ("atlas", "bracket", "canopy", "mdp-gape", "opd", "op-mdp", "stop", "ugape-mcts")
    ],
)
def test_planners_without_bounds_claim_nothing(name):
    plan = make(name).plan(problem(name), 0, seed=0, budget=300)
    assert plan.lower is None
    assert plan.upper is None
    assert plan.gap is None
    assert not plan.certified
    assert "best guess" in plan.guarantee
    assert "nan" not in json.dumps(plan.to_dict()).lower()


@pytest.mark.parametrize("name", KNOWN)
def test_planners_of_known_models_refuse_simulators(name):
    with pytest.raises(ValueError, match="TabularMDP"):
        make(name).plan(simulator(NOISY.step, name), 0, budget=100)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in GAMES])
def test_planners_for_one_player_refuse_games(name):
    with pytest.raises(ValueError, match="UGapEMCTS"):
        make(name).plan(GAME, 0, budget=100)
