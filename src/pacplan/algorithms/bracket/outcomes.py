"""What a call of a pair tells: its reward, the node of its outcome with its d, and the pool's share."""

from typing import Any

from pacplan.algorithms.betting.returns import raise_floor
from pacplan.algorithms.bracket.expansion import settle
from pacplan.algorithms.bracket.state_model import ENDED, find_place, record
from pacplan.algorithms.bracket.upper_bound import add_drifts, best_outcome, predict
from pacplan.compiled.jit import inlined
from pacplan.engine.calls import CHUNK_DONE, break_promise, follow
from pacplan.engine.graph import find
from pacplan.engine.promises import BAD_ANSWER, REWARD_VARIES
from pacplan.engine.tree import NONE
from pacplan.models import handles


@inlined
def note_reward(search: Any, at: int, link: int, h: int, reward: float, x: float) -> int:
    """Keep a reward, in Bracket's units x; returns a status."""
    settings, problem, pair = search.settings[0], search.problem[0], search.tree.pairs[link]
    if not settings.told:
        pair.reward += x
    elif pair.n == 0:
        pair.reward = x
        if at == 0:
            raise_floor(search.root[pair.action], x)
    elif abs(pair.reward - x) > 1e-9:
        state, paid = search.tree.nodes[at].state, problem.lowest + problem.width * reward
        return break_promise(search, REWARD_VARIES, state, pair.action, h, paid)
    return CHUNK_DONE


@inlined
def note_outcome(
    search: Any, model: Any, at: int, link: int, h: int, successor: int, ended: bool
) -> tuple[int, float, int]:
    """The node of an outcome, made if it is new; its d; and a status."""
    learns, gamma = search.settings[0].learns, search.settings[0].gamma
    most = search.levels[h + 1].span
    top, seen = best_outcome(search, link, h, most)
    if learns:
        add_drifts(search, link, most, top, seen)
    child, new, status = follow(search, model, at, link, successor, ended, h, most, 0.0)
    if status != CHUNK_DONE:
        return NONE, 0.0, status
    drift = 0.0
    if learns:
        predict(search, link, search.tree.nodes[child].count, seen)
        # A new outcome was still unseen when d was fixed.
        drift = gamma * (top - (most if new else min(search.tree.nodes[child].upper, most)))
    if new:
        status = settle(search, model, at, child, h, link, seen + 1, ended)
    search.tree.nodes[child].count += 1
    return child, drift, status


@inlined
def note_in_pool(
    search: Any, at: int, action: int, h: int, successor: int, ended: bool, child: int, x: float
) -> None:
    """Count the call in the pool of what was seen by state."""
    settings, pool = search.settings[0], search.pool
    last = h + 1 == settings.horizon
    place = ENDED
    if child != NONE:
        place = search.tree.nodes[child].place
    elif not ended and settings.same_actions:
        place = find_place(search, successor, search.root.size)
    elif not ended:
        # No action is taken in this state, so the model is not asked for its actions.
        place = find(pool.places, successor, 0)
    # After the last step a state may be new to the pool. It is not counted as an outcome without a
    # place then, since later draws of the same state may have one.
    if place != NONE or not last:
        record(pool, search.tree.nodes[at].place, action, x, place)


@inlined
def take_advice(search: Any, model: Any, h: int, child: int) -> int:
    """Ask what the user's policy does after step h, if this episode follows it; returns a status."""
    decision = search.decision[0]
    if not decision.guided:
        return CHUNK_DONE
    node = search.tree.nodes[child]
    decision.advised = handles.advice(model, int(node.state), h + 1, int(node.actions))
    if decision.advised == handles.BAD_ADVICE:
        return int(break_promise(search, BAD_ANSWER, node.state, 0, h + 1, 0.0))
    return CHUNK_DONE
