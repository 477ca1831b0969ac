"""Bracket's episodes, as answers to the engine's questions."""

from typing import Any

from pacplan.algorithms.betting.returns import bet_exploit, bet_forced, note_return, raise_floor
from pacplan.algorithms.bracket.above import (
    add_drifts,
    best_outcome,
    bet,
    bet_depth,
    final_part,
    final_value,
    goes_on,
    outcome_estimate,
    predict,
    refresh_arm,
    refresh_node,
    refresh_pair,
    renew_stake,
    says_nothing,
    unseen_value,
)
from pacplan.algorithms.bracket.aim import aim, optimistic
from pacplan.algorithms.bracket.constants import TIE
from pacplan.algorithms.bracket.estimates import (
    advice_stands,
    refresh_arm_estimate,
    refresh_estimates,
    score_actions,
    try_new,
)
from pacplan.algorithms.bracket.expansion import add_unvisited, plant_root, settle
from pacplan.algorithms.bracket.joint import largest_gap, renew_gaps_of, renew_gaps_to
from pacplan.algorithms.bracket.pool import ENDED, find_place, pool_has_room, record, update_pool
from pacplan.algorithms.bracket.records import EXPLOIT, EXPLORE, FORCED, Search
from pacplan.algorithms.bracket.roulette import concluded, earn, earn_last
from pacplan.algorithms.bracket.schedule import adapt, decide, satisfied, sweep_if_due
from pacplan.compiled.jit import inlined
from pacplan.engine import episodes
from pacplan.engine.arms import argmax_at_random
from pacplan.engine.calls import CHUNK_DONE, break_promise, follow
from pacplan.engine.curve import add_point
from pacplan.engine.graph import canonical, find, graph_has_room
from pacplan.engine.promises import BAD_ANSWER, REWARD_VARIES
from pacplan.engine.tree import NONE, untried_action
from pacplan.models import handles
from pacplan.models.handles import NO_ADVICE


@episodes.make_root.register(Search)
def _make_root(search: Search, model: Any, state: int, ties: Any) -> int:
    return plant_root(search, model, state)


@episodes.record.register(Search)
def _record(search: Search) -> None:
    add_point(search, largest_gap(search, search.decision[0].best))


@episodes.has_room.register(Search)
def _has_room(search: Search) -> bool:
    settings = search.settings[0]
    return bool(
        search.bets.shape[0] >= search.tree.pairs.size
        and search.scratch.size > settings.widest + settings.horizon
        and graph_has_room(search.graph, settings.horizon)
        and pool_has_room(search.pool, settings.horizon, settings.most_actions)
        and not search.wealth.shape[0] <= settings.bettors < search.root.size
        and not search.forced_wealth.shape[0] <= settings.forcers < search.root.size
    )


@episodes.finished.register(Search)
def _finished(search: Search, model: Any, most_calls: int, ties: Any) -> bool:
    sweep_if_due(search, search.graph, model, most_calls)
    return satisfied(search)


@episodes.begin_episode.register(Search)
def _begin_episode(search: Search, model: Any, ties: Any) -> None:
    steps = search.steps
    update_pool(search, search.settings[0].gamma, steps.sigma, steps.prior, steps.ended)
    decide(search, search.graph, ties)
    aim(search, search.graph, ties)
    adapt(search, search.graph, model)


@episodes.select.register(Search)
def _select(search: Search, at: int, h: int, ties: Any) -> int:
    """At the root the action decided on; below it what the user advises, the best estimate or W."""
    decision, step = search.decision[0], search.path[h]
    # What was imagined before the first call.
    decision.foreseen = step.child if h < decision.target else NONE
    if h <= decision.target and step.pair != NONE:
        return int(step.pair)
    if h == 0:
        if search.root[decision.play].pair == NONE:
            return add_unvisited(search, at, decision.play, 0)
        return int(search.root[decision.play].pair)
    count = score_actions(search, at, h) if decision.kind == EXPLOIT else 0
    if count > 0:
        if decision.advised == NO_ADVICE:
            try_new(search, at, h, count)
        action = argmax_at_random(search.scratch.score[:count], NONE, TIE, ties)
        if decision.advised != NO_ADVICE and advice_stands(search, at, h, action, decision.advised):
            action = decision.advised
        link = search.scratch.link[action]
        return int(link) if link != NONE else add_unvisited(search, at, action, h)
    link = optimistic(search, at, h, ties)
    if link == NONE:
        link = add_unvisited(search, at, untried_action(search.tree, at, ties), h)
    return int(link)


