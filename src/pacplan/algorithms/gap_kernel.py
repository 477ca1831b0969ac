"""MDP-GapE's episodes, compiled: choose, simulate, back up (the paper's Algorithm 1).

Where nodes are merged (the graph of the paper's appendix A), a visit renews the bounds on its own way
only; those on other ways to the same states hold all the same, and are renewed by sweeps.
"""

from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan._jit import inlined, kernel
from pacplan.bounds.bernoulli import kl_upper_from, warm_start
from pacplan.bounds.memo import MOST_VISITS, Memo, mean_bounds, share_upper
from pacplan.bounds.simplex import kl_ball_max, kl_ball_min, one_seen_max
from pacplan.bounds.thresholds import Radii
from pacplan.models import handles
from pacplan.search.kernel import (
    BAD_BOUNDS,
    BROKEN,
    CHUNK_DONE,
    NO_ROOM,
    REWARD_VARIES,
    RULE,
    SPENT,
    STALE,
    argmax_at_random,
    best_and_challenger,
    break_promise,
    call_model,
    follow,
    gap_of,
    halted,
    largest,
    wider,
)
from pacplan.search.merging import Graph, canonical, has_room, join
from pacplan.search.tree import (
    LINKS,
    NONE,
    TreeArrays,
    add_node,
    add_pair,
    untried_action,
)

# Columns of the table of radii.
_REWARD, _REWARD_SHRINK, _REWARD_DECAY, _TRANSITION, _TRANSITION_SHRINK, _TRANSITION_DECAY = Radii()


# Records are few arguments where named tuples of arrays would be many: a kernel unpacks each array
# of its arguments on every call. A field of an array of records is an array.

# What stays fixed during a search.
RULES = np.dtype(
    [
        ("gamma", np.float64),
        ("epsilon", np.float64),
        ("tie", np.float64),  # bounds that differ by less are tied
        ("slack", np.float64),  # covers the rounding of a sum of bounds
        ("horizon", np.int64),
        ("due", np.int64),  # calls at the next sweep, where nodes are merged
        ("value_goal", np.bool_),
        ("fixed_rewards", np.bool_),  # rewards are deterministic: the first one tells
        ("known_rewards", np.bool_),
        ("known_transitions", np.bool_),
        ("per_path", np.bool_),  # see Thresholds.per_path
        ("bounded", np.bool_),  # the user knows bounds on values
        ("keep_last", np.bool_),  # outcomes of the last step enter the tree, for the next search
        ("merged", np.bool_),
    ],
    align=True,
)

# What the search knows of an action that was tried.
PAIR = np.dtype(
    [
        # Sum of rewards scaled to [0, 1]; the mean itself where one visit tells it, or the model.
        ("reward", np.float64),
        ("upper", np.float64),
        ("lower", np.float64),
        # Where the last solutions lay, for warm_start: of the reward's and of the transitions' sets.
        ("reward_up", np.float32),
        ("reward_down", np.float32),
        ("next_up", np.float32),
        ("next_down", np.float32),
        *LINKS,
    ],
    align=True,
)

# The root's actions, side by side.
ROOT = np.dtype(
    [
        ("upper", np.float64),
        ("lower", np.float64),
        ("pair", np.int64),
        ("calls", np.int64),
    ]
)

# What will be played next. It is decided once after every episode, so the draws that break ties do
# not depend on how episodes are cut into chunks.
DECISION = np.dtype(
    [
        ("stands", np.int64),
        ("best", np.int64),
        ("challenger", np.int64),
        ("play", np.int64),
    ]
)

# Workspace for a KL ball of more than two outcomes.
BALL = np.dtype(
    [("p", np.float64), ("upper", np.float64), ("lower", np.float64), ("scratch", np.float64)]
)


