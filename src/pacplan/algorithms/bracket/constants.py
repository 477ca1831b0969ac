"""The constants of Bracket, in one place.

The proof that the bounds hold depends on none of them, except that the shares of delta sum to what they
must. The proof that the search ends depends on those marked "ends" (docs/bracket.md, "It ends"); those
that depend on each other are computed from each other. All were chosen on the paper's MDPs and on the
tuning families in benchmarks/families.py, which also measures others.
"""

from pacplan.algorithms.betting.setup import FORCED_GRID, FORCED_MARGIN

# Shares of delta. Above and below get a half each ...
BELOW = 0.5  # of delta, for the bounds from below
EXPLOIT_SHARE = 0.9  # of that, for exploit episodes; the rest is for forced ones
PRODUCT_SHARE = 0.9  # of delta above, for the product of bets; the rest is for the sets of transitions
# ... unless one process of bets serves both (`joint`).
JOINT_SHARE = 0.95  # of delta, for that process; the rest is for the sets of transitions
JOINT_BELOW = 0.1  # of the process, for the bounds from below alone
JOINT_ABOVE = 0.2  # of the remainder, for the bounds from above alone

# What a search may leave open, in parts of epsilon. Their sum must be below 1 (ends).
PENALTY = 0.2  # kappa_0 = this / (log(1/delta_s) + C_0)
SETTLED = 1.1  # lambda ends at most this factor above its least
STAKES_OPEN = 0.25  # what bets with a largest stake cannot find
SOLVER_OPEN = 0.05  # the first maximum of W, over all steps of a path ...
SOLVER_LEAST = 1e-3  # ... and never more than this for one
_LEFT_OPEN = SETTLED * PENALTY + STAKES_OPEN + SOLVER_OPEN
assert _LEFT_OPEN + FORCED_GRID + 2.0 * FORCED_MARGIN < 1.0

# The cash of a pair, which is never staked: 1 - RISK max(RISK_DECAY^h, LEAST_RISK).
RISK, RISK_DECAY = 0.8, 0.8
LEAST_RISK = 1e-6  # less would be lost in rounding

# lambda follows the evidence (`schedule.adapt`).
LEAST_ASKED = 1.0  # evidence that is asked for from above, in nats, however much was won below
REBUILD_GROWTH = 1.15  # of an action's calls, before its lambda is changed again (ends)
NEAR = 1.25  # factor within which lambda is left alone, unless it should be the least one
MOST_CHANGE = 2.0  # factor by which it changes at once
LARGEST = 2.0  # the largest lambda at first, over kappa_0 sigma_H (ends) ...
SETTLING_CALLS = 25.0  # ... which falls on this scale, as one over a square root (ends)

# Which episode comes next (`schedule.decide`).
CUT = 10  # an exploring episode goes no further than a pair with fewer visits than this ...
ANYTIME_CUT = 3  # ... or this, if there is no gap to stop at
WORTH_CALLING = 0.2  # its calls begin where one is worth this part of the best on its way
EXPLOIT_COST = 1.4  # of an exploit episode, relative to the calls that it has on average ...
JOINT_EXPLOIT_COST = 1.1  # ... or this, if one process of bets serves both sides
EXPLORE_GAIN = 0.35  # part of the width above an estimate that exploring can take off
EXPLORE_START = 6.0  # calls credited to every action at the start
TIED = 0.1  # part of epsilon within which upper bounds are tied
LEAST_WIDTH = 1e-3  # part of epsilon that stands for widths below it
FORCED_EVERY = 100  # episodes, of which the last is forced (ends)
TIE = 1e-12  # bounds and estimates that differ by less are tied

# Which exploit episodes go on (`schedule.concluded`).
ROULETTE_DEPTH = 3  # the first depth before which roulette is played
ROULETTE_POWER = 2.0 / 3.0  # of gamma: the least probability of going on

# Bets on returns (`pacplan.algorithms.betting.returns`).
STEADY_HORIZON = 2  # steps up to which returns hardly improve as the search learns

# Estimates, and the model of what was seen by state, which steers them (`pool`).
PRIOR = 0.6  # value of what was never seen, relative to the largest, at first ...
PRIOR_LEAST, PRIOR_SLOPE = 0.45, 0.7  # ... and then by the mean reward seen ...
PRIOR_REWARDS, PRIOR_COUNT = 4.0, 20.0  # ... which begins as the ratio of these
NOISE, NOISE_DRAWS = 0.1, 4.0  # variance of a pair's rewards, at first, and the draws that it is worth
LEAST_SPREAD = 0.01  # variance between the rewards of pairs, at least
LEAST_WEIGHT = 0.1  # draws that the prior of a reward is worth, at least; at most one
POOL_WEIGHT = 16.0  # visits of a pair that the pool's estimate is worth
POOL_GROWTH, POOL_CALLS = 1.1, 20  # of the calls, between two updates of the pool ...
SPARSE_GROWTH = 1.5  # ... if most states were seen only a few times
MOST_POOLED = 8_000_000  # pairs, outcomes and values that the pool has room for
EXPECTED_ACTIONS = 256  # of a state, if the model does not say how many there can be
GUESS_WEIGHT = 1.0  # calls in a state that a guess of its value is worth
ADVICE = 0.5  # by how much the best estimate may exceed that of the advised action, over sigma, if new

# Discount and strength of predictions of outcomes, if B is not known (Pitman and Yor's).
DISCOUNT, STRENGTH = 0.5, 0.1
