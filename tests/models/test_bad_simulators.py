"""A simulator that breaks a promise is told which one, and what it raises comes through."""

import numpy as np
import pytest

import pacplan
from conftest import short
from faulty import EDGES, OwnError, P, plan_drawn
from pacplan import BrokenPromiseError, MDPGapE, Simulator, TabularMDP
from refusals import (
    HUGE,
    INF,
    NAN,
    PLANNER,
    SETTINGS,
    SHARP,
    Counting,
    broken,
    no_session_stays_open,
    refused,
)

_sessions = pytest.fixture(autouse=True)(no_session_stays_open)


# Simulators, before the first call --------------------------------------------------------------------


def simulator(**settings):
    given = {"step": lambda s, a, rng: (s, 0.5, False), "actions": 2, "successors": 1}
    return Simulator(**{**given, **settings})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"step": (0, 0.5, False)}, "step"),
        ({"actions": None}, "actions"),
        ({"actions": 0}, "actions"),
        ({"successors": 0}, "successors"),
        ({"actions": lambda s: 2, "max_actions": "3"}, "max_actions"),
        ({"max_actions": 3}, "max_actions=3 contradicts actions=2"),
        ({"stationary": 1}, "stationary"),
        ({"initial": [1]}, "hashable"),
    ],
    ids=short,
)
def test_what_is_no_simulator(settings, words):
    refused(lambda: simulator(**settings), words)


@pytest.mark.parametrize("offered", [[], -1, 3, ["a", "b", "c"]], ids=short)
def test_first_state_with_a_wrong_number_of_actions(offered):
    counting = Counting(actions=lambda s: offered, max_actions=2, initial="here")
    broken(lambda: PLANNER.plan(counting.model, seed=0), "'here'", "action")
    assert counting.calls == 0


def broken_at_start(call, *words):
    """Broken in the state 'start', by one of its actions."""
    with pytest.raises(BrokenPromiseError) as caught:
        call()
    message = str(caught.value)
    assert "'start'" in message
    assert "'left'" in message or "'right'" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize("reward", [NAN, -INF, 2.0, -1e-8, np.float32(7)])
def test_reward_outside_its_range(reward):
    broken_at_start(
        lambda: plan_drawn(("start", reward, False)), str(float(reward)), "reward_range=(0.0, 1.0)"
    )


@pytest.mark.parametrize("reward", ["0.5", None, 0.5j, np.array([0.5, 0.5]), HUGE], ids=short)
def test_reward_that_is_no_number(reward):
    broken_at_start(lambda: plan_drawn(("start", reward, False)), "reward")


@pytest.mark.parametrize(
    "drawn",
    [None, ("start", 0.5), ("start", 0.5, False, False, {}), ("start", 0.5, "False")],
    ids=short,
)
def test_step_that_returns_something_else(drawn):
    broken_at_start(lambda: plan_drawn(drawn), "(next_state, reward, terminated)", repr(drawn))


@pytest.mark.parametrize("state", [[1], np.zeros(2), ("a", [])], ids=short)
def test_unhashable_successor(state):
    broken_at_start(lambda: plan_drawn((state, 0.5, False)), "hashable", repr(state))


def test_more_successors_than_promised():
    def step(state, action, rng):
        return ("start", "b", "c")[rng.integers(3)], 0.5, False

    broken_at_start(lambda: plan_drawn(step), "2", "successors")
    assert plan_drawn(step, successors=3).samples > 0


def test_an_end_though_it_was_ruled_out():
    def step(state, action, rng):
        return state, 1.5, rng.random() < 0.2

    settings = {"may_end": False, "reward_range": (1.0, 2.0)}
    broken_at_start(lambda: plan_drawn(step, **settings), "may_end")
    broken_at_start(lambda: plan_drawn(("start", 1.5, True), **settings), "may_end")


@pytest.mark.parametrize(
    ("declared", "step"),
    [
        ("rewards", lambda s, a, rng: (s, rng.random(), False)),
        ("transitions", lambda s, a, rng: (("start", "b")[rng.integers(2)], 0.5, False)),
    ],
)
def test_chance_though_there_is_said_to_be_none(declared, step):
    planner = MDPGapE(**SHARP, **{declared: "deterministic"})
    broken_at_start(lambda: plan_drawn(step, planner), "deterministic")


@pytest.mark.parametrize(
    ("offered", "words"),
    [
        ([], ["no action"]),
        (3, ["3", "max_actions=2"]),
        (["a", "b", "c"], ["3", "max_actions=2"]),
        (2.0, ["2.0", "number"]),
        ("ab", ["'ab'", "number"]),
    ],
    ids=short,
)
def test_later_state_with_wrong_actions(offered, words):
    def actions(state):
        return offered if state == "later" else ["left", "right"]

    call = lambda: plan_drawn(("later", 0.5, False), actions=actions, max_actions=2)  # noqa: E731
    broken(call, "'later'", *words)


@pytest.mark.parametrize("actions", [[np.eye(2), np.eye(2)], [{"x": [1]}, {"x": (1,)}], ["a", "a"]])
def test_actions_that_cannot_be_told_apart(actions):
    model = simulator(actions=lambda s: actions, initial=0)
    with pytest.raises(pacplan.BrokenPromiseError, match=r"actions\(0\)"):
        PLANNER.plan(model, seed=0, budget=100)


@pytest.mark.parametrize("ends", EDGES, ids=str)
def test_ends_of_the_reward_range(ends):
    low, high = ends
    for reward in ends:
        plan = plan_drawn(("start", reward, False), reward_range=ends)
        assert plan.samples > 0
        plan = PLANNER.plan(
            TabularMDP(P, np.full((2, 3), reward), reward_range=ends), seed=0, budget=100
        )
        assert plan.samples > 0
    for reward in (low - 1e-8 * (high - low), high + 1e-8 * (high - low)):
        broken_at_start(
            lambda r=reward: plan_drawn(("start", r, False), reward_range=ends), "reward_range"
        )
        refused(lambda r=reward: TabularMDP(P, np.full((2, 3), r), reward_range=ends), "reward_range")


RAISED = [OwnError("what", 7), BrokenPromiseError("of its own"), StopIteration(3), SystemExit(4)]


@pytest.mark.parametrize("error", RAISED, ids=repr)
@pytest.mark.parametrize("where", ["step", "late step", "actions", "late actions"])
def test_what_a_simulator_raises_comes_through(error, where):
    calls = 0
    armed = True

    def raise_at(place, n):
        if armed and place == where.split()[-1] and (n > 100 or "late" not in where):
            raise error

    def step(state, action, rng):
        nonlocal calls
        calls += 1
        raise_at("step", calls)
        return calls, 0.5, False

    def actions(state):
        raise_at("actions", state)
        return 2

    planner = MDPGapE(**SETTINGS, transitions="deterministic")
    model = Simulator(
        lambda s, a, rng: (s + 1, *step(s, a, rng)[1:]), actions=actions, successors=1, max_actions=2
    )
    start = 97 if where == "late actions" else 0
    with pytest.raises(type(error)) as caught:
        planner.plan(model, start, seed=0, budget=3000)
    assert caught.value is error
    armed = False
    first = planner.plan(model, 0, seed=0, budget=300)
    fresh = MDPGapE(**SETTINGS, transitions="deterministic")
    assert first.action == fresh.plan(model, 0, seed=0, budget=300).action
