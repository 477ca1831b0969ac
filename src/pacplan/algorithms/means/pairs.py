"""Compiled pieces of the planners that estimate values by the mean of returns."""

from math import log, sqrt
from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined
from pacplan.engine.tree import LINKS, NONE, TreeArrays

# What the search knows of an action that was tried.
PAIR = np.dtype(
    [
        ("average", np.float64),  # of the returns counted, in the user's units
        ("spread", np.float64),  # 1 / sqrt(n)
        *LINKS,
    ],
    align=True,
)


@inlined
def best_mean(tree: TreeArrays, at: int, ties: Any) -> int:
    """The pair with the largest mean among those counted, ties at random; NONE if there is none."""
    best = NONE
    top = -np.inf
    tied = 0
    link = tree.nodes[at].first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.n > 0 and (best == NONE or pair.average > top):
            best = link
            top = pair.average
            tied = 1
        elif pair.n > 0 and pair.average == top:
            tied += 1
            if ties.random() * tied < 1.0:
                best = link
        link = pair.sibling
    return best


@inlined
def best_bound(tree: TreeArrays, at: int, scale: float, ties: Any) -> int:
    """UCB1: the pair with the largest mean + scale sqrt(log N / n), N arrivals at the node.

    Pairs without a return, made by an episode that was cut off, are untried: they come first.
    """
    node = tree.nodes[at]
    scale *= sqrt(log(max(node.count, 1)))
    best = NONE
    top = -np.inf
    tied = 0
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        bound = pair.average + scale * pair.spread if pair.n > 0 else np.inf
        if bound > top:
            best = link
            top = bound
            tied = 1
        elif bound == top:
            tied += 1
            if ties.random() * tied < 1.0:
                best = link
        link = pair.sibling
    return best


@inlined
def count_return(pair: Any, value: float) -> None:
    """Let a return enter the mean of a pair."""
    pair.n += 1
    pair.average += (value - pair.average) / pair.n
    pair.spread = 1.0 / sqrt(pair.n)
