"""Bracket from above: W of pairs, f of nodes, U of the root's actions, and gaps between two of them.

docs/bracket.md, "Above" and "Both sides at once": evidence above and returns below are bets that may be
multiplied, so what one side has won need not be won by the other. (If the sides have processes of their
own, c is 1, and a gap says what the bounds say.)
"""

from math import log
from typing import Any

import numpy as np

from pacplan.algorithms.betting.bets import total
from pacplan.algorithms.betting.returns import FIRST_BET
from pacplan.algorithms.bracket.constants import LEAST_ASKED
from pacplan.bounds.product import penalised_max
from pacplan.bounds.simplex import ball_max
from pacplan.compiled.jit import called, inlined
from pacplan.engine.tree import NONE


@inlined
def best_outcome(search: Any, link: int, h: int, most: float) -> tuple[float, int]:
    """The largest f, cut to `most`, of the outcomes of a pair, seen or not; and how many were seen."""
    tree = search.tree
    top, seen = -np.inf, 0
    outcome = tree.pairs[link].child
    while outcome != NONE:
        node = tree.nodes[outcome]
        top = max(top, min(node.upper, most))
        seen += 1
        outcome = node.sibling
    if seen < search.problem[0].successors:
        top = max(top, search.levels[h + 1].span)
    return top, seen


@inlined
def _second_maximum(search: Any, at: int, link: int, h: int, top: float, seen: int) -> float:
    """The largest p.(mean d - d now) over the ball, never too small."""
    tree, settings, ball = search.tree, search.settings[0], search.scratch
    pair = tree.pairs[link]
    n = pair.n
    unseen = -np.inf
    if seen < search.problem[0].successors:
        unseen = pair.drift / n - settings.gamma * (top - search.levels[h + 1].span)
    counted, k, entropy = 0, 0, 0.0
    outcome = pair.child
    while outcome != NONE:
        node = tree.nodes[outcome]
        f = node.drift / n - settings.gamma * (top - node.upper)
        count = node.count - settings.least_count
        if count > 0:
            ball[k].p = count
            ball[k].f = f
            counted += count
            entropy += count * log(count)
            k += 1
        else:
            # To the ball it is like an outcome never seen.
            unseen = max(unseen, f)
        outcome = node.sibling
    if counted == 0:
        return float(unseen)
    for i in range(k):
        ball[i].p /= counted
    entropy -= counted * log(counted)
    price = search.levels[h].price + tree.nodes[at].price
    radius = max(price + entropy - pair.predicted, 0.0) / counted
    return ball_max(ball.p, ball.f, k, unseen, radius)


@called
def refresh_pair(search: Any, at: int, link: int, h: int, penalty: float, renewed: bool) -> None:
    """W(e) = gamma max f + max_y [ y - lambda weight_h log M(y) ] + max_p p.(mean d - d now).

    Cut to [0, cap + lambda weight_h C_h]. `renewed`: nothing was bet since the first maximum was last
    found, and lambda is the same.
    """
    tree, settings, level = search.tree, search.settings[0], search.levels[h]
    node, pair = tree.nodes[at], tree.pairs[link]
    next_matters = h + 1 < settings.horizon
    random_next = next_matters and settings.learns
    value = pair.reward if settings.told else 0.0
    evidence = 0.0
    if random_next or not settings.told:
        scale = penalty * level.weight
        if not renewed:
            bets, stakes, work = search.bets[link], search.stakes[h], search.scratch.term
            pair.stake, pair.guess = penalised_max(
                bets, stakes, pair.n, level.cash, scale, pair.guess, level.tolerance, work
            )
        evidence = (pair.guess - pair.stake) / scale
        # If the reward is told, the bets are on 1 - d.
        value += pair.stake - (1.0 if settings.told else 0.0)
    if next_matters:
        top, seen = best_outcome(search, link, h, np.inf)
        value += settings.gamma * top
        if random_next:
            value += _second_maximum(search, at, link, h, top, seen)
        outcome = pair.child
        while outcome != NONE:
            # The average evidence below.
            after = tree.nodes[outcome]
            evidence += after.count / pair.n * after.evidence
            outcome = after.sibling
    # No evidence can carry W further: log M >= log cash at every depth below.
    most = node.cap + penalty * level.excess
    pair.evidence = evidence if value <= most else 0.0
    pair.upper = max(0.0, min(value, most))


@inlined
def refresh_node(search: Any, at: int) -> None:
    """f: the largest W of a node, including that of an action never tried."""
    tree, node = search.tree, search.tree.nodes[at]
    upper = node.cap if node.tried < node.actions else -np.inf
    evidence = 0.0
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.upper > upper:
            upper = pair.upper
            evidence = pair.evidence
        link = pair.sibling
    node.upper, node.evidence = upper, evidence


@inlined
def renew_gap(search: Any, rival: int, action: int) -> None:
    """How much better a `rival` may be than an action that bets, at most, after either has changed.

    W(a) + lambda log(1/(delta_J (1 - beta))) - min_i [ m_(i-1) + lambda log(c + (1 - c) x_i) ], with
    x_i = o + D_a + X_b(m_i), over the grid points m_i that are not proven; and never more than before.
    W falls with lambda as fast as evidence against it is large, so lambda is right if that is what
    stands beside it here.
    """
    settings, arm, other = search.settings[0], search.root[action], search.root[rival]
    if rival == action or other.pair == NONE or arm.exploits <= FIRST_BET:
        return
    wealth, penalty = search.wealth[arm.account], other.penalty
    # What is not staked in a world in which the rival is the best action.
    idle = settings.reserve + other.deposit
    spare = settings.apart + (1.0 - settings.apart) * idle
    least = np.inf
    won = 0.0
    for i in range(arm.proven + 1, wealth.shape[0]):
        below = arm.floor + (i - 1) * settings.step
        if below + penalty * log(spare) >= least:
            break
        here = log(spare + (1.0 - settings.apart) * total(wealth[i]))
        if below + penalty * here < least:
            least = below + penalty * here
            won = here
    if action == search.decision[0].best:
        other.asked = max(settings.log_joint - won, LEAST_ASKED)
    gap = search.tree.pairs[other.pair].upper + penalty * settings.log_joint - least
    search.gaps[arm.account, rival] = min(search.gaps[arm.account, rival], gap)


@inlined
def refresh_arm(search: Any, action: int) -> None:
    """U(a) = min over time of lambda log(1/delta_s) + W(a), and gaps; all W below are up to date."""
    arm = search.root[action]
    if arm.pair != NONE:
        bound = arm.penalty * search.settings[0].log_share + search.tree.pairs[arm.pair].upper
        arm.upper = min(arm.upper, bound)
    for b in range(search.root.size):
        renew_gap(search, action, b)


@inlined
def pair_gap(search: Any, rival: int, action: int) -> float:
    """How much better a rival may be than an action, at most, by all that is known."""
    arm = search.root[action]
    gap = search.root[rival].upper - arm.lower
    if arm.exploits > FIRST_BET:
        gap = min(gap, search.gaps[arm.account, rival])
    return float(gap)


@inlined
def largest_gap(search: Any, action: int) -> float:
    """How much better any other action may be, at most."""
    most = -np.inf
    for a in range(search.root.size):
        if a != action:
            most = max(most, pair_gap(search, a, action))
    return most
