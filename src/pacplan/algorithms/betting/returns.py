"""Bounds from below: bets on the returns of episodes that were declared beforehand.

docs/bracket.md, "Below". In units in which a step pays between 0 and 1. A search that bets has
`settings` (one record with `BETTING_FIELDS`), `root` (records with `ACCOUNT_FIELDS`), `moments`,
`wealth` and `forced_wealth`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pacplan.algorithms.betting.allocation import ALLOCATION_FIELDS, FIRST_BET
from pacplan.algorithms.betting.bets import (
    BELOW,
    bet_fractions_on_grid,
    bet_on_grid,
    learn_moments,
    reach_of,
)
from pacplan.algorithms.betting.guidance import GUIDANCE_FIELDS, compare
from pacplan.compiled.jit import inlined
from pacplan.models.protocol import BrokenPromiseError

# The bets on the returns of an action of the root.
ACCOUNT_FIELDS = [
    ("lower", np.float64),  # L
    ("floor", np.float64),  # no episode of it returns less; fixed before its first return is bet on
    ("returns", np.float64),  # sum over its exploit episodes
    ("exploits", np.int64),
    ("proven", np.int64),  # grid points proven by exploit episodes ...
    ("forced", np.int64),  # ... and, on a coarser grid, by forced ones
    ("forces", np.int64),  # forced episodes
    ("forced_account", np.int64),  # row of the wealth of its forced episodes
    *ALLOCATION_FIELDS,
    *GUIDANCE_FIELDS,
]


def check_returns(
    settings: Any, in_units: Callable[[float], float], value_range: tuple[float, float] | None
) -> None:
    """Compare the returns that were bet on with the range that the user gave, if any.

    Raises:
        BrokenPromiseError: one lay outside.
    """
    if value_range is None:
        return
    low, high = value_range
    least, most = (in_units(float(settings[name])) for name in ("least_return", "most_return"))
    slack = 1e-9 * (1.0 + abs(low) + abs(high))
    if least < low - slack or most > high + slack:
        raise BrokenPromiseError(
            f"an episode had a return of {least if least < low else most}, outside the promised "
            f"value_range=({low}, {high})"
        )


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
    settings, actions = search.settings[0], search.root.size
    return bool(
        not search.wealth.shape[0] <= settings.bettors < actions
        and not search.forced_wealth.shape[0] <= settings.forcers < actions
    )


def open_accounts(search: Any) -> None:
    """Make room for another action of a search to begin to bet on its returns."""
    arrays, settings = search.arrays, search.arrays["settings"][0]
    for name, used in (("wealth", settings["bettors"]), ("forced_wealth", settings["forcers"])):
        if used == len(arrays[name]):
            search.extend(name, min(int(used) + 1, len(search.actions)))


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
    compare(arm, followed, earned)
    x = earned - arm.floor
    if arm.exploits >= FIRST_BET:
        wealth = search.wealth[arm.account]
        reach = reach_of(moments, arm.exploits, BELOW) / settings.step
        # Whatever the moments: what is no number, or too large for one, would become any whole number.
        end = int(min(float(wealth.shape[0] - 1), max(0.0, reach))) + 1
        share = settings.delta_exploit
        arm.proven = bet_on_grid(
            wealth, moments, arm.exploits, x, 0.0, settings.step, arm.proven, end, BELOW, share
        )
        arm.lower = max(arm.lower, arm.floor + arm.proven * settings.step)
    learn_moments(moments, arm.exploits, x)
    arm.exploits += 1


@inlined
def bet_forced(search: Any, action: int, earned: float) -> None:
    """Bet on the return of a forced episode, in an account of its own, for the proof of termination."""
    settings, arm = search.settings[0], search.root[action]
    if arm.forces == 0:
        arm.forced_account = settings.forcers
        settings.forcers += 1
        search.forced_wealth[arm.forced_account] = 1.0
    wealth = search.forced_wealth[arm.forced_account]
    arm.forces += 1
    step = settings.stride * settings.step
    share = settings.delta_forced / search.root.size
    arm.forced = bet_fractions_on_grid(
        wealth, earned - arm.floor, 0.0, step, arm.forced, wealth.shape[0], BELOW, share
    )
    arm.lower = max(arm.lower, arm.floor + arm.forced * step)
