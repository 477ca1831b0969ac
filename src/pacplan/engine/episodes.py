"""The episode loop: one for all planners that play episodes from the root.

A search is a named tuple of arrays, of which the engine owns the first (`FIELDS`). The functions below
are generic (`pacplan.compiled.dispatch`): a planner registers methods for the class of its tuple. It
needs one of `select`; the defaults of the others suit most planners.

An episode is *whole* if it took all the steps of its horizon, came to a state that ends it, or was
concluded by a planner that knows what stands for the rest of it. It is *cut off* if anything stopped it
before that. The calls of a cut-off episode are counted, and its transitions may enter statistics of
single transitions: `update` sees every episode that made a call. Its return lacks a tail, so it enters
no mean of returns and no bet on one: `backup` sees whole episodes only. Only the last episode of a
search is cut off, so bounds that hold at all times hold without it, whatever its return had been.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.dispatch import abstract, generic
from pacplan.compiled.jit import inlined, kernel
from pacplan.compiled.reference import refer
from pacplan.compiled.streams import draw_seed
from pacplan.engine.calls import (
    ABORTED,
    BROKEN,
    CHUNK_DONE,
    NO_ROOM,
    RULE,
    SPENT,
    call_model,
    count_actions,
    follow,
    halted,
)
from pacplan.engine.tree import BLOCK, NONE, TreeArrays, add_node, expect_outcomes, expect_pairs

# The fields of a search that belong to the engine, and their types; the planner's own come after them.
FIELDS = [
    ("tree", TreeArrays),
    ("problem", Any),  # one record: discount, rewards, limits
    ("path", Any),  # the episode under way, one record per step
    ("calls", NDArray[np.int64]),  # by action of the root
    ("report", Any),  # one record: counters, and the error
]

# What `transition` may return besides BROKEN and CHUNK_DONE, which goes on from the child.
LEAVE = 10  # leave the tree: play at random from here to the horizon, storing nothing
BREAK_OFF = 11  # the planner ends the episode here; it is not whole
CONCLUDE = 12  # the planner ends the episode here, and knows what stands for the rest; it is whole


@generic
def make_root(search: Any, model: Any, state: int, ties: Any) -> int:
    """Make the root; returns CHUNK_DONE or BROKEN."""
    add_node(search.tree, state, search.calls.size)
    return CHUNK_DONE


@generic
def has_room(search: Any) -> bool:
    """Whether the planner's own tables have room for another episode; that the tree has is known."""
    return True


@generic
def finished(search: Any, model: Any, most_calls: int, ties: Any) -> bool:
    """The planner's stopping rule, asked before every episode and at the end of a chunk.

    So asking it twice between two episodes must change nothing, and draw nothing from `ties`.
    """
    return False


@generic
def begin_episode(search: Any, model: Any, ties: Any) -> None:
    """Decide what the next episode does, just before it begins."""


@abstract
def select(search: Any, at: int, h: int, ties: Any) -> int:
    """The pair to visit at node `at` after h steps. Below the root, NONE leaves the tree."""
    return NONE


@generic
def known_child(search: Any, link: int) -> int:
    """The node that a pair leads to if that is known without a call to the model, or NONE."""
    return NONE


@generic
def skip_call(search: Any, link: int) -> bool:
    """Whether the call of a pair at the last step would tell nothing, so that it is not made.

    The planner takes what it pays into account; the step is not in `path`, and the episode is whole.
    """
    return False


@generic
def transition(
    search: Any, model: Any, h: int, successor: int, ended: bool, ties: Any
) -> tuple[int, int]:
    """Take in the outcome of the call at step h; returns its node, or NONE, and how to go on.

    `path[h]` holds its node, its pair and its reward, scaled to [0, 1]. By default every outcome
    becomes a node, except at the last step.
    """
    if h + 1 == search.problem[0].horizon:
        return NONE, CHUNK_DONE
    step = search.path[h]
    child, _, status = follow(search, model, step.node, step.pair, successor, ended, h)
    return child, status


@generic
def acting_node(search: Any, node: int) -> int:
    """The node that holds the actions of a node's state: itself, unless equal states are merged."""
    return node


@generic
def update(search: Any, model: Any, length: int, ties: Any) -> None:
    """Learn from the single steps in `path`, of every episode that made at least one call."""


@generic
def backup(search: Any, length: int, rest: float, ties: Any) -> None:
    """Learn from a whole episode: `length` steps in `path`, and the return `rest` after them.

    It is discounted to the first step after them, in the user's units.
    """


