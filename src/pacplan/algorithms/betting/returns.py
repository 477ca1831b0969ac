"""Bounds from below: bets on the returns of episodes that were declared beforehand.

docs/bracket.md, "Below". In units in which a step pays between 0 and 1. A search that bets has
`settings` (one record with `BETTING_FIELDS`), `root` (records with `ACCOUNT_FIELDS`), `moments`,
`wealth` and `forced_wealth`.

Any rule that is fixed before an episode begins may choose its actions, so no bound depends on whose
advice is taken. An action of the root keeps the mean returns of the episodes that followed the user's
policy and of those that followed the planner's own estimates, and the next follows what promises more.

All wealth is one (or, of two actions, each has one of its own, `given`), in a reserve or in accounts of
actions. It does most on the action that is exploited in the end, which is not known at first, and what
was staked on another is hard to get back. So only the first to open an account is allocated much at
once; after that, accounts get little until the end is near, and then what the others can spare.
"""

from math import log, sqrt
from typing import Any

import numpy as np

from pacplan.algorithms.betting.bets import BELOW, bet_on_grid, learn_moments, total
from pacplan.compiled.jit import inlined
from pacplan.engine.tree import NONE

# The bets on the returns of an action of the root.
ACCOUNT_FIELDS = [
    ("lower", np.float64),  # L
    ("floor", np.float64),  # no episode of it returns less; fixed before its first return is bet on
    ("account", np.int64),  # row of its wealth, or NONE
    ("exploits", np.int64),
    ("returns", np.float64),  # sum over its exploit episodes
    ("proven", np.int64),  # grid points proven by exploit episodes ...
    ("forces", np.int64),
    ("forced", np.int64),  # ... and, on a coarser grid, by forced ones
    ("deposit", np.float64),  # wealth put into its account, less what was taken out again
    ("refill", np.int64),  # exploit episodes after which it may be given more; 0 before the first
    ("followed", np.int64),  # exploit episodes that followed the policy ...
    ("follow_mean", np.float64),  # ... and the mean of their returns
    ("unguided", np.int64),  # those that did not ...
    ("own_mean", np.float64),  # ... and a mean of their returns, the newest more than the others
]

FIRST_BET = 4  # episodes watched before the first bet
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
_NEWEST = 2.0  # weight of the newest unguided return: estimates get better


@inlined
def follows(arm: Any, spread: float) -> bool:
    """Whether the next exploit episode follows the policy; `spread` is the variance of returns."""
    if arm.followed == 0 or arm.unguided == 0:
        return bool(arm.followed <= arm.unguided)
    doubt = sqrt(spread * log(1.0 + arm.followed + arm.unguided))
    return bool(arm.follow_mean >= arm.own_mean + doubt / sqrt(arm.unguided))


@inlined
def raise_floor(arm: Any, least: float) -> None:
    """No episode of an action returns less than this, for certain."""
    arm.floor = max(arm.floor, least)
    arm.lower = max(arm.lower, arm.floor)


@inlined
def note_return(settings: Any, earned: float) -> None:
    """Remember the least and the largest return of whole episodes."""
    settings.least_return = min(settings.least_return, earned)
    settings.most_return = max(settings.most_return, earned)


@inlined
def accounts_have_room(search: Any) -> bool:
    """Whether another action can begin to bet on its returns."""
    accounts = search.settings[0].accounts
    return bool(accounts < search.wealth.shape[0] or accounts == search.root.size)


@inlined
def open_account(search: Any, arm: Any) -> None:
    """Give an action that begins to bet a row of wealth."""
    settings = search.settings[0]
    if arm.account == NONE:
        arm.account = settings.accounts
        settings.accounts += 1
        search.wealth[arm.account] = settings.given / search.wealth.shape[2]
        search.forced_wealth[arm.account] = 1.0


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


@inlined
def bet_exploit(search: Any, action: int, earned: float, followed: bool) -> None:
    """Bet on the return of an episode that was declared to exploit before it began, then learn from it.

    Or on a number that has no larger mean, and is at least `floor`. The conditional mean is at most Q,
    so for every m >= Q the wealth at m, staked on returns above m, is a supermartingale. The stakes are
    not monotone in m, so a point of the grid counts as proven only when every lower one is: then L > Q
    needs the first point above Q to have been reached. Points of the grid count from the floor.
    `followed` says whether the user's policy chose the actions.
    """
    settings, arm, moments = search.settings[0], search.root[action], search.moments[action]
    arm.returns += earned
    if followed:
        arm.followed += 1
        arm.follow_mean += (earned - arm.follow_mean) / arm.followed
    else:
        arm.own_mean += _NEWEST / (arm.unguided + _NEWEST) * (earned - arm.own_mean)
        arm.unguided += 1
    x, step = earned - arm.floor, settings.step
    if arm.exploits >= FIRST_BET:
        wealth, share = search.wealth[arm.account], settings.delta_exploit
        arm.proven = bet_on_grid(wealth, moments, arm.exploits, x, 0.0, step, arm.proven, BELOW, share)
        arm.lower = max(arm.lower, arm.floor + arm.proven * step)
    learn_moments(moments, arm.exploits, x)
    arm.exploits += 1


@inlined
def bet_forced(search: Any, action: int, earned: float) -> None:
    """Bet on the return of a forced episode, in an account of its own, for the proof of termination."""
    settings, arm = search.settings[0], search.root[action]
    open_account(search, arm)
    arm.forces += 1
    wealth, step = search.forced_wealth[arm.account], settings.forced_step
    share = settings.delta_forced / search.root.size / wealth.shape[1]
    nothing, x = search.moments[action, :0], earned - arm.floor
    arm.forced = bet_on_grid(wealth, nothing, arm.forces, x, 0.0, step, arm.forced, BELOW, share)
    arm.lower = max(arm.lower, arm.floor + arm.forced * step)
