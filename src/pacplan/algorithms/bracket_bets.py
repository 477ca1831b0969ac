"""Bracket from below: bets on the returns of episodes that were declared beforehand.

In units in which a step pays between 0 and 1.
"""

from math import sqrt
from typing import Any

import numpy as np

from pacplan._jit import inlined

# An action of the root, and the bets on its returns.
ARM = np.dtype(
    [
        ("upper", np.float64),  # U
        ("lower", np.float64),  # L
        ("estimate", np.float64),
        ("penalty", np.float64),  # lambda
        ("returns", np.float64),  # sum over its exploit episodes
        ("threshold", np.float64),  # wealth that proves a bound
        ("exploits", np.int64),
        ("proven", np.int64),  # grid points proven by exploit episodes ...
        ("forced", np.int64),  # ... and, on a coarser grid, by forced ones
        ("forces", np.int64),  # forced episodes
        ("account", np.int64),  # row of its wealth, once it has begun to bet ...
        ("forced_account", np.int64),  # ... and of that of its forced episodes
        ("calls", np.int64),
        ("rebuilt", np.int64),  # calls when `penalty` was set last
        ("pair", np.int64),
    ]
)

# Of the returns of an action, as a bettor sees them: mean, and mean squares and cubes of errors.
MOMENTS = np.dtype([("centre", np.float64), ("spread", np.float64), ("skew", np.float64)])

# Constants, chosen on the families for it in benchmarks/families.py. No bound rests on their size.
LARGEST_FRACTION = 0.9  # of the wealth that a forced bet stakes; others are halves of it
FIRST_BET = 4  # exploit episodes watched before the first bet
NEWEST = np.array([4.0, 2.0])  # weight of the newest return, against one for each before
LEAN = 0.5  # standard errors by which a bettor trusts the mean
BETTOR_SHARE = 0.6  # of what is left of delta, for the next action to begin betting


@inlined
def bet_exploit(rules: Any, arm: Any, moments: Any, accounts: Any, earned: float) -> None:
    """One return of an exploit episode, declared as one before it began: bet, then learn from it.

    Its conditional mean is at most Q, so for every m >= Q the wealth at m, staked on returns above m,
    is a supermartingale. The stakes are not monotone in m, so a point of the grid counts as proven only
    when every lower one is: then L > Q needs the first point above Q to have been reached.
    """
    means, spreads, skews = moments.centre, moments.spread, moments.skew
    seen = arm.exploits
    if seen == FIRST_BET:
        # Shares by order of the first bet, fixed before it.
        share = rules.delta_exploit * BETTOR_SHARE * (1.0 - BETTOR_SHARE) ** rules.bettors
        arm.threshold = 1.0 / share
        arm.account = rules.bettors
        rules.bettors += 1
        accounts[arm.account] = 1.0
    if seen >= FIRST_BET:
        wealth = accounts[arm.account]
        reach = -np.inf
        for q in range(NEWEST.size):
            reach = max(reach, means[q] + LEAN * sqrt(spreads[q] * NEWEST[q] / seen))
        last = min(int(reach / rules.step) + 1, wealth.shape[0])
        proven = arm.proven
        for i in range(arm.proven + 1, last):
            m = i * rules.step
            total = 0.0
            for q in range(NEWEST.size):
                edge = means[q] + LEAN * sqrt(spreads[q] * NEWEST[q] / seen) - m
                if edge > 0.0:
                    # Kelly's stake for two values with these moments, or the one for none skewed,
                    # whichever is smaller: a rare loss is the larger one where returns lean down.
                    wide = spreads[q] - edge * skews[q] / spreads[q] - edge * edge
                    stake = min(edge / max(wide, spreads[q] + edge * edge), 0.95 / m)
                    wealth[i, q] = min(wealth[i, q] * (1.0 + stake * (earned - m)), 1e300)
                total += wealth[i, q]
            if i == proven + 1 and total >= NEWEST.size * arm.threshold:
                proven = i
        arm.proven = proven
        arm.lower = max(arm.lower, proven * rules.step)
    for q in range(NEWEST.size):
        error = earned - means[q]
        if seen == 0:
            means[q] = earned
        else:
            means[q] += NEWEST[q] / (seen + NEWEST[q]) * error
            share = NEWEST[q] / (seen + 1 + NEWEST[q])
            spreads[q] += share * (error * error - spreads[q])
            skews[q] += share * (error * error * error - skews[q])
    arm.returns += earned
    arm.exploits = seen + 1


@inlined
def bet_forced(rules: Any, arm: Any, actions: int, accounts: Any, earned: float) -> None:
    """One return of a forced episode into an account of its own, for the proof of termination."""
    if arm.forces == 0:
        arm.forced_account = rules.forcers
        rules.forcers += 1
        accounts[arm.forced_account] = 1.0
    wealth = accounts[arm.forced_account]
    arm.forces += 1
    step = rules.stride * rules.step
    count = wealth.shape[1]
    proven = arm.forced
    for i in range(arm.forced + 1, wealth.shape[0]):
        odds = earned / (i * step) - 1.0
        total = 0.0
        fraction = LARGEST_FRACTION
        for j in range(count):
            wealth[i, j] = min(wealth[i, j] * (1.0 + fraction * odds), 1e300)
            total += wealth[i, j]
            fraction *= 0.5
        if i == proven + 1 and total * rules.delta_forced >= count * actions:
            proven = i
    arm.forced = proven
    arm.lower = max(arm.lower, proven * step)
