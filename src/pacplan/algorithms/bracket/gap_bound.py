"""U of the root's actions, and one process of bets for both sides: how much better one may be.

docs/bracket.md, "Both sides at once". Evidence above and returns below are bets that may be multiplied,
so what one side has won need not be won by the other. (If the sides have processes of their own, c is
1, and this says what the bounds say.)
"""

from math import log
from typing import Any

import numpy as np

from pacplan.algorithms.betting.bets import total
from pacplan.algorithms.betting.returns import FIRST_BET
from pacplan.algorithms.bracket.constants import LEAST_ASKED
from pacplan.compiled.jit import inlined
from pacplan.engine.tree import NONE


@inlined
def renew_gap(search: Any, rival: int, action: int) -> None:
    """How much better a `rival` may be than an action that bets, at most, after either has changed.

    W(a) + lambda log(1/(delta_J (1 - beta))) - min_i [ m_(i-1) + lambda log(c + (1 - c) x_i) ], with
    x_i = o + D_a + X_b(m_i), over the grid points m_i that are not proven; and never more than before.
    W falls with lambda as fast as evidence against it is large, so lambda is right if that is what
    stands beside it here.
    """
    settings, arm, other = search.settings[0], search.root[action], search.root[rival]
    if rival == action or other.pair == NONE or arm.exploits <= FIRST_BET:
        return
    wealth, penalty = search.wealth[arm.account], other.penalty
    # What is not staked in a world in which the rival is the best action.
    idle = settings.reserve + other.deposit
    spare = settings.apart + (1.0 - settings.apart) * idle
    least = np.inf
    won = 0.0
    for i in range(arm.proven + 1, wealth.shape[0]):
        below = arm.floor + (i - 1) * settings.step
        if below + penalty * log(spare) >= least:
            break
        here = log(spare + (1.0 - settings.apart) * total(wealth[i]))
        if below + penalty * here < least:
            least = below + penalty * here
            won = here
    if action == search.decision[0].best:
        other.asked = max(settings.log_joint - won, LEAST_ASKED)
    gap = search.tree.pairs[other.pair].upper + penalty * settings.log_joint - least
    search.gaps[arm.account, rival] = min(search.gaps[arm.account, rival], gap)


@inlined
def refresh_arm(search: Any, action: int) -> None:
    """U(a) = min over time of lambda log(1/delta_s) + W(a), and gaps; all W below are up to date."""
    arm = search.root[action]
    if arm.pair != NONE:
        bound = arm.penalty * search.settings[0].log_share + search.tree.pairs[arm.pair].upper
        arm.upper = min(arm.upper, bound)
    for b in range(search.root.size):
        renew_gap(search, action, b)


@inlined
def pair_gap(search: Any, rival: int, action: int) -> float:
    """How much better a rival may be than an action, at most, by all that is known."""
    arm = search.root[action]
    gap = search.root[rival].upper - arm.lower
    if arm.exploits > FIRST_BET:
        gap = min(gap, search.gaps[arm.account, rival])
    return float(gap)


@inlined
def largest_gap(search: Any, action: int) -> float:
    """How much better any other action may be, at most."""
    most = -np.inf
    for a in range(search.root.size):
        if a != action:
            most = max(most, pair_gap(search, a, action))
    return most
