"""Compiled pieces that planners share: one call to the model, checked and recorded, and reports.

**Cut-off episodes.** An episode is *whole* if it took all the steps of its horizon or came to a state
that ends it. It is *cut off* if the budget, a deadline, an interrupt or the model itself stopped it
before that. Where returns count, the function that plays an episode says so by its status: CHUNK_DONE
for a whole episode, otherwise what cut it off (SPENT, ABORTED, BROKEN). For all planners alike:

* The calls of a cut-off episode are counted, in `report` and for the first action.
* Its transitions may enter statistics of single transitions: mean rewards, numbers of successors, and
  the bounds made of them (MDP-GapE, Bracket's bounds from above).
* Its return lacks a tail, so it enters no mean of returns, no bet on one and no count of them (UCT,
  BRUE, OLOP, Bracket's bounds from below). What was made on its way, such as a pair, counts as untried.
* Recursions (SparseSampling, TrailBlazer, SmoothCruiser, StOP, UGapE-MCTS) back up nothing of a draw
  whose value is not complete.

Only the last episode of a search can be cut off. So the estimates are those of the search that stopped
before it, and bounds that hold at all times hold without it, whatever its return would have been.
"""

from typing import Any

import numpy as np

from pacplan._checks import LARGEST, REWARD_ROUNDING
from pacplan._jit import inlined
from pacplan.models import handles
from pacplan.search.tree import NONE, add_node, find_child, link_child

# How a chunk of episodes ended.
CHUNK_DONE = 0  # as many episodes as were asked for
RULE = 1  # the planner's own stopping rule
SPENT = 2  # the budget of calls
NO_ROOM = 3  # the tree or a table must grow first
ABORTED = 4  # the model gave up in the middle of an episode
BROKEN = 5  # the model broke a promise, see Report
STALE = 6  # bounds of a merged graph must be renewed first
FULL = 7  # there is no more memory, or a counter is at its end

# Which promise a model broke.
BAD_REWARD = 1
TOO_MANY_SUCCESSORS = 2
NO_ACTIONS = 3
TOO_MANY_ACTIONS = 4
REWARD_VARIES = 5
ENDED_EARLY = 6
MOVE_PAYS = 7
ENDLESS_GAME = 8
BAD_BOUNDS = 9


# What a model has promised. One record.
PROMISES = np.dtype(
    [
        ("lowest", np.float64),  # lowest reward
        ("width", np.float64),  # highest reward minus lowest
        ("successors", np.int64),  # B
        ("most_actions", np.int64),  # K; 0: not declared
        ("may_end", np.bool_),
    ],
    align=True,
)

# The episode under way, a record a step.
STEP = np.dtype(
    [
        ("node", np.int64),
        ("pair", np.int64),
        ("child", np.int64),
        ("reward", np.float64),  # scaled to [0, 1]
        ("price", np.float64),  # for planners whose confidence sets depend on the path
    ]
)

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
def halted(report: Any) -> bool:
    """Whether the search is to end now; long loops that call nothing ask, and so does every call.

    What was computed by then must hold: bounds that are still to be renewed keep their old values.
    """
    return bool(report[0].halt != 0)


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
def call_model(
    promises: Any, report: Any, model: Any, state: int, action: int, h: int, rng: Any
) -> tuple[int, float, bool, int]:
    """One call, checked: (next state, reward scaled to [0, 1], whether it ended, status).

    The status is CHUNK_DONE, or ABORTED or BROKEN, and then `report` tells the call.
    """
    if halted(report):
        report[0].refused = 1
        return state, 0.0, False, ABORTED
    successor, reward, flag = handles.draw(model, state, action, h, rng)
    ended = flag == handles.ENDED
    promise = promises[0]
    x = (reward - promise.lowest) / promise.width
    status = CHUNK_DONE
    if flag == handles.ABORTED:
        note_call(report, state, action, h, 0.0)
        status = ABORTED
    elif not -REWARD_ROUNDING <= x <= 1.0 + REWARD_ROUNDING:
        status = break_promise(report, BAD_REWARD, state, action, h, reward)
    elif ended and not promise.may_end:
        status = break_promise(report, ENDED_EARLY, state, action, h, reward)
    return successor, min(1.0, max(0.0, x)), ended, status


@inlined
def count_actions(promises: Any, report: Any, model: Any, state: int, h: int) -> tuple[int, int]:
    """The number of actions of a state reached after h steps, checked, and a status."""
    actions = handles.action_count(model, state, h)
    most = promises[0].most_actions
    if most == 0:
        most = LARGEST
    status = CHUNK_DONE
    if actions < 1:
        status = break_promise(report, NO_ACTIONS, state, 0, h, 0.0)
    elif actions > most:
        status = break_promise(report, TOO_MANY_ACTIONS, state, actions, h, 0.0)
    return actions, status


