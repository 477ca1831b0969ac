"""Bounds on values that the user knows: they save calls, and the bounds still hold."""

import numpy as np
import pytest

import pacplan
from conftest import random_small
from pacplan import exact
from pacplan.compiled.streams import streams

PLANNERS = [pacplan.Bracket, pacplan.MDPGapE]
GAMMA, HORIZON = 0.8, 4


def solved(model):
    """V_h(s), h = 0..H."""
    values = exact.finite_horizon(model, gamma=GAMMA, horizon=HORIZON).max(-1)
    return np.vstack([values, np.zeros(model.states)])


def around(model, slack):
    values = solved(model)
    return (lambda state, h: values[h, state] - slack, lambda state, h: values[h, state] + slack)


def make(cls, model, slack=None, **settings):
    bounds = None if slack is None else around(model, slack)
    given = {"epsilon": 0.3, "delta": 0.1, "gamma": GAMMA, "horizon": HORIZON, "value_bounds": bounds}
    return cls(**(given | settings))


@pytest.mark.parametrize("cls", PLANNERS)
def test_they_save_calls_and_the_answer_is_right(cls):
    calls = {None: 0, 0.05: 0}
    for seed in range(12):
        model = random_small(np.random.default_rng(seed), states=6, actions=3)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=HORIZON)[0, 0]
        for slack in calls:
            plan = make(cls, model, slack).plan(model, 0, seed=seed, budget=500_000)
            calls[slack] += plan.samples
            assert plan.certified
            assert q.max() - q[plan.action] <= 0.3
            assert plan.upper[q.argmax()] >= q.max()
            assert np.all(plan.lower <= q)
            assert ("value_bounds bound the values" in plan.assumptions) == (slack is not None)
    assert calls[0.05] < 0.7 * calls[None]


@pytest.mark.parametrize("cls", PLANNERS)
def test_the_states_value_is_limited_at_once(cls):
    model = random_small(np.random.default_rng(3))
    plan = make(cls, model, 0.1, epsilon=0.0).plan(model, 0, seed=1, budget=1)
    value = solved(model)[0, 0]
    assert plan.upper.max() == pytest.approx(value + 0.1)


@pytest.mark.parametrize("cls", PLANNERS)
def test_python_simulators_see_their_own_states(cls):
    table = random_small(np.random.default_rng(3))
    values = solved(table)

    # What kernels draw from the same seed.
    stream, _ = streams(np.random.SeedSequence(2), 2)

    def step(state, action, rng):
        after, reward, ended = table.step(ord(state) - 65, action, stream)
        return chr(65 + after), reward, ended

    model = pacplan.Simulator(step, actions=2, successors=2)
    bounds = (lambda s, h: values[h, ord(s) - 65] - 0.1, lambda s, h: values[h, ord(s) - 65] + 0.1)
    settings = {"value_bounds": bounds, "epsilon": 0.0}
    with_names = make(cls, table, **settings).plan(model, "A", seed=2, budget=500)
    settings["value_bounds"] = around(table, 0.1)
    with_numbers = make(cls, table, **settings).plan(table, 0, seed=2, budget=500)
    np.testing.assert_array_equal(with_names.upper, with_numbers.upper)


@pytest.mark.parametrize("cls", PLANNERS)
def test_bad_bounds(cls):
    model = random_small(np.random.default_rng(0))
    for bad in (1.0, ("1", 2.0), (lambda s, h: 0.0,)):
        with pytest.raises(TypeError, match="value_bounds"):
            make(cls, model, value_bounds=bad)
    crossed = (lambda s, h: 1.0, lambda s, h: 0.5)
    with pytest.raises(pacplan.BrokenPromiseError, match="above the upper"):
        make(cls, model, value_bounds=crossed).plan(model, 0, seed=0, budget=100)

    def raises(state, h):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        make(cls, model, value_bounds=(raises, raises)).plan(model, 0, seed=0, budget=100)
    nothing = (lambda s, h: float("nan"), lambda s, h: 1.0)
    with pytest.raises(ValueError, match="finite"):
        make(cls, model, value_bounds=nothing).plan(model, 0, seed=0, budget=100)


@pytest.mark.parametrize("planner", ["Bracket", "MDPGapE"])
def test_what_is_left_when_the_users_function_is_interrupted_holds(planner):
    def upper(state, h):
        raise KeyboardInterrupt

    model = random_small(np.random.default_rng(3))
    q = exact.finite_horizon(model, gamma=GAMMA, horizon=HORIZON)[0, 0]
    make_one = getattr(pacplan, planner)
    plan = make(make_one, model, value_bounds=(lambda s, h: 0.0, upper)).plan(model, 0, seed=0)
    assert plan.stopped_by == "interrupt"
    assert np.all(plan.lower <= q) and np.all(plan.upper >= q)
