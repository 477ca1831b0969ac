"""What theory says of a problem: the paper's bounds, and the most and the least that planners need.

Functions here evaluate bounds on a known MDP. `bracket_calls` and `lower_bound` count calls; the bounds
of the MDP-GapE paper count *episodes* unless they say calls, and an episode makes H calls to the model.
The paper takes rewards to lie in [0, 1]; with rewards of another width, gaps and epsilon count in units
of that width. K is the largest number of actions of a state and B the largest number of successors of a
state and action. What is larger than any number of double precision is infinite.

Every function checks its arguments before it computes: ValueError for one out of range or a state that
the model does not have, TypeError for one of the wrong type.
"""

from pacplan.theory.calls import BracketCalls, bracket_calls
from pacplan.theory.limit import LowerBound, lower_bound
from pacplan.theory.paper import (
    Bound,
    Complexity,
    Estimate,
    corollary_1,
    crude_exponent,
    exponent,
    sparse_sampling_calls,
    table_2,
)

__all__ = [
    "Bound",
    "BracketCalls",
    "Complexity",
    "Estimate",
    "LowerBound",
    "bracket_calls",
    "corollary_1",
    "crude_exponent",
    "exponent",
    "lower_bound",
    "sparse_sampling_calls",
    "table_2",
]
