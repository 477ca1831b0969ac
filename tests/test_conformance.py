"""Every planner through the same list."""

import json
import math

import numpy as np
import pytest

import pacplan
from pacplan.compiled.streams import streams
from pacplan.engine.calls import ABORTED
from pacplan.engine.query import Query
from pacplan.testing import PLANNER_CHECKS, check_planner

NOISY = pacplan.envs.garnet(states=30, actions=3, seed=2, noise="bernoulli")
FIXED = pacplan.envs.garnet(states=30, actions=3, successors=1, seed=2)
GAME = pacplan.envs.game_tree(np.random.default_rng(2).random((3, 3, 3)).tolist())
# One way to make each planner, so that it needs a budget to stop and fits small problems.
SETTINGS = {
    "bracket": {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 5},
    "mdp-gape": {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 5},
    "sparse-sampling": {"gamma": 0.7, "horizon": 2, "width": 3},
    "uct": {"gamma": 0.7, "horizon": 8},  # Deep enough for a tree that outgrows its first room.
    "brue": {"gamma": 0.7, "horizon": 5},
    "olop": {"gamma": 0.7, "horizon": 5},
    "kl-olop": {"gamma": 0.7, "horizon": 5},
    "opd": {"gamma": 0.7},
    "op-mdp": {"gamma": 0.7},
    "stop": {"epsilon": 0.01, "delta": 0.1, "gamma": 0.3},
    "trailblazer": {"epsilon": 0.5, "delta": 0.1, "gamma": 0.3},
    "smooth-cruiser": {"epsilon": 0.9, "delta": 0.1, "gamma": 0.3, "temperature": 0.05},
    "ugape-mcts": {"epsilon": 0.0, "delta": 0.1},
}
DETERMINISTIC = ("opd",)
# It reads tables, and samples nothing.
KNOWN = ("op-mdp",)
# What it costs is known beforehand, and it ends by itself.
FIXED_COST = ("sparse-sampling",)
# They stop by themselves, however late, so they need no budget.
UNLIMITED = ("stop", "trailblazer", "smooth-cruiser", "ugape-mcts")
GAMES = ("ugape-mcts",)
NAMES = list(pacplan.planners)
SAMPLING = [name for name in NAMES if name not in KNOWN]


def problem(name):
    """A problem that the planner can handle."""
    if name in GAMES:
        return GAME
    return FIXED if name in DETERMINISTIC else NOISY


def simulator(step, name):
    """A Python model of it, over another step."""
    game = name in GAMES
    return pacplan.Simulator(step, actions=3, successors=problem(name).successors, two_player=game)


def make(name, **options):
    return pacplan.planners[name](**(SETTINGS[name] | options))


def test_every_planner_is_here():
    assert set(SETTINGS) == set(pacplan.planners)
    for name, cls in pacplan.planners.items():
        assert cls.name == name
        assert getattr(pacplan, cls.__name__) is cls


# What a planner rightly refuses, or has no use for.
SIMULATED = ("budget", "python model", "jitted model", "ends", "state actions", "deadline", "interrupt")
SIMULATED += ("model raises", "bad reward")
SKIPPED = {
    # They hold few records: of sequences, of steps, of policies; and the game is small.
    "olop": ("state actions", "memory"),
    "kl-olop": ("state actions", "memory"),
    "opd": ("other seeds",),
    "op-mdp": ("other seeds", *SIMULATED),
    "stop": ("memory",),
    "sparse-sampling": ("memory",),
    "smooth-cruiser": ("memory",),
    "ugape-mcts": ("memory",),
}


@pytest.mark.parametrize("check", PLANNER_CHECKS)
@pytest.mark.parametrize("name", NAMES)
def test_planner(name, check):
    planner = make(name, width=4) if name in FIXED_COST else make(name)
    random = name not in DETERMINISTIC + KNOWN
    report = check_planner(planner, problem(name), 0, random=random, only=[check])
    assert (check in report.skipped) == (check in SKIPPED.get(name, ())), str(report)


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


def search_of(name, seed=0, **settings):
    """A search of a planner that has not begun, and its query."""
    model = problem(name)
    root = np.random.SeedSequence(seed)
    planner = make(name, **settings)
    query = Query(model, 0, model.actions(0), 10**6, *streams(root, 2))
    return planner, query, planner.start(query, model.open(root))


@pytest.mark.parametrize("name", NAMES)
def test_a_halted_search_makes_no_further_call_and_its_plan_stands(name):
    """What the deadline does to compiled models: it comes at any moment, from another thread."""
    planner, query, search = search_of(
        name, **({"width": 6, "horizon": 3} if name in FIXED_COST else {})
    )
    search.prepare()
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


def large(name):
    """A planner and a problem whose records outgrow the room that a search begins with."""
    successors = 1 if name in DETERMINISTIC else 10
    model = pacplan.envs.garnet(
        states=2000, actions=3, successors=successors, seed=2, noise=problem(name).noise
    )
    return make(name, **({"horizon": 12} if "horizon" in SETTINGS[name] else {})), model


# Two hold as many records as they have steps, known beforehand, and the game fits the first room.
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("sparse-sampling", "smooth-cruiser", *GAMES)]
)
def test_out_of_memory_the_best_action_and_its_gap_remain(name):
    planner, model = large(name)
    unlimited = planner.plan(model, 0, seed=0, budget=30_000)
    if name == "stop":
        plan = make(name, max_policies=4).plan(model, 0, seed=0, budget=30_000)
    else:
        root = np.random.SeedSequence(0)
        query = Query(model, 0, model.actions(0), 30_000, *streams(root, 2))
        least = planner.start(query, model.open(root)).room.held
        plan = planner.plan(model, 0, seed=0, budget=30_000, memory_limit=least + 1000)
        assert plan.memory <= least + 1000 < unlimited.memory
    assert plan.stopped_by == "memory"
    assert not plan.certified
    assert 0 < plan.samples < unlimited.samples
    assert plan.action in plan.actions
    if plan.lower is not None:
        # Bounds as after so many calls: wider than in the end.
        assert plan.gap >= unlimited.gap
    assert "memory" in str(plan)


@pytest.mark.parametrize("name", SAMPLING)
def test_counters_that_are_full_end_the_plan(name, monkeypatch):
    monkeypatch.setattr("pacplan.engine.search.MOST_COUNTED", 100)
    settings = {"width": 6, "horizon": 3} if name in FIXED_COST else {}
    plan = make(name, **settings).plan(problem(name), 0, seed=0, budget=10**6)
    assert plan.stopped_by == "memory"
    assert plan.samples == 100


@pytest.mark.parametrize("name", SAMPLING)
@pytest.mark.parametrize("reward", [2.0, -0.1, math.nan])
def test_a_reward_out_of_range(name, reward):
    model = pacplan.Simulator(
        lambda s, a, rng: (s, reward, False), actions=2, successors=1, two_player=name in GAMES
    )
    with pytest.raises(pacplan.BrokenPromiseError, match="reward_range"):
        make(name).plan(model, 0, seed=0, budget=100)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("option", "value"),
    [("gamma", 1.1), ("gamma", -0.1), ("gamma", "x"), ("horizon", 0), ("horizon", 1.5), ("chunk", 0)],
)
def test_bad_settings(name, option, value):
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
    with pytest.raises(ValueError, match="steps" if name not in GAMES else "one player"):
        (make(name, horizon=3) if name in FIXED_COST else planner).plan(short, 0, budget=10_000)


@pytest.mark.parametrize(
    "name",
    [n for n in NAMES if n not in ("bracket", "mdp-gape", "opd", "op-mdp", "stop", "ugape-mcts")],
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
