"""MDP-GapE itself (the paper's Algorithm 1), as methods of the engine's generic functions.

Before every episode: the stopping rule, and UGapE's choice at the root (`_finished`, `_decide`). Below
the root an episode follows the largest upper bounds (`_select`); after it, counts and bounds on its
path are renewed, from the last step to the first (`_update`).

If nodes are merged (the graph of the paper's appendix A), a visit renews only the bounds on its own
path; those on other paths to the same states are still valid, and are renewed by sweeps.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.mdp_gape.bounds import refresh_node, refresh_pair
from pacplan.algorithms.mdp_gape.graph import Graph, acting, graph_has_room, join
from pacplan.compiled.jit import inlined
from pacplan.engine import episodes
from pacplan.engine.calls import BAD_ANSWER, CHUNK_DONE, REWARD_VARIES, break_promise, follow, halted
from pacplan.engine.root_rules import argmax_at_random, best_and_challenger, gap_of, largest, wider
from pacplan.engine.search import kernel_arrays
from pacplan.engine.tree import NONE, add_node, add_pair, set_bounds, untried_action
from pacplan.models import handles

# Growth of the calls between two sweeps of a graph, and calls that come on top.
_GROWTH, _MORE = 1.05, 20


@kernel_arrays
class Search:
    """What MDP-GapE's episodes work on."""

    graph: Graph  # None if nodes are not merged
    epsilon: float
    tie: float  # bounds that differ by less are tied
    slack: float  # covers the rounding of a sum of bounds
    value_goal: bool
    fixed_rewards: bool  # rewards are deterministic: the first reveals the mean
    bounded: bool  # the user knows bounds on values
    values: Any  # records of VALUE_RANGE
    radii: NDArray[np.float64]  # rows of `Radii`
    shares: NDArray[np.float64]  # solutions for these radii
    root: Any  # records of ROOT
    decision: Any  # one record of DECISION
    ball: Any  # records of BALL


@inlined
def _decide(search: Any, ties: Any) -> None:
    """UGapE at the root: play the wider of b and its challenger c. For the value goal, argmax U."""
    root, decision = search.root, search.decision[0]
    if decision.stands:
        return
    upper, lower = root.upper, root.lower
    best, challenger = best_and_challenger(upper, lower, search.tie, ties)
    if search.value_goal:
        play = argmax_at_random(upper, NONE, search.tie, ties)
    else:
        play = wider(upper, lower, best, challenger, search.tie, ties)
    decision.stands, decision.best, decision.play = 1, best, play


@episodes.finished.register(Search)
def _finished(search: Any, model: Any, most_calls: int, ties: Any) -> bool:
    """The stopping rule: max_{a != b} U(a) - L(b) <= epsilon, or max U - max L <= 2 epsilon."""
    root, decision = search.root, search.decision[0]
    # Before the decision, so its draws do not depend on how episodes are divided into chunks.
    if search.report[0].calls >= min(decision.due, most_calls):
        _sweep(search.graph, search, ties)
    _decide(search, ties)
    if search.value_goal:
        satisfied = largest(root.upper) - largest(root.lower) <= 2.0 * search.epsilon
    else:
        satisfied = gap_of(root.upper, root.lower, decision.best) <= search.epsilon
    if satisfied:
        # The last sweep, and the decision that follows from it.
        _sweep(search.graph, search, ties)
        _decide(search, ties)
    return bool(satisfied)


@episodes.select.register(Search)
def _select(search: Any, at: int, h: int, ties: Any) -> int:
    """At the root the action decided on, below it argmax U."""
    if h == 0:
        play = search.decision[0].play
        if search.root[play].pair == NONE:
            search.root[play].pair = _add_unvisited(search, at, play, 0)
        return int(search.root[play].pair)
    link = search.tree.nodes[at].favourite
    if link == NONE:
        link = _add_unvisited(search, at, untried_action(search.tree, at, ties), h)
    return int(link)


@inlined
def _add_unvisited(search: Any, at: int, action: int, h: int) -> int:
    """A pair for an action that is tried for the first time."""
    link = add_pair(search.tree, at, action)
    pair, values = search.tree.pairs[link], search.values[search.problem[0].horizon - h]
    pair.upper, pair.lower = values.node_upper, values.node_lower
    if search.bounded:
        pair.upper = min(pair.upper, search.tree.nodes[at].upper)
    return link


