"""What cannot be planned is refused by name, before the model is called."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from conftest import short
from pacplan import MDPGapE, Simulator, TabularMDP, envs
from refusals import (
    HUGE,
    NEARLY_ONE,
    NOT_FINITE,
    NOT_FLAG,
    NOT_REAL,
    NOT_WHOLE,
    PLANNER,
    SETTINGS,
    Counting,
    no_session_stays_open,
    refused,
)

_sessions = pytest.fixture(autouse=True)(no_session_stays_open)


def plan_refused(counting, words, planner=PLANNER, **arguments):
    refused(lambda: planner.plan(counting.model, **{"seed": 0, **arguments}), *words)
    assert counting.calls == 0


@pytest.mark.parametrize("value", [*NOT_WHOLE, 0, -1, -(2**70)], ids=short)
def test_budget(value):
    plan_refused(Counting(), ["budget", repr(value)], budget=value)


@pytest.mark.parametrize(
    "value", [*(v for v in NOT_REAL if v is not None), *NOT_FINITE, 0, 0.0, -1, -1e-9], ids=short
)
def test_time_limit(value):
    plan_refused(Counting(), ["time_limit", repr(value)], time_limit=value)


def test_time_limit_too_large_for_a_float():
    plan_refused(Counting(), ["time_limit"], time_limit=HUGE)


@pytest.mark.parametrize(
    "value", [*NOT_WHOLE, -1, np.random.default_rng(0), np.random.PCG64(0)], ids=short
)
def test_seed(value):
    plan_refused(Counting(), ["seed", repr(value)], seed=value)


@pytest.mark.parametrize("value", NOT_FLAG, ids=short)
def test_progress(value):
    plan_refused(Counting(), ["progress", repr(value)], progress=value)


@pytest.mark.parametrize("value", [1, True, "print", [], (print,)], ids=short)
def test_callback(value):
    plan_refused(Counting(), ["callback", repr(value)], callback=value)


@pytest.mark.parametrize(
    "model", [None, 3, "garnet", print, Simulator, TabularMDP, envs.garnet, {}], ids=short
)
def test_what_is_no_model(model):
    refused(lambda: PLANNER.plan(model, 0), "model", type(model).__name__)


@pytest.mark.parametrize("state", [[1], {}, set(), np.zeros(2), ([],)], ids=short)
def test_unhashable_state(state):
    plan_refused(Counting(), ["hashable", repr(state)], state=state)


def test_no_state_to_plan_from():
    plan_refused(Counting(initial=None), ["state"])


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({"epsilon": 0.0}, {}, ["epsilon=0", "budget", "time_limit"]),
        ({"epsilon": 0.0, "horizon": 3}, {}, ["epsilon=0", "budget", "time_limit"]),
        ({"thresholds": "budget"}, {}, ["thresholds", "budget", "time_limit"]),
        ({"rewards": "known"}, {}, ["known", "Simulator"]),
        ({"transitions": "known"}, {}, ["known", "Simulator"]),
    ],
)
def test_what_the_planner_cannot_do(settings, arguments, words):
    planner = MDPGapE(**{**SETTINGS, **settings})
    plan_refused(Counting(), words, planner=planner, **arguments)


def test_unknown_number_of_successors():
    plan_refused(Counting(successors=None), ["successors"])


def test_fewer_steps_than_the_horizon():
    model = TabularMDP(np.full((3, 2, 2, 2), 0.5), np.zeros((3, 2, 2)))
    refused(lambda: PLANNER.plan(model), "3 steps", "horizon", str(PLANNER.horizon))


# Too large for 64 bits, or for any memory: refused by name, or served, but never half of it.
@pytest.mark.parametrize("value", [2**63, 10**30])
@pytest.mark.parametrize("name", ["budget", "chunk", "successors"])
def test_integers_beyond_64_bits(name, value):
    settings = {name: value} if name == "chunk" else {}
    try:
        counting = Counting(**({name: value} if name == "successors" else {}))
        planner = MDPGapE(epsilon=2.0, delta=0.1, gamma=0.7, **settings)
        arguments = {name: value} if name == "budget" else {"budget": 500}
        plan = planner.plan(counting.model, seed=0, **arguments)
        told = f"{name} served" if plan.samples == counting.calls else "calls got lost"
    except ValueError as error:
        told = str(error)
    assert name in told


@pytest.mark.parametrize(
    ("word", "planner", "model"),
    [
        ("horizon", "horizon=10**12", ""),
        ("horizon", "horizon=2**63", ""),
        ("horizon", f"gamma={NEARLY_ONE!r}", ""),
        ("actions", "", "actions=2**40"),
        ("actions", "", "actions=lambda s: 2**40"),
    ],
)
def test_sizes_that_no_memory_holds(word, planner, model):
    # In a process of its own with little memory: the attempt would take the machine with it.
    code = f"""
import pacplan
calls = []
def step(s, a, rng):
    calls.append(s)
    return s, 0.5, False
try:
    model = pacplan.Simulator(step, **{{**dict(actions=2, successors=1, initial=0), **dict({model})}})
    settings = {{**dict(epsilon=1, delta=.1, gamma=.7), **dict({planner})}}
    pacplan.MDPGapE(**settings).plan(model, seed=0, budget=100)
except (ValueError, TypeError) as error:
    print("refused:", len(calls), error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
    )
    assert run.stdout.startswith("refused: 0 "), run.stderr[-300:]
    assert word in run.stdout
