"""The records of an MDP-GapE search, and the named tuple that its kernels work on."""

import numpy as np

from pacplan.engine.calls import STEP_FIELDS
from pacplan.engine.tree import LINKS

# Arrays of records instead of many arrays, since a kernel unpacks each array of its arguments on
# every call. A field of an array of records is an array.

# What stays fixed during a search.
RULES = np.dtype(
    [
        ("epsilon", np.float64),
        ("tie", np.float64),  # bounds that differ by less are tied
        ("slack", np.float64),  # covers the rounding of a sum of bounds
        ("due", np.int64),  # calls at the next sweep, if nodes are merged ...
        ("swept", np.int64),  # ... and episodes at the last one
        ("value_goal", np.bool_),
        ("fixed_rewards", np.bool_),  # rewards are deterministic: the first reveals the mean
        ("known_rewards", np.bool_),
        ("known_transitions", np.bool_),
        ("per_path", np.bool_),  # see Thresholds.per_path
        ("bounded", np.bool_),  # the user knows bounds on values
        ("keep_last", np.bool_),  # outcomes of the last step enter the tree, for the next search
    ],
    align=True,
)

STEP = np.dtype([*STEP_FIELDS, ("price", np.float64)])  # what confidence sets pay for the path so far

# What the search knows of an action that was tried.
PAIR = np.dtype(
    [
        # Sum of rewards scaled to [0, 1]; the mean itself if one visit or the model reveals it.
        ("reward", np.float64),
        ("upper", np.float64),
        ("lower", np.float64),
        *LINKS,
    ],
    align=True,
)

# The root's actions, side by side.
ROOT = np.dtype([("upper", np.float64), ("lower", np.float64), ("pair", np.int64)])

# What will be played next. It is decided once after every episode, so the draws that break ties do
# not depend on how episodes are divided into chunks.
DECISION = np.dtype(
    [
        ("stands", np.int64),
        ("best", np.int64),
        ("challenger", np.int64),
        ("play", np.int64),
    ]
)

# Workspace for a KL ball of more than two outcomes.
BALL = np.dtype(
    [("p", np.float64), ("upper", np.float64), ("lower", np.float64), ("scratch", np.float64)]
)
