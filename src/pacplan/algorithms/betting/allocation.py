"""Where the wealth for bets on returns is: in a reserve, or in the accounts of actions.

docs/bracket.md, "Wealth". Bets on returns begin with a wealth of one (or, of two actions, each with one
of its own, `given`). It does most on the action that is exploited in the end, which is not known at
first, and what was staked on another is hard to get back. So only the first to open an account is
allocated much at once; after that, accounts get little until the end is near, and then what the others
can spare.
"""

from typing import Any

import numpy as np

from pacplan.algorithms.betting.bets import total
from pacplan.algorithms.betting.returns import FIRST_BET, open_account
from pacplan.compiled.jit import inlined

MOST_ALLOCATED = 0.95  # part of all wealth that one account is given, at most ...
FIRST_ALLOCATED = 0.5  # ... and at least, while it is the only one ...
ANYTIME_ALLOCATED = 0.6  # ... and whichever it is, if there is no gap to stop at
# An account should have all when epsilon over the gap, both seen from the next best estimate, is ...
NEAR_END = 0.6
CAUTION = 2.0  # ... and before that this power of the part of it that is reached;
EDGE = 0.15  # or once its bets could win a nat this part of epsilon below the mean return
LEAST_SPREAD = 1e-12  # variance that stands for less
LEAST_MOVED = 0.02  # part of all wealth that is worth moving
REFILL = 0.1  # part of an action's exploit episodes that pass before it may be given more


@inlined
def allocate(search: Any, action: int, gap: float) -> None:
    """Move wealth to the account of an action, before an exploit episode of it.

    `gap` is by how much it may be worse than another, at most.
    """
    settings, root, arm = search.settings[0], search.root, search.root[action]
    if arm.exploits < max(FIRST_BET, arm.refill):
        return
    open_account(search, arm)
    arm.refill = arm.exploits + 1 + int(REFILL * arm.exploits)
    whole, only, ahead = settings.reserve, True, np.inf
    for b in range(root.size):
        whole += root[b].deposit
        if b != action:
            only = only and root[b].refill == 0
            ahead = min(ahead, arm.estimate - root[b].estimate)
    part = ANYTIME_ALLOCATED
    if settings.epsilon > 0.0:
        ahead = max(ahead, 0.0) if root.size > 1 else 0.0
        progress = (settings.resolution + ahead) / (max(gap, settings.resolution) + ahead)
        edge = EDGE * settings.resolution
        # What bets at this distance below a mean can win, in nats, if returns spread as they did.
        ready = 0.5 * arm.exploits * edge * edge / max(search.moments[action, 0].spread, LEAST_SPREAD)
        first = FIRST_ALLOCATED if only else 0.0
        part = min(max((progress / NEAR_END) ** CAUTION, ready, first), MOST_ALLOCATED)
    wanted = part * whole - arm.deposit
    if wanted <= LEAST_MOVED * whole:
        return
    elsewhere = whole - arm.deposit - settings.reserve
    moved = min(wanted, settings.reserve)
    settings.reserve -= moved
    if wanted > moved:
        asked = min((wanted - moved) / elsewhere, 1.0)
        for b in range(root.size):
            if b != action and root[b].deposit > 0.0:
                moved += _withdraw(search.wealth[root[b].account], root[b], asked)
    wealth = search.wealth[arm.account]
    for i in range(wealth.shape[0]):
        for q in range(wealth.shape[1]):
            wealth[i, q] += moved / wealth.shape[1]
    arm.deposit += moved


@inlined
def _withdraw(wealth: Any, arm: Any, part: float) -> float:
    """Take a part of what can be moved out of an account: the same amount at every point.

    No more can be than was put into it, nor than it has at any point that is not proven: so much it
    has wherever the value of its action lies.
    """
    least = arm.deposit
    for i in range(arm.proven + 1, wealth.shape[0]):
        least = min(least, total(wealth[i]))
    taken = part * least
    for i in range(wealth.shape[0]):
        before = total(wealth[i])
        left = max(1.0 - taken / before, 0.0) if before > 0.0 else 0.0
        for q in range(wealth.shape[1]):
            wealth[i, q] *= left
    arm.deposit -= taken
    return float(taken)
