"""One call to the model, checked and recorded; and the errors for promises that a model breaks."""

from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined
from pacplan.core.checks import LARGEST, REWARD_ROUNDING
from pacplan.core.notes import shown
from pacplan.engine.tree import NONE, add_node, find_child, link_child
from pacplan.models import handles
from pacplan.models.protocol import BrokenPromiseError, Model, Session
from pacplan.models.states import advice

# How a chunk of episodes ended.
CHUNK_DONE = 0  # all episodes that were asked for
RULE = 1  # the planner's own stopping rule
SPENT = 2  # the budget of calls
NO_ROOM = 3  # the tree or a table must grow first
ABORTED = 4  # the model gave up in the middle of an episode
BROKEN = 5  # the model broke a promise, see REPORT
FULL = 6  # out of memory, or a counter is at its limit

# Which promise a model broke.
BAD_REWARD = 1
TOO_MANY_SUCCESSORS = 2
NO_ACTIONS = 3
TOO_MANY_ACTIONS = 4
REWARD_VARIES = 5
ENDED_EARLY = 6
MOVE_PAYS = 7
ENDLESS_GAME = 8
BAD_ANSWER = 9  # of a function of the user's, which raised something
FALSE_BOUND = 10  # on a value, by the user
OUTSIDE = 11  # more states than there can be

# The episode under way, one record per step; rewards are scaled to [0, 1].
STEP = np.dtype([("node", np.int64), ("pair", np.int64), ("child", np.int64), ("reward", np.float64)])

# What a kernel tells Python: counters, and which call went wrong. One record.
REPORT = np.dtype(
    [
        *((name, np.int64) for name in ("calls", "episodes", "promise", "state", "action", "h")),
        ("reward", np.float64),
        ("halt", np.int64),  # set from outside: make no further call
        ("refused", np.int64),  # whether a call was asked for after that
    ]
)

# The ground rules of a search: what the model promised, and what the planner did. One record.
PROBLEM = np.dtype(
    [
        ("lowest", np.float64),  # lowest reward
        ("width", np.float64),  # highest reward minus lowest
        ("gamma", np.float64),
        ("successors", np.int64),  # B
        ("most_actions", np.int64),  # K
        ("horizon", np.int64),  # most steps of an episode
        ("may_end", np.bool_),
        ("ties_by_episode", np.bool_),  # whether each episode has its own stream for ties
    ],
    align=True,
)


def problem_of(model: Model, *, successors: int, horizon: int, gamma: float = 1.0) -> Any:
    """The ground rules of searches of so many steps in a model."""
    (low, high), actions = model.reward_range, model.max_actions or LARGEST
    rules = (low, high - low, gamma, successors, actions, horizon, model.may_end, False)
    return np.array([rules], PROBLEM)


@inlined
def halted(search: Any) -> bool:
    """Whether the search is to end now, all as it stands; asked by every call and by long loops."""
    return bool(search.report[0].halt != 0)


@inlined
def break_promise(search: Any, promise: int, state: int, action: int, h: int, reward: float) -> int:
    """Note the call that broke a promise; returns BROKEN. The reward is in the user's units."""
    report = search.report[0]
    report.promise = promise
    report.state = state
    report.action = action
    report.h = h
    report.reward = reward
    return BROKEN


@inlined
def call_model(
    search: Any, model: Any, state: int, action: int, h: int, rng: Any
) -> tuple[int, float, bool, int]:
    """One call, checked: the next state, the reward scaled to [0, 1], whether it ended, and a status.

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
        break_promise(search, 0, state, action, h, 0.0)
        status = ABORTED
    elif not -REWARD_ROUNDING <= x <= 1.0 + REWARD_ROUNDING:
        status = break_promise(search, BAD_REWARD, state, action, h, reward)
    elif ended and not problem.may_end:
        status = break_promise(search, ENDED_EARLY, state, action, h, reward)
    return successor, min(1.0, max(0.0, x)), ended, status


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
    child, seen = find_child(search.tree, link, successor, ended)
    if child != NONE:
        return child, False, CHUNK_DONE
    child, status = new_outcome(search, model, at, link, seen, successor, ended, h)
    return child, child != NONE, status


@inlined
def new_outcome(
    search: Any, model: Any, at: int, link: int, seen: int, successor: int, ended: bool, h: int
) -> tuple[int, int]:
    """The node of one more outcome of a pair, of which some were seen: (node, or NONE, status)."""
    tree, actions = search.tree, 0
    if seen == search.problem[0].successors:
        state, action = tree.nodes[at].state, tree.pairs[link].action
        return NONE, break_promise(search, TOO_MANY_SUCCESSORS, state, action, h, 0.0)
    if not ended:
        actions, status = count_actions(search, model, successor, h + 1)
        if status != CHUNK_DONE:
            return NONE, status
    child = add_node(tree, 0 if ended else successor, actions)
    link_child(tree, link, child)
    return child, CHUNK_DONE


def broken_promise(
    report: Any, problem: Any, session: Session, deterministic: bool
) -> BrokenPromiseError:
    """The error for a model that broke a promise, from the records of the call and of the promises."""
    promise, key, action, h = (int(report[name]) for name in ("promise", "state", "action", "h"))
    seen, reward = key if session.states is None else session.states[key], report["reward"]
    state = shown(seen)
    where = f"state {state}, step {h}"
    if promise not in (NO_ACTIONS, TOO_MANY_ACTIONS, FALSE_BOUND):
        where = f"state {state}, action {shown(session.label(key, action))}, step {h}"
    excess = f"more than the promised {problem['successors']} successors were seen; raise successors="
    if deterministic:
        excess = "transitions='deterministic', but a second successor was seen"
    low, high = float(problem["lowest"]), float(problem["lowest"] + problem["width"])
    said = {
        BAD_REWARD: f"the reward {reward} lies outside the promised reward_range=({low}, {high})",
        TOO_MANY_SUCCESSORS: f"{excess}, or {advice(seen)}",
        REWARD_VARIES: f"rewards='deterministic', but this pair paid {reward} after another reward",
        ENDED_EARLY: "the episode ended, but the model promises may_end=False",
        MOVE_PAYS: f"a move that did not end the game paid {reward}; only the last move of a game pays",
        OUTSIDE: f"this led to a state outside the {reward:.0f} states of states=; correct states=",
        ENDLESS_GAME: f"the game is not over after {problem['horizon']} moves; raise the planner's "
        "horizon=",
        FALSE_BOUND: f"the search contradicts the bound {reward} on its value; correct value_bounds= "
        "or value_range=",
    }
    if promise in said:
        return BrokenPromiseError(f"{where}: {said[promise]}")
    return BrokenPromiseError(
        f"the successor {state} offers no action; a transition to such a state must terminate"
        if promise == NO_ACTIONS
        else f"state {state} offers {action} actions, more than the promised {problem['most_actions']}"
    )
