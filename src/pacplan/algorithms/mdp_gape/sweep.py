"""The decision at the root, all bounds of a graph at once, and estimates at the end."""

from typing import Any

import numpy as np

from pacplan.algorithms.mdp_gape.bounds import refresh_node, refresh_pair
from pacplan.algorithms.mdp_gape.graph import Graph, canonical
from pacplan.compiled.jit import inlined, kernel
from pacplan.compiled.reference import refer
from pacplan.engine.calls import halted
from pacplan.engine.root_rules import argmax_at_random, best_and_challenger, gap_of, largest, wider
from pacplan.engine.tree import NONE

# Growth of the calls between two sweeps of a graph, and calls that come on top.
_GROWTH, _MORE = 1.05, 20


@inlined
def decide(search: Any, rng: Any) -> None:
    """UGapE at the root: play the wider of b and its challenger c. For the value goal, argmax U."""
    root, decision = search.root, search.decision[0]
    if decision.stands:
        return
    upper, lower = root.upper, root.lower
    best, challenger = best_and_challenger(upper, lower, search.tie, rng)
    if search.value_goal:
        play = argmax_at_random(upper, NONE, search.tie, rng)
    else:
        play = wider(upper, lower, best, challenger, search.tie, rng)
    decision.stands = 1
    decision.best = best
    decision.play = play


@inlined
def satisfied(search: Any) -> bool:
    """The stopping rule: max_{a != b} U(a) - L(b) <= epsilon, or max U - max L <= 2 epsilon."""
    root = search.root
    if search.value_goal:
        return bool(largest(root.upper) - largest(root.lower) <= 2.0 * search.epsilon)
    return bool(gap_of(root.upper, root.lower, search.decision[0].best) <= search.epsilon)


@inlined
def renew_root(search: Any) -> None:
    """Copy the bounds of the root's pairs."""
    tree = search.tree
    link = tree.nodes[0].first
    while link != NONE:
        pair = tree.pairs[link]
        arm = search.root[pair.action]
        arm.pair = link
        arm.upper = pair.upper
        arm.lower = pair.lower
        link = pair.sibling


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
        link = pair.sibling
    refresh_node(search, at, h, ties)


@inlined
def sweep_graph(graph: Graph | None, search: Any, ties: Any) -> None:
    """Renew all bounds of a merged graph, from the last step to the first, unless nothing was learnt.

    Every pair then benefits from what was seen on any path to the states that follow it.
    """
    if graph is None:
        return
    decision, report = search.decision[0], search.report[0]
    if decision.swept >= report.episodes:
        return
    decision.swept = report.episodes
    for h in range(search.problem[0].horizon - 1, -1, -1):
        at = graph.heads[h]
        while at != NONE:
            if halted(search):
                return
            _renew(search, at, h, ties)
            at = graph.peer[at]
    renew_root(search)
    decision.due = int(_GROWTH * report.calls) + _MORE
    decision.stands = 0


@kernel
def sweep(search: Any, ties: Any) -> None:
    """The last sweep of a search, and the decision that follows from it."""
    search = refer(search)
    sweep_graph(search.graph, search, ties)
    decide(search, ties)


@inlined
def _estimate(search: Any, at: int, merged: bool, estimates: Any) -> None:
    """The plug-in estimates of a node and, for the root, of its actions; see `plug_in`."""
    tree, problem = search.tree, search.problem[0]
    node = tree.nodes[at]
    best = -np.inf
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.n > 0:
            mean = pair.reward if search.fixed_rewards else pair.reward / pair.n
            value = problem.lowest + problem.width * mean
            outcome = pair.child
            while outcome != NONE:
                child = tree.nodes[outcome]
                state = canonical(search.graph, outcome) if merged else outcome
                value += problem.gamma * child.count / pair.n * estimates[state]
                outcome = child.sibling
            value = min(max(value, pair.lower), pair.upper)
            best = max(best, value)
            if at == 0:
                estimates[tree.used[0] + pair.action] = value
        link = pair.sibling
    estimates[at] = best if best > -np.inf else 0.5 * (node.upper + node.lower)


@kernel
def plug_in(search: Any, estimates: Any) -> None:
    """Estimates of the root's Q by dynamic programming on what was seen, inside the bounds of pairs.

    The value of a node is the best estimate among the actions tried, or the middle of its bounds if
    none was. `estimates` receives the values of all nodes and, after them, those of the root's
    actions, NaN for those never tried. (If nothing is merged the graph is an empty one, not None.)
    """
    search = refer(search)
    nodes = search.tree.used[0]
    graph: Any = search.graph
    estimates[nodes:] = np.nan
    if graph.canonical.size == 0:
        for at in range(nodes - 1, -1, -1):
            _estimate(search, at, False, estimates)
        return
    # An end is worth nothing; all other nodes that are read are canonical ones.
    estimates[:nodes] = 0.0
    for h in range(search.problem[0].horizon - 1, -1, -1):
        at = graph.heads[h]
        while at != NONE:
            _estimate(search, at, True, estimates)
            at = graph.peer[at]
