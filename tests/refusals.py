"""Input that is refused, and how tests ask for it."""

import math
import weakref

import numpy as np
import pytest

from pacplan import BrokenPromiseError, MDPGapE, Simulator
from pacplan.models.sessions import PythonSession

NAN, INF = math.nan, math.inf
HUGE = 10**400  # no float holds it
SETTINGS = {"epsilon": 1.0, "delta": 0.1, "gamma": 0.7}
PLANNER = MDPGapE(**SETTINGS)
# Comes back to a pair soon, so that a second look at it happens.
SHARP = {"epsilon": 0.01, "delta": 0.1, "gamma": 0.5}


def refused(call, *words):
    """The call raises ValueError or TypeError, and the message has all the words."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert not isinstance(caught.value, BrokenPromiseError)
    for word in words:
        assert word in str(caught.value)


def broken(call, *words):
    """The call raises BrokenPromiseError, and the message has all the words."""
    with pytest.raises(BrokenPromiseError) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    for word in words:
        assert word in str(caught.value)


def no_session_stays_open(monkeypatch):
    """A fixture: every session that a test opens is closed in the end."""
    opened = weakref.WeakSet()
    start = PythonSession.__init__

    def noted(session, *arguments):
        opened.add(session)
        start(session, *arguments)

    monkeypatch.setattr(PythonSession, "__init__", noted)
    yield
    assert not any(session._entries for session in opened)


class Counting:
    """A Python simulator of one state that counts the calls it gets."""

    def __init__(self, **settings):
        self.calls = 0
        given = {"actions": 2, "successors": 1, "initial": 0}
        self.model = Simulator(self.step, **{**given, **settings})

    def step(self, state, action, rng):
        self.calls += 1
        return state, 0.5 * action, False


# Numbers of the planner -------------------------------------------------------------------------------

NOT_REAL = (True, np.True_, "1", b"1", None, 1j, [1.0], (1,), np.array([1.0, 2.0]), object())
NOT_FINITE = (NAN, INF, -INF, np.float64(NAN), np.float32(INF))
NOT_WHOLE = (True, np.True_, "3", 1.0, 1.5, NAN, INF, 2j, [2], np.array([1, 2]), np.float64(2))
NOT_FLAG = (1, 0, None, "yes", np.True_, NAN)
