"""The one call: `pacplan.plan`, and the planner that it chooses."""

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan.models.protocol import BrokenPromiseError

ASKED = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.7, "horizon": 2}


def few_states(state, action, rng):
    """A walk on a ring of ten places."""
    move = 1 if (rng.random() < 0.8) == (action == 1) else -1
    return (state + move) % 10, float(state == 3), False


def histories(state, action, rng):
    """Ten successors for every pair, and no state on two paths."""
    return (*state, action, int(rng.integers(10))), 0.5, False


def some_recur(state, action, rng):
    """One of twelve places, and the time."""
    return (int(rng.integers(12)), state[1] + 1), 0.5, False


def drift(state, action, rng):
    return state + action + rng.normal(), float(state > 0), False


def count(state, action, rng):
    return state + action, float(state == 1), False


def by_step(state, action, rng, h):
    return (state + action + (rng.random() < 0.5)) % 3, float(h == 1), False


def simulator(step, **promises):
    return pacplan.Simulator(step, actions=2, **promises)


FIXED = {"transitions": "deterministic", "rewards": "deterministic"}
HINT = 'if nothing is, say transitions="deterministic" and rewards="deterministic"'
STILL = pacplan.envs.garnet(states=8, actions=2, successors=1, seed=0)
GAME = pacplan.envs.game_tree([[0.9, 0.2], 0.6])


