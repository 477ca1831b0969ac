"""MDP-GapE's episodes, compiled: choose, simulate, back up (the paper's Algorithm 1, tree mode)."""

from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan._checks import REWARD_ROUNDING
from pacplan._jit import inlined, kernel
from pacplan.bounds.bernoulli import kl_upper_from, warm_start
from pacplan.bounds.simplex import kl_ball_max, kl_ball_min, one_seen_max
from pacplan.bounds.thresholds import Radii
from pacplan.models import handles
from pacplan.search.kernel import (
    ABORTED,
    BAD_REWARD,
    BROKEN,
    CHUNK_DONE,
    NO_ACTIONS,
    NO_ROOM,
    REWARD_VARIES,
    RULE,
    SPENT,
    TOO_MANY_ACTIONS,
    TOO_MANY_SUCCESSORS,
    Report,
    argmax_at_random,
    break_promise,
    largest,
)
from pacplan.search.tree import (
    NONE,
    TreeArrays,
    add_node,
    add_pair,
    find_child,
    link_child,
    untried_action,
)
from pacplan.search.values import ValueRange

# Columns of the table of radii.
_REWARD, _REWARD_SHRINK, _REWARD_DECAY, _TRANSITION, _TRANSITION_SHRINK, _TRANSITION_DECAY = Radii()


class Rules(NamedTuple):
    """What stays fixed during a search."""

    gamma: float
    horizon: int
    lowest: float  # lowest reward
    width: float  # highest reward minus lowest
    successors: int  # B
    most_actions: int  # K; 0: not declared
    epsilon: float
    value_goal: bool
    fixed_rewards: bool  # rewards are deterministic: the first one tells
    known_rewards: bool
    known_transitions: bool
    per_path: bool  # see Thresholds.per_path
    tie: float  # bounds that differ by less are tied
    slack: float  # covers the rounding of a sum of bounds


class Root(NamedTuple):
    """The root's actions, side by side, and what will be played next.

    `decision` is [1 if it stands, b, c, the action to play]. It is taken once after every episode,
    so the draws that break ties do not depend on how episodes are cut into chunks.
    """

    upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    pairs: NDArray[np.int64]
    calls: NDArray[np.int64]
    decision: NDArray[np.int64]


class Path(NamedTuple):
    """The episode under way, one entry a step."""

    nodes: NDArray[np.int64]
    pairs: NDArray[np.int64]
    children: NDArray[np.int64]
    rewards: NDArray[np.float64]  # scaled to [0, 1]
    prices: NDArray[np.float64]  # added to the thresholds, see Thresholds.per_path


class Ball(NamedTuple):
    """Workspace for a KL ball of more than two outcomes."""

    p: NDArray[np.float64]
    upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    scratch: NDArray[np.float64]


class Search(NamedTuple):
    """Everything a chunk of episodes works on, the model and the random streams apart."""

    tree: TreeArrays
    rules: Rules
    values: ValueRange
    radii: NDArray[np.float64]  # rows of a ThresholdTable
    root: Root
    path: Path
    ball: Ball
    report: Report


@inlined
def plant(search: Search, model: Any, state: int, rng: Any) -> None:
    """Make the root."""
    rules, values = search.rules, search.values
    actions = search.root.upper.size
    steps = rules.horizon
    add_node(search.tree, state, actions, values.node_upper[steps], values.node_lower[steps])
    search.root.upper[:] = values.node_upper[steps]
    search.root.lower[:] = values.node_lower[steps]
    search.root.pairs[:] = NONE
    if rules.known_rewards:
        _expand_known(search, model, 0, 0, rng)
        for pair in range(actions):
            action = search.tree.pairs[pair].action
            search.root.pairs[action] = pair
            search.root.upper[action] = search.tree.pairs[pair].upper
            search.root.lower[action] = search.tree.pairs[pair].lower


@inlined
def _expand_known(search: Search, model: Any, at: int, h: int, rng: Any) -> None:
    """Give every action of a new node its pair: where rewards are known, each is worth its own."""
    tree, rules, values = search.tree, search.rules, search.values
    node = tree.nodes[at]
    after = rules.horizon - h - 1
    for action in range(node.actions):
        reward = handles.mean_reward(model, node.state, action, h)
        pair = add_pair(
            tree,
            at,
            action,
            reward + rules.gamma * values.outcome_upper[after] + rules.slack,
            reward + rules.gamma * values.outcome_lower[after] - rules.slack,
        )
        tree.pairs[pair].reward = (reward - rules.lowest) / rules.width
    _refresh_node(search, at, h, rng)


