"""Settings that make no sense are refused at once and by name."""

import math

import numpy as np
import pytest

import pacplan
from conftest import short
from pacplan import MDPGapE
from refusals import (
    HUGE,
    INF,
    NAN,
    NOT_FINITE,
    NOT_REAL,
    NOT_WHOLE,
    SETTINGS,
    Counting,
    refused,
)


@pytest.mark.parametrize("name", ["epsilon", "delta", "gamma"])
@pytest.mark.parametrize("value", [*NOT_REAL, *NOT_FINITE], ids=short)
def test_planner_reals(name, value):
    refused(lambda: MDPGapE(**{**SETTINGS, name: value}), name, repr(value))


@pytest.mark.parametrize("name", ["epsilon", "delta", "gamma"])
def test_planner_reals_too_large_for_a_float(name):
    refused(lambda: MDPGapE(**{**SETTINGS, name: HUGE}), name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", -1),
        ("epsilon", -1e-300),
        ("delta", 0),
        ("delta", 0.0),
        ("delta", 1),
        ("delta", -0.1),
        ("delta", 1.1),
        ("gamma", -0.1),
        ("gamma", 1.0000001),
        ("gamma", -5e-324),
    ],
)
def test_planner_reals_out_of_range(name, value):
    refused(lambda: MDPGapE(**{**SETTINGS, name: value}), name, str(value))


def test_the_smallest_epsilon_has_a_horizon_too():
    # epsilon (1 - gamma) / 2 underflows, its logarithm does not.
    horizon = MDPGapE(epsilon=5e-324, delta=0.1, gamma=0.7).horizon
    assert 0.7**horizon * 2.0 / 0.3 <= 5e-324 < 0.7 ** (horizon - 10) * 2.0 / 0.3


@pytest.mark.parametrize("name", ["horizon", "chunk"])
@pytest.mark.parametrize("value", [*NOT_WHOLE, 0, -1], ids=short)
def test_planner_whole_numbers(name, value):
    refused(lambda: MDPGapE(**{**SETTINGS, name: value}), name, repr(value))


@pytest.mark.parametrize("name", ["epsilon", "delta", "gamma"])
def test_planner_settings_are_required(name):
    refused(lambda: MDPGapE(**{k: v for k, v in SETTINGS.items() if k != name}), name)


def test_no_discount_needs_a_horizon():
    refused(lambda: MDPGapE(epsilon=1, delta=0.1, gamma=1), "gamma=1", "horizon")


@pytest.mark.parametrize("name", ["goal", "rewards", "transitions", "thresholds"])
@pytest.mark.parametrize("value", ["", "Action", "none", None, True, 1, NAN, [], object()], ids=short)
def test_planner_words(name, value):
    refused(lambda: MDPGapE(**{**SETTINGS, name: value}), name, repr(value))


@pytest.mark.parametrize(
    "thresholds",
    [
        (),
        (abs,),
        (abs, abs, abs),
        (abs, 1),
        [abs, abs],
        abs,
        (lambda: 1.0, lambda: 1.0),
        (lambda n: 1.0, lambda n, delta, more: 1.0),
    ],
    ids=["none", "one", "three", "number", "list", "function", "of nothing", "of three"],
)
def test_thresholds_that_are_no_pair_of_functions(thresholds):
    refused(lambda: MDPGapE(**SETTINGS, thresholds=thresholds), "thresholds")


@pytest.mark.parametrize("value", [-1.0, NAN, INF, "a", None, [1.0, 2.0]], ids=str)
@pytest.mark.parametrize("which", [0, 1])
def test_thresholds_that_return_no_finite_number(value, which):
    pair = [lambda n: 1.0, lambda n: 1.0]
    pair[which] = lambda n: value
    counting = Counting()
    planner = MDPGapE(**SETTINGS, thresholds=tuple(pair))
    refused(lambda: planner.plan(counting.model, seed=0), "thresholds", "finite number")
    assert counting.calls == 0


@pytest.mark.parametrize("pair", [(math.log, math.log), (np.log1p, np.log1p)], ids=["log", "log1p"])
def test_thresholds_whose_signature_python_cannot_tell(pair):
    # They are functions of n, so they may be taken; if they are not, the message says what is.
    try:
        plan = MDPGapE(**SETTINGS, thresholds=pair).plan(Counting().model, seed=0, budget=50)
        told = f"thresholds taken, {plan.samples} calls"
    except (TypeError, ValueError) as error:
        told = str(error)
    assert "thresholds" in told


def test_thresholds_of_something_else_than_functions_are_refused_at_once():
    with pytest.raises(TypeError, match="'one'"):
        pacplan.bounds.Thresholds("one", "two", proven=False, name="mine")
