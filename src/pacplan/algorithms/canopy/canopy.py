"""Canopy: the algorithm on one page. docs/canopy.md has the proof; names are those of the proof."""

from math import ceil
from typing import Any

import numpy as np

from pacplan.algorithms.betting.bets import ABOVE, bet_on_grid, learn_moments
from pacplan.algorithms.betting.planner import BettingPlanner
from pacplan.algorithms.betting.returns import accounts_have_room, raise_floor
from pacplan.algorithms.canopy.constants import PILOTS
from pacplan.algorithms.canopy.growth import (
    CALL_NEEDED,
    GROWN,
    draw_in_node,
    grow,
    leaf_value,
    open_node,
)
from pacplan.algorithms.canopy.records import CHOOSE, DECIDE, FORCED_EPISODE, GROW, PLAY, TREE, Search
from pacplan.algorithms.canopy.search import CanopySearch
from pacplan.algorithms.canopy.shape import first_shape, state_value
from pacplan.algorithms.canopy.tasks import choose_action, decide, finish_task, satisfied, take_step
from pacplan.algorithms.common.confidence import ranges_assumed
from pacplan.compiled.jit import inlined
from pacplan.engine import steps
from pacplan.engine.calls import BAD_ANSWER, CHUNK_DONE, NO_ROOM, RULE, break_promise
from pacplan.engine.query import Query
from pacplan.engine.tree import NONE, add_node, add_pair
from pacplan.models.protocol import Model, Session


class Canopy(BettingPlanner):
    """Proven answers where every successor may be new: averages of sampled trees bound from above.

    The best policy of a *sampled* tree does too well on average, since it knows the draws. So with C
    successors drawn for every pair, the value of such a tree has a mean of at least Q, and bets on the
    values of many trees prove upper bounds. That needs neither the number of successors nor states that
    recur; noise may be continuous. Learnt values of states keep the trees small, and no bound depends
    on them. L(a) comes from bets on returns of episodes declared beforehand to do what seems best, as
    in `Bracket`. The search stops when max_{a != b} U(a) - L(b) <= epsilon for some b, its answer.
    docs/canopy.md has the proof. Where successors recur, `Bracket` mostly needs fewer calls.

    What is guaranteed is what `Bracket` guarantees.

    Args:
        epsilon: how far from optimal the answer may be, in the model's reward units. 0 stops only when
            the action is proven optimal, so it needs a budget or a deadline.
        delta: probability with which the guarantee may fail.
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: number of steps H; by default as for `Bracket`, like all settings below.
        target: "horizon" or "infinite".
        value_bounds: only the upper one helps, as the value of a leaf.
        value_range: bounds on every discounted return.
        policy: a policy that may be good. It only steers.
        value: guesses of optimal values. The better they are, the smaller the trees. They only steer.
    """

    name = "canopy"
    kind_matters = True

    def start(self, query: Query, session: Session) -> CanopySearch:
        return CanopySearch(self, query, session)

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        return (*ranges_assumed(self, model), "equal states have equal futures")


@steps.compute.register(Search)
def _compute(search: Any, model: Any, ties: Any) -> int:
    """Choose the next task when one is over, and take it on to its next call.

    A task is a tree, ordinary or FORCED, or an episode, to EXPLOIT or FORCED.
    """
    phase = search.task[0].phase
    if phase == DECIDE:
        if satisfied(search):
            return RULE
        if not accounts_have_room(search):
            return NO_ROOM
        decide(search, ties)
        return CHUNK_DONE
    if phase == GROW:
        return _grow(search, model, ties)
    if phase == CHOOSE:
        return choose_action(search, model)
    return steps.CALL


@steps.call.register(Search)
def _call(search: Any, model: Any, most: int, rng: Any) -> int:
    """One draw of a tree, one look ahead, or one step of an episode."""
    if search.task[0].phase == GROW:
        return draw_in_node(search, model, rng)
    return take_step(search, model, rng)


