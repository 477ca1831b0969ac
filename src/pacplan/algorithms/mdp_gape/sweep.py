"""All bounds at once: of a graph that is swept; and estimates at the end."""

from typing import Any

import numpy as np

from pacplan.algorithms.mdp_gape.bounds import bound_unvisited, refresh_node, refresh_pair, told
from pacplan.algorithms.mdp_gape.root import decide, renew_root
from pacplan.compiled.jit import inlined, kernel
from pacplan.compiled.reference import refer
from pacplan.engine.calls import halted
from pacplan.engine.graph import Graph, canonical
from pacplan.engine.tree import NONE

# Growth of the calls between two sweeps of a graph, and calls that come on top.
_GROWTH, _MORE = 1.05, 20


@inlined
def _renew(search: Any, model: Any, at: int, h: int, price: float, ties: Any) -> None:
    """Compute the bounds of a node at depth h and of its pairs, given those of what follows."""
    tree, path = search.tree, search.path
    link = tree.nodes[at].first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.n == 0:
            bound_unvisited(search, pair, h)
        else:
            # As if the last visit had changed no mean.
            path[h].node = at
            path[h].pair = link
            path[h].child = pair.child
            path[h].reward = pair.reward if told(search) else pair.reward / pair.n
            path[h].price = price
            refresh_pair(search, model, h)
        link = pair.sibling
    refresh_node(search, at, h, ties)


@inlined
def _sweep_graph(graph: Graph | None, search: Any, model: Any, ties: Any) -> None:
    if graph is None:
        return
    for h in range(search.problem[0].horizon - 1, -1, -1):
        at = graph.heads[h]
        while at != NONE:
            if halted(search):
                return
            _renew(search, model, at, h, 0.0, ties)
            at = graph.peer[at]
    renew_root(search)
    search.decision[0].due = int(_GROWTH * search.report[0].calls) + _MORE
    search.decision[0].stands = 0


@inlined
def sweep_graph(search: Any, model: Any, ties: Any) -> None:
    """Renew all bounds of a merged graph, from the last step to the first, unless nothing was learnt.

    Every pair then benefits from what was seen on any path to the states that follow it.
    """
    decision, report = search.decision[0], search.report[0]
    if decision.swept < report.episodes:
        decision.swept = report.episodes
        _sweep_graph(search.graph, search, model, ties)


@kernel
def sweep(search: Any, model: Any, ties: Any) -> None:
    """The last sweep of a search, and the decision that follows from it."""
    search, model = refer(search), refer(model)
    sweep_graph(search, model, ties)
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
            mean = pair.reward if told(search) else pair.reward / pair.n
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
