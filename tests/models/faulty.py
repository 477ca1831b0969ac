"""Models that break their promises, for the tests of what is said about them."""

import numba
import numpy as np

from pacplan import Simulator
from refusals import PLANNER

P = np.full((2, 3, 2), 0.5)
R = np.full((2, 3), 0.5)
# Rewards at the very ends of their range are good, whichever way the width of the range rounds, and
# beyond them there is room for rounding only.
EDGES = [(0.0, 1.0), (-0.9, 0.5), (-2.0, -0.6), (-1e9, 1e-3)]


def two_ways(state):
    """Actions with names, so that a message cannot name them by chance."""
    return ["left", "right"]


def plan_drawn(drawn, planner=PLANNER, **settings):
    """Plan in a simulator that always draws `drawn`, or calls it."""
    step = drawn if callable(drawn) else lambda s, a, rng: drawn
    given = {"actions": two_ways, "max_actions": 2, "successors": 2, "initial": "start"}
    return planner.plan(Simulator(step, **{**given, **settings}), seed=0, budget=3000)


class OwnError(Exception):
    def __init__(self, what, number):
        super().__init__(what, number)
        self.number = number


# Every other kernel would have to be compiled, so one simulator does all: the first state says what.
FAITHFUL, TOO_HIGH, NOT_A_NUMBER, THREE_WAYS, STUCK, CROWDED = 0, 1, 2, 3, 4, 5
RAISES, DIVIDES, NO_LUCK = 8, 10, 11
NO_ACTIONS, THREE_ACTIONS, NO_COUNT = 20, 21, 22


@numba.njit
def jitted_step(state, action, rng):
    reward = 0.5
    successor = state
    if state == TOO_HIGH:
        reward = 2.0
    elif state == NOT_A_NUMBER:
        reward = np.nan
    elif state == THREE_WAYS:
        successor = state + 100 * rng.integers(0, 3)
    elif state == STUCK:
        successor = NO_ACTIONS
    elif state == CROWDED:
        successor = THREE_ACTIONS
    elif state == RAISES:
        raise LookupError("the simulator's own message")
    elif state == DIVIDES:
        successor = 1 // (state - DIVIDES)
    elif state == NO_LUCK and rng.random() < 0.01:
        raise LookupError("no luck")
    return successor, reward, False


@numba.njit
def jitted_actions(state):
    if state == NO_ACTIONS:
        return 0
    if state == THREE_ACTIONS:
        return 3
    if state == NO_COUNT:
        raise LookupError("cannot count")
    return 2


def jitted(**settings):
    given = {"actions": jitted_actions, "successors": 2, "max_actions": 2}
    return Simulator(jitted_step, **{**given, **settings})


def plan_jitted(state, planner=PLANNER, **settings):
    return planner.plan(jitted(**settings), state, seed=0, budget=3000)
