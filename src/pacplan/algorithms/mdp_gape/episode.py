"""MDP-GapE's episodes (the paper's Algorithm 1), as answers to the engine's questions.

If nodes are merged (the graph of the paper's appendix A), a visit renews only the bounds on its own
path; those on other paths to the same states are still valid, and are renewed by sweeps.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.mdp_gape.bounds import refresh_node, refresh_pair
from pacplan.algorithms.mdp_gape.graph import Graph, canonical, graph_has_room, join
from pacplan.algorithms.mdp_gape.sweep import decide, satisfied, sweep_graph
from pacplan.compiled.jit import inlined
from pacplan.engine import episodes
from pacplan.engine.calls import BAD_ANSWER, CHUNK_DONE, REWARD_VARIES, break_promise, follow
from pacplan.engine.search import kernel_arrays
from pacplan.engine.tree import NONE, add_node, add_pair, set_bounds, untried_action
from pacplan.models import handles


@kernel_arrays
class Search:
    """What MDP-GapE's episodes work on."""

    graph: Graph | None  # None if nodes are not merged
    epsilon: float
    tie: float  # bounds that differ by less are tied
    slack: float  # covers the rounding of a sum of bounds
    value_goal: bool
    fixed_rewards: bool  # rewards are deterministic: the first reveals the mean
    bounded: bool  # the user knows bounds on values
    values: Any  # records of VALUE_RANGE
    radii: NDArray[np.float64]  # rows of a ThresholdTable
    shares: NDArray[np.float64]  # solutions for these radii
    root: Any  # records of ROOT
    decision: Any  # one record of DECISION
    ball: Any  # records of BALL


@inlined
def _tighten(search: Any, model: Any, at: int, h: int) -> int:
    """Bound the value of a new node by what the user knows; returns a status."""
    if not search.bounded:
        return CHUNK_DONE
    node = search.tree.nodes[at]
    low, high = handles.value_bounds(model, node.state, h)
    if np.isnan(low):
        return break_promise(search, BAD_ANSWER, node.state, 0, h, 0.0)
    node.upper = min(node.upper, high)
    node.lower = max(node.lower, low)
    return CHUNK_DONE


@inlined
def _add_unvisited(search: Any, at: int, action: int, h: int) -> int:
    """A pair for an action that is tried for the first time."""
    link = add_pair(search.tree, at, action)
    pair, values = search.tree.pairs[link], search.values[search.problem[0].horizon - h]
    pair.upper = values.node_upper
    pair.lower = values.node_lower
    if search.bounded:
        pair.upper = min(pair.upper, search.tree.nodes[at].upper)
    return link


@episodes.make_root.register(Search)
def _make_root(search: Any, model: Any, state: int, ties: Any) -> int:
    values = search.values[search.problem[0].horizon]
    add_node(search.tree, state, search.root.size)
    set_bounds(search.tree, 0, values.node_upper, values.node_lower)
    status = _tighten(search, model, 0, 0)
    join(search.graph, 0, state, 0, False)
    for action in range(search.root.size):
        arm = search.root[action]
        arm.upper = search.tree.nodes[0].upper
        arm.lower = values.node_lower
        arm.pair = NONE
    return status


@episodes.has_room.register(Search)
def _has_room(search: Any) -> bool:
    rows = search.report[0].episodes + 2
    return bool(
        rows <= search.radii.shape[0] and graph_has_room(search.graph, search.problem[0].horizon)
    )


@episodes.finished.register(Search)
def _finished(search: Any, model: Any, most_calls: int, ties: Any) -> bool:
    # Before the decision, so its draws do not depend on how episodes are divided into chunks.
    if search.report[0].calls >= min(search.decision[0].due, most_calls):
        sweep_graph(search.graph, search, ties)
    decide(search, ties)
    return satisfied(search)


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
    after = search.values[problem.horizon - h - 1]
    child, new, status = follow(search, model, step.node, step.pair, successor, ended, h)
    if status == CHUNK_DONE and new:
        if not ended:
            set_bounds(search.tree, child, after.node_upper, after.node_lower)
            status = _tighten(search, model, child, h + 1)
        join(search.graph, child, successor, h + 1, ended)
    return child, status


@episodes.acting_node.register(Search)
def _acting_node(search: Any, node: int) -> int:
    return canonical(search.graph, node)


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
            arm.upper = pair.upper
            arm.lower = pair.lower
    search.decision[0].stands = 0
