"""Where exploring goes: by the largest W, to where a call is worth most on that way.

Most pairs near the root are known well. So an exploring episode is first imagined, with outcomes drawn
by how often they were seen. Calls begin at the first pair that is worth a fair part of the best on its
way, until one is new. Which pair is called next may depend on all that was seen, so no bound depends
on this.
"""

from typing import Any

import numpy as np

from pacplan.algorithms.bracket.constants import LEAST_WIDTH, TIE, WORTH_CALLING
from pacplan.algorithms.bracket.pool import pooled_value
from pacplan.compiled.jit import called, inlined
from pacplan.engine.root_rules import largest
from pacplan.engine.tree import NONE


@inlined
def optimistic(search: Any, at: int, ties: Any) -> int:
    """The pair with the largest W, or NONE for an action never tried; ties at random."""
    tree, node = search.tree, search.tree.nodes[at]
    tied = node.actions - node.tried
    best = node.cap if tied > 0 else -np.inf
    chosen = NONE
    link = node.first
    while link != NONE:
        upper = tree.pairs[link].upper
        if upper > best + TIE:
            best = upper
            chosen = link
            tied = 1
        elif upper >= best - TIE:
            tied += 1
            if ties.random() * tied < 1.0:
                chosen = link
        link = tree.pairs[link].sibling
    return chosen


@inlined
def _uncertainty(search: Any, at: int, link: int, h: int) -> float:
    """By how much W of a pair, or of an action never tried, exceeds what there is reason to expect.

    Of a pair with few visits that is its estimate, all below it included; of others what was seen of
    it, with the f of what it led to.
    """
    tree, settings, node = search.tree, search.settings[0], search.tree.nodes[at]
    if link == NONE:
        return float(node.cap - search.levels[h].prior)
    pair = tree.pairs[link]
    if pair.n < settings.cut:
        return float(pair.upper - pooled_value(search, node.place, pair.action, h))
    seen = pair.reward if settings.told else pair.reward / pair.n
    outcome = pair.child if h + 1 < settings.horizon else NONE
    while outcome != NONE:
        after = tree.nodes[outcome]
        seen += settings.gamma * (after.count / pair.n) * after.upper
        outcome = after.sibling
    return float(pair.upper - seen)


@called
def imagine(search: Any, ties: Any) -> int:
    """Imagine an exploring episode, into `path`; returns the step at which its calls begin, or NONE.

    What a call of a pair can take off the bound of the action played is about the (discounted)
    probability of coming to its state, as far as such episodes show, times its uncertainty / (n + 1).
    """
    settings, tree, gains = search.settings[0], search.tree, search.scratch.score
    first, discount, at, steps = search.root[search.decision[0].play].pair, 1.0, 0, 0
    for h in range(settings.horizon):
        node, step = tree.nodes[at], search.path[h]
        node.reached += discount
        step.pair = first if h == 0 else optimistic(search, at, ties)
        n = 0 if step.pair == NONE else tree.pairs[step.pair].n
        if h + 1 == settings.horizon and settings.told and n > 0:
            break
        wide = max(_uncertainty(search, at, step.pair, h), LEAST_WIDTH * settings.resolution)
        gains[h] = node.reached * wide / (n + 1)
        steps = h + 1
        if n < settings.cut or steps == settings.horizon:
            break
        # A node that the pair has led to, as often as it did.
        left, at = ties.random() * n, tree.pairs[step.pair].child
        while at != NONE:
            left -= tree.nodes[at].count
            if left < 0.0:
                break
            at = tree.nodes[at].sibling
        if at == NONE or tree.nodes[at].actions == 0:
            break
        step.child = at
        discount *= settings.gamma
    if steps == 0:
        return NONE
    least = largest(gains[:steps]) * WORTH_CALLING
    target = 0
    while gains[target] < least:
        target += 1
    return target
