"""Which leaf OPD expands, and what an expansion does: the answers to the step loop's questions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.opd.bounds import bound_pair, next_node, pair_of, reach, renew_bounds, whole
from pacplan.compiled.jit import inlined
from pacplan.engine import steps
from pacplan.engine.calls import (
    BAD_ANSWER,
    CHUNK_DONE,
    FALSE_BOUND,
    NO_ROOM,
    REWARD_VARIES,
    RULE,
    SPENT,
    TOO_MANY_SUCCESSORS,
    break_promise,
    count_actions,
    draw_counted,
)
from pacplan.engine.merge_table import MergeTable, find, has_room, merge
from pacplan.engine.root_rules import largest, least_gap
from pacplan.engine.search import kernel_arrays
from pacplan.engine.tree import LINKS, NODE_FIELDS, NONE, add_node, add_pair, link_child
from pacplan.models import handles

NODE = np.dtype(
    [
        *NODE_FIELDS,
        ("depth", np.int32),
        ("reach", np.int32),  # depth of the leaf that the favourites below lead to
        ("way", np.int32),  # the pair that leads here
        ("same", np.int32),  # the node that holds the state's actions: itself, or an earlier one
        ("twin", np.int32),  # another node whose `same` is this one's
        ("next_due", np.int32),  # the next node of its depth whose bounds are due to be renewed
        ("due", np.bool_),
    ],
    align=True,
)

PAIR = np.dtype(
    [
        ("reward", np.float64),  # in the user's units
        ("upper", np.float64),
        ("lower", np.float64),
        ("successor", np.int64),  # and whether the episode ended: of what was called for
        ("at", np.int32),  # its node
        ("ended", np.bool_),
        *LINKS,
    ],
    align=True,
)

# Of the outcomes that are remembered, so many are asked for again, as a part of all calls, to see
# whether the model keeps its promise.
_CHECKED = 0.1
# A sequence is known well enough if its worth is known to this part of epsilon.
_NARROW = 0.25
# Rewards that differ by no more, as a part of their range, are equal.
_SAME_REWARD = 1e-9


@kernel_arrays
class Search:
    """The tree of what can be done, or the graph if equal states are merged."""

    merged: MergeTable  # nodes by state and depth, if they are merged
    known: MergeTable  # the first node of each state that was expanded
    dues: NDArray[np.int32]  # by depth, the first node whose bounds are due to be renewed
    tails: Any  # records of TAIL, one per depth; the last serves all deeper ones
    epsilon: float  # negative: there is none
    tie: float  # values that differ by no more are equal but for rounding
    slack: float  # by how much bounds may contradict each other, for rounding
    last: int  # steps after which nothing counts; 0: no end
    value_goal: bool
    merges: bool  # whether equal states at equal depths are one node
    remembers: bool  # whether what is known of a state serves at all depths
    per_step: bool  # whether what follows a state depends on its depth
    checks: NDArray[np.int64]  # calls for outcomes that were remembered; one number
    lower: NDArray[np.float64]  # of the root's actions
    upper: NDArray[np.float64]


@steps.make_root.register(Search)
def _make_root(search: Any, model: Any, state: int) -> int:
    if search.tree.used[0] > 0:
        return CHUNK_DONE
    status = _place(search, model, add_node(search.tree, state, search.calls.size), NONE, 0)
    search.upper[:] = search.tree.nodes[0].upper
    return int(status)


@inlined
def _place(search: Any, model: Any, at: int, way: int, depth: int) -> int:
    """Give a new node its place: a pair leads to it, and an earlier one may have the same state.

    Returns a status. A node without actions is an end, and worth nothing.
    """
    nodes = search.tree.nodes
    node = nodes[at]
    node.depth = node.reach = depth
    node.way, node.same, node.twin = way, at, NONE
    if node.actions == 0:
        return CHUNK_DONE
    if search.merges:
        node.same = merge(search.merged, node.state, depth, at)
        if node.same != at:
            node.twin = nodes[node.same].twin
            nodes[node.same].twin = at
            return CHUNK_DONE
    return int(_bound_leaf(search, model, at))


@inlined
def _bound_leaf(search: Any, model: Any, at: int) -> int:
    """What a leaf is worth: what rewards can add up to, and what the user knows; returns a status."""
    node = search.tree.nodes[at]
    tail = search.tails[min(node.depth, search.tails.size - 1)]
    node.upper, node.lower = tail.upper, tail.lower
    low, high = handles.value_bounds(model, int(node.state), int(node.depth))
    if np.isnan(high):
        return int(break_promise(search, BAD_ANSWER, node.state, 0, node.depth, 0.0))
    node.upper, node.lower = min(tail.upper, high), max(tail.lower, low)
    if node.lower > node.upper + search.slack:
        false = node.upper if high < tail.lower else node.lower
        return int(break_promise(search, FALSE_BOUND, node.state, 0, node.depth, false))
    _recall_bounds(search, at)
    return CHUNK_DONE


@inlined
def _recall_bounds(search: Any, at: int) -> bool:
    """Give a leaf the bounds that its state has after fewer steps; returns whether they are closer.

    Without an end, a state is worth as much after any number of steps. Else it is worth less by what
    can be earned in the steps that are missing, as it counts here.
    """
    tails = search.tails
    node = search.tree.nodes[at]
    before = find(search.known, node.state, 0) if search.remembers else NONE
    if before == NONE:
        return False
    known, width = search.tree.nodes[before], node.upper - node.lower
    upper, lower = known.upper, known.lower
    if search.last != 0:
        missing = node.depth - known.depth
        if missing <= 0:
            return False
        # Powers of integers differ between compiled and interpreted runs.
        weight = search.problem[0].gamma ** float(search.last - node.depth)
        upper -= weight * min(tails[search.last - missing].lower, 0.0)
        lower -= weight * max(tails[search.last - missing].upper, 0.0)
    node.upper = min(node.upper, upper)
    node.lower = max(node.lower, lower)
    return bool(node.upper - node.lower < width - search.tie)


@steps.compute.register(Search)
def _compute(search: Any, model: Any, ties: Any) -> int:
    return RULE if _action_to_learn_of(search) == NONE else steps.CALL


@inlined
def _action_to_learn_of(search: Any) -> int:
    """The root's action below which to expand; NONE if the search is over.

    Given an accuracy, the action b with the least gap or its strongest rival: the one that less is
    known of. If the value is asked for, or there is no accuracy, the most promising action.
    """
    upper, lower = search.upper, search.lower
    if search.value_goal and largest(upper) - largest(lower) <= 2.0 * search.epsilon:
        return NONE
    if search.value_goal or search.epsilon < 0.0:
        return _most_promising(search, NONE)
    best, gap = least_gap(upper, lower)
    if gap <= search.epsilon:
        return NONE
    rival = _most_promising(search, best)
    spread = upper[best] - lower[best]
    if rival != NONE and upper[rival] - lower[rival] > spread:
        return rival
    return best if spread > search.tie else NONE


@inlined
def _most_promising(search: Any, other: int) -> int:
    """The action but `other` with the largest upper bound of those of which something can be learnt.

    Of several, it is the one that leads deepest.
    """
    root, tie = search.tree.nodes[0], search.tie
    found, deepest = NONE, NONE
    for action in range(search.upper.size):
        if action == other or search.upper[action] - search.lower[action] <= tie:
            continue
        depth = reach(search, pair_of(root, action)) if whole(root) else 0
        better = found == NONE or search.upper[action] > search.upper[found] + tie
        if better or (search.upper[action] >= search.upper[found] - tie and depth > deepest):
            found = action
            deepest = depth
    return found


@inlined
def _leaf(search: Any) -> tuple[int, int]:
    """The node to expand, and the root's action that leads there: the root, or a sequence's end.

    It is the most promising sequence. Given an accuracy, every other expansion prolongs the one that is
    surely worth most instead: a few steps can prove much from below, where from above all others have
    to be ruled out.
    """
    nodes = search.tree.nodes
    if not whole(nodes[0]):
        return 0, NONE
    if search.epsilon > 0.0 and search.report[0].episodes % 2 == 0:
        at, action = _surest_leaf(search)
        if at != NONE:
            return at, action
    at, action = 0, _action_to_learn_of(search)
    link = pair_of(nodes[0], action)
    while link != NONE and search.tree.pairs[link].child != NONE:
        at = next_node(search, link)
        link = nodes[at].favourite if whole(nodes[at]) else NONE
    return int(at), action


@inlined
def _surest_leaf(search: Any) -> tuple[int, int]:
    """The end of the sequence that is surely worth most; NONE if it is known well enough."""
    nodes, pairs, weight = search.tree.nodes, search.tree.pairs, search.problem[0].gamma
    surest = search.lower.argmax() if search.value_goal else least_gap(search.upper, search.lower)[0]
    link = pair_of(nodes[0], surest)
    while pairs[link].child != NONE:
        at = next_node(search, link)
        node = nodes[at]
        if weight * (node.upper - node.lower) <= _NARROW * search.epsilon:
            break
        if not whole(node):
            return int(at), int(surest)
        link = pair_of(node, 0)
        for other in range(link + 1, pair_of(node, node.actions)):
            if pairs[other].lower > pairs[link].lower:
                link = other
        weight *= search.problem[0].gamma
    return NONE, NONE


@steps.call.register(Search)
def _call(search: Any, model: Any, most: int, rng: Any) -> int:
    """Try every action of the leaf at the end of the most promising sequence.

    If more has become known of its state meanwhile, that may do instead; unless a check is due.
    """
    tree, (at, first) = search.tree, _leaf(search)
    node, depth = tree.nodes[at], tree.nodes[at].depth
    checked = search.checks[0] >= _CHECKED * search.report[0].calls
    if node.tried == 0 and checked and _recall_bounds(search, at):
        return int(renew_bounds(search, at))
    left = node.actions - node.tried
    if left == 0:
        # All is known below bounds that are apart.
        return int(break_promise(search, FALSE_BOUND, node.state, 0, depth, node.upper))
    full = tree.used[0] + left > tree.nodes.size or tree.used[1] + left > tree.pairs.size
    full = full or depth + 1 >= search.dues.size or not has_room(search.known, 1)
    if full or (search.merges and not has_room(search.merged, left)):
        return NO_ROOM
    before = merge(search.known, node.state, depth if search.per_step else 0, at)
    begun = search.report[0].calls
    while not whole(node):
        if search.report[0].calls - begun == most:
            return SPENT
        status = _try_next(search, model, at, before, first, rng)
        if status != CHUNK_DONE:
            return status
    return int(renew_bounds(search, at))


@inlined
def _try_next(search: Any, model: Any, at: int, before: int, first: int, rng: Any) -> int:
    """Learn by a call what the next action of a node does, unless it is remembered; returns a status.

    The node's state was expanded at node `before`; `first` is the root's action that led there.
    """
    tree, problem = search.tree, search.problem[0]
    node = tree.nodes[at]
    action, h = node.tried, node.depth
    earlier = NONE
    if before != at and action < tree.nodes[before].tried:
        earlier = pair_of(tree.nodes[before], action)
    remembered = earlier != NONE and search.remembers
    if remembered and search.checks[0] >= _CHECKED * search.report[0].calls:
        successor, ended = tree.pairs[earlier].successor, tree.pairs[earlier].ended
        reward = tree.pairs[earlier].reward
    else:
        beginning = action if first == NONE else first
        successor, x, ended, status = draw_counted(search, model, node.state, action, h, beginning, rng)
        if status != CHUNK_DONE:
            return status
        reward = problem.lowest + problem.width * x
        search.checks[0] += remembered
        if earlier != NONE:
            status = _compare(search, earlier, successor, ended, reward, h)
            if status != CHUNK_DONE:
                return status
    link = add_pair(tree, at, action)
    pair = tree.pairs[link]
    pair.n, pair.at, pair.reward, pair.successor, pair.ended = 1, at, reward, successor, ended
    status = _add_outcome(search, model, link)
    if status == CHUNK_DONE:
        bound_pair(search, link)
    return status


@inlined
def _compare(search: Any, link: int, successor: int, ended: bool, reward: float, h: int) -> int:
    """Whether a pair that was called again did what it had done before, as a status."""
    pair = search.tree.pairs[link]
    state = search.tree.nodes[pair.at].state
    if pair.ended != ended or (not ended and pair.successor != successor):
        return break_promise(search, TOO_MANY_SUCCESSORS, state, pair.action, h, 0.0)
    if abs(pair.reward - reward) > _SAME_REWARD * search.problem[0].width:
        return break_promise(search, REWARD_VARIES, state, pair.action, h, reward)
    return CHUNK_DONE


@inlined
def _add_outcome(search: Any, model: Any, link: int) -> int:
    """Add the node that a pair leads to, unless it is the last; returns a status."""
    tree, pair = search.tree, search.tree.pairs[link]
    depth = tree.nodes[pair.at].depth + 1
    if depth == search.last:
        return CHUNK_DONE
    actions = 0
    if not pair.ended:
        actions, status = count_actions(search, model, pair.successor, depth)
        if status != CHUNK_DONE:
            return status
    child = add_node(tree, 0 if pair.ended else pair.successor, actions)
    tree.nodes[child].count = 1
    link_child(tree, link, child)
    return int(_place(search, model, child, link, depth))
