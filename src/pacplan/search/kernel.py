"""Compiled pieces that planners share: what a search is told, and how it reports back."""

from typing import Any

import numpy as np

from pacplan._jit import inlined

# How a chunk of episodes ended.
CHUNK_DONE = 0  # as many episodes as were asked for
RULE = 1  # the planner's own stopping rule
SPENT = 2  # the budget of calls
NO_ROOM = 3  # the tree or a table must grow first
ABORTED = 4  # the model gave up in the middle of an episode
BROKEN = 5  # the model broke a promise, see Report

# Which promise a model broke.
BAD_REWARD = 1
TOO_MANY_SUCCESSORS = 2
NO_ACTIONS = 3
TOO_MANY_ACTIONS = 4
REWARD_VARIES = 5
ENDED_EARLY = 6


# What a kernel tells Python: counters, and where a promise was broken. One record.
REPORT = np.dtype(
    [
        ("calls", np.int64),
        ("episodes", np.int64),
        ("promise", np.int64),
        ("state", np.int64),
        ("action", np.int64),
        ("h", np.int64),
        ("reward", np.float64),
    ]
)


@inlined
def note_call(report: Any, state: int, action: int, h: int, reward: float) -> None:
    """Note the call that went wrong."""
    note = report[0]
    note.state = state
    note.action = action
    note.h = h
    note.reward = reward


@inlined
def break_promise(report: Any, promise: int, state: int, action: int, h: int, reward: float) -> int:
    """Note a broken promise; returns BROKEN."""
    report[0].promise = promise
    note_call(report, state, action, h, reward)
    return BROKEN


@inlined
def argmax_at_random(values: Any, skip: int, tie: float, rng: Any) -> int:
    """Index of the largest value, ties within `tie` broken uniformly at random, one index left out."""
    best = -1
    ties = 0
    top = -np.inf
    for i in range(values.size):
        if i == skip:
            continue
        if best < 0 or values[i] > top + tie:
            best = i
            top = values[i]
            ties = 1
        elif values[i] >= top - tie:
            top = max(top, values[i])
            ties += 1
            if rng.random() * ties < 1.0:
                best = i
    return best


@inlined
def largest(values: Any) -> float:
    """The largest of some numbers."""
    top = values[0]
    for value in values:
        top = max(top, value)
    return float(top)