class Search(NamedTuple):
    """Everything a chunk of episodes works on, the model and the random streams apart."""

    tree: TreeArrays
    graph: Graph  # of no use where nodes are not merged
    rules: Any  # one record of RULES
    promises: Any  # one record of PROMISES
    values: Any  # records of VALUE_RANGE
    radii: NDArray[np.float64]  # rows of a ThresholdTable
    memo: Memo
    root: Any  # records of ROOT
    decision: Any  # one record of DECISION
    path: Any  # records of STEP
    ball: Any  # records of BALL
    report: Any  # one record of REPORT


@inlined
def _tighten(search: Search, model: Any, at: int, h: int) -> int:
    """Bound the value of a new node by what the user knows; returns a status."""
    node = search.tree.nodes[at]
    low, high = handles.value_bounds(model, node.state, h)
    if np.isnan(low):
        return break_promise(search.report, BAD_BOUNDS, node.state, 0, h, 0.0)
    node.upper = min(node.upper, high)
    node.lower = max(node.lower, low)
    return CHUNK_DONE


@inlined
def plant(search: Search, model: Any, state: int, rng: Any) -> int:
    """Make the root; returns a status."""
    rules, values = search.rules[0], search.values
    actions = search.root.size
    steps = rules.horizon
    add_node(search.tree, state, actions, values[steps].node_upper, values[steps].node_lower)
    status = CHUNK_DONE
    if rules.bounded:
        status = _tighten(search, model, 0, 0)
    if rules.merged:
        join(search.graph, 0, state, 0)
    for action in range(actions):
        arm = search.root[action]
        arm.upper = search.tree.nodes[0].upper
        arm.lower = values[steps].node_lower
        arm.pair = NONE
    if rules.known_rewards:
        _expand_known(search, model, 0, 0, rng)
        for link in range(actions):
            pair = search.tree.pairs[link]
            arm = search.root[pair.action]
            arm.pair = link
            arm.upper = pair.upper
            arm.lower = pair.lower
    return status


@inlined
def _expand_known(search: Search, model: Any, at: int, h: int, rng: Any) -> None:
    """Give every action of a new node its pair: where rewards are known, each is worth its own."""
    tree, promise = search.tree, search.promises[0]
    node = tree.nodes[at]
    for action in range(node.actions):
        reward = handles.mean_reward(model, node.state, action, h)
        pair = tree.pairs[add_pair(tree, at, action)]
        pair.reward = (reward - promise.lowest) / promise.width
        _bound_unvisited(search, pair, h)
    _refresh_node(search, at, h, rng)


@inlined
def _bound_unvisited(search: Search, pair: Any, h: int) -> None:
    """Bounds of a pair of step h that was never visited: its reward if that is known, and the rest."""
    rules, values, promise = search.rules[0], search.values, search.promises[0]
    steps = rules.horizon - h
    pair.upper = values[steps].node_upper
    pair.lower = values[steps].node_lower
    if rules.known_rewards:
        reward = promise.lowest + promise.width * pair.reward
        pair.upper = reward + rules.gamma * values[steps - 1].outcome_upper + rules.slack
        pair.lower = reward + rules.gamma * values[steps - 1].outcome_lower - rules.slack


@inlined
def decide(search: Search, rng: Any) -> None:
    """UGapE at the root: play the wider of b and its challenger c. For the value goal, argmax U."""
    root, rules, decision = search.root, search.rules[0], search.decision[0]
    if decision.stands:
        return
    upper, lower = root.upper, root.lower
    best, challenger = best_and_challenger(upper, lower, rules.tie, rng)
    if rules.value_goal:
        play = argmax_at_random(upper, NONE, rules.tie, rng)
    else:
        play = wider(upper, lower, best, challenger, rules.tie, rng)
    decision.stands = 1
    decision.best = best
    decision.challenger = challenger
    decision.play = play


