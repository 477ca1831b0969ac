"""Claims: that one step from a pair lifts a function by so much at most, or lowers it.

A claim says that E[reward + gamma g(successor)] of a pair is at most theta (sign 1), or at least theta
(sign -1). Functions g have a value for the end and for each state, and one for states never seen.
"""

from dataclasses import dataclass

import numpy as np

from pacplan.algorithms.atlas.estimate import Estimate, Flags, Numbers, Values

# By how much a threshold is moved to the safe side, of the largest numbers there: rounding moves less.
_ROUNDING = 3e-9
# A claim that the estimate contradicts: what is missing is taken for so much of the largest number.
_LEAST = 1e-9
# Risks count as this part of the largest number at least, so that margins do not vanish without any.
_RISK = 1e-3
# Calls beyond what a bet needs on average, for what is lost if the worst happens.
_WORST = 1.1
# The largest stake, in parts of what would lose everything at once.
_BOLDEST = 0.9
# Stakes that are tried: parts of the one for small margins, and, where negative, of the boldest.
_PARTS = (1.0, 0.75, 0.5, 0.3, -1.0, -0.6, -0.35, -0.2, -0.1)


@dataclass(frozen=True)
class Functions:
    """The functions that claims are about."""

    values: Values  # [function, column], a column for the end and for each state
    outside: Values  # what states never seen count for
    largest: Values  # of each function over all states that there may be ...
    smallest: Values  # ... likewise

    def slack(self, rewards: tuple[float, float]) -> float:
        """More than rounding can add to a sum of some of these numbers and a reward."""
        largest = max(abs(rewards[0]), abs(rewards[1]), float(np.abs(self.outside).max()))
        return _ROUNDING * max(largest, float(np.abs(self.values).max()))


@dataclass(frozen=True)
class Claims:
    """Claims, sorted by pair."""

    pair: Numbers
    function: Numbers  # g, by its number
    theta: Values  # the threshold
    sign: Values  # 1, or -1
    worst: Values  # the most that reward + gamma g(successor) can be, in the direction of the sign

    @property
    def room(self) -> Values:
        """By how much the worst outcome lies beyond theta. Where it does not, the claim is certain."""
        return self.sign * (self.worst - self.theta)


def claims_of(
    parts: list[tuple[Numbers, Numbers, Values, float]],
    functions: Functions,
    rewards: tuple[float, float],
    gamma: float,
) -> Claims:
    """All claims but the certain ones, of parts that have a sign each: pairs, functions, thresholds."""
    pair, function, theta = (np.concatenate([part[i] for part in parts]) for i in range(3))
    sign = np.concatenate([np.full(len(part[0]), part[3]) for part in parts])
    high = rewards[1] + gamma * functions.largest[function]
    worst = np.where(sign > 0.0, high, rewards[0] + gamma * functions.smallest[function])
    slack = functions.slack(rewards)
    theta = theta - sign * slack
    order = np.argsort(pair, kind="stable")
    order = order[(sign * (worst - theta))[order] > 0.0]
    pair, function, theta, sign = pair[order], function[order], theta[order], sign[order]
    # The worst is taken for worse than theta by more than rounding, so that stakes are finite.
    worst = theta + sign * np.maximum(sign * (worst[order] - theta), slack)
    return Claims(pair, function, theta, sign, worst)


def needs(
    claims: Claims, functions: Functions, found: Estimate, gamma: float, evidence: float
) -> tuple[Values, Values]:
    """By pair: the calls that bets need on average, and what variance and margin say of learning.

    `evidence` is the logarithm of the wealth at which a claim is accepted.
    """
    mean, variance = np.empty_like(claims.theta), np.empty_like(claims.theta)
    for number, function in enumerate(functions.values):
        chosen = claims.function == number
        mean[chosen], variance[chosen] = found.moments(function, gamma, claims.pair[chosen])
    least = _LEAST * (1.0 + np.abs(mean))
    margin = np.maximum(claims.sign * (claims.theta - mean), least)
    risk = np.maximum(claims.sign * (claims.worst - mean), _RISK * np.abs(functions.values).max())
    learn, pairs = variance / margin**2, len(found.state)
    need = evidence * (2.0 * learn + _WORST * risk / margin)
    return by_pair(need, claims, pairs), by_pair(learn, claims, pairs)


def stakes(
    claims: Claims,
    functions: Values,
    open_: Flags,
    found: Estimate,
    rewards: tuple[float, float],
    gamma: float,
) -> tuple[Values, Values]:
    """The stakes of open claims that seem to grow fastest (Kelly 1956), and how fast, for each call.

    Of the laws of a link's rewards that have the mean and the variance seen, the one at which the bet
    grows least is taken: it has two values, one of them the worst that there can be (Karlin and Studden
    1966: the logarithm of a gain has a positive third derivative).

    `functions` has a row for each column and a column for each function.
    """
    number = np.flatnonzero(open_)
    pair = claims.pair[number]
    counts = found.first[pair + 1] - found.first[pair]
    owner = np.repeat(np.arange(len(number)), counts)
    link = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    link += found.first[pair][owner]
    sign, theta, weight = claims.sign[number], claims.theta[number], found.weight[link]
    x = found.reward[link] + gamma * functions[found.to[link], claims.function[number][owner]]
    gain = sign[owner] * (theta[owner] - x)
    # Two values, one a below the mean and one b above it, have the variance a b.
    worst = np.where(
        sign[owner] > 0.0, rewards[1] - found.reward[link], found.reward[link] - rewards[0]
    )
    worst = np.maximum(worst, np.sqrt(np.finfo(np.float64).tiny))
    other = found.spread[link] / worst
    often = worst / (worst + other)

    def mean(values: Values) -> Values:
        return np.asarray(np.bincount(owner, weight * values, minlength=len(number)), float)

    margin, square = mean(gain), mean(gain * gain + found.spread[link])
    most = _BOLDEST / claims.room[number]
    likely = np.minimum(np.maximum(margin, 0.0) / np.maximum(square, 1e-300), most)
    best, growth = np.zeros(len(number)), np.zeros(len(number))
    for part in _PARTS:
        tried = part * likely if part > 0.0 else -part * most
        stake = tried[owner]
        lost, won = np.log1p(stake * (gain - worst)), np.log1p(stake * (gain + other))
        rate = mean(lost + often * (won - lost))
        better = rate > growth
        best[better], growth[better] = tried[better], rate[better]
    every, rates = np.zeros(len(claims.pair)), np.zeros(len(claims.pair))
    every[number], rates[number] = best, growth
    return every * claims.sign, rates


def by_pair(values: Values, claims: Claims, pairs: int) -> Values:
    """The largest of some values of each pair's claims; 0 where it has none."""
    largest = np.zeros(pairs)
    np.maximum.at(largest, claims.pair, values)
    return largest
