"""Canopy's trees and episodes from the first call to the last, as answers to the engine's questions."""

from math import ceil, isnan
from typing import Any

import numpy as np

from pacplan.algorithms.canopy.above import bet_forced_tree, bet_tree
from pacplan.algorithms.canopy.growth import (
    CALL_NEEDED,
    GROWN,
    draw_in_node,
    draw_seeded,
    grow,
    leaf_value,
    learn_repeats,
    open_node,
    state_guess,
)
from pacplan.algorithms.canopy.learning import hint, learn_notes, locate, note, recall
from pacplan.algorithms.canopy.records import (
    CHOOSE,
    DECIDE,
    EXPLOIT,
    FORCED_EPISODE,
    GROW,
    LOOK,
    PLAY,
    TREE,
    Search,
)
from pacplan.algorithms.canopy.schedule import decide, satisfied
from pacplan.algorithms.canopy.shape import blended, first_shape, state_value
from pacplan.algorithms.common.returns import NEWEST, bet_exploit, bet_forced, note_return, raise_floor
from pacplan.compiled.jit import inlined
from pacplan.compiled.streams import draw_seed
from pacplan.engine import steps
from pacplan.engine.calls import (
    CHUNK_DONE,
    NO_ROOM,
    RULE,
    break_promise,
    count_actions,
)
from pacplan.engine.promises import BAD_ANSWER
from pacplan.engine.tree import NONE, add_node, add_pair
from pacplan.models import handles


@steps.make_root.register(Search)
def _make_root(search: Search, model: Any, state: int) -> int:
    return CHUNK_DONE if search.tree.used[0] > 0 else _plant(search, model, state)


@inlined
def _plant(search: Search, model: Any, state: int) -> int:
    """Set up the root, its actions and the shapes of their first trees; returns a status."""
    unit, rules, root = search.unit[0], search.rules[0], search.root
    unit.root = state
    span = leaf_value(search, model, 0, state)
    if np.isnan(span):
        return int(break_promise(search, BAD_ANSWER, state, 0, 0, 0.0))
    at = add_node(search.tree, state, root.size, 0.0, 0.0)
    unit.most_actions = root.size
    for h in range(1, rules.horizon):
        search.levels[h].actions = root.size
        search.levels[h].opened *= root.size
    for a in range(root.size):
        arm = root[a]
        add_pair(search.tree, at, a)
        arm.upper = span
        raise_floor(arm, rules.floor)
        # Points from a known bound on need no bets.
        arm.ceiling = min(arm.ceiling, ceil(span / rules.step - 1e-9))
        arm.forced_ceiling = min(arm.forced_ceiling, ceil(span / (rules.stride * rules.step) - 1e-9))
        arm.estimate = state_value(search.levels[0])
        first_shape(search, a)
    return CHUNK_DONE


@steps.compute.register(Search)
def _compute(search: Search, model: Any, ties: Any) -> int:
    unit = search.unit[0]
    if unit.phase == DECIDE:
        if satisfied(search):
            return RULE
        if not _accounts_have_room(search):
            return NO_ROOM
        decide(search, ties)
        return CHUNK_DONE
    if unit.phase == GROW:
        return _grow(search, model, ties)
    if unit.phase == CHOOSE:
        return _choose(search, model)
    return steps.CALL


@inlined
def _accounts_have_room(search: Search) -> bool:
    """Whether another action can begin to bet on returns."""
    rules = search.rules[0]
    return bool(
        not search.wealth.shape[0] <= rules.bettors < search.root.size
        and not search.forced_wealth.shape[0] <= rules.forcers < search.root.size
    )


@inlined
def _grow(search: Search, model: Any, ties: Any) -> int:
    """Go on with a tree, and bet on it when it is complete."""
    unit = search.unit[0]
    if unit.at == NONE:
        only = unit.action if unit.start == 0 else NONE
        return open_node(search, model, unit.start, unit.state, only)
    status = grow(search, model, ties)
    if status == CALL_NEEDED:
        return steps.CALL
    if status != GROWN:
        return int(status)
    frame = search.frames[unit.start]
    if unit.kind == FORCED_EPISODE:
        unit.play = frame.chosen
        unit.phase = PLAY
        return CHUNK_DONE
    most = search.levels[0].most
    if unit.kind == TREE:
        learn_repeats(search)
        bet_tree(search, unit.action, frame.best, most)
        search.root[unit.action].tree_calls += search.report[0].calls - unit.began
    else:
        bet_forced_tree(search, unit.action, frame.best, most)
        unit.forced_spent += search.report[0].calls - unit.began
    _finish(search, model)
    return CHUNK_DONE


@inlined
def _finish(search: Search, model: Any) -> None:
    """Learn from a tree or an episode, now that it is over."""
    unit, arm = search.unit[0], search.root[search.unit[0].action]
    learn_notes(search, model)
    unit.phase = DECIDE
    if arm.trees > 0:
        q = NEWEST.size - 1
        estimate = arm.centre - arm.bias
        trust = arm.recent / search.tree_moments[unit.action, q].spread
        doubt = arm.exploits / search.moments[unit.action, q].spread
        if arm.exploits > 0:
            estimate += doubt / (trust + doubt) * (arm.returns / arm.exploits - estimate)
        arm.estimate = max(min(estimate, arm.upper), arm.lower)