@inlined
def satisfied(search: Search) -> bool:
    """The stopping rule: max_{a != b} U(a) - L(b) <= epsilon, or max U - max L <= 2 epsilon."""
    root, rules = search.root, search.rules[0]
    if rules.value_goal:
        return bool(largest(root.upper) - largest(root.lower) <= 2.0 * rules.epsilon)
    return bool(gap_of(root.upper, root.lower, search.decision[0].best) <= rules.epsilon)


@inlined
def simulate(search: Search, model: Any, most: int, rng: Any, ties: Any) -> tuple[int, int]:
    """Play one episode of at most `most` steps from the root.

    Below the root it follows argmax U. Only the path and new records are written, no count: an
    episode that is cut short is backed up as far as it came.

    Returns:
        Its length, and CHUNK_DONE or why it was cut short.
    """
    tree, rules, values, path = search.tree, search.rules[0], search.values, search.path
    promises, promise = search.promises, search.promises[0]
    report, root, play = search.report, search.root, search.decision[0].play
    at = 0
    price = 0.0
    for h in range(min(rules.horizon, most)):
        steps = rules.horizon - h
        link = root[play].pair if h == 0 else tree.nodes[at].favourite
        if link == NONE:
            action = play if h == 0 else untried_action(tree, at, ties)
            link = add_pair(tree, at, action)
            _bound_unvisited(search, tree.pairs[link], h)
            if rules.bounded:
                tree.pairs[link].upper = min(tree.pairs[link].upper, tree.nodes[at].upper)
            if h == 0:
                root[action].pair = link
        action = tree.pairs[link].action
        state = tree.nodes[at].state
        successor, reward, ended, status = call_model(promises, report, model, state, action, h, rng)
        if status != CHUNK_DONE:
            return h, status
        child = NONE
        if steps > 1 or rules.keep_last:
            after = values[steps - 1]
            child, new, status = follow(
                tree,
                promises,
                report,
                model,
                at,
                link,
                successor,
                ended,
                h,
                after.node_upper,
                after.node_lower,
            )
            if status == CHUNK_DONE and rules.bounded and new and not ended:
                status = _tighten(search, model, child, h + 1)
            if status != CHUNK_DONE:
                return h, status
            if new and rules.merged:
                if ended:
                    search.graph.canonical[child] = child
                else:
                    new = join(search.graph, child, successor, h + 1)
            if new and not ended and rules.known_rewards and steps > 1:
                _expand_known(search, model, child, h + 1, ties)
        if rules.per_path:
            price += log(tree.nodes[at].actions * (promise.successors if h > 0 else 1))
        step = path[h]
        step.node = at
        step.pair = link
        step.child = child
        step.reward = reward
        step.price = price
        if ended:
            return h + 1, CHUNK_DONE
        at = child
        if rules.merged and steps > 1:
            at = search.graph.canonical[child]
    return min(rules.horizon, most), CHUNK_DONE


@inlined
def _look_up(search: Search, link: int) -> None:
    """Where nodes are merged: copy to the outcomes of a pair the bounds of their states."""
    tree, graph = search.tree, search.graph
    step = tree.pairs[link].child
    while step != NONE:
        node = tree.nodes[step]
        state = tree.nodes[graph.canonical[step]]
        node.upper = state.upper
        node.lower = state.lower
        step = node.sibling


