"""The constants of Canopy, in one place.

The proof that the bounds hold depends on none of them, except that the shares of delta sum to what they
must. The proof that the search ends depends on those marked "ends" (docs/canopy.md, "It ends").
"""

# Shares of delta. Above and below get a half each.
BELOW_SHARE = 0.5  # of delta, for the bounds from below
ORDINARY_SHARE = 0.9  # of either half, for ordinary trees and episodes; the rest is for forced ones

EXCESS = 1e-9  # by which rounding may lift a tree's value above its bound, over that bound

# What comes next (`tasks`).
PILOTS = 3  # trees of every action at first, which are only watched
PILOT_WIDTH = 2  # C of these, with D = 1 ...
PILOT_CALLS = 64.0  # ... and about this many calls each at most
FORCED_PART = 0.01  # of all calls, for forced trees and episodes (ends)
TIED = 0.1  # part of epsilon within which upper bounds are tied
LEAST_WIDTH = 1e-3  # part of epsilon that stands for widths below it
TIE = 1e-12  # bounds and estimates that differ by less are tied

# The shape of trees (`shape`).
ABOVE_PART = 0.8  # of the distance between two actions plus epsilon, for the bound from above
LEAST_EDGE = 0.05  # part of epsilon: a smaller edge over the bias counts for ever less
LARGEST_GAIN = 0.85  # of a maximum over its largest mean, in standard deviations
PATIENCE = 1.0  # nats added to log(2/delta) for bettors that still learn
RESHAPE_GROWTH = 1.3  # of an action's trees, before its shape is looked at again
GAIN = 0.98  # factor by which a change must lower the price
MOST_CHANGES = 64  # at a time
MOST_PART = 0.2  # of all calls so far that one tree may take
MOST_DRAWS = 1 << 20  # of a pair
CLIP = 2.5  # standard deviations around their mean to which learnt values are cut
ROULETTE = 2.0  # an action is expanded with probability this times the misfit over its distance
FIRST_NOISE = 0.05  # variance of one draw in a node, before any was seen
FIRST_CURVE = 0.1  # bias of the maximum of single draws, before any was seen
FIRST_VALUE = 0.6  # value of a state, relative to the largest, before any was seen
OPENED = 0.8  # part of a node's actions that is expanded, before any was seen
STEADY = 100.0  # observations after which statistics forget

# Learnt values (`learning`).
RESOLUTIONS = 5  # of cells, each half as wide as the one before
KNOWN_FROM = 2  # from this resolution on a cell says something about a state's actions
SHRINK = 1.0  # observations in one of the widest cells that what is known besides counts for
MOST_COUNT = 200.0  # observations after which a cell forgets
CELLS = 1 << 16  # in the table of learnt values, a power of two ...
WAYS = 4  # ... in each of which one of so many places is taken
MOST_COORDINATES = 6  # of a state
NOTES = 4096  # observations of a tree that are learnt from
SHARED = 1 << 12  # room at first for values that the nodes of a tree share, a power of two
