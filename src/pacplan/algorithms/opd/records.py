"""What an OPD search works on."""

from dataclasses import dataclass

import numpy as np

from pacplan.engine.tree import LINKS, NODE_FIELDS
from pacplan.models.knowledge import Bounds


@dataclass(frozen=True)
class Task:
    """What is searched, and how far.

    Attributes:
        gamma: discount.
        epsilon: the gap to stop at, or half the width of the value's interval; None: there is none.
        horizon: steps after which nothing counts; None: no end.
        merge: what a node stands for: "tree", "depth" or "stationary".
        goal: "action" or "value".
        value_bounds: what the user knows of the values of states.
        value_range: what is earned from any state on, whatever is done.
        deterministic: whether it was declared that every pair has one successor.
        reads: whether outcomes are read from the model's table, with their probabilities, instead of
            called for: then they may be random.
    """

    gamma: float
    epsilon: float | None
    horizon: int | None
    merge: str
    goal: str
    value_bounds: Bounds | None
    value_range: tuple[float, float]
    deterministic: bool
    reads: bool = False


NODE = np.dtype(
    [
        *NODE_FIELDS,
        ("p", np.float64),  # its probability, given the pair that leads here
        ("depth", np.int32),
        ("reach", np.int32),  # depth of the leaf that the favourites below lead to
        ("way", np.int32),  # the pair that leads here
        ("same", np.int32),  # the node that holds the state's actions: itself, or an earlier one
        ("twin", np.int32),  # another node whose `same` is this one's
        ("next_due", np.int32),  # the next node of its depth whose bounds are due to be renewed
        ("due", np.bool_),
    ],
    align=True,
)

PAIR = np.dtype(
    [
        ("reward", np.float64),  # in the user's units; its mean, if it was read
        ("upper", np.float64),
        ("lower", np.float64),
        ("successor", np.int64),  # and whether the episode ended: of what was called for
        ("at", np.int32),  # its node
        ("ended", np.bool_),
        *LINKS,
    ],
    align=True,
)

# The settings of a search. One record.
RULES = np.dtype(
    [
        ("epsilon", np.float64),  # negative: there is none
        ("tie", np.float64),  # values that differ by no more are equal but for rounding
        ("slack", np.float64),  # by how much bounds may contradict each other, for rounding
        ("floor", np.float64),  # the least that is earned from any state on, whatever is done
        ("horizon", np.int64),  # 0: no end
        ("value_goal", np.bool_),
        ("merged", np.bool_),  # whether equal states at equal depths are one node
        ("remembers", np.bool_),  # whether what is known of a state serves at all depths
        ("reads", np.bool_),  # whether outcomes are read from the model's table
        ("per_step", np.bool_),  # whether what follows a state depends on its depth
    ],
    align=True,
)

# What a search counts. One record.
COUNTS = np.dtype([("deepest", np.int64), ("checks", np.int64)])
