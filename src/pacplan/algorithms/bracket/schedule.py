"""What Bracket does next, with which lambda, and where exploring goes (docs/bracket.md, "The rule").

Most pairs near the root are known well. So an exploring episode is first imagined, along the largest W,
with outcomes drawn by how often they were seen. Calls begin at the first pair that is worth a fair part
of the best on its way, until one is new. Which pair is called next may depend on all that was seen, so
no bound depends on this.
"""

from math import sqrt
from typing import Any

import numpy as np

from pacplan.algorithms.betting.bets import NEWEST
from pacplan.algorithms.betting.returns import allocate, follows
from pacplan.algorithms.bracket import constants
from pacplan.algorithms.bracket.pool import pooled_value
from pacplan.algorithms.bracket.records import EXPLOIT, EXPLORE, FORCED
from pacplan.algorithms.bracket.upper_bound import pair_gap, refresh_arm, refresh_node, refresh_pair
from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import halted
from pacplan.engine.root_rules import argmax_at_random, largest
from pacplan.engine.tree import NONE
from pacplan.models.handles import NO_ADVICE


@called
def decide(search: Any, ties: Any) -> None:
    """Choose the next episode: exploit the best estimate, or explore what keeps the gap open."""
    root, settings, decision = search.root, search.settings[0], search.decision[0]
    episodes, gaps = search.report[0].episodes, search.scratch.score[: search.root.size]
    best = argmax_at_random(root.estimate, NONE, constants.TIE, ties)
    decision.best = best
    for a in range(root.size):
        gaps[a] = pair_gap(search, a, best)
    rival = NONE
    # With one action there is nothing to choose, but its value may be asked for.
    if settings.value_goal:
        rival = argmax_at_random(root.upper, NONE, constants.TIE, ties)
    elif root.size > 1:
        rival = argmax_at_random(gaps, best, constants.TIE, ties)
    decision.kind = EXPLOIT
    if (episodes + 1) % constants.FORCED_EVERY == 0:
        decision.kind = FORCED
        decision.play = argmax_at_random(root.upper, NONE, constants.TIE, ties)
    elif rival == NONE:
        decision.play = best
    elif settings.epsilon == 0.0 and episodes % 2 != 0:
        # There is no gap to stop at: every other episode explores the wider of the two.
        decision.kind = EXPLORE
        wide = root[best].upper - root[best].estimate > root[rival].upper - root[rival].estimate
        decision.play = best if wide else rival
    elif _exploiting_is_cheaper(search, best, rival):
        decision.play = best
    else:
        decision.kind, decision.play = EXPLORE, rival
    if decision.kind == EXPLOIT:
        left = 0.0 if rival == NONE else gaps[rival] * (0.5 if settings.value_goal else 1.0)
        allocate(search, best, left)
    decision.paid, decision.earned, decision.discount = 0.0, 0.0, 1.0
    decision.advised = NO_ADVICE
    decision.guided = (
        settings.guided
        and decision.kind == EXPLOIT
        and follows(root[decision.play], search.moments[decision.play, NEWEST.size - 1].spread)
    )


@inlined
def _exploiting_is_cheaper(search: Any, best: int, rival: int) -> bool:
    """Whether the gap closes by fewer calls from below than from above, roughly, for each unit of it.

    From below it takes the calls of another exploit episode. From above, all that are near the largest
    gap must come down. (`scratch` has the gaps of `best`.)
    """
    root, settings, gaps = search.root, search.settings[0], search.scratch.score
    arm, hope = root[best], root[best].estimate
    if arm.exploits > 0:
        hope = max(hope, arm.returns / arm.exploits)
    least = constants.LEAST_WIDTH * min(1.0, settings.resolution)
    # What L would have to be for this gap.
    lower = root[rival].upper - gaps[rival]
    below = settings.exploit_cost * (arm.exploits + 1) / max(hope - lower, least)
    above, near = 0.0, gaps[rival] - constants.TIED * settings.resolution
    for a in range(root.size):
        if gaps[a] >= near and (a != best or settings.value_goal):
            width = max(root[a].upper - root[a].estimate, least)
            above += (search.calls[a] + constants.EXPLORE_START) / (constants.EXPLORE_GAIN * width)
    return bool(below < above)