LISTED = pacplan.Outcomes(
    lambda state, action: [(0.5, state // 2, 0.0, False), (0.5, min(state + action, 3), 1.0, False)],
    actions=2,
    reward_range=(0, 1),
)


# Which planner ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "state", "settings", "planner", "words"),
    [
        (random_small(np.random.default_rng(1)), 0, {}, "ValueIteration", "probability is known"),
        (random_small(np.random.default_rng(1)), 0, {"sample": True}, "Atlas", "states recur"),
        (LISTED, 0, {}, "ValueIteration", "probability is known"),
        (simulator(few_states), 3, {}, "Atlas", "states recur"),
        (simulator(few_states), 3, {"goal": "value"}, "Atlas goal='value'", "states recur"),
        (simulator(histories), (), {"horizon": 6}, "Bracket", "visited states were distinct"),
        (simulator(some_recur), (0, 0), {"horizon": 4}, "Bracket", "visited states were distinct"),
        (simulator(drift), 0.0, {}, "Canopy", "every successor may be new"),
        # Nothing random was seen, but nothing was promised, or of successors alone.
        (simulator(count), 0, {}, "Atlas", HINT),
        (simulator(count), 0, {"rewards": "deterministic"}, "Atlas", HINT),
        (simulator(count), 0, FIXED, "OPD merge='stationary'", "nothing is random, as you declared"),
        (
            simulator(count, successors=1),
            0,
            {"rewards": "deterministic"},
            "OPD merge='stationary'",
            "nothing is random, as you declared",
        ),
        # A table shows by itself that nothing is random, to a planner without a budget for a look, too.
        (STILL, 0, {"sample": True}, "OPD merge='stationary'", "as the model's table shows"),
        (simulator(by_step, stationary=False), 0, {}, "Bracket", "visited states were distinct"),
        # Settings that not every planner has.
        (simulator(drift), 0.0, {"value_range": (0, 2), "budget": 3000}, "Canopy", "every successor"),
        (simulator(drift), 0.0, {"goal": "value", "budget": 3000}, "Bracket goal='value'", "no state"),
        # A look would be more than a tenth of the calls.
        (simulator(drift), 0.0, {"budget": 1119}, "Bracket", "(Planned by Bracket.)"),
        (simulator(drift), 0.0, {"budget": 1120}, "Canopy", "every successor"),
        (simulator(count, successors=1), 0, {"budget": 1}, "Bracket", "(Planned by Bracket.)"),
    ],
)
def test_the_choice(model, state, settings, planner, words):
    asked = ASKED | settings
    limits = {"budget": asked.pop("budget")} if "budget" in asked else {}
    plan = pacplan.plan(model, state, seed=2, **limits, **asked)
    name, *parts = planner.split()
    assert plan.planner.startswith(f"{name}(")
    for part in parts:
        assert part in plan.planner
    if not any("merge" in part for part in parts):
        assert "merge" not in plan.planner
    assert f"(Planned by {name}" in plan.guarantee and words in plan.guarantee


def test_it_is_the_chosen_planners_own_plan_for_this_seed():
    """And the calls of the look are none of the plan's."""
    for step, state in ((few_states, 3), (drift, 0.0)):
        plan = pacplan.plan(simulator(step), state, seed=2, **ASKED)
        planner = eval(f"pacplan.{plan.planner}")
        same = planner.plan(simulator(step), state, seed=2)
        assert plan.guarantee.startswith(f"{same.guarantee} (Planned by ")
        for field in ("lower", "upper", "calls", "values"):
            np.testing.assert_array_equal(getattr(plan, field), getattr(same, field))
        assert (plan.samples, plan.action) == (same.samples, same.action)
        assert 0 < plan.calls_made - same.calls_made <= 112


def rarely(chance, ends):
    """Of two actions, one pays 1 with a chance, and may end by it; there is one successor at most."""
    likely = np.array([[[chance, 1.0 - chance], [1.0, 0.0]]])
    rewards = np.array([[[1.0, 0.0], [0.001, 0.001]]])
    to = np.zeros((1, 2, 2), int)
    if ends:
        to[0, 0] = 1, 2
    rows = [(0, 2), (0, 0), (0, 0)]
    return pacplan.TabularMDP(
        np.pad(likely, rows), np.pad(rewards, rows), np.pad(to, rows), terminal=[1, 2]
    )


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("hidden", [None, {"successors": 1}, {"successors": None}])
def test_no_certificate_rests_on_what_was_not_seen(ends, hidden):
    table = rarely(0.01, ends)
    assert table.successors == 1
    model = table if hidden is None else simulator(table.step, **hidden)
    declared = {"transitions": "deterministic"} if hidden == {"successors": None} else {"sample": True}
    unseen = 0
    for seed in range(8):
        plan = pacplan.plan(model, 0, seed=seed, budget=1200, **ASKED, **declared)
        assert not plan.planner.startswith("OPD")
        unseen += HINT in plan.guarantee
    assert unseen > 0 or ends or hidden is None  # It looked as if nothing were random.


def test_a_table_is_not_told_what_it_shows_to_be_false():
    table = rarely(0.5, ends=False)
    with pytest.raises(ValueError, match="rewards='deterministic', but"):
        pacplan.plan(table, 0, rewards="deterministic", seed=0, **ASKED)
    with pytest.raises(ValueError, match="transitions='deterministic', but"):
        pacplan.plan(pacplan.envs.garnet(seed=0), 0, seed=0, **ASKED, **FIXED)


def test_atlas_hands_over_where_new_states_keep_coming():
    """Bracket has the rest of the budget, and random numbers of its own."""
    asked = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.95, "horizon": 30}
    model = simulator(some_recur)
    plan = pacplan.plan(model, (0, 0), seed=0, budget=8000, **asked)
    assert plan.planner.startswith("Bracket(") and plan.stopped_by == "budget"
    assert "because new states kept coming when Atlas had found" in plan.guarantee
    assert 8000 < plan.calls_made <= 8112 and 4000 <= plan.samples < 8000
    origin = plan.origin
    seed = np.random.SeedSequence(origin.seed, spawn_key=origin.spawn_key)
    bracket = pacplan.Bracket(**asked)
    again = bracket.plan(model, (0, 0), seed=seed, budget=origin.budget)
    assert origin.spawn_key and again.samples == plan.samples
    np.testing.assert_array_equal(again.lower, plan.lower)
    alone = pacplan.plan(model, (0, 0), seed=0, budget=2000, workers=1, **asked)
    assert alone.planner.startswith("Bracket(")
    assert "Atlas takes no workers=: without, it may" in alone.guarantee


# Limits -----------------------------------------------------------------------------------------------