@inlined
def follow(
    tree: Any,
    promises: Any,
    report: Any,
    model: Any,
    at: int,
    link: int,
    successor: int,
    ended: bool,
    h: int,
    upper: float,
    lower: float,
) -> tuple[int, bool, int]:
    """The node of an outcome of pair `link` of node `at`: (node, whether it is new, status).

    A new node that goes on gets the bounds given; an end is worth nothing.
    """
    child, seen = find_child(tree, link, successor, ended)
    if child != NONE:
        return child, False, CHUNK_DONE
    if seen == promises[0].successors:
        state, action = tree.nodes[at].state, tree.pairs[link].action
        return NONE, False, break_promise(report, TOO_MANY_SUCCESSORS, state, action, h, 0.0)
    if ended:
        child = add_node(tree, 0, 0, 0.0, 0.0)
    else:
        actions, status = count_actions(promises, report, model, successor, h + 1)
        if status != CHUNK_DONE:
            return NONE, False, status
        child = add_node(tree, successor, actions, upper, lower)
    link_child(tree, link, child)
    return child, True, CHUNK_DONE


@inlined
def must_return(tree: Any, report: Any, horizon: int, most_calls: int) -> int:
    """Why the next episode cannot be played: SPENT, NO_ROOM, or CHUNK_DONE if it can."""
    if report[0].calls >= most_calls:
        return SPENT
    if tree.used[0] + horizon > tree.nodes.size or tree.used[1] + horizon > tree.pairs.size:
        return NO_ROOM
    return CHUNK_DONE


@inlined
def out_of_steps(steps: int, most: int) -> int:
    """The status of an episode that had so many steps to go, so many calls, and did not end itself."""
    return CHUNK_DONE if most >= steps else SPENT


@inlined
def note_episode(report: Any, by_action: Any, first: int, calls: int) -> None:
    """Count an episode that began with action `first`; `by_action` counts calls of each."""
    if calls > 0:
        by_action[first] += calls
        report[0].calls += calls
        report[0].episodes += 1


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


@inlined
def _two_largest(values: Any) -> tuple[int, int]:
    """Indices of the largest value and of the next; there are at least two."""
    first = 0 if values[0] >= values[1] else 1
    second = 1 - first
    for a in range(2, values.size):
        if values[a] > values[first]:
            second = first
            first = a
        elif values[a] > values[second]:
            second = a
    return first, second


@inlined
def least_gap(upper: Any, lower: Any) -> tuple[int, float]:
    """The action with the least max_{a != b} U(a) - L(b), the first of several, and that gap."""
    best = 0
    if upper.size == 1:
        return best, -np.inf
    first, second = _two_largest(upper)
    least = np.inf
    for a in range(upper.size):
        gap = (upper[second] if a == first else upper[first]) - lower[a]
        if gap < least:
            best = a
            least = gap
    return best, least


@inlined
def best_and_challenger(upper: Any, lower: Any, tie: float, rng: Any) -> tuple[int, int]:
    """UGapE's choice: b has the smallest bound on its gap, c is its challenger (NONE for one action).

    b = argmin_b [ max_{a != b} U(a) - L(b) ],  c = argmax_{c != b} U(c), ties within `tie` broken
    uniformly at random.
    """
    best = 0
    if upper.size == 1:
        return best, NONE
    first, second = _two_largest(upper)
    least = np.inf
    ties = 0
    for a in range(upper.size):
        gap = (upper[second] if a == first else upper[first]) - lower[a]
        if gap < least - tie:
            best = a
            least = gap
            ties = 1
        elif gap <= least + tie:
            least = min(least, gap)
            ties += 1
            if rng.random() * ties < 1.0:
                best = a
    return best, argmax_at_random(upper, best, tie, rng)


@inlined
def wider(upper: Any, lower: Any, best: int, challenger: int, tie: float, rng: Any) -> int:
    """Whichever of b and c has the wider interval."""
    if challenger == NONE:
        return best
    excess = (upper[challenger] - lower[challenger]) - (upper[best] - lower[best])
    if excess > tie or (excess >= -tie and rng.random() < 0.5):
        return challenger
    return best


@inlined
def gap_of(upper: Any, lower: Any, best: int) -> float:
    """max_{a != b} U(a) - L(b), at most 0 for a single action.

    The largest rival, not the challenger: that may be any of those that are nearly tied.
    """
    rival = -np.inf
    for a in range(upper.size):
        if a != best:
            rival = max(rival, upper[a])
    return float(rival - lower[best])
