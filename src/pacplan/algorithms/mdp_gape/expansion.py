"""New nodes and pairs of MDP-GapE's tree, with the bounds that they have before any visit."""

from typing import Any

import numpy as np

from pacplan.algorithms.mdp_gape.bounds import bound_unvisited, refresh_node
from pacplan.compiled.jit import inlined
from pacplan.engine.calls import CHUNK_DONE, break_promise
from pacplan.engine.promises import BAD_ANSWER
from pacplan.engine.tree import add_pair
from pacplan.models import handles


@inlined
def tighten(search: Any, model: Any, at: int, h: int) -> int:
    """Bound the value of a new node by what the user knows; returns a status."""
    if not search.rules[0].bounded:
        return CHUNK_DONE
    node = search.tree.nodes[at]
    low, high = handles.value_bounds(model, node.state, h)
    if np.isnan(low):
        return break_promise(search, BAD_ANSWER, node.state, 0, h, 0.0)
    node.upper = min(node.upper, high)
    node.lower = max(node.lower, low)
    return CHUNK_DONE


@inlined
def expand_known(search: Any, model: Any, at: int, h: int, ties: Any) -> None:
    """Give every action of a new node its pair: if rewards are known, each has its own."""
    tree, problem = search.tree, search.problem[0]
    node = tree.nodes[at]
    for action in range(node.actions):
        reward = handles.mean_reward(model, node.state, action, h)
        pair = tree.pairs[add_pair(tree, at, action)]
        pair.reward = (reward - problem.lowest) / problem.width
        bound_unvisited(search, pair, h)
    refresh_node(search, at, h, ties)


@inlined
def add_unvisited(search: Any, at: int, action: int, h: int) -> int:
    """A pair for an action that is tried for the first time."""
    link = add_pair(search.tree, at, action)
    pair = search.tree.pairs[link]
    bound_unvisited(search, pair, h)
    if search.rules[0].bounded:
        pair.upper = min(pair.upper, search.tree.nodes[at].upper)
    return link
