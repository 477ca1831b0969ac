"""Bounds from below: bets on the returns of episodes that were declared beforehand.

docs/bracket.md, "Below". In units in which a step pays between 0 and 1. A search that bets has `rules`
(with `least_return` and `most_return`, those that were seen, `delta_exploit`, `delta_forced`, `step`,
`stride`, `bettors` and `forcers`), `root` (records with `ACCOUNT_FIELDS`), `moments`, `wealth` and
`forced_wealth`.
"""

import math
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from pacplan.algorithms.common.funds import FIRST_BET, FUNDED_FIELDS, total
from pacplan.algorithms.common.guidance import GUIDANCE_FIELDS, compare
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
    *FUNDED_FIELDS,
    *GUIDANCE_FIELDS,
]

# What a bettor saw of a random number: mean, and mean squares and cubes of deviations, with the weight
# of the newest one, against 1 for each before.
MOMENTS = np.dtype(
    [("centre", np.float64), ("spread", np.float64), ("skew", np.float64), ("newest", np.float64)]
)

NEWEST = np.array([4.0, 2.0])  # of each bettor: weight of the newest return ...
STEADY = np.array([2.0, 1.0])  # ... and if returns do not improve as a search learns
LEAN = 0.5  # standard errors that a bettor adds to the mean
MOST_STAKE = 0.95  # of what can be staked at all
FIRST_SPREAD = 0.25  # standard deviation of returns before any was seen, over their range
LARGEST_FRACTION = 0.9  # of the wealth that a forced bet stakes; others are halves of it (ends)
MOST_WEALTH = 1e300  # more is not counted


ANYTHING = (-math.inf, math.inf)
"""The range of returns of which nothing is known."""


def return_range(
    value_range: tuple[float, float], low: float, width: float, sigma: float
) -> tuple[float, float]:
    """Least and largest return of all steps, in the units of the search.

    Args:
        value_range: of the return, in the user's units.
        low: what 0 stands for.
        width: what 1 stands for, minus that.
        sigma: 1 + gamma + ... + gamma^(H-1).

    Raises:
        ValueError: rewards cannot add up to anything in that range, or to one number only.
    """
    least, most = ((value - low * sigma) / width for value in value_range)
    floor, ceiling = max(0.0, least), min(sigma, most)
    if not floor < ceiling:
        raise ValueError(
            f"value_range={value_range} contradicts the model's reward_range, by which returns lie in "
            f"[{low * sigma}, {(low + width) * sigma}]: the two must share more than one number"
        )
    return floor, ceiling


def check_returns(
    rules: Any, in_units: Callable[[float], float], value_range: tuple[float, float] | None
) -> None:
    """Compare the returns that were bet on with the range that the user gave, if any.

    Raises:
        BrokenPromiseError: one lay outside.
    """
    if value_range is None:
        return
    low, high = value_range
    least, most = (in_units(float(rules[name])) for name in ("least_return", "most_return"))
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
def note_return(rules: Any, earned: float) -> None:
    """Remember the least and the largest return of whole episodes."""
    rules.least_return = min(rules.least_return, earned)
    rules.most_return = max(rules.most_return, earned)


@inlined
def bet_exploit(search: Any, action: int, earned: float, followed: bool) -> None:
    """Bet on the return of an episode that was declared to exploit before it began, then learn from it.

    Or on a number that has no larger mean, and is at least `floor`. The conditional mean is at most Q,
    so for every m >= Q the wealth at m, staked on returns above m, is a supermartingale. The stakes are
    not monotone in m, so a point of the grid counts as proven only when every lower one is: then L > Q
    needs the first point above Q to have been reached.
    `followed` says whether the user's policy chose the actions.
    """
    arm, moments = search.root[action], search.moments[action]
    arm.returns += earned
    compare(arm, followed, earned)
    earned -= arm.floor
    if arm.exploits >= FIRST_BET:
        _stake_on_grid(search, action, earned)
    for q in range(NEWEST.size):
        learn_moments(moments[q], moments[q].newest, arm.exploits, earned)
    arm.exploits += 1


@inlined
def trusted_mean(moment: Any, seen: int) -> float:
    """The mean that a bettor assumes after `seen` returns: a little above what it saw."""
    return float(moment.centre + LEAN * sqrt(moment.spread * moment.newest / seen))


@inlined
def _stake_on_grid(search: Any, action: int, earned: float) -> None:
    """Bet at all unproven grid points that some bettor expects the return to exceed.

    Here and below, returns and points of the grid count from the least return.
    """
    rules, arm, moments = search.rules[0], search.root[action], search.moments[action]
    wealth = search.wealth[arm.account]
    reach = -np.inf
    for q in range(NEWEST.size):
        reach = max(reach, trusted_mean(moments[q], arm.exploits))
    # Whatever the moments: what is no number, or too large for one, would become any whole number.
    last = int(min(float(wealth.shape[0] - 1), max(0.0, reach / rules.step))) + 1
    proven = arm.proven
    for i in range(arm.proven + 1, last):
        m = i * rules.step
        for q in range(NEWEST.size):
            stake = _stake(moments[q], arm.exploits, m)
            if stake > 0.0:
                wealth[i, q] = min(wealth[i, q] * (1.0 + stake * (earned - m)), MOST_WEALTH)
        if i == proven + 1 and total(wealth[i]) * rules.delta_exploit >= 1.0:
            proven = i
    arm.proven = proven
    arm.lower = max(arm.lower, arm.floor + proven * rules.step)


@inlined
def _stake(moment: Any, seen: int, m: float) -> float:
    """What a bettor stakes on a return above m; 0 if it sees no advantage.

    The smaller of Kelly's stakes for a two-valued law with these moments and for one without skew:
    if returns are skewed downwards, losses are rare but large.
    """
    edge = trusted_mean(moment, seen) - m
    if edge <= 0.0:
        return 0.0
    wide = moment.spread - edge * moment.skew / moment.spread - edge * edge
    return float(min(edge / max(wide, moment.spread + edge * edge), MOST_STAKE / m))


@inlined
def learn_moments(moment: Any, newest: float, seen: int, earned: float) -> None:
    """Learn from a return, which has weight `newest` against 1 for each before."""
    error = earned - moment.centre
    if seen == 0:
        moment.centre = earned
        return
    moment.centre += newest / (seen + newest) * error
    share = newest / (seen + 1 + newest)
    moment.spread += share * (error * error - moment.spread)
    moment.skew += share * (error * error * error - moment.skew)


@inlined
def bet_forced(search: Any, action: int, earned: float) -> None:
    """Bet on the return of a forced episode, in an account of its own, for the proof of termination."""
    rules, arm = search.rules[0], search.root[action]
    if arm.forces == 0:
        arm.forced_account = rules.forcers
        rules.forcers += 1
        search.forced_wealth[arm.forced_account] = 1.0
    wealth = search.forced_wealth[arm.forced_account]
    arm.forces += 1
    step = rules.stride * rules.step
    count = wealth.shape[1]
    proven = arm.forced
    for i in range(arm.forced + 1, wealth.shape[0]):
        odds = (earned - arm.floor) / (i * step) - 1.0
        total = 0.0
        fraction = LARGEST_FRACTION
        for j in range(count):
            wealth[i, j] = min(wealth[i, j] * (1.0 + fraction * odds), MOST_WEALTH)
            total += wealth[i, j]
            fraction *= 0.5
        if i == proven + 1 and total * rules.delta_forced >= count * search.root.size:
            proven = i
    arm.forced = proven
    arm.lower = max(arm.lower, arm.floor + proven * step)