@inlined
def _next_bounds(
    search: Search, model: Any, link: int, h: int, radius: float, shrink: float, decay: float
) -> tuple[float, float]:
    """Largest and smallest expected value after a pair, over the KL ball of its transitions.

    `radius`, `shrink` and `decay` are as in a ThresholdTable.
    """
    tree, rules, values, ball = search.tree, search.rules[0], search.values, search.ball
    promise = search.promises[0]
    pair = tree.pairs[link]
    after = rules.horizon - h - 1
    high, low = values[after].outcome_upper, values[after].outcome_lower
    child = tree.nodes[pair.child]
    if rules.known_transitions:
        up = 0.0
        down = 0.0
        left = 1.0
        state = tree.nodes[search.path[h].node].state
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
        if promise.successors == 1:
            return child.upper, child.lower
        return one_seen_max(child.upper, high, decay), -one_seen_max(-child.lower, -low, decay)
    if promise.successors == 2:
        other = tree.nodes[child.sibling]
        # The ball is an interval for p: to the side of the better outcome above, away from it below.
        rise = child.upper - other.upper
        fall = child.lower - other.lower
        k = child.count if rise >= 0.0 else other.count
        j = other.count if fall >= 0.0 else child.count
        if pair.n <= MOST_VISITS and not rules.per_path:
            above = share_upper(search.memo, k, pair.n, radius)
            below = share_upper(search.memo, j, pair.n, radius)
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
    seen = 0
    step = pair.child
    while step != NONE:
        child = tree.nodes[step]
        ball.p[seen] = child.count / pair.n
        ball.upper[seen] = child.upper
        ball.lower[seen] = child.lower
        seen += 1
        step = child.sibling
    if seen == promise.successors:
        high, low = -np.inf, np.inf
    return (
        kl_ball_max(ball.p, ball.upper, seen, high, radius),
        kl_ball_min(ball.p, ball.lower, seen, low, radius, ball.scratch),
    )


@inlined
def _refresh_pair(search: Search, model: Any, h: int) -> None:
    """U_h = u_h + gamma max p.U_{h+1} and L_h likewise, at step h of the path (section 3)."""
    rules, values = search.rules[0], search.values
    promise = search.promises[0]
    step = search.path[h]
    link = step.pair
    pair = search.tree.pairs[link]
    row = search.radii[pair.n]
    share = 1.0 / pair.n
    price = step.price * share
    discount = exp(-price) if rules.per_path else 1.0
    steps = rules.horizon - h
    mean = pair.reward
    told = rules.known_rewards or rules.fixed_rewards
    if not told:
        # Exact at both ends, where the bounds are closed.
        mean = 1.0 if mean >= pair.n else mean * share
    up = mean
    down = mean
    if not told:
        radius = row[_REWARD] + price
        shrink = row[_REWARD_SHRINK]
        decay = row[_REWARD_DECAY] * discount
        if 0.0 < mean < 1.0:
            if pair.n <= MOST_VISITS and not rules.per_path:
                up, down = mean_bounds(search.memo, mean, pair.n, radius)
            else:
                drift = (step.reward - mean) * share
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
    upper = promise.lowest + promise.width * up + rules.slack
    lower = promise.lowest + promise.width * down - rules.slack
    if steps > 1:
        if rules.merged:
            _look_up(search, link)
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
    upper = min(upper, values[steps].node_upper + rules.slack)
    lower = max(lower, values[steps].node_lower - rules.slack)
    if rules.merged and max(lower, pair.lower) <= min(upper, pair.upper):
        # All bounds hold on one event, so the tightest do as well. A sweep then loosens none. (Outside
        # of that event they may cross, and then the latest count.)
        upper = min(upper, pair.upper)
        lower = max(lower, pair.lower)
    pair.upper = upper
    pair.lower = lower
    if rules.bounded:
        pair.upper = min(pair.upper, search.tree.nodes[step.node].upper)


@inlined
def _refresh_node(search: Search, at: int, h: int, ties: Any) -> None:
    """Renew max U and max L over the actions of a node, and the action to try next: argmax U."""
    tree, rules = search.tree, search.rules[0]
    node = tree.nodes[at]
    untried = node.actions - node.tried
    steps = rules.horizon - h
    upper = search.values[steps].node_upper if untried > 0 else -np.inf
    lower = search.values[steps].node_lower
    if rules.bounded:
        # What was known of the node before, to begin with from the user, stays known.
        upper = min(upper, node.upper)
        lower = max(lower, node.lower)
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
    node.upper = min(upper, node.upper) if rules.bounded else upper
    node.lower = lower
    node.favourite = favourite