def test_slow_simulators_within_a_time_limit(monkeypatch, clock):
    """The look takes a tenth of the time, and its time is not the plan's."""
    monkeypatch.setattr("pacplan.look.time", clock)
    made = []

    def step(state, action, rng):
        made.append(clock.now)
        clock.now += 1.0
        return drift(state, action, rng)

    # The clock is moved by calls alone: the thread that watches the deadline must not matter.
    monkeypatch.setattr("pacplan.engine.driver._RETURN", 0.0)
    asked = ASKED | {"epsilon": 0.01}
    plan = pacplan.plan(simulator(step), 0.0, time_limit=200.5, seed=0, **asked)
    assert plan.stopped_by == "deadline" and plan.planner.startswith("Canopy")
    # The first call, which may compile, does not count.
    assert plan.samples <= 201 - 21
    assert clock.now <= 202.5
    # Too slow for any look: what a single call shows is nothing.
    made.clear()
    assert "Bracket" in pacplan.plan(simulator(step), 0.0, time_limit=5, seed=0, **asked).planner
    assert pacplan.plan(simulator(step), 0.0, time_limit=1, seed=0, **asked).stopped_by == "deadline"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"budget": 0}, "budget"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"callback": 3}, "callback"),
        ({"checkpoint": "no/such/folder"}, "no such folder"),
        ({"checkpoint": "file", "every": 0.0}, "every"),
        ({"seed": -1}, "seed"),
        ({"epsilon": 0.0}, "budget"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": "five"}, "5%"),
        ({"epsilon": "nan%"}, "nan%"),
        ({"epsilon": "101%"}, "101%"),
        ({"epsilon": "5%", "gamma": 1.0, "horizon": None}, "horizon"),
        ({"epsilon": "5%", "value_range": (2, 1)}, "value_range"),
        ({"delta": 2.0}, "delta"),
        ({"gamma": None}, "plan.. needs gamma"),
        ({"rewards": "random"}, "rewards"),
        (
            {"thresholds": "paper"},
            r"takes no thresholds= .*\(mdp-gape would take it\); it takes .*goal",
        ),
        ({"colour": "red"}, "takes no colour= for this model; it takes .*value_bounds"),
        ({"workes": 4}, r"takes no workes= .*\(did you mean workers=\?\)"),
        ({"state": [1]}, "hashable"),
        ({"state": None}, "name a state"),
    ],
)
def test_what_is_wrong_is_said_before_the_first_call(wrong, words):
    def step(state, action, rng):
        raise AssertionError("called")

    asked = ASKED | {"state": 0} | wrong
    with pytest.raises((TypeError, ValueError), match=words):
        pacplan.plan(simulator(step), **asked)


@pytest.mark.parametrize("settings", [{}, {"rewards": "deterministic"}])
def test_what_is_declared_wrongly(settings):
    """The look calls pairs again, which the search may never do."""
    with pytest.raises(BrokenPromiseError, match="='deterministic', but a second successor"):
        pacplan.plan(simulator(drift), 0.0, seed=0, transitions="deterministic", **settings, **ASKED)


# Per cent ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "promises", "epsilon"),
    [
        # 5 % of 1 + 0.7 + 0.49, and of 1 / (1 - 0.7).
        ({"gamma": 0.7, "horizon": 3}, {}, 0.05 * 2.19),
        ({"gamma": 0.7}, {}, 0.05 / 0.3),
        # Rewards of a range of 4; after an end they are 0.
        ({"gamma": 0.7, "horizon": 3}, {"reward_range": (-1, 3)}, 0.2 * 2.19),
        ({"gamma": 0.7, "horizon": 3}, {"reward_range": (2, 4), "may_end": False}, 0.1 * 2.19),
        ({"gamma": 0.7, "horizon": 3}, {"reward_range": (2, 4)}, 0.2 * 2.19),
        ({"gamma": 0.7, "horizon": 3, "value_range": (0.5, 2.5)}, {}, 0.1),
    ],
)
def test_per_cent_of_the_range_of_values(settings, promises, epsilon):
    model = simulator(few_states, **{"reward_range": (0, 1)} | promises)
    if model.reward_range[0] > 0:
        model = simulator(lambda s, a, rng: (s, 3.0, False), **promises)
    plan = pacplan.plan(model, 3, epsilon="5%", delta=0.1, seed=0, budget=100, **settings)
    # Four digits, and no more than was asked for.
    assert 0.999 * epsilon < plan.epsilon <= epsilon * (1 + 1e-12)
    assert plan.epsilon == float(f"{plan.epsilon:.4g}")
    assert f"epsilon=5% of the range of values is {plan.epsilon:g}.)" in plan.guarantee


def test_per_cent_is_for_plan_alone():
    with pytest.raises(ValueError, match=r"pacplan\.plan"):
        pacplan.Bracket(**ASKED | {"epsilon": "5%"})


# Planners by name -------------------------------------------------------------------------------------


def test_games():
    plan = pacplan.plan(GAME, epsilon="10%", delta=0.1, seed=0)
    assert plan.action == 1 and plan.certified and "UGapEMCTS" in plan.guarantee
    with pytest.raises(ValueError, match="gamma"):
        pacplan.plan(GAME, epsilon=0.1, delta=0.1, gamma=0.9)
