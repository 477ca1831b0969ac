"""One process of bets for both sides: how much better one action may be than another.

docs/bracket.md, "Both sides at once". Evidence above and returns below are bets that may be multiplied,
so what one side has won need not be won by the other.
"""

from math import log
from typing import Any

import numpy as np

from pacplan.algorithms.betting.allocation import FIRST_BET
from pacplan.algorithms.betting.bets import total
from pacplan.algorithms.bracket.constants import JOINT_ABOVE, LEAST_ASKED, TIE
from pacplan.compiled.jit import inlined
from pacplan.engine.root_rules import argmax_at_random
from pacplan.engine.tree import NONE


@inlined
def bets(search: Any, action: int) -> bool:
    """Whether an action has an account that counts for both sides."""
    return bool(search.settings[0].joint and search.root[action].exploits > FIRST_BET)


@inlined
def _renew_gap(search: Any, rival: int, action: int) -> None:
    """How much better a `rival` may be than an action that bets, at most.

    W(a) + lambda log(1/(delta_J (1 - beta))) - min_i [ m_(i-1) + lambda log(c + (1 - c) x_i) ], with
    x_i = o + D_a + X_b(m_i), over the grid points m_i that are not proven; and never more than before.
    W falls with lambda as fast as evidence against it is large, so lambda is right if that is what
    stands beside it here.
    """
    settings, arm, other = search.settings[0], search.root[action], search.root[rival]
    wealth, penalty = search.wealth[arm.account], other.penalty
    # What is not staked in a world in which the rival is the best action.
    idle = settings.reserve + other.deposit
    spare = JOINT_ABOVE + (1.0 - JOINT_ABOVE) * idle
    least = np.inf
    won = 0.0
    for i in range(arm.proven + 1, wealth.shape[0]):
        below = arm.floor + (i - 1) * settings.step
        if below + penalty * log(spare) >= least:
            break
        here = log(spare + (1.0 - JOINT_ABOVE) * total(wealth[i]))
        if below + penalty * here < least:
            least = below + penalty * here
            won = here
    if action == search.decision[0].best:
        other.asked = max(settings.log_joint - won, LEAST_ASKED)
    gap = search.tree.pairs[other.pair].upper + penalty * settings.log_joint - least
    search.gaps[arm.account, rival] = min(search.gaps[arm.account, rival], gap)


@inlined
def renew_gaps_of(search: Any, action: int) -> None:
    """The account of an action has changed, or was opened."""
    arm = search.root[action]
    if not bets(search, action):
        return
    if arm.exploits == FIRST_BET + 1:
        search.gaps[arm.account] = np.inf
    for a in range(search.root.size):
        if a != action and search.root[a].pair != NONE:
            _renew_gap(search, a, action)


@inlined
def renew_gaps_to(search: Any, rival: int) -> None:
    """W of an action has changed; all W of its branch are up to date."""
    if search.root[rival].pair == NONE:
        return
    for b in range(search.root.size):
        if b != rival and bets(search, b):
            _renew_gap(search, rival, b)


@inlined
def pair_gap(search: Any, rival: int, action: int) -> float:
    """How much better a rival may be than an action, at most, by all that is known."""
    gap = search.root[rival].upper - search.root[action].lower
    if bets(search, action):
        gap = min(gap, search.gaps[search.root[action].account, rival])
    return float(gap)


@inlined
def largest_gap(search: Any, action: int) -> float:
    """How much better any other action may be, at most."""
    most = -np.inf
    for a in range(search.root.size):
        if a != action:
            most = max(most, pair_gap(search, a, action))
    return most


@inlined
def strongest_rival(search: Any, action: int, ties: Any) -> int:
    """The other action that may be better by most; ties at random."""
    gaps = search.scratch.score[: search.root.size]
    for a in range(gaps.size):
        gaps[a] = pair_gap(search, a, action)
    return argmax_at_random(gaps, action, TIE, ties)
