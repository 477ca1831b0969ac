"""Canopy's episodes: how each action is chosen, and the bet on the return, which raises L."""

from math import isnan
from typing import Any

import numpy as np

from pacplan.algorithms.betting.returns import bet_exploit, bet_forced, note_return
from pacplan.algorithms.canopy.growth import draw_seeded, state_guess
from pacplan.algorithms.canopy.learning import hint, locate, note, recall
from pacplan.algorithms.canopy.records import CHOOSE, EXPLOIT, FORCED_EPISODE, GROW, LOOK, PLAY
from pacplan.algorithms.canopy.schedule import finish_task
from pacplan.algorithms.canopy.shape import blended
from pacplan.compiled.jit import inlined
from pacplan.compiled.streams import draw_seed
from pacplan.engine.calls import CHUNK_DONE, NO_ROOM, break_promise, count_actions
from pacplan.engine.promises import BAD_ANSWER
from pacplan.engine.tree import NONE
from pacplan.models import handles


@inlined
def choose_action(search: Any, model: Any) -> int:
    """Choose the action of a step: the largest estimate, after a look ahead where there is none."""
    task = search.task[0]
    if task.h == 0:
        task.play = task.action
        task.phase = PLAY
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
            task.play = advised
            task.phase = PLAY
            return CHUNK_DONE
    if task.look == 0 and not _choose_known(search, model):
        task.phase = LOOK
        return CHUNK_DONE
    if task.look > 0:
        _choose_seen(search)
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
