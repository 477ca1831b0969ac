"""What Canopy does next, when it is done, and its episodes (docs/canopy.md, "The rule" and "Below")."""

from math import isnan
from typing import Any

import numpy as np

from pacplan.algorithms.betting.bets import NEWEST
from pacplan.algorithms.betting.returns import allocate, bet_exploit, bet_forced, follows, note_return
from pacplan.algorithms.canopy.constants import FORCED_PART, LEAST_WIDTH, PILOTS, TIE, TIED
from pacplan.algorithms.canopy.growth import draw_seeded, state_guess
from pacplan.algorithms.canopy.learning import hint, learn_notes, locate, note, recall
from pacplan.algorithms.canopy.records import (
    CHOOSE,
    DECIDE,
    EXPLOIT,
    FORCED_EPISODE,
    FORCED_TREE,
    GROW,
    LOOK,
    PLAY,
    TREE,
)
from pacplan.algorithms.canopy.shape import blended, freeze, freeze_wide, reshape
from pacplan.compiled.jit import inlined
from pacplan.compiled.streams import draw_seed
from pacplan.engine.calls import BAD_ANSWER, CHUNK_DONE, NO_ROOM, break_promise, count_actions
from pacplan.engine.root_rules import argmax_at_random, least_gap
from pacplan.engine.tree import NONE
from pacplan.models import handles


@inlined
def satisfied(search: Any) -> bool:
    """The stopping rule: max_{a != b} U(a) - L(b) <= epsilon for some b, which is then the answer."""
    best, least = least_gap(search.root.upper, search.root.lower)
    if least <= search.settings[0].epsilon:
        search.task[0].best = best
    return bool(least <= search.settings[0].epsilon)


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
    freeze(search, task.action, root[task.action].leaf)


@inlined
def _forced_calls(search: Any) -> float:
    """Calls that the next forced tree or episode takes at most, if no state has more actions."""
    task, horizon = search.task[0], search.settings[0].horizon
    width = 1.0 + task.forced // (2 * search.root.size)
    calls = nodes = 1.0
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
    return float(calls / max(hope - arm.lower, least))


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


@inlined
def choose_action(search: Any, model: Any) -> int:
    """Choose the action of a step: the largest estimate, after a look ahead where there is none."""
    task = search.task[0]
    if task.h == 0:
        task.play, task.phase = task.action, PLAY
        return CHUNK_DONE
    if task.look == 0:
        actions, status = count_actions(search, model, task.state, task.h)
        if status != CHUNK_DONE:
            return int(status)
        task.actions = actions
        task.most_actions = max(task.most_actions, actions)
        task.play = 0
        if actions > search.looks.size:
            return NO_ROOM
        # The state may be learnt about afterwards; what is wrong with its hint is noticed here.
        if isnan(hint(search, model, task.h, task.state)):
            return int(break_promise(search, BAD_ANSWER, task.state, 0, task.h, 0.0))
    if task.kind == FORCED_EPISODE:
        task.number += 1
        task.start, task.at, task.shared, task.phase = task.h, NONE, 0, GROW
        return CHUNK_DONE
    if task.guided:
        advised = handles.advice(model, int(task.state), int(task.h), int(task.actions))
        if advised == handles.BAD_ADVICE:
            return int(break_promise(search, BAD_ANSWER, task.state, 0, task.h, 0.0))
        if advised != handles.NO_ADVICE:
            task.play, task.phase = advised, PLAY
            return CHUNK_DONE
    if task.look > 0:
        _choose_seen(search)
    elif not _choose_known(search, model):
        task.phase = LOOK
        return CHUNK_DONE
    task.phase = PLAY
    return CHUNK_DONE


@inlined
def _choose_known(search: Any, model: Any) -> bool:
    """Choose the action of the largest learnt advantage, unless nothing is known of some."""
    task = search.task[0]
    locate(search, model, task.h, task.state)
    top = -np.inf
    for action in range(task.actions):
        value, known = recall(search, action, 0.0)
        if not known and task.actions > 1:
            return False
        if value > top:
            top = value
            task.play = action
    return True


@inlined
def _choose_seen(search: Any) -> None:
    """All actions were looked at: choose the best, and note their advantages."""
    task = search.task[0]
    mean = 0.0
    for action in range(task.actions):
        mean += search.looks[action] / task.actions
        if search.looks[action] > search.looks[task.play]:
            task.play = action
    for action in range(task.actions):
        note(search, task.h, task.state, action, search.looks[action] - mean)


@inlined
def take_step(search: Any, model: Any, rng: Any) -> int:
    """A call of an episode: a look ahead, or its next step."""
    task, settings = search.task[0], search.settings[0]
    looks = task.phase == LOOK
    action = task.look if looks else task.play
    if action == 0 or not looks:
        draw_seed(rng, search.seed)
    successor, reward, ended, status = draw_seeded(search, model, task.state, action, task.h, rng)
    if status != CHUNK_DONE:
        return int(status)
    x = settings.offset + settings.slope * reward
    if looks:
        after = search.levels[task.h + 1]
        v = after.ended if ended else state_guess(search, model, task.h + 1, successor)
        if isnan(v):
            return int(break_promise(search, BAD_ANSWER, successor, 0, task.h + 1, 0.0))
        search.looks[task.look] = x + settings.gamma * v
        task.look += 1
        if task.look == task.actions:
            task.phase = CHOOSE
        return CHUNK_DONE
    task.earned += settings.gamma**task.h * x
    search.paid[task.h] = task.earned
    task.h += 1
    task.state, task.look, task.phase = successor, 0, CHOOSE
    if ended or task.h == settings.horizon:
        _end_episode(search, model, ended)
    return CHUNK_DONE


@inlined
def _end_episode(search: Any, model: Any, ended: bool) -> None:
    """Bet on the return of an episode; after an early end every step pays what 0 is worth."""
    task, settings = search.task[0], search.settings[0]
    if ended:
        task.earned += settings.gamma**task.h * search.levels[task.h].ended
    for h in range(1, task.h):
        level = search.levels[h]
        rest = (task.earned - search.paid[h - 1]) / settings.gamma**h
        level.earnings += 1.0
        level.earned = blended(level.earned, rest, level.earnings)
    note_return(settings, task.earned)
    if task.kind == EXPLOIT:
        bet_exploit(search, task.action, task.earned, task.guided)
        search.root[task.action].episode_calls += search.report[0].calls - task.began
    else:
        bet_forced(search, task.action, task.earned)
        task.forced_spent += search.report[0].calls - task.began
    finish_task(search, model)
