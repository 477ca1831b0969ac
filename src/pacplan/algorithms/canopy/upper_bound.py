"""Canopy from above: bets on the values of sampled trees (docs/canopy.md, "Above")."""

from math import ceil
from typing import Any

from pacplan.algorithms.betting.bets import ABOVE, bet_on_grid, learn_moments
from pacplan.algorithms.canopy.constants import PILOTS
from pacplan.compiled.jit import inlined


@inlined
def bet_tree(search: Any, action: int, x: float, most: float) -> None:
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
def bet_forced_tree(search: Any, action: int, x: float, most: float) -> None:
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
