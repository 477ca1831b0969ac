"""Exploit episodes that follow a policy of the user's, as long as it pays.

Any rule that is fixed before an episode begins may choose its actions, so no bound depends on whose
advice is taken. An action of the root keeps the mean returns of the episodes that followed the policy
and of those that followed the planner's own estimates, and the next follows what promises more.
"""

from math import log, sqrt
from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined

GUIDANCE_FIELDS = [
    ("followed", np.int64),  # exploit episodes that followed the policy ...
    ("follow_mean", np.float64),  # ... and the mean of their returns
    ("unguided", np.int64),  # those that did not ...
    ("own_mean", np.float64),  # ... and a mean of their returns, the newest more than the others
]

_NEWEST = 2.0  # weight of the newest unguided return: estimates get better


@inlined
def follows(arm: Any, spread: float) -> bool:
    """Whether the next exploit episode follows the policy; `spread` is the variance of returns."""
    if arm.followed == 0 or arm.unguided == 0:
        return bool(arm.followed <= arm.unguided)
    doubt = sqrt(spread * log(1.0 + arm.followed + arm.unguided))
    return bool(arm.follow_mean >= arm.own_mean + doubt / sqrt(arm.unguided))


@inlined
def compare(arm: Any, followed: bool, earned: float) -> None:
    """Learn from the return of an exploit episode."""
    if followed:
        arm.followed += 1
        arm.follow_mean += (earned - arm.follow_mean) / arm.followed
    else:
        arm.own_mean += _NEWEST / (arm.unguided + _NEWEST) * (earned - arm.own_mean)
        arm.unguided += 1
