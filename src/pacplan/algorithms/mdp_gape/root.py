"""The decision at the root: UGapE's best action, its challenger, and when to stop (section 3)."""

from typing import Any

from pacplan.compiled.jit import inlined
from pacplan.engine.root_rules import argmax_at_random, best_and_challenger, gap_of, largest, wider
from pacplan.engine.tree import NONE


@inlined
def decide(search: Any, rng: Any) -> None:
    """UGapE at the root: play the wider of b and its challenger c. For the value goal, argmax U."""
    root, decision = search.root, search.decision[0]
    if decision.stands:
        return
    upper, lower = root.upper, root.lower
    best, challenger = best_and_challenger(upper, lower, search.tie, rng)
    if search.value_goal:
        play = argmax_at_random(upper, NONE, search.tie, rng)
    else:
        play = wider(upper, lower, best, challenger, search.tie, rng)
    decision.stands = 1
    decision.best = best
    decision.play = play


@inlined
def satisfied(search: Any) -> bool:
    """The stopping rule: max_{a != b} U(a) - L(b) <= epsilon, or max U - max L <= 2 epsilon."""
    root = search.root
    if search.value_goal:
        return bool(largest(root.upper) - largest(root.lower) <= 2.0 * search.epsilon)
    return bool(gap_of(root.upper, root.lower, search.decision[0].best) <= search.epsilon)


@inlined
def renew_root(search: Any) -> None:
    """Copy the bounds of the root's pairs."""
    tree = search.tree
    link = tree.nodes[0].first
    while link != NONE:
        pair = tree.pairs[link]
        arm = search.root[pair.action]
        arm.pair = link
        arm.upper = pair.upper
        arm.lower = pair.lower
        link = pair.sibling
