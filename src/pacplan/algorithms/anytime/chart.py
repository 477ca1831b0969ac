"""The chart: every state met, what its actions led to, and two values that are kept solved.

A state has one node, wherever it was met; if the number of steps matters, one for each number. An
outcome of a pair keeps a node of its own, which holds its count, and its `same` names the node of its
state. Node 0 is the root's: it stands for whatever state is planned from, and has no actions itself.
"""

from typing import Any

import numpy as np

from pacplan.compiled.jit import called, inlined
from pacplan.engine.calls import halted
from pacplan.engine.merge_table import merge
from pacplan.engine.tree import BARE_FIELDS, LINKS, NONE, TreeArrays

NODE = np.dtype(
    [
        *BARE_FIELDS,
        ("same", np.int32),  # the node of this state
        ("depth", np.int32),  # steps since the root, where they matter; otherwise 0
        ("visits", np.int32),  # of its pairs
        ("value", np.float64),  # of acting as well as is known, in the user's units
        ("optimistic", np.float64),  # the same if what was hardly tried were as good as can be
        ("told_value", np.float64),  # as an outcome: what its pair counts it with
        ("told_optimistic", np.float64),
    ],
    align=True,
)
PAIR = np.dtype(
    [
        ("reward", np.float64),  # mean, in the user's units
        ("value", np.float64),  # mean of reward + gamma x what the outcomes are worth
        ("optimistic", np.float64),  # the same mean of optimistic values
        ("hopeful", np.float64),  # that, if calls not yet made may pay the most
        ("variance", np.float64),  # of what the calls have shown
        ("visits", np.int32),  # calls, and visits to an outcome that was known
        ("distinct", np.int32),  # outcomes seen
        *LINKS,
    ],
    align=True,
)

# A sweep stops to pay if it changes values by less than this part of the rewards' spread.
_STILL = 0.05


@inlined
def steps_to_go(search: Any, depth: int) -> float:
    """How many steps are left, discounted."""
    return float(search.to_go[min(depth, search.to_go.size - 1)])


@inlined
def best_case(search: Any, depth: int) -> float:
    """The most that a state can be worth."""
    problem = search.problem[0]
    most = problem.lowest + problem.width
    if most < 0.0 and problem.may_end:
        return float(most)  # The episode ends with the next step.
    return float(most * steps_to_go(search, depth))


@inlined
def place(search: Any, at: int, depth: int) -> None:
    """Give a new node its state's, with first values if it is that itself; an end stays by itself."""
    node = search.tree.nodes[at]
    node.same = at
    if node.actions > 0:
        node.depth = depth if search.by_step else 0
        node.same = merge(search.table, node.state, node.depth, at)
        if node.same == at:
            guess(search, at)
    _tell(search.tree, at)


@inlined
def guess(search: Any, at: int) -> None:
    """First values of a state: it may earn what an average step earns, or the most there can be."""
    node = search.tree.nodes[at]
    node.value = search.control[0].mean * steps_to_go(search, node.depth)
    node.optimistic = best_case(search, node.depth)


@inlined
def _tell(tree: TreeArrays, outcome: int) -> None:
    """Note what an outcome's state is worth now; an end is worth nothing."""
    node = tree.nodes[outcome]
    if node.actions > 0:
        state = tree.nodes[node.same]
        node.told_value = state.value
        node.told_optimistic = state.optimistic


@inlined
def count_outcome(search: Any, link: int, outcome: int, reward: float, most: float) -> None:
    """Let a call of a pair count; the reward is in the user's units, its state worth `most` at most."""
    pair, node, gamma = search.tree.pairs[link], search.tree.nodes[outcome], search.problem[0].gamma
    node.count += 1
    pair.n += 1
    pair.reward += (reward - pair.reward) / pair.n
    shown = reward + gamma * node.told_value
    before = shown - pair.value
    pair.value += before / pair.n
    pair.variance += (before * (shown - pair.value) - pair.variance) / pair.n
    pair.optimistic += (reward + gamma * node.told_optimistic - pair.optimistic) / pair.n
    _hope(pair, most)


@inlined
def hear(search: Any, link: int, outcome: int, most: float) -> None:
    """Let a pair learn what one of its outcomes is worth now; a state is worth `most` at the most."""
    pair, node = search.tree.pairs[link], search.tree.nodes[outcome]
    value, optimistic = node.told_value, node.told_optimistic
    _tell(search.tree, outcome)
    weight = search.problem[0].gamma * node.count / pair.n
    pair.value += weight * (node.told_value - value)
    pair.optimistic += weight * (node.told_optimistic - optimistic)
    _hope(pair, most)


@inlined
def _hope(pair: Any, most: float) -> None:
    """Let 1 / n calls more count, which have paid the most."""
    hoped = 1.0 / pair.n
    pair.hopeful = (pair.n * pair.optimistic + hoped * most) / (pair.n + hoped)


@inlined
def _renew_pair(search: Any, link: int, most: float) -> None:
    """Work out what a pair is worth from all its outcomes."""
    tree, gamma, pair = search.tree, search.problem[0].gamma, search.tree.pairs[link]
    value = optimistic = 0.0
    child = pair.child
    while child != NONE:
        _tell(tree, child)
        node = tree.nodes[child]
        value += node.count * node.told_value
        optimistic += node.count * node.told_optimistic
        child = node.sibling
    pair.value = pair.reward + gamma * value / pair.n
    pair.optimistic = pair.reward + gamma * optimistic / pair.n
    _hope(pair, most)


@inlined
def renew_state(search: Any, at: int, most: float) -> None:
    """Work out what a state is worth from its pairs.

    With few visits that is their mean, by visits: the best of a few noisy estimates is mostly luck.
    With more and more, it is the best of them.
    """
    tree, node = search.tree, search.tree.nodes[at]
    best = optimistic = -np.inf
    total, visits, n = 0.0, 0, 0
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        visits += pair.visits
        if pair.n > 0:
            best = max(best, pair.value)
            total += pair.n * pair.value
            n += pair.n
            optimistic = max(optimistic, pair.hopeful)
        link = pair.sibling
    node.visits = visits
    if n > 0:
        weight = n / (n + node.actions)
        node.value = weight * best + (1.0 - weight) * total / n
        node.optimistic = most if node.tried < node.actions else optimistic


@called
def sweep(search: Any) -> bool:
    """Renew all values once; returns whether that changed them much.

    States found last come first, and the next time last, so values run along paths both ways.
    """
    tree, control = search.tree, search.control[0]
    change, size = 0.0, tree.used[0]
    control.sweeps += 1
    for i in range(1, size):
        at = i if control.sweeps % 2 == 0 else size - i
        node = tree.nodes[at]
        if node.same != at or node.actions == 0:
            continue
        if halted(search):
            return False
        before = node.value
        if node.visits == 0:
            guess(search, at)
            continue
        most, link = best_case(search, node.depth), node.first
        while link != NONE:
            if tree.pairs[link].n > 0:
                _renew_pair(search, link, most)
            link = tree.pairs[link].sibling
        renew_state(search, at, most)
        change = max(change, abs(node.value - before))
    return bool(change > _STILL * (control.highest - control.lowest))
