"""The records of a Canopy search, and the named tuple that its kernels work on.

Everything is in units in which a step pays between 0 and 1 (docs/bracket.md, "Units").

A tree is grown depth first, on one frame per depth. What a frame needs for each of its actions and for
each successor that may be continued lies on two stacks, `action_stats` and `draws`, above what the
frame before it needs. So a tree of any size takes room for one of its paths only. Three decisions:

* Learnt values are frozen while a tree grows, because its law must be known before its first call. So
  observations are noted, and learnt when the tree is done. (`levels` also holds the tree's own C, D, R
  and the range of v, set once before it begins.)
* Equal states at one depth of a tree share one value J. `shared` forgets none of them while the tree
  grows: whether a state is forgotten could depend on its J, and what is drawn anew would be biased.
* All that is under way lies in `task`, `frames` and the stacks, so a search can be left at any call.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.returns import ACCOUNT_FIELDS
from pacplan.algorithms.betting.setup import BETTING_FIELDS
from pacplan.engine.search import kernel_arrays

# An action of the root: the accounts of its trees and of its episodes.
ARM = np.dtype(
    [
        ("upper", np.float64),  # U
        ("estimate", np.float64),
        *ACCOUNT_FIELDS,
        ("ceiling", np.int64),  # this grid point and those above are proven by trees ...
        ("forced_ceiling", np.int64),  # ... and, on a coarser grid, by forced ones
        ("trees", np.int64),
        ("forced_trees", np.int64),
        ("recent", np.int64),  # trees since the shape was changed
        ("due", np.int64),  # trees at which the shape is looked at again
        ("centre", np.float64),  # of the values of its recent trees
        ("bias", np.float64),  # expected of trees of its shape
        ("tree_calls", np.int64),
        ("episode_calls", np.int64),
        ("leaf", np.int64),  # d
    ],
    align=True,
)

# By depth h = 0..H.
LEVEL = np.dtype(
    [
        ("span", np.float64),  # sigma_(H-h), the largest value
        ("cap", np.float64),  # the same, or less if the user knows: what a leaf can be worth
        ("ended", np.float64),  # e_h, the value of having ended
        # Of the tree under way:
        ("width", np.int64),  # C_h
        ("kept", np.int64),  # D_h
        ("most", np.float64),  # R_h
        ("low", np.float64),  # l_h
        ("high", np.float64),  # u_h
        ("jitter", np.float64),  # variance expected of Y
        ("spread", np.float64),  # standard deviation expected of J - v
        # What steers, learnt:
        ("noise", np.float64),  # variance of r + gamma v over the draws of a pair
        ("noises", np.float64),
        ("curve", np.float64),  # C times the bias of the largest mean of C draws
        ("misfit", np.float64),  # mean square of J - v, less what noise explains
        ("misfits", np.float64),
        ("opened", np.float64),  # actions expanded in a node
        ("actions", np.float64),  # of a node
        ("nodes", np.float64),
        ("value", np.float64),  # mean of J ...
        ("scatter", np.float64),  # ... and its variance
        ("earned", np.float64),  # mean of what exploit episodes earned from here on
        ("earnings", np.float64),
    ],
    align=True,
)

# What was fixed before the search began, and accounts opened since.
SETTINGS = np.dtype(
    [
        *BETTING_FIELDS,
        ("delta_tree", np.float64),  # shares of delta of the bets on ordinary trees ...
        ("delta_forced_tree", np.float64),  # ... and on forced ones
        ("may_end", np.bool_),
    ],
    align=True,
)

# What is done at a time: an ordinary or forced tree, or an exploit or forced episode.
TREE, EXPLOIT, FORCED_TREE, FORCED_EPISODE = range(4)
# How far it is: not yet chosen; growing a tree; choosing, looking one call ahead, playing a step.
DECIDE, GROW, CHOOSE, LOOK, PLAY = range(5)

TASK = np.dtype(
    [
        ("policy", np.bool_),  # whether the user gave one
        ("best", np.int64),  # the action to recommend
        ("root", np.int64),  # the state planned from
        ("kind", np.int64),
        ("phase", np.int64),
        ("action", np.int64),  # of the root
        ("number", np.int64),  # of the tree, which tells its shared values from others ...
        ("shared", np.int64),  # ... and how many there are
        ("forced_spent", np.int64),  # calls of forced units
        ("largest", np.int64),  # number of a state of which something was learnt
        ("leaf", np.int64),  # d, depth of its leaves
        ("start", np.int64),  # depth of its root
        ("forces", np.bool_),  # whether every action is expanded
        ("at", np.int64),  # depth of the frame being worked on
        ("began", np.int64),  # calls when the unit began
        ("most_actions", np.int64),  # of any state met
        ("forced", np.int64),  # forced units so far
        ("notes", np.int64),  # observations to learn from
        ("stats", np.int64),  # room that is needed
        ("draws", np.int64),
        # The episode under way:
        ("guided", np.bool_),  # whether it follows that policy
        ("state", np.int64),
        ("actions", np.int64),
        ("h", np.int64),
        ("play", np.int64),  # the action of this step
        ("look", np.int64),  # the next action to look ahead from
        ("earned", np.float64),
    ],
    align=True,
)

# A node of the tree, or its root with a single action.
DRAW, EXPAND = range(2)
FRAME = np.dtype(
    [
        ("state", np.int64),
        ("actions", np.int64),
        ("only", np.int64),  # the action of a root; NONE: all
        ("phase", np.int64),
        ("rounds", np.int64),  # draws that all actions have
        ("turn", np.int64),  # whose draw is next; then whose successors are continued
        ("top", np.int64),  # the action with the largest m
        ("best", np.float64),  # the largest Y so far ...
        ("chosen", np.int64),  # ... and its action
        ("child", np.int64),  # successor being continued
        ("surplus", np.float64),  # of J - v over those before
        ("q", np.float64),
        ("expanded", np.int64),  # actions
        ("stats", np.int64),  # where its actions and its successors lie
        ("draws", np.int64),
        ("total", np.float64),  # of the round under way ...
        ("squares", np.float64),  # ... and squares of these over the rounds
    ],
    align=True,
)

ACTION_STATS = np.dtype(
    [
        ("m", np.float64),  # sum, then mean, of r + gamma v
        ("half", np.float64),  # sum over the first half of the draws
        ("squares", np.float64),
        ("guess", np.float64),  # sum of r + gamma times the learnt value
        ("kept", np.float64),  # sum of v over the successors that may be continued
    ]
)

DRAWN = np.dtype([("state", np.int64), ("v", np.float64), ("alive", np.bool_)], align=True)
SLOT = np.dtype([("state", np.int64), ("tree", np.int64), ("h", np.int64), ("value", np.float64)])
CELL = np.dtype([("key", np.int64), ("count", np.float64), ("centre", np.float64)])
NOTE = np.dtype([("h", np.int64), ("state", np.int64), ("action", np.int64), ("value", np.float64)])


@kernel_arrays
class Search:
    """What Canopy's tasks work on. The tree is the root and its actions."""

    settings: Any  # one record of SETTINGS
    task: Any  # one record of TASK
    levels: Any  # records of LEVEL
    root: Any  # records of ARM
    shapes: NDArray[np.int64]  # shapes[action, 0: C or 1: D, h] of its trees; and three to try
    moments: Any  # moments[action, q], of returns: records of MOMENTS ...
    tree_moments: Any  # ... and of trees
    wealth: NDArray[np.float64]  # wealth[account, grid point, q]
    forced_wealth: NDArray[np.float64]  # forced_wealth[account, grid point, fraction]
    tree_wealth: NDArray[np.float64]  # tree_wealth[action, grid point, q]
    forced_tree_wealth: NDArray[np.float64]  # forced_tree_wealth[action, grid point, fraction]
    frames: Any  # records of FRAME, by depth
    looks: NDArray[np.float64]  # what looks ahead found, by action
    paid: NDArray[np.float64]  # what the episode under way had earned after each step
    action_stats: Any  # stack of ACTION_STATS
    draws: Any  # stack of DRAWN
    shared: Any  # records of SLOT
    cells: Any  # records of CELL
    notes: Any  # records of NOTE
    keys: NDArray[np.int64]  # workspace: cells of a state, by resolution
    point: NDArray[np.float64]  # workspace: its coordinates
    origin: NDArray[np.float64]  # where cells begin, by coordinate ...
    extent: NDArray[np.float64]  # ... and the width that is divided; 0: not known yet
    seed: NDArray[np.uint64]  # of the draws of all actions in one round
    after: NDArray[np.uint64]  # where the plan's stream goes on after such a draw
