"""What Canopy does next, and when it is done (docs/canopy.md, "The rule" and "It ends")."""

from typing import Any

from pacplan.algorithms.betting.allocation import allocate
from pacplan.algorithms.betting.bets import NEWEST
from pacplan.algorithms.betting.returns import follows
from pacplan.algorithms.canopy.constants import (
    EXPLOIT_COST,
    FORCED_PART,
    LEAST_WIDTH,
    PILOTS,
    TIE,
    TIED,
)
from pacplan.algorithms.canopy.learning import learn_notes
from pacplan.algorithms.canopy.records import (
    CHOOSE,
    DECIDE,
    EXPLOIT,
    FORCED_EPISODE,
    FORCED_TREE,
    GROW,
    TREE,
)
from pacplan.algorithms.canopy.shape import freeze, freeze_wide, reshape
from pacplan.compiled.jit import inlined
from pacplan.engine.root_rules import argmax_at_random, least_gap
from pacplan.engine.tree import NONE


@inlined
def satisfied(search: Any) -> bool:
    """The stopping rule: max_{a != b} U(a) - L(b) <= epsilon for some b, which is then the answer."""
    best, least = least_gap(search.root.upper, search.root.lower)
    if least <= search.settings[0].epsilon:
        search.task[0].best = best
        return True
    return False


@inlined
def decide(search: Any, ties: Any) -> None:
    """Choose the next task: a pilot, a forced one, an episode of the best or a tree of its rival."""
    root, task = search.root, search.task[0]
    task.best = argmax_at_random(root.estimate, NONE, TIE, ties)
    task.guided = False
    task.forces = FORCED_PART * search.report[0].calls >= task.forced_spent + _forced_calls(search)
    if task.forces:
        # They go over all actions, first trees, then episodes, then wider ones.
        task.action = task.forced % root.size
        task.kind = FORCED_TREE if task.forced // root.size % 2 == 0 else FORCED_EPISODE
        freeze_wide(search, 1 + task.forced // (2 * root.size))
        task.forced += 1
    else:
        _choose(search, ties)
    task.began = search.report[0].calls
    task.number += 1
    task.at, task.state, task.actions, task.earned = NONE, task.root, root.size, 0.0
    task.shared = task.start = task.h = task.look = 0
    task.phase = GROW if task.kind in (TREE, FORCED_TREE) else CHOOSE


@inlined
def _choose(search: Any, ties: Any) -> None:
    """Choose a task that is not forced."""
    root, task = search.root, search.task[0]
    task.kind, task.action = TREE, 0
    for a in range(root.size):
        if root[a].trees < root[task.action].trees:
            task.action = a
    if root[task.action].trees >= PILOTS:
        rival = argmax_at_random(root.upper, task.best, TIE, ties)
        if _cost_below(search, task.best) < _cost_above(search, task.best, rival):
            allocate(search, task.best, root[rival].upper - root[task.best].lower)
            spread = search.moments[task.best, NEWEST.size - 1].spread
            task.kind, task.action = EXPLOIT, task.best
            task.guided = task.policy and follows(root[task.best], spread)
            return
        reshape(search, rival, root[task.best].estimate)
        task.action = rival
    freeze(search, task.action)


@inlined
def _forced_calls(search: Any) -> float:
    """Calls that the next forced tree or episode takes at most, if no state has more actions."""
    task, horizon = search.task[0], search.settings[0].horizon
    width = 1.0 + task.forced // (2 * search.root.size)
    calls = 1.0
    nodes = 1.0
    for _ in range(1, horizon):
        nodes *= task.most_actions * width
        calls += nodes * horizon
        if calls > 1e18:
            break
    return calls


@inlined
def finish_task(search: Any, model: Any) -> None:
    """Learn from a tree or an episode, now that it is over."""
    task, arm = search.task[0], search.root[search.task[0].action]
    learn_notes(search, model)
    task.phase = DECIDE
    if arm.trees > 0:
        q = NEWEST.size - 1
        estimate = arm.centre - arm.bias
        trust = arm.recent / search.tree_moments[task.action, q].spread
        doubt = arm.exploits / search.moments[task.action, q].spread
        if arm.exploits > 0:
            estimate += doubt / (trust + doubt) * (arm.returns / arm.exploits - estimate)
        arm.estimate = max(min(estimate, arm.upper), arm.lower)


@inlined
def _cost_below(search: Any, best: int) -> float:
    """Roughly the calls that close the gap by one from below: those of another exploit episode."""
    settings, arm = search.settings[0], search.root[best]
    hope = arm.estimate
    if arm.exploits > 0:
        hope = arm.returns / arm.exploits
    least = LEAST_WIDTH * min(1.0, settings.resolution)
    calls = arm.episode_calls + settings.horizon
    return float(EXPLOIT_COST * calls / max(hope - arm.lower, least))


@inlined
def _cost_above(search: Any, best: int, rival: int) -> float:
    """Roughly the calls that close it by one from above: all near the largest U must come down."""
    root, settings = search.root, search.settings[0]
    least = LEAST_WIDTH * min(1.0, settings.resolution)
    calls = 0.0
    for a in range(root.size):
        if a != best and root[a].upper >= root[rival].upper - TIED * settings.resolution:
            calls += root[a].tree_calls / max(root[a].upper - root[a].centre, least)
    return calls
