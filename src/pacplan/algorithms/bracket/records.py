"""The records of a Bracket search, and the named tuple that its kernels work on.

Everything is in units in which a step pays between 0 and 1 (docs/bracket.md, "Units").
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.returns import ACCOUNT_FIELDS
from pacplan.algorithms.betting.setup import BETTING_FIELDS
from pacplan.algorithms.bracket.pool import Pool
from pacplan.engine.search import kernel_arrays
from pacplan.engine.tree import BARE_FIELDS, LINKS

# A state of the tree; its `upper` is f, the largest W of its actions.
NODE = np.dtype(
    [
        *BARE_FIELDS,
        ("upper", np.float64),
        ("cap", np.float64),  # the largest value: the span, or less if the user knows
        ("estimate", np.float64),
        ("drift", np.float64),  # sum over the parent's draws of d
        ("reached", np.float64),  # discounted number of exploring episodes that came here
        ("evidence", np.float64),  # of the action with the largest W
        ("price", np.float64),  # log(1/w), of its share of delta_p; 0 if B is known
        ("place", np.int32),  # in the pool
        ("branch", np.int32),  # action of the root that leads here
        ("depth", np.int32),
    ],
    align=True,
)

# A state and action, e. The bets on it lie in a table of their own.
PAIR = np.dtype(
    [
        ("upper", np.float64),  # W
        ("estimate", np.float64),
        ("reward", np.float64),  # sum of rewards; the reward itself if one visit reveals it
        ("stake", np.float64),  # max_y [ y - penalty log M(y) ], as last found ...
        ("guess", np.float64),  # ... and where
        ("drift", np.float64),  # sum of d of an unseen outcome
        ("predicted", np.float64),  # log of the probability that predictions gave to its outcomes
        ("evidence", np.float64),  # log M here and, on average, below
        *LINKS,
    ],
    align=True,
)

# An action of the root, and the bets on its returns.
ARM = np.dtype(
    [
        ("upper", np.float64),  # U
        ("estimate", np.float64),
        ("penalty", np.float64),  # lambda ...
        ("asked", np.float64),  # ... which follows the evidence until it is this much
        *ACCOUNT_FIELDS,
        ("rebuilt", np.int64),  # calls when `penalty` was last set ...
        ("stale", np.bool_),  # ... and whether not all W below have it yet
        ("pair", np.int64),
    ]
)

# By depth h = 0..H.
LEVEL = np.dtype(
    [
        ("span", np.float64),  # sigma_(H-h), the largest value
        ("prior", np.float64),  # the (learnt) value of an unknown state
        ("ended", np.float64),  # that of the end
        ("cash", np.float64),  # c_h
        ("weight", np.float64),  # of lambda: gamma^-h
        ("excess", np.float64),  # weight times C_h: by how much W may exceed the span, over lambda
        ("tolerance", np.float64),  # of the first maximum
        ("price", np.float64),  # of the set of transitions, before the node's own
    ]
)

# What was fixed before the search began, and, after that, how it stands.
SETTINGS = np.dtype(
    [
        *BETTING_FIELDS,
        ("least", np.float64),  # least lambda, lambda_0
        ("kappa", np.float64),  # the same over the resolution
        ("log_share", np.float64),  # log(1/delta_s)
        ("log_joint", np.float64),  # log(1 / (delta_J (1 - beta)))
        ("apart", np.float64),  # c: 1 if the sides have processes of their own
        ("most_value", np.float64),  # what no state's value exceeds, in the user's units
        ("go_on", np.float64),  # probability of going on, where roulette is played
        ("exploit_cost", np.float64),  # of an exploit episode, roughly in calls
        ("discount", np.float64),  # for predictions of outcomes (`outcomes.note_outcome`)
        ("strength", np.float64),
        ("fresh", np.float64),
        ("fresher", np.float64),
        ("least_count", np.int64),  # calls that an outcome has before it counts in the ball
        ("widest", np.int64),  # most outcomes seen of a pair
        ("cut", np.int64),  # an exploring episode ends after a pair with fewer visits
        ("most_actions", np.int64),  # of a state; if that is not known, what there is room for
        ("prior_draws", np.float64),  # what the prior of a reward is worth
        ("pool_due", np.int64),  # calls at the next update of the pool
        ("pool_full", np.bool_),  # whether it grows no more
        ("told", np.bool_),  # whether one visit reveals a pair's reward
        ("learns", np.bool_),  # whether transitions must be learnt
        ("same_actions", np.bool_),
        ("value_goal", np.bool_),
        ("guided", np.bool_),  # whether the user gave a policy
    ],
    align=True,
)

# Workspace: a distribution and values on it; scores of actions or steps, and pairs; terms of a sum.
SCRATCH = np.dtype(
    [
        ("p", np.float64),
        ("f", np.float64),
        ("score", np.float64),
        ("link", np.int64),
        ("term", np.float64),
    ]
)

EXPLORE, EXPLOIT, FORCED = 0, 1, 2

# What the next episode does.
DECISION = np.dtype(
    [
        ("best", np.int64),
        ("kind", np.int64),
        ("play", np.int64),
        ("target", np.int64),  # the step at which the calls of an exploring episode begin, or NONE
        ("foreseen", np.int64),  # the node that the step before it is thought to lead to, or NONE
        ("guided", np.bool_),  # whether an exploit episode follows the user's policy, which ...
        ("advised", np.int64),  # ... advises this for the next step, or nothing
        ("paid", np.float64),  # the return so far ...
        ("earned", np.float64),  # ... and, where roulette is played, what is bet on, A, with ...
        ("discount", np.float64),  # ... the weight of what is still to come, D
    ],
    align=True,
)


@kernel_arrays
class Search:
    """What Bracket's episodes work on."""

    bets: NDArray[np.float64]  # bets[pair, j]: S_j, on its weight
    opening: NDArray[np.float64]  # what S_j starts from
    stakes: NDArray[np.float64]  # stakes[h, j]: a_j
    pool: Pool
    settings: Any  # one record of SETTINGS
    levels: Any  # records of LEVEL
    root: Any  # records of ARM
    moments: Any  # moments[action, q], records of MOMENTS
    wealth: NDArray[np.float64]  # wealth[account, grid point, q]
    gaps: NDArray[np.float64]  # gaps[account, a]: how much better a may be than the account's action
    forced_wealth: NDArray[np.float64]  # forced_wealth[account, grid point, fraction]
    decision: Any  # one record of DECISION
    scratch: Any  # records of SCRATCH