@episodes.known_child.register(Search)
def _known_child(search: Search, link: int) -> int:
    return int(search.decision[0].foreseen)


@episodes.skip_call.register(Search)
def _skip_call(search: Search, link: int) -> bool:
    if not says_nothing(search, link):
        return False
    earn_last(search, search.tree.pairs[link].reward)
    if search.decision[0].kind != EXPLORE:
        note_return(search.settings[0], search.decision[0].paid)
    return True


@episodes.transition.register(Search)
def _transition(
    search: Search, model: Any, h: int, successor: int, ended: bool, ties: Any
) -> tuple[int, int]:
    """Bet on the call of a pair: on r - d(s'), reward and successor together.

    What was known before the call fixes d = gamma (max g - g) and whether the episode is cut off after
    it; g is f, or what f may be in the end.
    """
    at, link, reward = search.path[h].node, search.path[h].pair, search.path[h].reward
    settings, pair, decision = search.settings[0], search.tree.pairs[link], search.decision[0]
    # In a graph an exploring episode makes one call.
    only = search.graph is not None and h == decision.target
    cut = decision.kind == EXPLORE and (pair.n < settings.cut or only)
    x = settings.offset + settings.slope * reward
    status = _note_reward(search, at, link, h, reward, x)
    if status != CHUNK_DONE:
        return NONE, status
    child = NONE
    drift = 0.0
    if goes_on(search, h):
        child, drift, status = _note_outcome(search, model, at, link, h, successor, ended)
        if status != CHUNK_DONE:
            return NONE, status
    bet(search, link, h, (1.0 if settings.told else x) - drift)
    pair.n += 1
    paid = pair.reward if settings.told else x
    _note_in_pool(search, at, pair.action, h, successor, ended, child, paid)
    earn(search, pair.reward if settings.pays_means else x, h)
    if cut:
        return child, episodes.BREAK_OFF
    if ended or h + 1 == settings.horizon:
        return child, CHUNK_DONE
    if concluded(search, h + 1, outcome_estimate(search, child, h), ties):
        return child, episodes.CONCLUDE
    return child, _take_advice(search, model, h, child)


@inlined
def _take_advice(search: Search, model: Any, h: int, child: int) -> int:
    """Ask what the user's policy does after step h, if this episode follows it; returns a status."""
    decision = search.decision[0]
    if not decision.guided:
        return CHUNK_DONE
    node = search.tree.nodes[child]
    decision.advised = handles.advice(model, int(node.state), h + 1, int(node.actions))
    if decision.advised == handles.BAD_ADVICE:
        return int(break_promise(search, BAD_ANSWER, node.state, 0, h + 1, 0.0))
    return CHUNK_DONE


@inlined
def _note_reward(search: Search, at: int, link: int, h: int, reward: float, x: float) -> int:
    """Keep a reward, in Bracket's units x; returns a status."""
    settings, problem, pair = search.settings[0], search.problem[0], search.tree.pairs[link]
    if not settings.told:
        pair.reward += x
    if settings.fixed_rewards:
        if pair.n > 0 and abs(pair.reward - x) > 1e-9:
            state, paid = search.tree.nodes[at].state, problem.lowest + problem.width * reward
            return break_promise(search, REWARD_VARIES, state, pair.action, h, paid)
        if pair.n == 0:
            pair.reward = x
            if at == 0:
                raise_floor(search.root[pair.action], x)
    return CHUNK_DONE