@inlined
def backward(search: Search, model: Any, length: int, ties: Any) -> int:
    """Count the steps of the path and renew the bounds on it, from the last step to the first."""
    tree, rules, root = search.tree, search.rules[0], search.root
    promise = search.promises[0]
    for h in range(length - 1, -1, -1):
        step = search.path[h]
        at = step.node
        pair = tree.pairs[step.pair]
        reward = step.reward
        if rules.fixed_rewards and pair.n > 0 and abs(pair.reward - reward) > 1e-9:
            state = tree.nodes[at].state
            raw = promise.lowest + promise.width * reward
            return break_promise(search.report, REWARD_VARIES, state, pair.action, h, raw)
        pair.n += 1
        if rules.fixed_rewards:
            pair.reward = reward if pair.n == 1 else pair.reward
        elif not rules.known_rewards:
            pair.reward += reward
        if step.child != NONE:
            tree.nodes[step.child].count += 1
        _refresh_pair(search, model, h)
        if h > 0:
            _refresh_node(search, at, h, ties)
        else:
            arm = root[pair.action]
            arm.upper = pair.upper
            arm.lower = pair.lower
            arm.calls += length
    return CHUNK_DONE


@kernel
def run(
    search: Search, model: Any, state: int, most_episodes: int, most_calls: int, rng: Any, ties: Any
) -> int:
    """Play episodes from `state` until one of the reasons in `pacplan.search.kernel` to return.

    `rng` feeds the model, `ties` breaks ties.
    """
    if search.tree.used[0] == 0:
        status = plant(search, model, state, ties)
        if status != CHUNK_DONE:
            return status
    tree, rules, report = search.tree, search.rules[0], search.report[0]
    horizon = rules.horizon
    pairs_a_node = search.promises[0].most_actions if rules.known_rewards else 1
    for _ in range(most_episodes):
        decide(search, ties)
        if satisfied(search):
            return RULE
        if report.calls >= most_calls:
            return SPENT
        if (
            tree.used[0] + horizon > tree.nodes.size
            or tree.used[1] + horizon * pairs_a_node > tree.pairs.size
            or tree.nodes[0].count + report.episodes + 2 > search.radii.shape[0]
            or (rules.merged and not has_room(search.graph.table, horizon))
        ):
            return NO_ROOM
        length, status = simulate(search, model, most_calls - report.calls, rng, ties)
        if length > 0 and status != BROKEN:
            if backward(search, model, length, ties) == BROKEN:
                return BROKEN
            report.calls += length
            report.episodes += 1
            search.decision[0].stands = 0
        if status != CHUNK_DONE:
            decide(search, ties)
            return status
        # Before the next decision, so that its draws do not depend on how episodes are cut into chunks.
        if rules.merged and report.calls >= min(rules.due, most_calls):
            return STALE
    decide(search, ties)
    return RULE if satisfied(search) else CHUNK_DONE


@inlined
def _renew(search: Search, model: Any, at: int, h: int, price: float, ties: Any) -> None:
    """Compute the bounds of a node at depth h and of its pairs, given those of what follows."""
    tree, rules, path = search.tree, search.rules[0], search.path
    link = tree.nodes[at].first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.n == 0:
            _bound_unvisited(search, pair, h)
        else:
            # As if the last visit had changed no mean.
            told = rules.known_rewards or rules.fixed_rewards
            path[h].node = at
            path[h].pair = link
            path[h].child = pair.child
            path[h].reward = pair.reward if told else pair.reward / pair.n
            path[h].price = price
            _refresh_pair(search, model, h)
        link = pair.sibling
    _refresh_node(search, at, h, ties)


@inlined
def _renew_root(search: Search) -> None:
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


