"""A model as compiled kernels see it, and what they may ask of it.

One kernel serves models of every kind, so they all have the same *handle*: a named tuple of plain data
that says which kind it is. A table is read by the kernel itself. All other models are functions outside
of it, called by their addresses. States are 64-bit integers here, and h is the number of steps already
taken since the root.
"""

from math import inf
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from pacplan.compiled.dispatch import generic
from pacplan.compiled.jit import call_python, caller, inlined
from pacplan.compiled.streams import STREAM

# How a call ended: the episode goes on or ends with this transition, or the call failed.
CONTINUES = 0
ENDED = 1
ABORTED = 2

# Instead of an action that the user's policy advises: none, and an error.
NO_ADVICE = -1
BAD_ADVICE = -2

# What the user's functions are asked for; a positive number asks for advice among so many actions.
ASK_BOUNDS, ASK_VALUE = 0, -1

OUTCOME = np.dtype(
    [
        ("cumulative", np.float64),  # probability of this outcome or an earlier one of its row
        ("reward", np.float64),  # mean reward of the transition
        ("state", np.int32),
        ("ended", np.int32),
    ],
    align=True,
)

# What a Python simulator answered last.
ANSWER = np.dtype(
    [("successor", np.int64), ("reward", np.float64), ("flag", np.int64), ("actions", np.int64)]
)
# Numbers of a state that searches look at.
MOST_COORDINATES = 16

# A compiled simulator's step(state, action, rng, h), and its number of actions of a state.
STEP = types.Tuple((types.int64, types.float64, types.int64))(
    types.int64, types.int64, STREAM, types.int64
)
COUNT = types.int64(types.int64)
_run_step, _run_count = caller(STEP), caller(COUNT)


class TableHandle(NamedTuple):
    """Tables: outcomes[step, state, i, k], i counting available actions; empty if it is no table."""

    outcomes: Any  # records of OUTCOME
    action_counts: NDArray[np.int32]
    per_step: bool
    bernoulli: bool
    lowest: float
    width: float


class CompiledHandle(NamedTuple):
    """A jitted simulator: addresses of its two functions (STEP, COUNT); 0 if there is none."""

    step: int
    counter: int


class PythonHandle(NamedTuple):
    """A Python simulator: functions for `call_python`, and where their answers lie."""

    step: int
    counter: int
    locator: int
    seeder: int
    answer: Any  # one record of ANSWER
    point: NDArray[np.float64]  # how many coordinates a state has, and what they are


class KnowledgeHandle(NamedTuple):
    """User knowledge: whom to ask by `call_python`, and where the answer lies."""

    has_bounds: bool
    has_policy: bool
    has_value: bool
    ask: int
    answer: NDArray[np.float64]


class Handle(NamedTuple):
    """A model of any kind: the parts of other kinds are empty.

    `actions` is their number in every state of a simulator, 0 if it varies.
    """

    table: TableHandle = TableHandle(
        np.zeros((0, 0, 0, 0), OUTCOME), np.zeros(0, np.int32), False, False, 0.0, 1.0
    )
    compiled: CompiledHandle = CompiledHandle(0, 0)
    python: PythonHandle = PythonHandle(0, 0, 0, 0, np.zeros(1, ANSWER), np.zeros(1))
    knowledge: KnowledgeHandle = KnowledgeHandle(False, False, False, 0, np.zeros(2))
    actions: int = 0


@inlined
def is_table(handle: Handle) -> bool:
    """Whether the model is a table."""
    return bool(handle.table.outcomes.size > 0)


@inlined
def action_count(handle: Handle, state: int, h: int) -> int:
    """Number of actions available in `state` after h steps; they are 0 .. count - 1."""
    if is_table(handle):
        return int(handle.table.action_counts[state])
    if handle.actions != 0:
        return handle.actions
    if handle.compiled.counter != 0:
        return int(_run_count(handle.compiled.counter, (np.int64(state),)))
    python = handle.python
    call_python(python.counter, state, 0, 0)
    return int(python.answer[0].actions)


@inlined
def draw(handle: Handle, state: int, action: int, h: int, rng: Any) -> Any:
    """One call to the model: (next state, reward in the user's units, how it ended)."""
    if is_table(handle):
        return draw_from_table(handle.table, state, action, h, rng)
    if handle.compiled.step != 0:
        arguments = np.int64(state), np.int64(action), rng, np.int64(h)
        return _run_step(handle.compiled.step, arguments)
    call_python(handle.python.step, state, action, h)
    answer = handle.python.answer[0]
    return answer.successor, answer.reward, answer.flag


@generic
def draw_from_table(table: TableHandle, state: int, action: int, h: int, rng: Any) -> Any:
    """One transition of a table, as `draw`; Python can call it, too."""
    step = h if table.per_step else 0
    row = table.outcomes[step, state, action]
    x = rng.random()
    # The last outcome's cumulative probability is exactly 1, and x < 1.
    k, last = 0, row.size - 1
    while k < last:
        middle = (k + last) // 2
        if x >= row[middle].cumulative:
            k = middle + 1
        else:
            last = middle
    outcome = row[k]
    reward = outcome.reward
    if table.bernoulli:
        high = rng.random() * table.width < reward - table.lowest
        reward = table.lowest + table.width if high else table.lowest
    return np.int64(outcome.state), reward, np.int64(outcome.ended)


@inlined
def value_bounds(handle: Handle, state: int, h: int) -> tuple[float, float]:
    """What the user knows of a state's value; infinite if that is nothing, NaN after an error."""
    known = handle.knowledge
    if not known.has_bounds:
        return -inf, inf
    call_python(known.ask, state, h, ASK_BOUNDS)
    return known.answer[0], known.answer[1]


@inlined
def advice(handle: Handle, state: int, h: int, actions: int) -> int:
    """The action, of so many, that the user's policy takes in a state; NO_ADVICE or BAD_ADVICE."""
    known = handle.knowledge
    if not known.has_policy:
        return NO_ADVICE
    call_python(known.ask, state, h, actions)
    advised = known.answer[0]
    return BAD_ADVICE if np.isnan(advised) else int(advised)


@inlined
def guess(handle: Handle, state: int, h: int) -> float:
    """The user's guess of a state's value; infinite if there is none, NaN after an error."""
    known = handle.knowledge
    if not known.has_value:
        return inf
    call_python(known.ask, state, h, ASK_VALUE)
    return float(known.answer[0])


@inlined
def coordinates(handle: Handle, state: int, point: Any) -> int:
    """Write the numbers that a state consists of to an array, as far as there is room.

    Returns how many; 0 if the state is not a point in space, and only equal to itself or different.
    """
    if is_table(handle):
        return 0
    if handle.compiled.step != 0:
        point[0] = state
        return 1
    python = handle.python
    call_python(python.locator, state, 0, 0)
    count: int = min(int(python.point[0]), point.size)
    for i in range(count):
        point[i] = python.point[i + 1]
    return count


@inlined
def reseed(handle: Handle, high: int, low: int) -> None:
    """Let the next call draw from a new seed of 128 bits, if it does not draw from `rng`.

    Several calls with one seed draw the same numbers.
    """
    if handle.python.seeder != 0:
        call_python(handle.python.seeder, high, low, 0)
