"""What a plan says that was not certified, and what a certificate says that means little."""

import json
import re

import numpy as np
import pytest

import pacplan
from pacplan import Simulator
from pacplan.diagnosis import outlook

GARNET = pacplan.envs.garnet(seed=0)


def curve(gap, calls=10_000, points=12):
    """A curve of `points` points up to `calls`, 1.5 times as many calls from one to the next."""
    n = calls / 1.5 ** np.arange(points - 1, -1, -1)
    return np.column_stack([n, gap(n)])


@pytest.mark.parametrize(("power", "asked"), [(0.2, 0.1), (0.5, 0.01), (1.0, 1e-5)])
def test_the_outlook_goes_on_with_the_power_of_the_curve(power, asked):
    needed, words = outlook(curve(lambda n: 3.0 * n**-power), asked)
    assert needed == pytest.approx((3.0 / asked) ** (1.0 / power), rel=0.25)  # Two digits.
    assert f"{needed:,} calls" in words
    assert ("too far" in words) == (needed > 50 * 10_000)


def test_the_outlook_knows_that_the_gap_tends_to_less_than_nothing():
    points = curve(lambda n: 50.0 * n**-0.5 - 0.3)
    needed, _ = outlook(points, asked=0.1, apart=0.3)
    assert needed == pytest.approx((50.0 / 0.4) ** 2, rel=0.25)
    assert outlook(points, asked=0.1)[0] != needed


def test_the_outlook_says_so_if_it_cannot_tell():
    for first, words in ((2.0, "nothing is proven yet"), (3.0, "the gap has stopped shrinking")):
        needed, said = outlook(curve(lambda n, gap=first: np.where(n < 500, gap, 2.0)), asked=0.1)
        assert needed is None and words in said
    # So flat that more calls than anybody has would be needed.
    assert outlook(curve(lambda n: n**-0.11), asked=1e-9)[0] is None
    for few in (curve(lambda n: 1.0 / n, points=3), np.array([[0.0, 1.0]]), np.array([[5.0, 1.0]])):
        needed, words = outlook(few, asked=1e-9)
        assert needed is None
        assert "too few" in words


def test_a_plan_that_is_not_certified_says_so_first():
    plan = pacplan.Bracket(epsilon=0.2, delta=0.1, gamma=0.7).plan(GARNET, 0, seed=0, budget=1000)
    assert not plan.certified
    assert plan.guarantee.startswith("Not certified: you asked for epsilon = 0.2, but action ")
    told = plan.diagnosis
    assert (told.asked, told.goal, told.samples) == (0.2, "action", 1000)
    assert told.reached == plan.gap > 0.2
    assert str(told).startswith("Not certified: you asked for epsilon = 0.2, but the action is ")
    text = str(plan)
    assert all(line in text for line in told.explanation())
    assert text.index("Not certified") < text.index("Stopped after") < text.index("Outlook")
    assert 1000 < told.samples_needed < 100_000
    proven = next(advice for advice in told.advice if advice.setting == "epsilon")
    assert proven.value >= told.reached
    record = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert record["diagnosis"]["samples_needed"] == told.samples_needed


def test_certified_plans_and_guesses_have_no_diagnosis():
    certain = pacplan.Bracket(epsilon=1, delta=0.1, gamma=0.7).plan(GARNET, 0, seed=0)
    assert certain.certified
    for plan in (
        certain,
        pacplan.Bracket(epsilon=0, delta=0.1, gamma=0.7).plan(GARNET, 0, seed=0, budget=500),
        pacplan.UCT(gamma=0.7).plan(GARNET, 0, seed=0, budget=500),
        # Nothing is proven, so nothing may be said to be.
        pacplan.MDPGapE(epsilon=0.1, delta=0.1, gamma=0.7, thresholds="paper").plan(
            GARNET, 0, seed=0, budget=500
        ),
    ):
        assert plan.diagnosis is None
        assert "Not certified" not in plan.guarantee


