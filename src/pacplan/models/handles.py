"""What a compiled kernel may ask of a model.

A model hands the kernels a *handle*: a named tuple of plain data, one class for each kind of model,
which answers the questions below (`pacplan.compiled.questions`). States are 64-bit integers here, and h
is the number of steps already taken since the root.
"""

from math import inf, nan
from typing import Any

from pacplan.compiled.questions import must_answer, question

# How a call ended: the episode goes on or ends with this transition, or the call failed.
CONTINUES = 0
ENDED = 1
ABORTED = 2

# Instead of an action that the user's policy advises: none, and an error.
NO_ADVICE = -1
BAD_ADVICE = -2


@must_answer
def action_count(handle: Any, state: int, h: int) -> int:
    """Number of actions available in `state` after h steps; they are 0 .. count - 1."""
    return 0


@must_answer
def draw(handle: Any, state: int, action: int, h: int, rng: Any) -> tuple[int, float, int]:
    """One call to the model: (next state, reward in the user's units, how it ended)."""
    return state, nan, ABORTED


@question
def mean_reward(handle: Any, state: int, action: int, h: int) -> float:
    """Expected reward of a pair, in the user's units; NaN if the model does not publish it."""
    return nan


@question
def probability(handle: Any, state: int, action: int, h: int, successor: int, ended: bool) -> float:
    """Probability of a successor, or of the end (`ended`); NaN if the model does not publish it."""
    return nan


@question
def value_bounds(handle: Any, state: int, h: int) -> tuple[float, float]:
    """What the user knows of a state's value; infinite if that is nothing, NaN after an error."""
    return -inf, inf


@question
def advice(handle: Any, state: int, h: int, actions: int) -> int:
    """The action, of so many, that the user's policy takes in a state; NO_ADVICE or BAD_ADVICE."""
    return NO_ADVICE


@question
def guess(handle: Any, state: int, h: int) -> float:
    """The user's guess of a state's value; infinite if there is none, NaN after an error."""
    return inf


@question
def coordinates(handle: Any, state: int, point: Any) -> int:
    """Write the numbers that a state consists of to an array, as far as there is room.

    Returns how many; 0 if the state is not a point in space, and only equal to itself or different.
    """
    return 0


@question
def reseed(handle: Any, high: int, low: int) -> None:
    """Let the next call draw from a new seed of 128 bits, if it does not draw from `rng`.

    Several calls with one seed draw the same numbers.
    """