@inlined
def _note_outcome(
    search: Search, model: Any, at: int, link: int, h: int, successor: int, ended: bool
) -> tuple[int, float, int]:
    """The node of an outcome, made if it is new; its d; and a status."""
    learns, gamma = search.settings[0].learns, search.settings[0].gamma
    by = bet_depth(search, h)
    part = final_part(search)
    top, seen = best_outcome(search, link, by, part)
    if learns:
        add_drifts(search, link, by, part, top, seen)
    after = unseen_value(search, h)
    child, new, status = follow(search, model, at, link, successor, ended, h, after, 0.0)
    if status != CHUNK_DONE:
        return NONE, 0.0, status
    drift = 0.0
    if learns:
        predict(search, link, search.tree.nodes[child].count, seen)
        # A new outcome was still unseen when d was fixed.
        g = unseen_value(search, by) if new else final_value(search, child, by, part)
        drift = gamma * (top - g)
    if new:
        status = settle(search, model, at, child, h, link, seen + 1, ended)
    search.tree.nodes[child].count += 1
    return child, drift, status


@inlined
def _note_in_pool(
    search: Search, at: int, action: int, h: int, successor: int, ended: bool, child: int, x: float
) -> None:
    """Count the call in the pool of what was seen by state."""
    settings, pool = search.settings[0], search.pool
    last = h + 1 == settings.horizon
    place = ENDED
    if child != NONE:
        place = search.tree.nodes[child].place
    elif not ended and settings.same_actions:
        place = find_place(pool, successor, search.root.size, search.steps.prior)
    elif not ended:
        # No action is taken in this state, so the model is not asked for its actions.
        place = find(pool.places, successor, 0)
    # After the last step a state may be new to the pool. It is not counted as an outcome without a
    # place then, since later draws of the same state may have one.
    if place != NONE or not last:
        record(pool, search.tree.nodes[at].place, action, x, place)


@episodes.acting_node.register(Search)
def _acting_node(search: Search, node: int) -> int:
    return canonical(search.graph, node)


@episodes.update.register(Search)
def _update(search: Search, model: Any, length: int, ties: Any) -> None:
    """Renew W and the estimates on the path, from the last step to the first, and U of its action.

    In a graph, steps that were imagined wait for the next sweep.
    """
    decision = search.decision[0]
    first = 0 if search.graph is None else max(decision.target, 0)
    for h in range(length - 1, first - 1, -1):
        at, link = search.path[h].node, search.path[h].pair
        _refresh_bounds(search, search.graph, model, at, link, h)
        refresh_estimates(search, at, link, h)
    refresh_arm_estimate(search, decision.play)
    _refresh_tree_arm(search, search.graph, decision.play)


@inlined
def _refresh_bounds(search: Search, graph: Any, model: Any, at: int, link: int, h: int) -> None:
    """Renew W of a pair on the path, and f of its node; not in a row of forced episodes in a graph."""
    decision = search.decision[0]
    penalty = search.root[decision.play].penalty
    if graph is not None and decision.kind == FORCED:
        renew_stake(search, link, h, penalty)
    else:
        # Nothing was bet on steps that were imagined.
        refresh_pair(search, model, at, link, h, penalty, h < decision.target)
        refresh_node(search, at, h)


@inlined
def _refresh_tree_arm(search: Search, graph: Any, play: int) -> None:
    """In a tree all W are up to date after a visit; see `sweep_if_due` for the others."""
    if graph is None:
        refresh_arm(search, play)
        renew_gaps_to(search, play)


@episodes.backup.register(Search)
def _backup(search: Search, length: int, rest: float, ties: Any) -> None:
    """Bet on the return, if the episode was declared to exploit or to be forced before it began."""
    settings, decision = search.settings[0], search.decision[0]
    if decision.kind == EXPLORE:
        return
    after = search.steps.ended[settings.horizon - length]
    earned = decision.earned + decision.discount * after
    # One that a coin has ended has no return, and no discount. If the last reward is known, it has none
    # left either, and its return was noted then. (If gamma is 0, no step leaves any.)
    if decision.discount > 0.0 or settings.gamma == 0.0:
        note_return(settings, decision.paid + settings.gamma**length * after)
    if decision.kind == EXPLOIT:
        bet_exploit(search, decision.play, earned, decision.guided)
        renew_gaps_of(search, decision.play)
    elif decision.kind == FORCED:
        bet_forced(search, decision.play, earned)