@steps.make_root.register(Search)
def _plant(search: Any, model: Any, state: int) -> int:
    """Set up the root, its actions and the shapes of their first trees; returns a status."""
    if search.tree.used[0] > 0:
        return CHUNK_DONE
    task, settings, root = search.task[0], search.settings[0], search.root
    task.root = state
    span = leaf_value(search, model, 0, state)
    if np.isnan(span):
        return int(break_promise(search, BAD_ANSWER, state, 0, 0, 0.0))
    at = add_node(search.tree, state, root.size)
    task.most_actions = root.size
    for h in range(1, settings.horizon):
        search.levels[h].actions = root.size
        search.levels[h].opened *= root.size
    step = settings.step
    for a in range(root.size):
        arm = root[a]
        add_pair(search.tree, at, a)
        arm.upper = span
        raise_floor(arm, settings.floor)
        # Points from a known bound on need no bets.
        arm.ceiling = ceil(span / step - 1e-9)
        arm.forced_ceiling = ceil(span / settings.forced_step - 1e-9)
        arm.due = PILOTS
        arm.estimate = state_value(search.levels[0])
        first_shape(search, a)
    return CHUNK_DONE


@inlined
def _grow(search: Any, model: Any, ties: Any) -> int:
    """Go on with a tree; when it is complete, bet on its value, which lowers U."""
    task = search.task[0]
    if task.at == NONE:
        only = task.action if task.start == 0 else NONE
        return open_node(search, model, task.start, task.state, only)
    status = grow(search, model, ties)
    if status == CALL_NEEDED:
        return steps.CALL
    if status != GROWN:
        return int(status)
    frame = search.frames[task.start]
    if task.kind == FORCED_EPISODE:
        # It was grown to choose a step of the episode.
        task.play, task.phase = frame.chosen, PLAY
        return CHUNK_DONE
    calls = search.report[0].calls - task.began
    if task.kind == TREE:
        _bet_tree(search, task.action, frame.best, search.levels[0].most)
        search.root[task.action].tree_calls += calls
    else:
        _bet_forced_tree(search, task.action, frame.best, search.levels[0].most)
        task.forced_spent += calls
    finish_task(search, model)
    return CHUNK_DONE


@inlined
def _bet_tree(search: Any, action: int, x: float, most: float) -> None:
    """Bet on the value x <= most of a tree whose shape was fixed before it began, then learn from it.

    Its conditional mean is at least Q, so for every m <= Q the wealth at m, staked on values below m,
    is a supermartingale. A point of the grid counts as proven only when every higher one is: then
    U <= Q needs the last point up to Q to have been reached.
    """
    settings, arm, moments = search.settings[0], search.root[action], search.tree_moments[action]
    wealth, step = search.tree_wealth[action], settings.step
    if arm.trees == 0:
        search.tree_wealth[action] = 1.0 / wealth.shape[1]
    if arm.trees >= PILOTS:
        # No mean of trees exceeds R_0, so points from there on need no bets.
        top = ceil(min(float(arm.ceiling), most / step))
        share = settings.delta_tree
        ceiling = bet_on_grid(wealth, moments, arm.recent, x, most, step, top, ABOVE, share)
        if ceiling < arm.ceiling:
            arm.ceiling = ceiling
            arm.upper = min(arm.upper, ceiling * step)
    learn_moments(moments, arm.recent, x)
    arm.centre += (x - arm.centre) / (arm.recent + 1)
    arm.recent += 1
    arm.trees += 1


@inlined
def _bet_forced_tree(search: Any, action: int, x: float, most: float) -> None:
    """Bet on the value of a forced tree, in an account of its own, for the proof of termination."""
    settings, arm = search.settings[0], search.root[action]
    wealth, step = search.forced_tree_wealth[action], settings.forced_step
    if arm.forced_trees == 0:
        search.forced_tree_wealth[action] = 1.0
    arm.forced_trees += 1
    share, nothing = settings.delta_forced_tree / wealth.shape[1], search.moments[action, :0]
    ceiling = bet_on_grid(
        wealth, nothing, arm.forced_trees, x, most, step, arm.forced_ceiling, ABOVE, share
    )
    if ceiling < arm.forced_ceiling:
        arm.forced_ceiling = ceiling
        arm.upper = min(arm.upper, ceiling * step)
