"""Bounds of pairs and nodes: U_h = u_h + gamma max p.U_{h+1}, and the same for L_h (section 3)."""

from typing import Any

import numpy as np

from pacplan.algorithms.mdp_gape.graph import Graph
from pacplan.bounds.bernoulli import MOST_KEPT, kl_upper_from, share_upper, warm_start
from pacplan.bounds.simplex import ball_max, ball_min, one_seen_max
from pacplan.bounds.thresholds import (
    REWARD,
    REWARD_DECAY,
    REWARD_SHRINK,
    TRANSITION,
    TRANSITION_DECAY,
    TRANSITION_SHRINK,
)
from pacplan.compiled.jit import inlined
from pacplan.engine.tree import NONE, TreeArrays


@inlined
def _reward_bounds(search: Any, h: int) -> tuple[float, float]:
    """The confidence interval of the mean reward of the pair at step h of the path, in [0, 1]."""
    step = search.path[h]
    pair = search.tree.pairs[step.pair]
    if search.fixed_rewards:
        return pair.reward, pair.reward
    row = search.radii[pair.n]
    share = 1.0 / pair.n
    # Exact at both ends, where the bounds are closed.
    mean = 1.0 if pair.reward >= pair.n else pair.reward * share
    radius = row[REWARD]
    decay = row[REWARD_DECAY]
    if mean == 0.0:
        return 1.0 - decay, 0.0
    if mean == 1.0:
        return 1.0, decay
    shrink = row[REWARD_SHRINK]
    drift = (step.reward - mean) * share
    bend = 1.0 / (mean * (1.0 - mean))
    guess = warm_start(mean, pair.reward_up, drift, shrink, bend)
    up = kl_upper_from(mean, radius, guess)
    pair.reward_up = up
    guess = warm_start(1.0 - mean, pair.reward_down, -drift, shrink, bend)
    far = kl_upper_from(1.0 - mean, radius, guess)
    pair.reward_down = far
    return up, 1.0 - far


@inlined
def _look_up(tree: TreeArrays, graph: Graph | None, link: int) -> None:
    """If nodes are merged, copy the bounds of their states to the outcomes of a pair."""
    if graph is None:
        return
    outcome = tree.pairs[link].child
    while outcome != NONE:
        node = tree.nodes[outcome]
        state = tree.nodes[graph.canonical[outcome]]
        node.upper = state.upper
        node.lower = state.lower
        outcome = node.sibling


@inlined
def _two_outcomes(search: Any, h: int, radius: float, shrink: float) -> tuple[float, float]:
    """The KL ball of two outcomes that were both seen is an interval for the share of the first."""
    tree = search.tree
    pair = tree.pairs[search.path[h].pair]
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
        # How much the last draw moved the shares, and how much that bends their intervals.
        share = 1.0 / pair.n
        latest = search.path[h].child
        bend = pair.n / (child.count * (1.0 - child.count * share))
        x = k * share
        drift = ((1.0 if (latest == pair.child) == (rise >= 0.0) else 0.0) - x) * share
        above = kl_upper_from(x, radius, warm_start(x, pair.next_up, drift, shrink, bend))
        pair.next_up = above
        x = j * share
        drift = ((1.0 if (latest == pair.child) == (fall < 0.0) else 0.0) - x) * share
        below = kl_upper_from(x, radius, warm_start(x, pair.next_down, drift, shrink, bend))
        pair.next_down = below
    up = other.upper + rise * above if rise >= 0.0 else child.upper - rise * above
    down = child.lower - fall * below if fall >= 0.0 else other.lower + fall * below
    return up, down


@inlined
def _many_outcomes(search: Any, h: int, radius: float) -> tuple[float, float]:
    """The same for any number of outcomes, one of which may stand for those never seen."""
    tree, ball = search.tree, search.ball
    after = search.values[search.problem[0].horizon - h - 1]
    high, low = after.outcome_upper, after.outcome_lower
    pair = tree.pairs[search.path[h].pair]
    seen = 0
    outcome = pair.child
    while outcome != NONE:
        child = tree.nodes[outcome]
        ball.p[seen] = child.count / pair.n
        ball.upper[seen] = child.upper
        ball.lower[seen] = child.lower
        seen += 1
        outcome = child.sibling
    if seen == search.problem[0].successors:
        high, low = -np.inf, np.inf
    return (
        ball_max(ball.p, ball.upper, seen, high, radius),
        ball_min(ball.p, ball.lower, seen, low, radius, ball.scratch),
    )


@inlined
def _next_bounds(search: Any, h: int) -> tuple[float, float]:
    """Largest and smallest expected value after the pair at step h, over the KL ball of transitions."""
    tree, problem = search.tree, search.problem[0]
    pair = tree.pairs[search.path[h].pair]
    row = search.radii[pair.n]
    child = tree.nodes[pair.child]
    if child.sibling == NONE:
        if problem.successors == 1:
            return child.upper, child.lower
        after = search.values[problem.horizon - h - 1]
        decay = row[TRANSITION_DECAY]
        return (
            one_seen_max(child.upper, after.outcome_upper, decay),
            -one_seen_max(-child.lower, -after.outcome_lower, decay),
        )
    radius = row[TRANSITION]
    if problem.successors == 2:
        return _two_outcomes(search, h, radius, row[TRANSITION_SHRINK])
    return _many_outcomes(search, h, radius)


@inlined
def _tightest(graph: Graph | None, pair: Any, upper: float, lower: float) -> tuple[float, float]:
    """If nodes are merged, the tighter of the bounds before and now.

    All bounds hold on one event, so the tightest do as well, and a sweep loosens none. (Outside of that
    event they may cross, and then the latest count.)
    """
    if graph is None:
        return upper, lower
    if max(lower, pair.lower) > min(upper, pair.upper):
        return upper, lower
    return min(upper, pair.upper), max(lower, pair.lower)


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
        _look_up(search.tree, search.graph, step.pair)
        up, down = _next_bounds(search, h)
        upper += problem.gamma * up
        lower += problem.gamma * down
    # That no policy can earn more needs no evidence.
    upper = min(upper, search.values[steps].node_upper + search.slack)
    lower = max(lower, search.values[steps].node_lower - search.slack)
    pair.upper, pair.lower = _tightest(search.graph, pair, upper, lower)
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
    node.lower = lower
    node.favourite = favourite
