"""Canopy from above: bets on the values of sampled trees (docs/canopy.md, "Above")."""

from math import ceil, sqrt
from typing import Any

from pacplan.algorithms.canopy.constants import PILOTS
from pacplan.algorithms.canopy.records import Search
from pacplan.algorithms.common.returns import (
    LARGEST_FRACTION,
    LEAN,
    MOST_STAKE,
    MOST_WEALTH,
    NEWEST,
    learn_moments,
)
from pacplan.compiled.jit import inlined


@inlined
def bet_tree(search: Search, action: int, x: float, most: float) -> None:
    """Bet on the value x <= most of a tree whose shape was fixed before it began, then learn from it.

    Its conditional mean is at least Q, so for every m <= Q the wealth at m, staked on values below m,
    is a supermartingale. A point of the grid counts as proven only when every higher one is: then
    U <= Q needs the last point up to Q to have been reached.
    """
    arm, moments = search.root[action], search.tree_moments[action]
    if arm.trees == 0:
        search.tree_wealth[action] = 1.0
    if arm.trees >= PILOTS:
        _stake_on_grid(search, action, x, most)
    for q in range(NEWEST.size):
        learn_moments(moments[q], NEWEST[q], arm.recent, x)
    arm.centre += (x - arm.centre) / (arm.recent + 1)
    arm.recent += 1
    arm.trees += 1


@inlined
def _trusted_mean(moment: Any, newest: float, seen: int) -> float:
    """The mean that a bettor assumes after `seen` trees: a little below what it saw."""
    return float(moment.centre - LEAN * sqrt(moment.spread * newest / max(seen, 1)))


@inlined
def _stake_on_grid(search: Search, action: int, x: float, most: float) -> None:
    """Bet at all unproven grid points that some bettor expects the value to stay below."""
    rules, arm, moments = search.rules[0], search.root[action], search.tree_moments[action]
    wealth = search.tree_wealth[action]
    reach = most
    for q in range(NEWEST.size):
        reach = min(reach, _trusted_mean(moments[q], NEWEST[q], arm.recent))
    # What is no number, or too large for one, would become any whole number.
    first = ceil(max(0.0, reach / rules.step))
    # No mean of trees exceeds R_0, so points from there on need no bets.
    top = ceil(min(float(arm.ceiling), most / rules.step))
    ceiling = top
    for i in range(top - 1, first - 1, -1):
        m = i * rules.step
        total = 0.0
        for q in range(NEWEST.size):
            stake = _stake(moments[q], NEWEST[q], arm.recent, m, most)
            if stake > 0.0:
                wealth[i, q] = min(wealth[i, q] * (1.0 + stake * (m - x)), MOST_WEALTH)
            total += wealth[i, q]
        if i == ceiling - 1 and total * rules.delta_tree >= NEWEST.size:
            ceiling = i
    if ceiling < arm.ceiling:
        arm.ceiling = ceiling
        arm.upper = min(arm.upper, ceiling * rules.step)


@inlined
def _stake(moment: Any, newest: float, seen: int, m: float, most: float) -> float:
    """What a bettor stakes on a value below m; 0 if it sees no advantage. As for returns, mirrored."""
    edge = m - _trusted_mean(moment, newest, seen)
    if edge <= 0.0 or m >= most:
        return 0.0
    wide = moment.spread + edge * moment.skew / moment.spread - edge * edge
    return float(min(edge / max(wide, moment.spread + edge * edge), MOST_STAKE / (most - m)))


@inlined
def bet_forced_tree(search: Search, action: int, x: float, most: float) -> None:
    """Bet on the value of a forced tree, in an account of its own, for the proof of termination."""
    rules, arm = search.rules[0], search.root[action]
    wealth = search.forced_tree_wealth[action]
    if arm.forced_trees == 0:
        search.forced_tree_wealth[action] = 1.0
    arm.forced_trees += 1
    step = rules.stride * rules.step
    count = wealth.shape[1]
    ceiling = arm.forced_ceiling
    for i in range(arm.forced_ceiling - 1, -1, -1):
        m = i * step
        odds = (m - x) / (most - m)
        total = 0.0
        fraction = LARGEST_FRACTION
        for j in range(count):
            wealth[i, j] = min(wealth[i, j] * (1.0 + fraction * odds), MOST_WEALTH)
            total += wealth[i, j]
            fraction *= 0.5
        if i == ceiling - 1 and total * rules.delta_forced_tree >= count:
            ceiling = i
    if ceiling < arm.forced_ceiling:
        arm.forced_ceiling = ceiling
        arm.upper = min(arm.upper, ceiling * step)
