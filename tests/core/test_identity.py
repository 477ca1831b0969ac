"""What planners and models are is told by what they hold, the same in every process."""

import functools
import logging
import subprocess
import sys
import threading

import numpy as np
import pytest

from pacplan.core.identity import described

SHARE = 0.3
CALLS = 0
LOG = logging.getLogger("test")


class Held:
    def __init__(self, value):
        self.value = value
        self.lock = threading.Lock()  # It cannot be pickled.

    def step(self, state):
        return state + self.value

    def __call__(self, state):
        return self.step(state)


def helper(state):
    return SHARE * state


def reads_globals(state):
    global CALLS
    CALLS += 1
    LOG.debug("%s", state)
    return helper(state)


def over(held, *, default=1.0):
    def function(state, factor=default, *, shift=held):
        return factor * held.value + shift.value

    return function


def counting():
    calls = 0

    def function(state):
        nonlocal calls
        calls += 1
        return state

    return function


def looped(value):
    things = [value]
    things.append(things)
    return things


@pytest.mark.parametrize(
    "make",
    [
        lambda value: over(Held(value)),
        lambda value: over(Held(1), default=value),
        lambda value: Held(value).step,
        Held,
        lambda value: functools.partial(helper, state=value),
        lambda value: functools.partial(over(Held(value)), 2),
        lambda value: {"a": (value, [Held(value)])},
        lambda value: np.array([value, None]),
        lambda value: np.full(9, value),
        lambda value: frozenset([value, "x"]),
        looped,
    ],
)
def test_what_is_held_counts_and_not_where(make):
    assert described(make(1)) == described(make(1))
    assert described(make(1)) != described(make(2))
    assert described(make(0.0)) != described(make(-0.0))
    assert "0x" not in described(make(1))


def test_global_names_count_unless_a_function_assigns_them(monkeypatch):
    before = described(reads_globals)
    reads_globals(1)
    assert described(reads_globals) == before
    monkeypatch.setattr(sys.modules[__name__], "SHARE", 0.4)
    assert described(reads_globals) != before
    function = counting()
    before = described(function)
    function(1)
    assert described(function) == before


def test_it_is_the_same_in_every_process():
    script = (
        "import test_identity as t; from pacplan.core.identity import described as d;"
        "print(d([t.reads_globals, t.over(t.Held({'a', 'b'})), t.Held(frozenset('xyz'))]))"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=environment | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(said) == 1
