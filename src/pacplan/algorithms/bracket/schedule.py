"""What Bracket does next, with which lambda, and when it is done (docs/bracket.md, "The rule")."""

from math import sqrt
from typing import Any

from pacplan.algorithms.betting.allocation import allocate
from pacplan.algorithms.betting.bets import NEWEST
from pacplan.algorithms.betting.guidance import follows
from pacplan.algorithms.bracket.constants import (
    EXPLORE_GAIN,
    EXPLORE_START,
    FORCED_EVERY,
    LARGEST,
    LEAST_WIDTH,
    MOST_CHANGE,
    NEAR,
    REBUILD_GROWTH,
    SETTLED,
    SETTLING_CALLS,
    TIE,
    TIED,
)
from pacplan.algorithms.bracket.gap_bound import (
    bets,
    largest_gap,
    pair_gap,
    renew_gaps_to,
    strongest_rival,
)
from pacplan.algorithms.bracket.records import EXPLOIT, EXPLORE, FORCED
from pacplan.algorithms.bracket.roulette import begin
from pacplan.algorithms.bracket.upper_bound import refresh_arm, refresh_node, refresh_pair
from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import halted
from pacplan.engine.root_rules import argmax_at_random, largest, least_gap
from pacplan.engine.tree import NONE
from pacplan.models.handles import NO_ADVICE


@inlined
def satisfied(search: Any) -> bool:
    """The stopping rule: some b has a gap of at most epsilon, and is then the answer.

    Its gap is the largest over a != b of U(a) - L(b), or of gap(a, b) where that is kept and is less.
    For the value goal, max U - max L <= 2 epsilon.
    """
    root, settings = search.root, search.settings[0]
    if settings.value_goal:
        return bool(largest(root.upper) - largest(root.lower) <= 2.0 * settings.epsilon)
    best, least = least_gap(root.upper, root.lower)
    for b in range(root.size):
        if bets(search, b):
            gap = largest_gap(search, b)
            if gap < least:
                best = b
                least = gap
    if least <= settings.epsilon:
        search.decision[0].best = best
        return True
    return False


@called
def decide(search: Any, ties: Any) -> None:
    """Choose the next episode: exploit the best estimate, or explore what keeps the gap open."""
    root, settings, decision = search.root, search.settings[0], search.decision[0]
    best = argmax_at_random(root.estimate, NONE, TIE, ties)
    decision.best = best
    rival = NONE
    # With one action there is nothing to choose, but its value may be asked for.
    if settings.value_goal:
        rival = argmax_at_random(root.upper, NONE, TIE, ties)
    elif root.size > 1:
        rival = strongest_rival(search, best, ties)
    if (search.report[0].episodes + 1) % FORCED_EVERY == 0:
        decision.kind = FORCED
        decision.play = argmax_at_random(root.upper, NONE, TIE, ties)
    elif rival == NONE:
        decision.kind = EXPLOIT
        decision.play = best
    elif settings.epsilon == 0.0 and search.report[0].episodes % 2 != 0:
        # There is no gap to stop at: every other episode explores the wider of the two.
        decision.kind = EXPLORE
        wide = root[best].upper - root[best].estimate > root[rival].upper - root[rival].estimate
        decision.play = best if wide else rival
    else:
        exploit = _cost_below(search, best, rival) < _cost_above(search, best, rival)
        decision.kind = EXPLOIT if exploit else EXPLORE
        decision.play = best if exploit else rival
    if decision.kind == EXPLOIT:
        allocate(search, best, _gap_left(search, best, rival))
    begin(search)
    decision.advised = NO_ADVICE
    decision.guided = (
        settings.guided
        and decision.kind == EXPLOIT
        and follows(root[decision.play], search.moments[decision.play, NEWEST.size - 1].spread)
    )


@inlined
def _gap_left(search: Any, best: int, rival: int) -> float:
    """What has to become epsilon."""
    if rival == NONE:
        return 0.0
    return pair_gap(search, rival, best) * (0.5 if search.settings[0].value_goal else 1.0)


@inlined
def _cost_below(search: Any, best: int, rival: int) -> float:
    """Roughly the calls that close the gap by one from below: those of another exploit episode."""
    settings, arm = search.settings[0], search.root[best]
    hope = arm.estimate
    if arm.exploits > 0:
        hope = max(hope, arm.returns / arm.exploits)
    least = LEAST_WIDTH * min(1.0, settings.resolution)
    # What L would have to be for this gap.
    lower = search.root[rival].upper - pair_gap(search, rival, best)
    return float(settings.exploit_cost * (arm.exploits + 1) / max(hope - lower, least))


@inlined
def _cost_above(search: Any, best: int, rival: int) -> float:
    """Roughly the calls that close it by one from above: all near the largest gap must come down."""
    root, settings = search.root, search.settings[0]
    least = LEAST_WIDTH * min(1.0, settings.resolution)
    largest_left = pair_gap(search, rival, best) - TIED * settings.resolution
    calls = 0.0
    for a in range(root.size):
        if pair_gap(search, a, best) >= largest_left and (a != best or settings.value_goal):
            width = max(root[a].upper - root[a].estimate, least)
            calls += (search.calls[a] + EXPLORE_START) / (EXPLORE_GAIN * width)
    return calls


@inlined
def _wanted_penalty(search: Any, action: int) -> float:
    """The lambda that an action should have, so that its evidence becomes what is asked for.

    For U = lambda log(1/delta_s) + W that is log(1/delta_s), since W falls with lambda as fast as
    evidence against it is large; for a joint gap see `pacplan.algorithms.bracket.gap_bound`.
    """
    settings, arm = search.settings[0], search.root[action]
    evidence = search.tree.pairs[arm.pair].evidence
    change = min(max(evidence / arm.asked, 1.0 / MOST_CHANGE), MOST_CHANGE)
    settling = sqrt(1.0 + search.calls[action] / SETTLING_CALLS)
    most = LARGEST * settings.kappa * search.levels[0].span / settling
    return float(max(settings.least, min(arm.penalty * change, most)))


@called
def adapt(search: Any, model: Any) -> None:
    """Let the lambda of the action to be played next follow the evidence.

    Every lambda is valid at all times, on one event; but all W of a branch must share one lambda, so
    they are renewed.
    """
    tree, settings, play = search.tree, search.settings[0], search.decision[0].play
    arm = search.root[play]
    for action in range(search.root.size):
        if search.root[action].stale:
            _rebuild(search, model, action)
    if arm.pair == NONE or tree.pairs[arm.pair].n == 0:
        return
    if search.calls[play] < REBUILD_GROWTH * arm.rebuilt:
        return
    wanted = _wanted_penalty(search, play)
    ratio = arm.penalty / wanted
    if 1.0 / NEAR <= ratio <= NEAR and not (wanted <= settings.least and ratio > SETTLED):
        return
    arm.penalty = wanted
    arm.rebuilt = search.calls[play]
    _rebuild(search, model, play)


@inlined
def _rebuild(search: Any, model: Any, play: int) -> None:
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
                refresh_pair(search, model, at, link, node.depth, arm.penalty, False)
            link = pair.sibling if at != 0 else NONE
        refresh_node(search, at)
    arm.stale = False
    refresh_arm(search, play)
    renew_gaps_to(search, play)
