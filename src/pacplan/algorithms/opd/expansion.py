"""Which leaf OPD expands, and what an expansion does: the answers to the step loop's questions."""

from typing import Any

import numpy as np

from pacplan.algorithms.opd.bounds import bound_pair, pair_of, reach, renew_bounds, whole
from pacplan.algorithms.opd.records import Search
from pacplan.compiled.jit import inlined
from pacplan.compiled.questions import answers
from pacplan.engine import steps
from pacplan.engine.calls import (
    CHUNK_DONE,
    NO_ROOM,
    RULE,
    SPENT,
    break_promise,
    count_actions,
    draw_counted,
)
from pacplan.engine.graph import has_room, merge
from pacplan.engine.promises import REWARD_VARIES, TOO_MANY_SUCCESSORS
from pacplan.engine.tree import NONE, add_node, add_pair, link_child

# Of the outcomes that are remembered, so many are asked for again, as a part of all calls, to see
# whether the model keeps its promise.
_CHECKED = 0.1
# A sequence is known well enough if its worth is known to this part of epsilon.
_NARROW = 0.25
# Rewards that differ by no more, as a part of their range, are equal.
_SAME_REWARD = 1e-9


@answers(steps.begin, Search)
def _begin(search: Search, state: int) -> None:
    """Make the root."""
    if search.tree.used[0] == 0:
        tail = search.tails[0]
        root = add_node(search.tree, state, search.calls.size, tail.upper, tail.lower)
        _place(search, root, NONE, 0)


@inlined
def _place(search: Search, at: int, way: int, depth: int) -> None:
    """Give a new node its place: a pair leads to it, and an earlier one may have the same state."""
    nodes = search.tree.nodes
    node = nodes[at]
    node.depth = depth
    node.reach = depth
    node.way = way
    node.same = at
    node.twin = NONE
    if search.rules[0].merged and node.actions > 0:
        node.same = merge(search.merged, node.state, depth, at)
        if node.same != at:
            node.twin = nodes[node.same].twin
            nodes[node.same].twin = at


@answers(steps.advance, Search)
def _advance(search: Search, model: Any, ties: Any) -> int:
    return RULE if _action_to_learn_of(search) == NONE else steps.CALL


@inlined
def _action_to_learn_of(search: Search) -> int:
    """The root's action below which to expand; NONE if the search is over.

    Given an accuracy, the action b with the least gap or its strongest rival: the one that less is
    known of.
    """
    rules, upper, lower = search.rules[0], search.upper, search.lower
    if rules.epsilon < 0.0:
        return _most_promising(search, NONE)
    best, gap = _least_gap(search)
    if gap <= rules.epsilon:
        return NONE
    rival = _most_promising(search, best)
    spread = upper[best] - lower[best]
    if rival != NONE and upper[rival] - lower[rival] > spread:
        return rival
    return best if spread > rules.tie else NONE


@inlined
def _most_promising(search: Search, other: int) -> int:
    """The action but `other` with the largest upper bound of those of which something can be learnt.

    Of several, it is the one that leads deepest.
    """
    root, tie = search.tree.nodes[0], search.rules[0].tie
    found = NONE
    deepest = NONE
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
def _least_gap(search: Search) -> tuple[int, float]:
    """The action b with the least gap, max over a != b of U(a) minus L(b), and that gap."""
    upper, lower = search.upper, search.lower
    first = 0
    for action in range(1, upper.size):
        if upper[action] > upper[first]:
            first = action
    second = -np.inf
    for action in range(upper.size):
        if action != first:
            second = max(second, upper[action])
    best = first
    gap = second - lower[first]
    for action in range(upper.size):
        if action != first and upper[first] - lower[action] < gap:
            best = action
            gap = upper[first] - lower[action]
    return best, gap


@inlined
def _leaf(search: Search) -> int:
    """The node to expand: the root, or the end of a sequence.

    It is the most promising sequence. Given an accuracy, every other expansion prolongs the one that is
    surely worth most instead: a few steps can prove much from below, where from above all others have
    to be ruled out.
    """
    nodes, pairs = search.tree.nodes, search.tree.pairs
    if not whole(nodes[0]):
        return 0
    if search.rules[0].epsilon > 0.0 and search.report[0].episodes % 2 == 0:
        surest = _surest_leaf(search)
        if surest != NONE:
            return surest
    at = 0
    link = pair_of(nodes[0], _action_to_learn_of(search))
    while link != NONE:
        at = nodes[pairs[link].child].same
        link = nodes[at].favourite if whole(nodes[at]) else NONE
    return int(at)


