"""Interpreted kernels give what compiled ones give, to the bit."""

import math
from math import exp, log

import numba
import numpy as np
import pytest

import pacplan
from conftest import in_chunks
from every_planner import FIXED_COST, NAMES, answer, make, problem
from pacplan.compiled import tiered
from pacplan.compiled.interpreted import interpreted
from pacplan.compiled.jit import inlined, kernel
from pacplan.engine import search

pytestmark = pytest.mark.kernels


class Compiler:
    """Has kernels ready after so many chunks; None: never."""

    def __init__(self, after):
        self.after, self.asked = after, 0

    def ready(self, kernel, arguments, **options):
        self.asked += 1
        return self.after is not None and self.asked > self.after and tiered_ready(kernel, arguments)


tiered_ready = tiered.ready


def plans_of(monkeypatch, plan):
    """A plan compiled, interpreted, and changed over after some chunks."""
    made = []
    for after in (0, None, 5):
        compiler = Compiler(after)
        with monkeypatch.context() as patch:
            patch.setattr(tiered, "ready", compiler.ready)
            patch.setattr(search, "ready", compiler.ready)
            made.append(plan())
        assert compiler.asked > 0
    return made


def same(plans):
    first = plans[0]
    for plan in plans[1:]:
        assert repr(answer(plan)) == repr(answer(first))
        assert plan.curve is None or plan.curve.upper.tobytes() == first.curve.upper.tobytes()
        for records in ("pairs", "nodes") if plan.tree is not None else ():
            assert getattr(plan.tree, records).tobytes() == getattr(first.tree, records).tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_every_planner(name, monkeypatch):
    planner = in_chunks(make(name, **({"width": 4} if name in FIXED_COST else {})), 7)
    same(plans_of(monkeypatch, lambda: planner.plan(problem(name), 0, seed=1, budget=600)))


def test_a_jitted_simulator(monkeypatch):
    @numba.njit
    def step(state, action, rng):
        return state + 2 * action - 1 + rng.integers(2), rng.random(), False

    @numba.njit
    def actions(state):
        return 2 + state % 2

    model = pacplan.Simulator(step, actions=actions)
    planner = in_chunks(pacplan.UCT(gamma=0.7, horizon=5), 7)
    same(plans_of(monkeypatch, lambda: planner.plan(model, 0, seed=1, budget=300)))


def test_a_first_plan_keeps_its_deadline(clock, monkeypatch):
    def step(state, action, rng):
        clock.now += 0.25
        return state, 0.5, False

    monkeypatch.setattr(search, "ready", Compiler(None).ready)
    model = pacplan.Simulator(step, actions=2, successors=1)
    plan = make("uct").plan(model, 0, seed=0, time_limit=2.0)
    assert plan.stopped_by == "deadline" and plan.samples in (8, 9)


FIELDS = [
    ("count", np.int32),
    ("large", np.uint64),
    ("short", np.uint8),
    ("flag", np.bool_),
    ("half", np.float32),
    ("value", np.float64),
    ("several", np.float64, 3),
]


@inlined
def _read(records, i, j):
    one = records[i, j]
    one.count -= 2
    one.half = one.value / 3.0
    one.flag = not one.flag
    one.several[1] += one.half
    return one.value + one.count + one.large + one.several[1] + (1.0 if one.flag else 0.0)


@kernel
def _work(records, numbers):
    total = 0.0
    for i in range(records.shape[0]):
        row = records[i]
        for j in range(row.size):
            total += _read(records, i, j) * row[j].half
            row[j].value = total
            row[j].count = total
        row[0] = row[row.size - 1]
        part = row[1:]
        part[0].short = part[-1].count
        numbers[i] = records.value[i, 0] + part.size
    return total


@pytest.mark.parametrize("aligned", [True, False])
def test_records(aligned):
    rng = np.random.default_rng(0)
    records = np.zeros((4, 3), np.dtype(FIELDS, align=aligned))
    for name in ("count", "large", "short"):
        records[name] = rng.integers(100, size=(4, 3))
    records["value"], records["several"] = rng.random((4, 3)), rng.random((4, 3, 3))
    compiled, other = (records.copy(), np.zeros(4)), (records.copy(), np.zeros(4))
    assert interpreted(_work)(*other) == _work(*compiled)
    for one, two in zip(compiled, other, strict=True):
        assert repr(one.tolist()) == repr(two.tolist())


@kernel
def _divide(records, numbers):
    """Divisions of all kinds, also by zero, and functions outside of their domains."""
    for i in range(records.size):
        one, count = records[i].value, records[i].count
        numbers[i, 0] = one / count + one / (one - one)
        numbers[i, 1] = (one - 1.0) / -records[0].value
        numbers[i, 2] = 7
        numbers[i, 2] /= records[i].value
        records[i].half /= count
        numbers[i, 3] = log(one) + exp(400.0 * (one + 1.0))
        numbers[i, 4] = math.sqrt(-one) + math.log1p(-one)


def test_where_python_raises_numbers_are_infinite_or_nan():
    records = np.zeros(4, np.dtype(FIELDS, align=True))
    records["value"], records["count"], records["half"] = [0.0, 1.0, -2.0, np.nan], [0, 1, 0, 2], 1.0
    compiled, other = (records.copy(), np.zeros((4, 5))), (records.copy(), np.zeros((4, 5)))
    _divide(*compiled)
    interpreted(_divide)(*other)
    for one, two in zip(compiled, other, strict=True):
        assert repr(one.tolist()) == repr(two.tolist())
    assert np.isinf(compiled[1]).any() and np.isnan(compiled[1]).any()