@inlined
def decide(search: Search, rng: Any) -> None:
    """UGapE at the root: b has the smallest bound on its gap, c is its challenger.

    b = argmin_b [ max_{a != b} U(a) - L(b) ],  c = argmax_{c != b} U(c); play the wider of the two.
    For the value goal play argmax U.
    """
    root, rules = search.root, search.rules
    if root.decision[0] == 1:
        return
    upper, lower = root.upper, root.lower
    best = 0
    challenger = NONE
    if upper.size > 1:
        first = 0 if upper[0] >= upper[1] else 1
        second = 1 - first
        for a in range(2, upper.size):
            if upper[a] > upper[first]:
                second = first
                first = a
            elif upper[a] > upper[second]:
                second = a
        least = np.inf
        ties = 0
        for a in range(upper.size):
            gap = (upper[second] if a == first else upper[first]) - lower[a]
            if gap < least - rules.tie:
                best = a
                least = gap
                ties = 1
            elif gap <= least + rules.tie:
                least = min(least, gap)
                ties += 1
                if rng.random() * ties < 1.0:
                    best = a
        challenger = argmax_at_random(upper, best, rules.tie, rng)
    play = best
    if rules.value_goal:
        play = argmax_at_random(upper, NONE, rules.tie, rng)
    elif challenger != NONE:
        excess = (upper[challenger] - lower[challenger]) - (upper[best] - lower[best])
        if excess > rules.tie or (excess >= -rules.tie and rng.random() < 0.5):
            play = challenger
    root.decision[0] = 1
    root.decision[1] = best
    root.decision[2] = challenger
    root.decision[3] = play


@inlined
def satisfied(search: Search) -> bool:
    """The stopping rule: U(c) - L(b) <= epsilon, or max U - max L <= 2 epsilon for the value."""
    root, epsilon = search.root, search.rules.epsilon
    if search.rules.value_goal:
        return bool(largest(root.upper) - largest(root.lower) <= 2.0 * epsilon)
    best, challenger = root.decision[1], root.decision[2]
    return bool(challenger == NONE or root.upper[challenger] - root.lower[best] <= epsilon)


@inlined
def simulate(search: Search, model: Any, most: int, rng: Any, ties: Any) -> tuple[int, int]:
    """Play one episode of at most `most` steps from the root.

    Below the root it follows argmax U. Only the path and new records are written, no count: an
    episode that is cut short is backed up as far as it came.

    Returns:
        Its length, and CHUNK_DONE or why it was cut short.
    """
    tree, rules, values, path = search.tree, search.rules, search.values, search.path
    report = search.report
    at = 0
    price = 0.0
    for h in range(min(rules.horizon, most)):
        steps = rules.horizon - h
        link = search.root.pairs[search.root.decision[3]] if h == 0 else tree.nodes[at].favourite
        if link == NONE:
            action = search.root.decision[3] if h == 0 else untried_action(tree, at, ties)
            link = add_pair(tree, at, action, values.node_upper[steps], values.node_lower[steps])
            if h == 0:
                search.root.pairs[action] = link
        action = tree.pairs[link].action
        state = tree.nodes[at].state
        successor, reward, flag = handles.draw(model, state, action, h, rng)
        if flag == handles.ABORTED:
            return h, ABORTED
        x = (reward - rules.lowest) / rules.width
        if not -REWARD_ROUNDING <= x <= 1.0 + REWARD_ROUNDING:
            return h, break_promise(report, BAD_REWARD, state, action, h, reward)
        ended = flag == handles.ENDED
        child = NONE
        if steps > 1:
            child, seen = find_child(tree, link, successor, ended)
            if child == NONE:
                if seen == rules.successors:
                    return h, break_promise(report, TOO_MANY_SUCCESSORS, state, action, h, reward)
                if ended:
                    child = add_node(tree, 0, 0, 0.0, 0.0)
                else:
                    actions = handles.action_count(model, successor, h + 1)
                    if actions < 1:
                        return h, break_promise(report, NO_ACTIONS, successor, action, h, reward)
                    if 0 < rules.most_actions < actions:
                        return h, break_promise(report, TOO_MANY_ACTIONS, successor, actions, h, reward)
                    child = add_node(
                        tree,
                        successor,
                        actions,
                        values.node_upper[steps - 1],
                        values.node_lower[steps - 1],
                    )
                    if rules.known_rewards:
                        _expand_known(search, model, child, h + 1, ties)
                link_child(tree, link, child)
        if rules.per_path:
            price += log(tree.nodes[at].actions * (rules.successors if h > 0 else 1))
        path.nodes[h] = at
        path.pairs[h] = link
        path.children[h] = child
        path.rewards[h] = min(1.0, max(0.0, x))
        path.prices[h] = price
        if ended:
            return h + 1, CHUNK_DONE
        at = child
    return min(rules.horizon, most), CHUNK_DONE