@inlined
def play_at_random(
    search: Any, model: Any, state: int, h: int, most: int, rng: Any, ties: Any
) -> tuple[float, int, int]:
    """Play at random from a state reached after h steps, with at most `most` calls, storing nothing.

    Returns the discounted return from there, the calls made, and CHUNK_DONE or why it was cut off.
    """
    problem, total, discount = search.problem[0], 0.0, 1.0
    for step in range(h, problem.horizon):
        if step - h == most:
            return total, step - h, SPENT
        actions, status = count_actions(search, model, state, step)
        if status != CHUNK_DONE:
            return total, step - h, status
        action = int(ties.random() * actions)
        state, reward, ended, status = call_model(search, model, state, action, step, rng)
        if status != CHUNK_DONE:
            return total, step - h, status
        total += discount * (problem.lowest + problem.width * reward)
        discount *= problem.gamma
        if ended:
            return total, step - h + 1, CHUNK_DONE
    return total, problem.horizon - h, CHUNK_DONE


@inlined
def _descend(search: Any, model: Any, most: int, rng: Any, ties: Any) -> tuple[int, int, int, int]:
    """Walk down the tree, with at most `most` calls.

    Returns the steps taken, the calls made, the state reached, and CHUNK_DONE at the end of the
    episode, LEAVE, or why it was cut off.
    """
    tree, horizon = search.tree, int(search.problem[0].horizon)
    at, calls, state = acting_node(search, 0), 0, tree.nodes[0].state
    for h in range(horizon):
        if calls == most:
            return h, calls, state, SPENT
        link = select(search, at, h, ties)
        if link == NONE:
            return h, calls, state, LEAVE
        if h + 1 == horizon and skip_call(search, link):
            return h, calls, state, CHUNK_DONE
        step = search.path[h]
        step.node = at
        step.pair = link
        step.child = known_child(search, link)
        if step.child != NONE:
            at = acting_node(search, step.child)
            state = tree.nodes[at].state
            continue
        expect_outcomes(tree, link)
        state, reward, ended, status = call_model(search, model, state, tree.pairs[link].action, h, rng)
        if status != CHUNK_DONE:
            return h, calls, state, status
        calls += 1
        step.reward = reward
        child, status = transition(search, model, h, state, ended, ties)
        step.child = child
        if status == BROKEN:
            return h, calls, state, BROKEN
        if ended or status != CHUNK_DONE:
            whole = ended or status == CONCLUDE
            return h + 1, calls, state, CHUNK_DONE if whole else status
        if child != NONE:
            at = acting_node(search, child)
            expect_pairs(tree, at)
    return horizon, calls, state, CHUNK_DONE


@inlined
def _play_episode(search: Any, model: Any, most: int, rng: Any, ties: Any) -> int:
    """Play an episode of at most `most` calls, and learn from it; returns how it ended."""
    report, rest = search.report[0], 0.0
    length, calls, state, status = _descend(search, model, most, rng, ties)
    if status == LEAVE:
        rest, more, status = play_at_random(search, model, state, length, most - calls, rng, ties)
        calls += more
    if status == BROKEN:
        return BROKEN
    if calls > 0:
        search.calls[search.tree.pairs[search.path[0].pair].action] += calls
        report.calls += calls
        report.episodes += 1
        update(search, model, length, ties)
    if status == CHUNK_DONE:
        backup(search, length, rest, ties)
    return int(status)


@kernel
def play(
    search: Any, model: Any, state: int, most_episodes: int, most_calls: int, rng: Any, ties: Any
) -> int:
    """Play episodes from `state` until one of the reasons in `pacplan.engine.calls` to return.

    At most `most_episodes` in this chunk (0 only makes the root), and `most_calls` in the whole search.
    `rng` feeds the model, `ties` the planner.
    """
    search, model = refer(search), refer(model)
    report, tree, horizon = search.report[0], search.tree, search.problem[0].horizon
    if tree.used[0] == 0:
        status = make_root(search, model, state, ties)
        if status != CHUNK_DONE:
            return status
    if most_episodes == 0:
        return CHUNK_DONE
    last = report.episodes + most_episodes
    while True:
        if finished(search, model, most_calls, ties):
            return RULE
        if report.episodes >= last:
            return CHUNK_DONE
        if report.calls >= most_calls:
            return SPENT
        nodes, pairs = tree.used[0] + horizon, tree.used[1] + horizon * BLOCK
        if nodes > tree.nodes.size or pairs > tree.pairs.size or not has_room(search):
            return NO_ROOM
        if halted(search):
            report.refused = 1
            return ABORTED
        if search.problem[0].ties_by_episode:
            draw_seed(rng, ties.words)
        begin_episode(search, model, ties)
        status = _play_episode(search, model, most_calls - report.calls, rng, ties)
        if status == ABORTED:
            # The recommendation must reflect what was learnt last.
            finished(search, model, most_calls, ties)
        if status in (BROKEN, ABORTED):
            return status
