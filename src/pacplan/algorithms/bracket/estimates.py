"""Plug-in estimates of Bracket's pairs and nodes: they steer, and no bound depends on them."""

from math import sqrt
from typing import Any

import numpy as np

from pacplan.algorithms.bracket.constants import ADVICE, POOL_WEIGHT
from pacplan.algorithms.bracket.state_model import pooled_value, refresh
from pacplan.compiled.jit import inlined
from pacplan.engine.root_rules import largest
from pacplan.engine.tree import NONE


@inlined
def score_actions(search: Any, at: int, h: int) -> int:
    """Put estimates of a node's actions, from tree and pool together, and their pairs, into `scratch`.

    Returns how many; 0 if there are too many for the room in it.
    """
    tree, settings = search.tree, search.settings[0]
    node = tree.nodes[at]
    if node.actions > search.scratch.score.size:
        return 0
    for action in range(node.actions):
        search.scratch.score[action] = pooled_value(search, node.place, action, settings.horizon - h)
        search.scratch.link[action] = NONE
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        # What was seen after this history counts more than what the pool says of its state.
        pooled, weight = search.scratch.score[pair.action], pair.n + POOL_WEIGHT
        search.scratch.score[pair.action] = (pair.n * pair.estimate + POOL_WEIGHT * pooled) / weight
        search.scratch.link[pair.action] = link
        link = pair.sibling
    return int(node.actions)


@inlined
def advice_stands(search: Any, at: int, h: int, best: int, advised: int) -> bool:
    """Whether what was seen leaves room for the advised action to be as good as the best one.

    `scratch` has the estimates. As both are tried more often in this state, there is less room.
    """
    node, score = search.tree.nodes[at], search.scratch.score
    tried = 0
    if node.place >= 0:
        first = search.pool.states[node.place].first
        tried = min(search.pool.pairs[first + best].n, search.pool.pairs[first + advised].n)
    room = ADVICE * search.steps.sigma[search.settings[0].horizon - h] / sqrt(1.0 + tried)
    return bool(score[best] - score[advised] <= room)


@inlined
def _estimate_pair(search: Any, link: int, h: int) -> None:
    """Estimate a pair that was visited."""
    tree, settings = search.tree, search.settings[0]
    pair = tree.pairs[link]
    estimate = pair.reward
    if not settings.told:
        weight = search.pool.weight[0]
        estimate = (pair.reward + weight * search.steps.prior[1]) / (pair.n + weight)
    if h + 1 < settings.horizon:
        total = 0.0
        outcome = pair.child
        while outcome != NONE:
            node = tree.nodes[outcome]
            total += node.count * node.estimate
            outcome = node.sibling
        estimate += settings.gamma * total / pair.n
    pair.estimate = estimate


@inlined
def _estimate_node(search: Any, at: int, h: int) -> None:
    """The largest estimate of a node's actions."""
    tree, node = search.tree, search.tree.nodes[at]
    count = score_actions(search, at, h)
    if count > 0:
        node.estimate = largest(search.scratch.score[:count])
        return
    best = search.steps.prior[search.settings[0].horizon - h] if node.tried < node.actions else -np.inf
    link = node.first
    while link != NONE:
        best = max(best, tree.pairs[link].estimate)
        link = tree.pairs[link].sibling
    node.estimate = best


@inlined
def refresh_estimates(search: Any, at: int, link: int, h: int) -> None:
    """Renew the estimates of a node at depth h and of the pair that was visited in it."""
    place = search.tree.nodes[at].place
    if place >= 0:
        refresh(search, place, search.settings[0].horizon - h)
    _estimate_pair(search, link, h)
    _estimate_node(search, at, h)