def test_merging_is_advised_where_states_recur_and_only_there():
    def settings(planner, model, state, budget=20_000):
        plan = planner.plan(model, state, seed=0, budget=budget)
        return {advice.setting: advice.value for advice in plan.diagnosis.advice}

    asked = {"epsilon": 0.1, "delta": 0.1, "gamma": 0.9, "horizon": 8}
    grid = pacplan.envs.gridworld()
    assert settings(pacplan.Bracket(**asked), grid, None)["planner"] == "value-iteration"
    assert settings(pacplan.MDPGapE(**asked), grid, None)["merge"] == "depth"
    assert "merge" not in settings(pacplan.MDPGapE(merge="depth", **asked), grid, None, 1000)

    def grow(state, action, rng):
        return (*state, action, int(rng.random() * 2)), rng.random(), False

    tree = pacplan.Simulator(grow, actions=2, successors=2, reward_range=(0, 1))
    assert "planner" not in settings(pacplan.Bracket(**asked), tree, ())

    def certain(state, action, rng):
        return (*state, action), rng.random(), False

    line = pacplan.Simulator(certain, actions=2, successors=5, reward_range=(0, 1))
    assert settings(pacplan.Bracket(**asked), line, ())["transitions"] == "deterministic"


def test_the_goal_and_the_tail_are_taken_into_account():
    common = {"epsilon": 0.1, "delta": 0.1, "gamma": 0.7}
    plan = pacplan.Bracket(goal="value", **common).plan(GARNET, 0, seed=0, budget=1000)
    half = 0.5 * (plan.upper.max() - plan.lower.max())
    assert plan.diagnosis.reached == pytest.approx(half)
    assert "the value is only known within" in str(plan.diagnosis)
    plan = pacplan.Bracket(target="infinite", **common).plan(GARNET, 0, seed=0, budget=1000)
    tail = 0.7**plan.horizon / 0.3
    assert plan.diagnosis.reached == pytest.approx(plan.gap + tail)
    assert any("cuts off" in cause for cause in plan.diagnosis.causes)


def test_a_certificate_that_holds_before_the_first_call_decides_nothing():
    plan = pacplan.Bracket(epsilon=5, delta=0.1, gamma=0.7, horizon=3).plan(GARNET, 0, seed=0)
    assert plan.certified and plan.samples == 0
    assert plan.warning.startswith("Nothing was decided")


def test_a_tail_that_dwarfs_the_problem_is_not_taken_for_a_guarantee():
    plan = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.99, horizon=2).plan(GARNET, 0, seed=0)
    assert plan.certified
    assert "infinite" not in plan.guarantee
    assert "The certificate covers 2 steps only" in plan.guarantee
    needed = int(re.search(r"With horizon=(\d+) they add at most epsilon", plan.guarantee)[1])
    assert 0.99**needed / 0.01 <= 0.1 < 0.99 ** (needed - 1) / 0.01
    long = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.7).plan(GARNET, 0, seed=0)
    assert "over an infinite horizon" in long.guarantee


@pytest.mark.parametrize("calls", [81_000, 10_040, 19_990, 999_999, 4_321])
def test_no_forecast_lies_below_the_calls_already_made(calls):
    points = curve(lambda n: 3.0 * n**-0.5, calls=calls)
    needed, words = outlook(points, asked=0.999 * points[-1, 1])
    assert calls < needed <= 1.5 * calls
    assert f"about {needed:,} calls" in words


# Advice is followed.


def gates(place, action, rng):
    """A maze in which nothing is random: 5 by 5 places, one of which pays."""
    x, y = place
    x, y = [(x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)][action]
    x, y = min(max(x, 0), 4), min(max(y, 0), 4)
    return (x, y), float((x, y) == (3, 2)), False


def test_atlas_says_what_its_proof_takes():
    planner = pacplan.Atlas(epsilon=0.1, delta=0.1, gamma=0.95)
    model = pacplan.testing.problems.Hidden(pacplan.envs.riverswim())
    early = planner.plan(model, 0, seed=0, budget=3000).diagnosis
    enough = planner.plan(model, 0, seed=0).samples
    assert "proof that is planned now" in str(early)
    assert enough / 5 < early.samples_needed < enough * 5


ASKED = {"epsilon": 0.1, "gamma": 0.9, "horizon": 8, "delta": 0.1}
GATES = Simulator(gates, actions=4)


@pytest.mark.parametrize(
    ("horizon", "changes", "budget"),
    [(8, {"planner": "atlas"}, 60_000), (4, {"transitions": "deterministic"}, 20_000)],
)
def test_advice_that_is_followed_helps(horizon, changes, budget):
    asked = ASKED | {"horizon": horizon}
    plan = pacplan.Bracket(**asked).plan(GATES, (0, 0), seed=0, budget=budget)
    advice = {each.setting: each.value for each in plan.diagnosis.advice}
    (setting,) = changes
    assert not plan.certified and advice[setting] == changes[setting]
    planner = pacplan.planners[changes.pop("planner", "bracket")]
    assert planner(**asked | changes).plan(GATES, (0, 0), seed=0, budget=budget).certified