@episodes.transition.register(Search)
def _transition(
    search: Any, model: Any, h: int, successor: int, ended: bool, ties: Any
) -> tuple[int, int]:
    """Record the step. Nothing is counted yet: the episode is backed up as far as it gets."""
    problem, step = search.problem[0], search.path[h]
    node, pair = search.tree.nodes[step.node], search.tree.pairs[step.pair]
    if search.fixed_rewards and pair.n > 0 and abs(pair.reward - step.reward) > 1e-9:
        paid = problem.lowest + problem.width * step.reward
        return NONE, break_promise(search, REWARD_VARIES, node.state, pair.action, h, paid)
    if h + 1 == problem.horizon:
        return NONE, CHUNK_DONE
    child, new, status = follow(search, model, step.node, step.pair, successor, ended, h)
    if status == CHUNK_DONE and new:
        status = _take_in(search, model, child, h + 1)
    return child, status


@inlined
def _take_in(search: Any, model: Any, at: int, h: int) -> int:
    """Bound the value of a new node, and give it its place; returns a status."""
    node, values = search.tree.nodes[at], search.values[search.problem[0].horizon - h]
    join(search.graph, search.tree, at, h)
    if node.actions == 0:
        return CHUNK_DONE
    set_bounds(search.tree, at, values.node_upper, values.node_lower)
    if search.bounded:
        low, high = handles.value_bounds(model, node.state, h)
        if np.isnan(low):
            return break_promise(search, BAD_ANSWER, node.state, 0, h, 0.0)
        node.upper = min(node.upper, high)
        node.lower = max(node.lower, low)
    return CHUNK_DONE


@episodes.update.register(Search)
def _update(search: Any, model: Any, length: int, ties: Any) -> None:
    """Count the steps of the path and renew the bounds on it, from the last step to the first."""
    tree = search.tree
    for h in range(length - 1, -1, -1):
        step = search.path[h]
        pair = tree.pairs[step.pair]
        pair.n += 1
        if search.fixed_rewards:
            pair.reward = step.reward if pair.n == 1 else pair.reward
        else:
            pair.reward += step.reward
        if step.child != NONE:
            tree.nodes[step.child].count += 1
        refresh_pair(search, h)
        if h > 0:
            refresh_node(search, step.node, h, ties)
        else:
            arm = search.root[pair.action]
            arm.upper, arm.lower = pair.upper, pair.lower
    search.decision[0].stands = 0


# The root, room, and merged nodes.


@episodes.make_root.register(Search)
def _make_root(search: Any, model: Any, state: int, ties: Any) -> int:
    add_node(search.tree, state, search.root.size)
    status = _take_in(search, model, 0, 0)
    for action in range(search.root.size):
        arm = search.root[action]
        arm.upper = search.tree.nodes[0].upper
        arm.lower, arm.pair = search.values[search.problem[0].horizon].node_lower, NONE
    return status


@episodes.has_room.register(Search)
def _has_room(search: Any) -> bool:
    enough = search.report[0].episodes + 2 <= search.radii.shape[0]
    return bool(enough and graph_has_room(search.graph, search.problem[0].horizon))


@episodes.acting_node.register(Search)
def _acting_node(search: Any, node: int) -> int:
    return acting(search.graph, search.tree, node)


@inlined
def _sweep(graph: Graph, search: Any, ties: Any) -> None:
    """Renew all bounds of a merged graph, from the last step to the first, unless nothing was learnt.

    Every pair then benefits from what was seen on any path to the states that follow it.
    """
    if graph is None:
        return
    decision, report, tree = search.decision[0], search.report[0], search.tree
    if decision.swept >= report.episodes:
        return
    decision.swept = report.episodes
    # A node may lie before its parents in the tree.
    for h in range(search.problem[0].horizon - 1, -1, -1):
        for at in range(tree.used[0] - 1, -1, -1):
            node = tree.nodes[at]
            if node.depth == h and node.same == at and node.actions > 0:
                if halted(search):
                    return
                _renew(search, at, h, ties)
    decision.due = int(_GROWTH * report.calls) + _MORE
    decision.stands = 0


@inlined
def _renew(search: Any, at: int, h: int, ties: Any) -> None:
    """Compute the bounds of a node at depth h and of its pairs, given those of what follows."""
    tree, path = search.tree, search.path
    link = tree.nodes[at].first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.n > 0:
            # As if the last visit had changed no mean.
            path[h].node = at
            path[h].pair = link
            path[h].child = pair.child
            path[h].reward = pair.reward if search.fixed_rewards else pair.reward / pair.n
            refresh_pair(search, h)
            if h == 0:
                arm = search.root[pair.action]
                arm.upper, arm.lower = pair.upper, pair.lower
        link = pair.sibling
    refresh_node(search, at, h, ties)
