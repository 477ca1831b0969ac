"""What Canopy does next, and when it is done (docs/canopy.md, "The rule" and "It ends")."""

from typing import Any

from pacplan.algorithms.canopy.constants import (
    EXPLOIT_COST,
    FORCED_PART,
    LEAST_WIDTH,
    PILOTS,
    TIE,
    TIED,
)
from pacplan.algorithms.canopy.records import (
    CHOOSE,
    EXPLOIT,
    FORCED_EPISODE,
    FORCED_TREE,
    GROW,
    TREE,
    Search,
)
from pacplan.algorithms.canopy.shape import freeze, freeze_wide, reshape
from pacplan.algorithms.common.funds import fund
from pacplan.algorithms.common.guidance import follows
from pacplan.algorithms.common.returns import NEWEST
from pacplan.compiled.jit import inlined
from pacplan.engine.arms import argmax_at_random, least_gap
from pacplan.engine.tree import NONE


@inlined
def satisfied(search: Search) -> bool:
    """The stopping rule: max_{a != b} U(a) - L(b) <= epsilon for some b, which is then the answer."""
    best, least = least_gap(search.root.upper, search.root.lower)
    if least <= search.rules[0].epsilon:
        search.unit[0].best = best
        return True
    return False


@inlined
def decide(search: Search, ties: Any) -> None:
    """Choose the next unit: a pilot, a forced one, an episode of the best or a tree of its rival."""
    root, unit = search.root, search.unit[0]
    unit.best = argmax_at_random(root.estimate, NONE, TIE, ties)
    if FORCED_PART * search.report[0].calls >= unit.forced_spent + _forced_calls(search):
        _force(search)
        return
    fewest = 0
    for a in range(root.size):
        if root[a].trees < root[fewest].trees:
            fewest = a
    if root[fewest].trees < PILOTS:
        begin_tree(search, fewest)
        return
    rival = argmax_at_random(root.upper, unit.best, TIE, ties)
    if _cost_below(search, unit.best) < _cost_above(search, unit.best, rival):
        fund(search, unit.best, root[rival].upper - root[unit.best].lower)
        begin_episode(search, unit.best)
    else:
        reshape(search, rival, root[unit.best].estimate)
        begin_tree(search, rival)


@inlined
def _forced_calls(search: Search) -> float:
    """Calls that the next forced tree or episode takes at most, if no state has more actions."""
    unit, horizon = search.unit[0], search.rules[0].horizon
    width = 1.0 + unit.forced // (2 * search.root.size)
    calls = 1.0
    nodes = 1.0
    for _ in range(1, horizon):
        nodes *= unit.most_actions * width
        calls += nodes * horizon
        if calls > 1e18:
            break
    return calls


@inlined
def _force(search: Search) -> None:
    """Begin the next forced unit: they go over all actions, first trees, then episodes, then wider."""
    unit, count = search.unit[0], search.root.size
    width = 1 + unit.forced // (2 * count)
    unit.action = unit.forced % count
    unit.kind = FORCED_TREE if unit.forced // count % 2 == 0 else FORCED_EPISODE
    unit.forced += 1
    unit.guided = False
    unit.began = search.report[0].calls
    unit.forces = True
    freeze_wide(search, width)
    _set_out(search)


@inlined
def begin_tree(search: Search, action: int) -> None:
    """Begin an ordinary tree."""
    unit = search.unit[0]
    unit.kind = TREE
    unit.action = action
    unit.forces = False
    freeze(search, action)
    _set_out(search)


@inlined
def begin_episode(search: Search, action: int) -> None:
    """Declare an exploit episode."""
    unit = search.unit[0]
    unit.kind = EXPLOIT
    unit.action = action
    unit.forces = False
    unit.guided = unit.policy and follows(
        search.root[action], search.moments[action, NEWEST.size - 1].spread
    )
    _set_out(search)


@inlined
def _set_out(search: Search) -> None:
    unit = search.unit[0]
    unit.began = search.report[0].calls
    unit.number += 1
    unit.shared = 0
    unit.start = 0
    unit.at = NONE
    unit.state = unit.root
    unit.actions = search.root.size
    unit.h = 0
    unit.look = 0
    unit.earned = 0.0
    unit.phase = GROW if unit.kind in (TREE, FORCED_TREE) else CHOOSE


@inlined
def _cost_below(search: Search, best: int) -> float:
    """Roughly the calls that close the gap by one from below: those of another exploit episode."""
    rules, arm = search.rules[0], search.root[best]
    hope = arm.estimate
    if arm.exploits > 0:
        hope = arm.returns / arm.exploits
    least = LEAST_WIDTH * min(1.0, rules.resolution)
    calls = arm.episode_calls + rules.horizon
    return float(EXPLOIT_COST * calls / max(hope - arm.lower, least))


@inlined
def _cost_above(search: Search, best: int, rival: int) -> float:
    """Roughly the calls that close it by one from above: all near the largest U must come down."""
    root, rules = search.root, search.rules[0]
    least = LEAST_WIDTH * min(1.0, rules.resolution)
    calls = 0.0
    for a in range(root.size):
        if a != best and root[a].upper >= root[rival].upper - TIED * rules.resolution:
            calls += root[a].tree_calls / max(root[a].upper - root[a].centre, least)
    return calls
