"""Bounds of pairs and nodes: U_h = u_h + gamma max p.U_{h+1}, and the same for L_h (section 3)."""

from math import exp
from typing import Any

import numpy as np

from pacplan.algorithms.mdp_gape.graph import look_up, tightest
from pacplan.bounds.bernoulli import MOST_KEPT, kl_upper_from, share_upper, warm_start
from pacplan.bounds.simplex import ball_max, one_seen_max
from pacplan.bounds.thresholds import REWARD, TRANSITION
from pacplan.compiled.jit import inlined
from pacplan.engine.tree import NONE


@inlined
def _decay(search: Any, n: int, column: int) -> float:
    """e^(-c) for a radius c, kept beside it."""
    radii = search.radii
    if radii[n, column + 1] == 0.0:
        radii[n, column + 1] = exp(-radii[n, column])
    return float(radii[n, column + 1])


@inlined
def _reward_bounds(search: Any, h: int) -> tuple[float, float]:
    """The confidence interval of the mean reward of the pair at step h of the path, in [0, 1]."""
    step = search.path[h]
    pair = search.tree.pairs[step.pair]
    if search.fixed_rewards:
        return pair.reward, pair.reward
    radius, before = search.radii[pair.n, REWARD], search.radii[pair.n - 1, REWARD]
    share = 1.0 / pair.n
    # Exact at both ends, where the bounds are closed.
    mean = 1.0 if pair.reward >= pair.n else pair.reward * share
    if mean == 0.0:
        return 1.0 - _decay(search, pair.n, REWARD), 0.0
    if mean == 1.0:
        return 1.0, _decay(search, pair.n, REWARD)
    drift = (step.reward - mean) * share
    guess = warm_start(mean, pair.reward_up, drift, radius, before)
    up = kl_upper_from(mean, radius, guess)
    pair.reward_up = up
    guess = warm_start(1.0 - mean, pair.reward_down, -drift, radius, before)
    far = kl_upper_from(1.0 - mean, radius, guess)
    pair.reward_down = far
    return up, 1.0 - far


@inlined
def _two_outcomes(search: Any, h: int) -> tuple[float, float]:
    """The KL ball of two outcomes that were both seen is an interval for the share of the first."""
    tree = search.tree
    pair = tree.pairs[search.path[h].pair]
    radius, before = search.radii[pair.n, TRANSITION], search.radii[pair.n - 1, TRANSITION]
    child = tree.nodes[pair.child]
    other = tree.nodes[child.sibling]
    # To the side of the better outcome above, away from it below.
    rise = child.upper - other.upper
    fall = child.lower - other.lower
    k = child.count if rise >= 0.0 else other.count
    j = other.count if fall >= 0.0 else child.count
    if pair.n <= MOST_KEPT:
        above = share_upper(search.shares, k, pair.n, radius)
        below = share_upper(search.shares, j, pair.n, radius)
    else:
        # How much the last draw moved the shares.
        share = 1.0 / pair.n
        latest = search.path[h].child
        x = k * share
        drift = ((1.0 if (latest == pair.child) == (rise >= 0.0) else 0.0) - x) * share
        above = kl_upper_from(x, radius, warm_start(x, pair.next_up, drift, radius, before))
        pair.next_up = above
        x = j * share
        drift = ((1.0 if (latest == pair.child) == (fall < 0.0) else 0.0) - x) * share
        below = kl_upper_from(x, radius, warm_start(x, pair.next_down, drift, radius, before))
        pair.next_down = below
    up = other.upper + rise * above if rise >= 0.0 else child.upper - rise * above
    down = child.lower - fall * below if fall >= 0.0 else other.lower + fall * below
    return up, down


@inlined
def _many_outcomes(search: Any, h: int) -> tuple[float, float]:
    """The same for any number of outcomes, one of which may stand for those never seen."""
    tree, ball = search.tree, search.ball
    after = search.values[search.problem[0].horizon - h - 1]
    high, low = after.outcome_upper, after.outcome_lower
    pair = tree.pairs[search.path[h].pair]
    radius = search.radii[pair.n, TRANSITION]
    seen = 0
    outcome = pair.child
    while outcome != NONE:
        child = tree.nodes[outcome]
        ball.p[seen] = child.count / pair.n
        ball.upper[seen] = child.upper
        ball.fallen[seen] = -child.lower
        seen += 1
        outcome = child.sibling
    if seen == search.problem[0].successors:
        high, low = -np.inf, np.inf
    return (
        ball_max(ball.p, ball.upper, seen, high, radius),
        -ball_max(ball.p, ball.fallen, seen, -low, radius),
    )


@inlined
def _next_bounds(search: Any, h: int) -> tuple[float, float]:
    """Largest and smallest expected value after the pair at step h, over the KL ball of transitions."""
    tree, problem = search.tree, search.problem[0]
    pair = tree.pairs[search.path[h].pair]
    look_up(search.graph, tree, pair)
    child = tree.nodes[pair.child]
    if child.sibling == NONE:
        if problem.successors == 1:
            return child.upper, child.lower
        after = search.values[problem.horizon - h - 1]
        decay = _decay(search, pair.n, TRANSITION)
        return (
            one_seen_max(child.upper, after.outcome_upper, decay),
            -one_seen_max(-child.lower, -after.outcome_lower, decay),
        )
    if problem.successors == 2:
        return _two_outcomes(search, h)
    return _many_outcomes(search, h)


@inlined
def refresh_pair(search: Any, h: int) -> None:
    """Renew the bounds of the pair at step h of the path, which was visited."""
    problem, step = search.problem[0], search.path[h]
    pair = search.tree.pairs[step.pair]
    steps = problem.horizon - h
    up, down = _reward_bounds(search, h)
    upper = problem.lowest + problem.width * up + search.slack
    lower = problem.lowest + problem.width * down - search.slack
    if steps > 1:
        up, down = _next_bounds(search, h)
        upper += problem.gamma * up
        lower += problem.gamma * down
    # That no policy can earn more needs no evidence.
    upper = min(upper, search.values[steps].node_upper + search.slack)
    lower = max(lower, search.values[steps].node_lower - search.slack)
    pair.upper, pair.lower = tightest(search.graph, pair, upper, lower)
    if search.bounded:
        pair.upper = min(pair.upper, search.tree.nodes[step.node].upper)


@inlined
def refresh_node(search: Any, at: int, h: int, ties: Any) -> None:
    """Renew max U and max L over the actions of a node, and the action to try next: argmax U."""
    tree = search.tree
    node = tree.nodes[at]
    untried = node.actions - node.tried
    steps = search.problem[0].horizon - h
    upper = search.values[steps].node_upper if untried > 0 else -np.inf
    lower = search.values[steps].node_lower
    if search.bounded:
        # What was known of the node before, at first from the user, stays known.
        upper = min(upper, node.upper)
        lower = max(lower, node.lower)
    tied = untried
    favourite = NONE
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        lower = max(lower, pair.lower)
        if pair.upper > upper + search.tie:
            upper = pair.upper
            favourite = link
            tied = 1
        elif pair.upper >= upper - search.tie:
            upper = max(upper, pair.upper)
            tied += 1
            if ties.random() * tied < 1.0:
                favourite = link
        link = pair.sibling
    node.upper = min(upper, node.upper) if search.bounded else upper
    node.lower, node.favourite = lower, favourite
