"""Compiled pieces of the planners that estimate values by the mean of returns: UCT and BRUE."""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan._jit import inlined
from pacplan.search.kernel import CHUNK_DONE, call_model, count_actions, out_of_steps
from pacplan.search.tree import LINKS, NONE, TreeArrays, add_node

# What the search knows of an action that was tried.
PAIR = np.dtype(
    [
        ("average", np.float64),  # of the returns counted, in the user's units
        ("spread", np.float64),  # 1 / sqrt(n)
        *LINKS,
    ],
    align=True,
)

RULES = np.dtype(
    [
        ("gamma", np.float64),
        ("exploration", np.float64),  # C times the width of the rewards
        ("horizon", np.int64),
        ("rollout", np.bool_),  # play at random below the tree, which grows by one node an episode
    ],
    align=True,
)


class Search(NamedTuple):
    """Everything a chunk of episodes works on, the model and the random streams apart."""

    tree: TreeArrays
    rules: Any  # one record of RULES
    promises: Any  # one record of PROMISES
    sigma: NDArray[np.float64]  # 1 + gamma + ... + gamma^(k-1)
    path: Any  # records of STEP
    calls: NDArray[np.int64]  # of episodes that began with each action of the root
    report: Any  # one record of REPORT


@inlined
def plant(search: Search, state: int) -> None:
    """Make the root, unless it is there."""
    if search.tree.used[0] == 0:
        add_node(search.tree, state, search.calls.size, 0.0, 0.0)


@inlined
def best_mean(tree: TreeArrays, at: int, ties: Any) -> int:
    """The pair with the largest mean among those counted, ties at random; NONE if there is none."""
    best = NONE
    tied = 0
    link = tree.nodes[at].first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.n > 0:
            if best == NONE or pair.average > tree.pairs[best].average:
                best = link
                tied = 1
            elif pair.average == tree.pairs[best].average:
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


@inlined
def play_on(
    search: Search, model: Any, state: int, h: int, most: int, rng: Any, ties: Any
) -> tuple[float, int, int]:
    """Play at random from a state reached after h steps, storing nothing.

    Returns:
        The discounted return from there, the calls it took, and CHUNK_DONE or why it was cut off.
    """
    promise, rules = search.promises[0], search.rules[0]
    total = 0.0
    discount = 1.0
    calls = 0
    for step in range(h, min(rules.horizon, h + most)):
        actions, status = count_actions(search.promises, search.report, model, state, step)
        if status != CHUNK_DONE:
            return total, calls, status
        action = int(ties.random() * actions)
        state, reward, ended, status = call_model(
            search.promises, search.report, model, state, action, step, rng
        )
        if status != CHUNK_DONE:
            return total, calls, status
        calls += 1
        total += discount * (promise.lowest + promise.width * reward)
        discount *= rules.gamma
        if ended:
            return total, calls, CHUNK_DONE
    return total, calls, out_of_steps(rules.horizon - h, most)