@inlined
def _next_bounds(
    search: Search, model: Any, link: int, h: int, radius: float, shrink: float, decay: float
) -> tuple[float, float]:
    """Largest and smallest expected value after a pair, over the KL ball of its transitions.

    `radius`, `shrink` and `decay` are as in a ThresholdTable.
    """
    tree, rules, values, ball = search.tree, search.rules, search.values, search.ball
    pair = tree.pairs[link]
    after = rules.horizon - h - 1
    high, low = values.outcome_upper[after], values.outcome_lower[after]
    child = tree.nodes[pair.child]
    if rules.known_transitions:
        up = 0.0
        down = 0.0
        left = 1.0
        state = tree.nodes[search.path.nodes[h]].state
        step = pair.child
        while step != NONE:
            child = tree.nodes[step]
            p = handles.probability(model, state, pair.action, h, child.state, child.actions == 0)
            up += p * child.upper
            down += p * child.lower
            left -= p
            step = child.sibling
        left = max(left, 0.0)
        return up + left * high, down + left * low
    if child.sibling == NONE:
        if rules.successors == 1:
            return child.upper, child.lower
        return one_seen_max(child.upper, high, decay), -one_seen_max(-child.lower, -low, decay)
    if rules.successors == 2:
        other = tree.nodes[child.sibling]
        share = 1.0 / pair.n
        p = child.count * share
        # How much the last draw moved p.
        drift = ((1.0 if search.path.children[h] == pair.child else 0.0) - p) * share
        bend = 1.0 / (p * (1.0 - p))
        # The ball is an interval for p: to the side of the better outcome above, away from it below.
        rise = child.upper - other.upper
        x, turn = (p, drift) if rise >= 0.0 else (1.0 - p, -drift)
        q = kl_upper_from(x, radius, warm_start(x, pair.next_up, turn, shrink, bend))
        pair.next_up = q
        up = other.upper + rise * q if rise >= 0.0 else child.upper - rise * q
        fall = child.lower - other.lower
        x, turn = (1.0 - p, -drift) if fall >= 0.0 else (p, drift)
        q = kl_upper_from(x, radius, warm_start(x, pair.next_down, turn, shrink, bend))
        pair.next_down = q
        down = child.lower - fall * q if fall >= 0.0 else other.lower + fall * q
        return up, down
    seen = 0
    step = pair.child
    while step != NONE:
        child = tree.nodes[step]
        ball.p[seen] = child.count / pair.n
        ball.upper[seen] = child.upper
        ball.lower[seen] = child.lower
        seen += 1
        step = child.sibling
    if seen == rules.successors:
        high, low = -np.inf, np.inf
    return (
        kl_ball_max(ball.p, ball.upper, seen, high, radius),
        kl_ball_min(ball.p, ball.lower, seen, low, radius, ball.scratch),
    )


@inlined
def _refresh_pair(search: Search, model: Any, h: int) -> None:
    """U_h = u_h + gamma max p.U_{h+1} and L_h likewise, at step h of the path (section 3)."""
    rules, values = search.rules, search.values
    link = search.path.pairs[h]
    pair = search.tree.pairs[link]
    row = search.radii[pair.n]
    share = 1.0 / pair.n
    price = search.path.prices[h] * share
    discount = exp(-price) if rules.per_path else 1.0
    steps = rules.horizon - h
    mean = pair.reward
    if not rules.known_rewards:
        # Exact at both ends, where the bounds are closed.
        mean = 1.0 if mean >= pair.n else mean * share
    up = mean
    down = mean
    if not (rules.known_rewards or rules.fixed_rewards):
        radius = row[_REWARD] + price
        shrink = row[_REWARD_SHRINK]
        decay = row[_REWARD_DECAY] * discount
        if 0.0 < mean < 1.0:
            drift = (search.path.rewards[h] - mean) * share
            bend = 1.0 / (mean * (1.0 - mean))
            guess = warm_start(mean, pair.reward_up, drift, shrink, bend)
            up = kl_upper_from(mean, radius, guess)
            pair.reward_up = up
            guess = warm_start(1.0 - mean, pair.reward_down, -drift, shrink, bend)
            far = kl_upper_from(1.0 - mean, radius, guess)
            pair.reward_down = far
            down = 1.0 - far
        elif mean == 0.0:
            up = 1.0 - decay
        else:
            down = decay
    upper = rules.lowest + rules.width * up + rules.slack
    lower = rules.lowest + rules.width * down - rules.slack
    if steps > 1:
        up, down = _next_bounds(
            search,
            model,
            link,
            h,
            row[_TRANSITION] + price,
            row[_TRANSITION_SHRINK],
            row[_TRANSITION_DECAY] * discount,
        )
        upper += rules.gamma * up
        lower += rules.gamma * down
    # What no policy can earn needs no evidence.
    pair.upper = min(upper, values.node_upper[steps])
    pair.lower = max(lower, values.node_lower[steps])