@inlined
def _choose(search: Search, model: Any) -> int:
    """Choose the action of a step: the largest estimate, after a look ahead where there is none."""
    unit = search.unit[0]
    if unit.h == 0:
        unit.play = unit.action
        unit.phase = PLAY
        return CHUNK_DONE
    if unit.look == 0:
        actions, status = count_actions(search, model, unit.state, unit.h)
        if status != CHUNK_DONE:
            return int(status)
        unit.actions = actions
        unit.most_actions = max(unit.most_actions, actions)
        unit.play = 0
        if actions > search.looks.size:
            return NO_ROOM
        # The state may be learnt about afterwards; what is wrong with its hint is noticed here.
        if isnan(hint(search, model, unit.h, unit.state)):
            return int(break_promise(search, BAD_ANSWER, unit.state, 0, unit.h, 0.0))
    if unit.kind == FORCED_EPISODE:
        unit.start = unit.h
        unit.at = NONE
        unit.number += 1
        unit.shared = 0
        unit.phase = GROW
        return CHUNK_DONE
    if unit.guided:
        advised = handles.advice(model, int(unit.state), int(unit.h), int(unit.actions))
        if advised == handles.BAD_ADVICE:
            return int(break_promise(search, BAD_ANSWER, unit.state, 0, unit.h, 0.0))
        if advised != handles.NO_ADVICE:
            unit.play = advised
            unit.phase = PLAY
            return CHUNK_DONE
    if unit.look == 0 and not _choose_known(search, model):
        unit.phase = LOOK
        return CHUNK_DONE
    if unit.look > 0:
        _choose_seen(search)
    unit.phase = PLAY
    return CHUNK_DONE


@inlined
def _choose_known(search: Search, model: Any) -> bool:
    """Choose the action of the largest learnt advantage, unless nothing is known of some."""
    unit = search.unit[0]
    locate(search, model, unit.h, unit.state)
    top = -np.inf
    for action in range(unit.actions):
        value, known = recall(search, action, 0.0)
        if not known and unit.actions > 1:
            return False
        if value > top:
            top = value
            unit.play = action
    return True


@inlined
def _choose_seen(search: Search) -> None:
    """All actions were looked at: choose the best, and note their advantages."""
    unit = search.unit[0]
    mean = 0.0
    for action in range(unit.actions):
        mean += search.looks[action] / unit.actions
        if search.looks[action] > search.looks[unit.play]:
            unit.play = action
    for action in range(unit.actions):
        note(search, unit.h, unit.state, action, search.looks[action] - mean)


@steps.call.register(Search)
def _call(search: Search, model: Any, most: int, rng: Any) -> int:
    unit = search.unit[0]
    if unit.phase == GROW:
        return draw_in_node(search, model, rng)
    return _step(search, model, rng)


@inlined
def _step(search: Search, model: Any, rng: Any) -> int:
    """A call of an episode: a look ahead, or its next step."""
    unit, rules = search.unit[0], search.rules[0]
    looks = unit.phase == LOOK
    action = unit.look if looks else unit.play
    if action == 0 or not looks:
        draw_seed(rng, search.seed)
    successor, reward, ended, status = draw_seeded(search, model, unit.state, action, unit.h, rng)
    if status != CHUNK_DONE:
        return int(status)
    x = rules.offset + rules.slope * reward
    if looks:
        after = search.levels[unit.h + 1]
        v = after.ended if ended else state_guess(search, model, unit.h + 1, successor)
        if isnan(v):
            return int(break_promise(search, BAD_ANSWER, successor, 0, unit.h + 1, 0.0))
        search.looks[unit.look] = x + rules.gamma * v
        unit.look += 1
        if unit.look == unit.actions:
            unit.phase = CHOOSE
        return CHUNK_DONE
    unit.earned += rules.gamma**unit.h * x
    search.paid[unit.h] = unit.earned
    unit.h += 1
    unit.state = successor
    unit.look = 0
    unit.phase = CHOOSE
    if ended or unit.h == rules.horizon:
        _end_episode(search, model, ended)
    return CHUNK_DONE


@inlined
def _end_episode(search: Search, model: Any, ended: bool) -> None:
    """Bet on the return of an episode; after an early end every step pays what 0 is worth."""
    unit, rules = search.unit[0], search.rules[0]
    if ended:
        unit.earned += rules.gamma**unit.h * search.levels[unit.h].ended
    for h in range(1, unit.h):
        level = search.levels[h]
        rest = (unit.earned - search.paid[h - 1]) / rules.gamma**h
        level.earnings += 1.0
        level.earned = blended(level.earned, rest, level.earnings)
    note_return(rules, unit.earned)
    if unit.kind == EXPLOIT:
        bet_exploit(search, unit.action, unit.earned, unit.guided)
        search.root[unit.action].episode_calls += search.report[0].calls - unit.began
    else:
        bet_forced(search, unit.action, unit.earned)
        unit.forced_spent += search.report[0].calls - unit.began
    _finish(search, model)