@called
def adapt(search: Any) -> None:
    """Let the lambda of the action to be played next follow the evidence.

    Every lambda is valid at all times, on one event; but all W of a branch must share one lambda, so
    they are renewed. The evidence should become what is asked for. For U = lambda log(1/delta_s) + W
    that is log(1/delta_s), since W falls with lambda as fast as evidence against it is large; for a
    joint gap see `upper_bound.renew_gap`.
    """
    tree, settings, play = search.tree, search.settings[0], search.decision[0].play
    arm, calls = search.root[play], search.calls[play]
    for action in range(search.root.size):
        if search.root[action].stale:
            _rebuild(search, action)
    due = calls >= constants.REBUILD_GROWTH * arm.rebuilt
    if not due or arm.pair == NONE or tree.pairs[arm.pair].n == 0:
        return
    change, most = tree.pairs[arm.pair].evidence / arm.asked, constants.MOST_CHANGE
    change = min(max(change, 1.0 / most), most)
    settling = sqrt(1.0 + calls / constants.SETTLING_CALLS)
    most = constants.LARGEST * settings.kappa * search.levels[0].span / settling
    wanted = max(settings.least, min(arm.penalty * change, most))
    ratio = arm.penalty / wanted
    unsettled = wanted <= settings.least and ratio > constants.SETTLED
    if 1.0 / constants.NEAR <= ratio <= constants.NEAR and not unsettled:
        return
    arm.penalty, arm.rebuilt = wanted, calls
    _rebuild(search, play)


@inlined
def _rebuild(search: Any, play: int) -> None:
    """Renew all W of a branch, children before parents, and then U and gaps.

    A search that is halted meanwhile makes no call, and keeps its U and gaps. If it goes on from a
    checkpoint, it begins with this.
    """
    tree, arm = search.tree, search.root[play]
    arm.stale = True
    for at in range(tree.used[0] - 1, -1, -1):
        if halted(search):
            return
        node = tree.nodes[at]
        if at != 0 and (node.branch != play or node.actions == 0):
            continue
        link = arm.pair if at == 0 else node.first
        while link != NONE:
            pair = tree.pairs[link]
            if pair.n > 0:
                refresh_pair(search, at, link, node.depth, arm.penalty, False)
            link = pair.sibling if at != 0 else NONE
        refresh_node(search, at)
    arm.stale = False
    refresh_arm(search, play)


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
        if upper > best + constants.TIE:
            best = upper
            chosen = link
            tied = 1
        elif upper >= best - constants.TIE:
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
        wide = max(_uncertainty(search, at, step.pair, h), constants.LEAST_WIDTH * settings.resolution)
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
    least = largest(gains[:steps]) * constants.WORTH_CALLING
    target = 0
    while gains[target] < least:
        target += 1
    return target


@inlined
def concluded(search: Any, h: int, estimate: float, ties: Any) -> bool:
    """Roulette (docs/bracket.md, "Below"): whether an exploit episode ends before its step at depth h.

    Late steps are as dear as early ones, but discounted. With A earned and D the weight of what is to
    come, the episode ends for A + D v with probability 1 - q, v being what the rest is expected to be
    worth; otherwise A falls by D v (1/q - 1), and D becomes D/q. For any v and q the mean stays the
    same; q is at least so large that A + D rest, at the least rest that is possible, stays above the
    floor.
    """
    settings, decision = search.settings[0], search.decision[0]
    if decision.kind != EXPLOIT or h < constants.ROULETTE_DEPTH:
        return False
    weight, floor = decision.discount, search.root[decision.play].floor
    # Whatever is done, the whole episode is paid at least the floor.
    least = max(floor - decision.paid, 0.0) / settings.gamma**h
    value = max(estimate, least)
    room = max(decision.earned + weight * least - floor, 0.0)
    risk = weight * (value - least)
    go_on = settings.go_on if risk == 0.0 else max(settings.go_on, risk / (room + risk))
    if go_on >= 1.0:
        return False
    if ties.random() < go_on:
        decision.earned -= weight * value * (1.0 / go_on - 1.0)
        decision.discount /= go_on
        return False
    decision.earned += weight * value
    decision.discount = 0.0
    return True