@kernel
def regrow(search: Search, model: Any, depths: Any, prices: Any, ties: Any) -> None:
    """Compute all bounds of a tree that came with its counts, its nodes one step nearer to the root.

    `depths` and `prices` have a zero for each node; they are filled with its steps from the root and
    with what its pairs pay for the path to them (see Thresholds.per_path).
    """
    tree, rules, root = search.tree, search.rules[0], search.root
    successors = search.promises[0].successors
    nodes = tree.used[0]
    for at in range(nodes):
        node = tree.nodes[at]
        h = depths[at]
        price = prices[at]
        if rules.per_path and node.actions > 0:
            price += log(node.actions * (successors if h > 0 else 1))
        prices[at] = price
        link = node.first
        while link != NONE:
            step = tree.pairs[link].child
            while step != NONE:
                depths[step] = h + 1
                prices[step] = price
                step = tree.nodes[step].sibling
            link = tree.pairs[link].sibling
    for at in range(nodes - 1, -1, -1):
        node = tree.nodes[at]
        h = depths[at]
        if node.actions == 0:
            continue
        if rules.known_rewards and node.first == NONE:
            _expand_known(search, model, at, h, ties)
            continue
        _renew(search, model, at, h, prices[at], ties)
    for action in range(root.size):
        arm = root[action]
        arm.upper = search.values[rules.horizon].node_upper
        arm.lower = search.values[rules.horizon].node_lower
        arm.pair = NONE
    _renew_root(search)


@kernel
def sweep(search: Search, model: Any, ties: Any) -> None:
    """Renew all bounds of a merged graph, from the last step to the first, and decide anew.

    Every pair then knows what was seen on any way to the states that follow it.
    """
    graph, rules, report = search.graph, search.rules[0], search.report[0]
    if report.episodes == 0:
        return
    for h in range(rules.horizon - 1, -1, -1):
        at = graph.heads[h]
        while at != NONE:
            if halted(search.report):
                return
            _renew(search, model, at, h, 0.0, ties)
            at = graph.peer[at]
    _renew_root(search)
    rules.due = int(1.05 * report.calls) + 20
    search.decision[0].stands = 0
    decide(search, ties)


@inlined
def _estimate(search: Search, at: int, estimates: Any) -> None:
    """The plug-in estimates of a node and, for the root, of its actions; see `plug_in`."""
    tree, rules = search.tree, search.rules[0]
    promise = search.promises[0]
    node = tree.nodes[at]
    best = -np.inf
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.n > 0:
            told = rules.known_rewards or rules.fixed_rewards
            mean = pair.reward if told else pair.reward / pair.n
            value = promise.lowest + promise.width * mean
            step = pair.child
            while step != NONE:
                child = tree.nodes[step]
                state = canonical(search.graph, rules.merged, step)
                value += rules.gamma * child.count / pair.n * estimates[state]
                step = child.sibling
            value = min(max(value, pair.lower), pair.upper)
            best = max(best, value)
            if at == 0:
                estimates[tree.used[0] + pair.action] = value
        link = pair.sibling
    estimates[at] = best if best > -np.inf else 0.5 * (node.upper + node.lower)


@kernel
def plug_in(search: Search, estimates: Any) -> None:
    """Estimates of the root's Q by dynamic programming on what was seen, inside the bounds of pairs.

    The value of a node is its best estimate among the actions tried; of one never tried from, the
    middle of its bounds. Node values go to `estimates`, entry 0 on being the nodes' and, after them,
    the root's actions', NaN for those never tried.
    """
    tree, rules = search.tree, search.rules[0]
    nodes = tree.used[0]
    estimates[nodes:] = np.nan
    if not rules.merged:
        for at in range(nodes - 1, -1, -1):
            _estimate(search, at, estimates)
        return
    # An end is worth nothing; all other nodes that are read are canonical ones.
    estimates[:nodes] = 0.0
    for h in range(rules.horizon - 1, -1, -1):
        at = search.graph.heads[h]
        while at != NONE:
            _estimate(search, at, estimates)
            at = search.graph.peer[at]
