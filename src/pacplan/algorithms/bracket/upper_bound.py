"""Bracket from above: W of pairs, f of nodes (docs/bracket.md, "Above")."""

from math import log
from typing import Any

import numpy as np

from pacplan.bounds.product import penalised_max
from pacplan.bounds.simplex import ball_max
from pacplan.compiled.jit import called, inlined
from pacplan.engine.tree import NONE


@inlined
def best_outcome(search: Any, link: int, h: int, most: float) -> tuple[float, int]:
    """The largest f, cut to `most`, of the outcomes of a pair, seen or not; and how many were seen."""
    tree = search.tree
    top, seen = -np.inf, 0
    outcome = tree.pairs[link].child
    while outcome != NONE:
        node = tree.nodes[outcome]
        top = max(top, min(node.upper, most))
        seen += 1
        outcome = node.sibling
    if seen < search.problem[0].successors:
        top = max(top, search.levels[h + 1].span)
    return top, seen


@inlined
def _second_maximum(search: Any, at: int, link: int, h: int, top: float, seen: int) -> float:
    """The largest p.(mean d - d now) over the ball, never too small."""
    tree, settings, ball = search.tree, search.settings[0], search.scratch
    pair = tree.pairs[link]
    n = pair.n
    unseen = -np.inf
    if seen < search.problem[0].successors:
        unseen = pair.drift / n - settings.gamma * (top - search.levels[h + 1].span)
    counted = 0
    k = 0
    entropy = 0.0
    outcome = pair.child
    while outcome != NONE:
        node = tree.nodes[outcome]
        f = node.drift / n - settings.gamma * (top - node.upper)
        count = node.count - settings.least_count
        if count > 0:
            ball[k].p = count
            ball[k].f = f
            counted += count
            entropy += count * log(count)
            k += 1
        else:
            # To the ball it is like an outcome never seen.
            unseen = max(unseen, f)
        outcome = node.sibling
    if counted == 0:
        return float(unseen)
    for i in range(k):
        ball[i].p /= counted
    entropy -= counted * log(counted)
    price = search.levels[h].price + tree.nodes[at].price
    radius = max(price + entropy - pair.predicted, 0.0) / counted
    return ball_max(ball.p, ball.f, k, unseen, radius)


@called
def refresh_pair(search: Any, at: int, link: int, h: int, penalty: float, renewed: bool) -> None:
    """W(e) = gamma max f + max_y [ y - lambda weight_h log M(y) ] + max_p p.(mean d - d now).

    Cut to [0, cap + lambda weight_h C_h]. `renewed`: nothing was bet since the first maximum was last
    found, and lambda is the same.
    """
    tree, settings, level = search.tree, search.settings[0], search.levels[h]
    node, pair = tree.nodes[at], tree.pairs[link]
    next_matters = h + 1 < settings.horizon
    random_next = next_matters and settings.learns
    value = pair.reward if settings.told else 0.0
    evidence = 0.0
    if random_next or not settings.told:
        scale = penalty * level.weight
        if not renewed:
            bets, stakes, work = search.bets[link], search.stakes[h], search.scratch.term
            pair.stake, pair.guess = penalised_max(
                bets, stakes, pair.n, level.cash, scale, pair.guess, level.tolerance, work
            )
        evidence = (pair.guess - pair.stake) / scale
        # If the reward is told, the bets are on 1 - d.
        value += pair.stake - (1.0 if settings.told else 0.0)
    if next_matters:
        top, seen = best_outcome(search, link, h, np.inf)
        value += settings.gamma * top
        if random_next:
            value += _second_maximum(search, at, link, h, top, seen)
        outcome = pair.child
        while outcome != NONE:
            # The average evidence below.
            after = tree.nodes[outcome]
            evidence += after.count / pair.n * after.evidence
            outcome = after.sibling
    # No evidence can carry W further: log M >= log cash at every depth below.
    most = node.cap + penalty * level.excess
    pair.evidence = evidence if value <= most else 0.0
    pair.upper = max(0.0, min(value, most))


@inlined
def refresh_node(search: Any, at: int) -> None:
    """f: the largest W of a node, including that of an action never tried."""
    tree, node = search.tree, search.tree.nodes[at]
    upper = node.cap if node.tried < node.actions else -np.inf
    evidence = 0.0
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.upper > upper:
            upper = pair.upper
            evidence = pair.evidence
        link = pair.sibling
    node.upper = upper
    node.evidence = evidence