@inlined
def _surest_leaf(search: Search) -> int:
    """The end of the sequence that is surely worth most; NONE if it is known well enough."""
    nodes, pairs = search.tree.nodes, search.tree.pairs
    discount = search.terms[0].gamma
    link = pair_of(nodes[0], _least_gap(search)[0])
    while pairs[link].child != NONE:
        at = nodes[pairs[link].child].same
        node = nodes[at]
        if discount * (node.upper - node.lower) <= _NARROW * search.rules[0].epsilon:
            return NONE
        if not whole(node):
            return int(at)
        link = pair_of(node, 0)
        for other in range(link + 1, pair_of(node, node.actions)):
            if pairs[other].lower > pairs[link].lower:
                link = other
        discount *= search.terms[0].gamma
    return NONE


@inlined
def _first_action(search: Search, at: int) -> int:
    """The root's action that a node was first found below; NONE for the root."""
    tree = search.tree
    action = NONE
    while at != 0:
        pair = tree.pairs[tree.nodes[at].way]
        action = pair.action
        at = pair.at
    return int(action)


@answers(steps.call, Search)
def _expand(search: Search, model: Any, most: int, rng: Any) -> int:
    """Try every action of the leaf at the end of the most promising sequence."""
    tree, counts, rules = search.tree, search.counts[0], search.rules[0]
    at = _leaf(search)
    node = tree.nodes[at]
    depth = node.depth
    left = node.actions - node.tried
    if tree.used[0] + left > tree.nodes.size or tree.used[1] + left > tree.pairs.size:
        return NO_ROOM
    if depth + 1 >= search.dues.size or not has_room(search.known, 1):
        return NO_ROOM
    if rules.merged and not has_room(search.merged, left):
        return NO_ROOM
    before = merge(search.known, node.state, depth if rules.per_step else 0, at)
    first = _first_action(search, at)
    begun = search.report[0].calls
    while not whole(node):
        if search.report[0].calls - begun == most:
            return SPENT
        status = _try_next(search, model, at, before, first, rng)
        if status != CHUNK_DONE:
            return status
    counts.deepest = max(counts.deepest, depth + 1)
    renew_bounds(search, at)
    return CHUNK_DONE


@inlined
def _try_next(search: Search, model: Any, at: int, before: int, first: int, rng: Any) -> int:
    """Try the next action of node `at`, whose state was expanded at node `before`; returns a status."""
    tree, counts = search.tree, search.counts[0]
    node, terms = tree.nodes[at], search.terms[0]
    action, h = node.tried, node.depth
    earlier = NONE
    if before != at and action < tree.nodes[before].tried:
        earlier = pair_of(tree.nodes[before], action)
    remembered = earlier != NONE and search.rules[0].remembers
    if remembered and counts.checks >= _CHECKED * search.report[0].calls:
        successor, ended = tree.pairs[earlier].successor, tree.pairs[earlier].ended
        reward = tree.pairs[earlier].reward
    else:
        beginning = action if first == NONE else first
        successor, x, ended, status = draw_counted(search, model, node.state, action, h, beginning, rng)
        if status != CHUNK_DONE:
            return status
        reward = terms.lowest + terms.width * x
        counts.checks += remembered
        if earlier != NONE:
            status = _compare(search, earlier, successor, ended, reward, h)
            if status != CHUNK_DONE:
                return status
    return _add_outcome(search, model, at, successor, ended, reward)


@inlined
def _compare(search: Search, link: int, successor: int, ended: bool, reward: float, h: int) -> int:
    """Whether a pair that was called again did what it had done before, as a status."""
    pair = search.tree.pairs[link]
    state = search.tree.nodes[pair.at].state
    if pair.ended != ended or (not ended and pair.successor != successor):
        return break_promise(search, TOO_MANY_SUCCESSORS, state, pair.action, h, 0.0)
    if abs(pair.reward - reward) > _SAME_REWARD * search.terms[0].width:
        return break_promise(search, REWARD_VARIES, state, pair.action, h, reward)
    return CHUNK_DONE


@inlined
def _add_outcome(
    search: Search, model: Any, at: int, successor: int, ended: bool, reward: float
) -> int:
    """Add the pair of the next action of node `at`, and the node that it leads to; returns a status."""
    tree, depth = search.tree, search.tree.nodes[at].depth + 1
    last = depth == search.rules[0].horizon
    actions = 0
    if not (last or ended):
        actions, status = count_actions(search, model, successor, depth)
        if status != CHUNK_DONE:
            return status
    link = add_pair(tree, at, tree.nodes[at].tried)
    pair = tree.pairs[link]
    pair.n = 1
    pair.at = at
    pair.reward = reward
    pair.successor = successor
    pair.ended = ended
    if not last:
        tail = search.tails[min(depth, search.tails.size - 1)]
        upper, lower = (0.0, 0.0) if ended else (tail.upper, tail.lower)
        child = add_node(tree, 0 if ended else successor, actions, upper, lower)
        tree.nodes[child].count = 1
        link_child(tree, link, child)
        _place(search, child, link, depth)
    bound_pair(search, link)
    return CHUNK_DONE
