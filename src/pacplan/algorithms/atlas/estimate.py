"""The charted model as the calls so far suggest it, as arrays.

Functions of the states have a row for each step and a column for each state, the end first
(`chart.END`). Over an infinite horizon there is one step, which follows itself.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pacplan.algorithms.atlas.chart import END

Values = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Estimate:
    """What was seen of the pairs."""

    states: int  # how many
    state: Numbers  # of each pair; those of a state are neighbours
    calls: Numbers  # of each pair
    inside: Flags  # the states whose pairs have all been called
    first: Numbers  # where the links of each pair begin; they are sorted by pair
    to: Numbers  # the column of each link's successor
    weight: Values  # the part of the pair's calls that took it
    reward: Values  # mean reward on the way
    spread: Values  # variance of that reward

    def mean(self, x: Values) -> Values:
        """By pair: the mean of something that each link has."""
        return np.asarray(np.bincount(self.pair, self.weight * x, minlength=len(self.state)), float)

    @cached_property
    def pair(self) -> Numbers:
        """The pair of each link."""
        return np.repeat(np.arange(len(self.state)), np.diff(self.first))

    @cached_property
    def pairs(self) -> Numbers:
        """The pairs of the states inside."""
        return np.flatnonzero(self.inside[self.state])

    @cached_property
    def transitions(self) -> Any:
        """Estimated probabilities, [pair, state]; what is missing in a row leads to the end."""
        there = self.to != END
        shape = (len(self.state), self.states)
        entries = (self.weight[there], (self.pair[there], self.to[there] - 1))
        return sparse.csr_array(entries, shape=shape)

    def near(self, steps: int) -> Flags:
        """The states that at most so many steps lead to, as far as was seen."""
        near = np.arange(self.states) == 0
        for _ in range(steps):
            after = near | (self.transitions.T @ near[self.state].astype(np.float64) > 0.0)
            if np.array_equal(after, near):
                break
            near = after
        return np.asarray(near)

    def moments(self, function: Values, gamma: float, pairs: Numbers) -> tuple[Values, Values]:
        """Mean and variance of reward + gamma g(successor) after some pairs, g by column.

        A little of the variance of other pairs is added, for what was not seen yet.
        """
        x = self.reward + gamma * function[self.to]
        mean = self.mean(x)
        variance = self.mean(self.spread + (x - mean[self.pair]) ** 2)
        inside, n = self.pairs, self.calls
        typical = np.average(variance[inside], weights=n[inside])
        return mean[pairs], ((variance * n + _PRIOR * typical) / (n + _PRIOR))[pairs]


# Calls that count as if they had had the variance of a typical pair.
_PRIOR = 2.0


def estimate(pairs: Any, links: Any, states: int, lowest: float, width: float) -> Estimate:
    """The estimate from a chart's records, as far as they are used."""
    order = np.argsort(links["pair"], kind="stable")
    links = links[order]
    count = links["count"].astype(np.float64)
    mean = links["sum"] / count
    variance = np.maximum(links["square"] / count - mean * mean, 0.0)
    calls = pairs["calls"]
    called = np.bincount(pairs["state"][calls > 0], minlength=states)
    inside = (called > 0) & (called == np.bincount(pairs["state"], minlength=states))
    first, to = np.searchsorted(links["pair"], np.arange(len(pairs) + 1)), links["to"].copy()
    weight, reward, spread = count / calls[links["pair"]], lowest + width * mean, width**2 * variance
    state = pairs["state"].copy()
    return Estimate(states, state, calls.copy(), inside, first, to, weight, reward, spread)