@inlined
def _refresh_node(search: Search, at: int, h: int, ties: Any) -> None:
    """Renew max U and max L over the actions of a node, and the action to try next: argmax U."""
    tree, rules = search.tree, search.rules
    node = tree.nodes[at]
    untried = node.actions - node.tried
    steps = rules.horizon - h
    upper = search.values.node_upper[steps] if untried > 0 else -np.inf
    lower = search.values.node_lower[steps]
    tied = untried
    favourite = NONE
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        lower = max(lower, pair.lower)
        if pair.upper > upper + rules.tie:
            upper = pair.upper
            favourite = link
            tied = 1
        elif pair.upper >= upper - rules.tie:
            upper = max(upper, pair.upper)
            tied += 1
            if ties.random() * tied < 1.0:
                favourite = link
        link = pair.sibling
    node.upper = upper
    node.lower = lower
    node.favourite = favourite


@inlined
def backward(search: Search, model: Any, length: int, ties: Any) -> int:
    """Count the steps of the path and renew the bounds on it, from the last step to the first."""
    tree, rules, path, root = search.tree, search.rules, search.path, search.root
    for h in range(length - 1, -1, -1):
        at = path.nodes[h]
        link = path.pairs[h]
        pair = tree.pairs[link]
        reward = path.rewards[h]
        if rules.fixed_rewards and pair.n > 0 and abs(pair.reward - pair.n * reward) > 1e-9 * pair.n:
            state = tree.nodes[at].state
            raw = rules.lowest + rules.width * reward
            return break_promise(search.report, REWARD_VARIES, state, pair.action, h, raw)
        pair.n += 1
        if not rules.known_rewards:
            pair.reward += reward
        if path.children[h] != NONE:
            tree.nodes[path.children[h]].count += 1
        _refresh_pair(search, model, h)
        if h > 0:
            _refresh_node(search, at, h, ties)
        else:
            root.upper[pair.action] = pair.upper
            root.lower[pair.action] = pair.lower
            root.calls[pair.action] += length
    return CHUNK_DONE


@kernel
def run(
    search: Search,
    model: Any,
    state: int,
    most_episodes: int,
    most_calls: int,
    rng: Any,
    ties: Any,
) -> int:
    """Play episodes from `state` until one of the reasons in `pacplan.search.kernel` to return.

    `rng` feeds the model, `ties` breaks ties.
    """
    if search.tree.used[0] == 0:
        plant(search, model, state, ties)
    tree, rules, counts = search.tree, search.rules, search.report.counts
    horizon = rules.horizon
    pairs_a_node = rules.most_actions if rules.known_rewards else 1
    for _ in range(most_episodes):
        decide(search, ties)
        if satisfied(search):
            return RULE
        if counts[0] >= most_calls:
            return SPENT
        if (
            tree.used[0] + horizon > tree.nodes.size
            or tree.used[1] + horizon * pairs_a_node > tree.pairs.size
            or counts[1] + 2 > search.radii.shape[0]
        ):
            return NO_ROOM
        length, status = simulate(search, model, most_calls - counts[0], rng, ties)
        if length > 0 and status != BROKEN:
            if backward(search, model, length, ties) == BROKEN:
                return BROKEN
            counts[0] += length
            counts[1] += 1
            search.root.decision[0] = 0
        if status != CHUNK_DONE:
            decide(search, ties)
            return status
    decide(search, ties)
    return RULE if satisfied(search) else CHUNK_DONE


@kernel
def plug_in(search: Search, estimates: Any) -> None:
    """Estimates of the root's Q by dynamic programming on the empirical tree, inside the bounds.

    The value of a node is its best estimate among the actions tried; of one never tried from, the
    middle of its bounds. Node values go to `estimates`, entry 0 on being the nodes' and, after them,
    the root's actions'.
    """
    tree, rules, root = search.tree, search.rules, search.root
    nodes = tree.used[0]
    for action in range(root.upper.size):
        estimates[nodes + action] = 0.5 * (root.upper[action] + root.lower[action])
    for at in range(nodes - 1, -1, -1):
        node = tree.nodes[at]
        best = -np.inf
        link = node.first
        while link != NONE:
            pair = tree.pairs[link]
            if pair.n > 0:
                mean = pair.reward if rules.known_rewards else pair.reward / pair.n
                value = rules.lowest + rules.width * mean
                step = pair.child
                while step != NONE:
                    child = tree.nodes[step]
                    value += rules.gamma * child.count / pair.n * estimates[step]
                    step = child.sibling
                value = min(max(value, pair.lower), pair.upper)
                best = max(best, value)
                if at == 0:
                    estimates[nodes + pair.action] = value
            link = pair.sibling
        estimates[at] = best if best > -np.inf else 0.5 * (node.upper + node.lower)
