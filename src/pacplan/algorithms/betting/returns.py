"""Bounds from below: bets on the returns of episodes that were declared beforehand.

docs/bracket.md, "Below". In units in which a step pays between 0 and 1. A search that bets has
`settings` (one record with `BETTING_FIELDS`), `root` (records with `ACCOUNT_FIELDS`), `moments`,
`wealth` and `forced_wealth`.

Any rule that is fixed before an episode begins may choose its actions, so no bound depends on whose
advice is taken. An action of the root keeps the mean returns of the episodes that followed the user's
policy and of those that followed the planner's own estimates, and the next follows what promises more.
"""

from math import log, sqrt
from typing import Any

import numpy as np

from pacplan.algorithms.betting.bets import BELOW, bet_on_grid, learn_moments
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
