"""Where exploring goes: by the largest W, to where a call is worth most on that way.

Most pairs near the root are known well. So an exploring episode is first imagined, with outcomes drawn
by how often they were seen. Calls begin at the first pair that is worth a fair part of the best on its
way, until one is new. Which pair is called next may depend on all that was seen, so no bound depends
on this.
"""

from typing import Any

import numpy as np

from pacplan.algorithms.bracket.constants import LEAST_WIDTH, TIE, WORTH_CALLING
from pacplan.algorithms.bracket.records import EXPLORE
from pacplan.algorithms.bracket.state_model import pooled_value
from pacplan.algorithms.bracket.upper_bound import says_nothing
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
def _surplus(search: Any, link: int, h: int) -> float:
    """By how much W of a pair exceeds what was seen of it, with the f of what it led to."""
    tree, settings, pair = search.tree, search.settings[0], search.tree.pairs[link]
    seen = pair.reward if settings.told else pair.reward / pair.n
    outcome = pair.child if h + 1 < settings.horizon else NONE
    while outcome != NONE:
        node = tree.nodes[outcome]
        seen += settings.gamma * (node.count / pair.n) * node.upper
        outcome = node.sibling
    return float(pair.upper - seen)


@inlined
def _width(search: Any, at: int, link: int, h: int) -> float:
    """By how much W of a pair exceeds its estimate, all below it included; NONE is one never tried."""
    node, left = search.tree.nodes[at], search.settings[0].horizon - h
    if link == NONE:
        return float(node.cap - search.steps.prior[left])
    pair = search.tree.pairs[link]
    return float(pair.upper - pooled_value(search, node.place, pair.action, left))


@inlined
def _next_node(search: Any, link: int, ties: Any) -> int:
    """A node that a pair has led to, as often as it did; NONE if the episode ended there."""
    tree = search.tree
    left = ties.random() * tree.pairs[link].n
    outcome = tree.pairs[link].child
    while outcome != NONE:
        node = tree.nodes[outcome]
        left -= node.count
        if left < 0.0:
            return NONE if node.actions == 0 else int(outcome)
        outcome = node.sibling
    return NONE


@inlined
def imagine(search: Any, ties: Any) -> None:
    """Imagine an exploring episode, into `path`, and choose the step at which its calls begin."""
    decision, gains = search.decision[0], search.scratch.score
    decision.target = NONE
    if decision.kind != EXPLORE:
        return
    steps = _imagine_episode(search, ties)
    if steps > 0:
        least = largest(gains[:steps]) * WORTH_CALLING
        decision.target = 0
        while gains[decision.target] < least:
            decision.target += 1


@called
def _imagine_episode(search: Any, ties: Any) -> int:
    """Imagine an exploring episode, with what calls of its pairs are worth in `scratch`; its steps.

    What a call of a pair can take off the bound of the action played is about the (discounted)
    probability of coming to its state, as far as such episodes show, times width / (n + 1).
    """
    decision, settings, tree = search.decision[0], search.settings[0], search.tree
    discount = 1.0
    at = 0
    for h in range(settings.horizon):
        node, step = tree.nodes[at], search.path[h]
        node.reached += discount
        step.pair = search.root[decision.play].pair if h == 0 else optimistic(search, at, ties)
        if h + 1 == settings.horizon and step.pair != NONE and says_nothing(search, step.pair):
            return h
        n = 0 if step.pair == NONE else tree.pairs[step.pair].n
        wide = _width(search, at, step.pair, h) if n < settings.cut else _surplus(search, step.pair, h)
        search.scratch[h].score = node.reached * max(wide, LEAST_WIDTH * settings.resolution) / (n + 1)
        if n < settings.cut or h + 1 == settings.horizon:
            return h + 1
        at = _next_node(search, step.pair, ties)
        step.child = at
        if at == NONE:
            return h + 1
        discount *= settings.gamma
    return 0
