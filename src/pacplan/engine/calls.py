"""One call to the model, checked and recorded; what a kernel reports, and the records it works on."""

from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined
from pacplan.core.checks import REWARD_ROUNDING
from pacplan.engine.promises import (
    BAD_REWARD,
    ENDED_EARLY,
    NO_ACTIONS,
    TOO_MANY_ACTIONS,
    TOO_MANY_SUCCESSORS,
)
from pacplan.engine.tree import NONE, add_node, find_child, link_child
from pacplan.models import handles

# How a chunk of episodes ended.
CHUNK_DONE = 0  # all episodes that were asked for
RULE = 1  # the planner's own stopping rule
SPENT = 2  # the budget of calls
NO_ROOM = 3  # the tree or a table must grow first
ABORTED = 4  # the model gave up in the middle of an episode
BROKEN = 5  # the model broke a promise, see Report
FULL = 6  # out of memory, or a counter is at its limit

# The episode under way, one record per step. Planners may put their own fields after these.
STEP_FIELDS = [
    ("node", np.int64),
    ("pair", np.int64),
    ("child", np.int64),
    ("reward", np.float64),  # scaled to [0, 1]
]
STEP = np.dtype(STEP_FIELDS)

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
        ("halt", np.int64),  # set from outside: make no further call
        ("refused", np.int64),  # whether a call was asked for after that
    ]
)


@inlined
def halted(search: Any) -> bool:
    """Whether the search is to end now; asked by every call and by long loops without one.

    Everything must be valid at that point: bounds that were not renewed yet keep their old values.
    """
    return bool(search.report[0].halt != 0)


@inlined
def note_call(search: Any, state: int, action: int, h: int, reward: float) -> None:
    """Note the call that went wrong."""
    report = search.report[0]
    report.state = state
    report.action = action
    report.h = h
    report.reward = reward


@inlined
def break_promise(search: Any, promise: int, state: int, action: int, h: int, reward: float) -> int:
    """Note a broken promise; returns BROKEN. The reward is in the user's units."""
    search.report[0].promise = promise
    note_call(search, state, action, h, reward)
    return BROKEN


@inlined
def call_model(
    search: Any, model: Any, state: int, action: int, h: int, rng: Any
) -> tuple[int, float, bool, int]:
    """One call, checked: (next state, reward scaled to [0, 1], whether it ended, status).

    The status is CHUNK_DONE, or ABORTED or BROKEN; then `report` names the call.
    """
    report, problem = search.report[0], search.problem[0]
    if report.halt != 0:
        report.refused = 1
        return state, 0.0, False, ABORTED
    successor, reward, flag = handles.draw(model, int(state), int(action), int(h), rng)
    ended = flag == handles.ENDED
    x = (reward - problem.lowest) / problem.width
    status = CHUNK_DONE
    if flag == handles.ABORTED:
        note_call(search, state, action, h, 0.0)
        status = ABORTED
    elif not -REWARD_ROUNDING <= x <= 1.0 + REWARD_ROUNDING:
        status = break_promise(search, BAD_REWARD, state, action, h, reward)
    elif ended and not problem.may_end:
        status = break_promise(search, ENDED_EARLY, state, action, h, reward)
    return successor, min(1.0, max(0.0, x)), ended, status


@inlined
def count_actions(search: Any, model: Any, state: int, h: int) -> tuple[int, int]:
    """The number of actions of a state reached after h steps, checked, and a status."""
    actions = handles.action_count(model, int(state), int(h))
    status = CHUNK_DONE
    if actions < 1:
        status = break_promise(search, NO_ACTIONS, state, 0, h, 0.0)
    elif actions > search.problem[0].most_actions:
        status = break_promise(search, TOO_MANY_ACTIONS, state, actions, h, 0.0)
    return actions, status


@inlined
def follow(
    search: Any, model: Any, at: int, link: int, successor: int, ended: bool, h: int
) -> tuple[int, bool, int]:
    """The node of an outcome of pair `link` of node `at`: (node, whether it is new, status)."""
    tree = search.tree
    child, seen = find_child(tree, link, successor, ended)
    if child != NONE:
        return child, False, CHUNK_DONE
    if seen == search.problem[0].successors:
        state, action = tree.nodes[at].state, tree.pairs[link].action
        return NONE, False, break_promise(search, TOO_MANY_SUCCESSORS, state, action, h, 0.0)
    if ended:
        child = add_node(tree, 0, 0)
    else:
        actions, status = count_actions(search, model, successor, h + 1)
        if status != CHUNK_DONE:
            return NONE, False, status
        child = add_node(tree, successor, actions)
    link_child(tree, link, child)
    return child, True, CHUNK_DONE


@inlined
def draw_counted(
    search: Any, model: Any, state: int, action: int, h: int, first: int, rng: Any
) -> tuple[int, float, bool, int]:
    """Like `call_model`, and counted for the root's action `first`."""
    successor, reward, ended, status = call_model(search, model, state, action, h, rng)
    if status == CHUNK_DONE:
        search.calls[first] += 1
        search.report[0].calls += 1
    return successor, reward, ended, status
