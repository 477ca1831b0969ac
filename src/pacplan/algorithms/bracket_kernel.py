"""The compiled part of Bracket: penalised optimism above, and which episodes to play.

Everything here is in units in which a step pays between 0 and 1 (`pacplan.algorithms.units`).
"""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan._jit import inlined, kernel
from pacplan.algorithms.bracket_bets import bet_exploit, bet_forced
from pacplan.algorithms.bracket_pool import (
    ENDED,
    Pool,
    find_place,
    pooled_value,
    record,
    refresh,
    sweep,
)
from pacplan.algorithms.bracket_pool import has_room as pool_has_room
from pacplan.bounds.gamma import log_gamma
from pacplan.bounds.product import log_stake, penalised_max
from pacplan.bounds.simplex import kl_ball_max
from pacplan.models import handles
from pacplan.search.kernel import (
    BAD_BOUNDS,
    CHUNK_DONE,
    NO_ROOM,
    REWARD_VARIES,
    RULE,
    SPENT,
    argmax_at_random,
    break_promise,
    call_model,
    follow,
    halted,
    largest,
    least_gap,
)
from pacplan.search.merging import Graph, canonical, find, has_room, join
from pacplan.search.tree import (
    LINKS,
    NODE_FIELDS,
    NONE,
    TreeArrays,
    add_node,
    add_pair,
    untried_action,
)

# A state of the tree. Its bounds lie in a table of their own.
NODE = np.dtype(
    [
        *NODE_FIELDS,
        ("estimate", np.float64),
        ("drift", np.float64),  # sum over the parent's draws of d, see `simulate`
        ("evidence", np.float64),  # in trees: of the action with the largest W
        ("place", np.int32),  # in the pool
        ("branch", np.int32),  # action of the root that leads here
        ("depth", np.int32),
    ],
    align=True,
)

# A state and action. Its bound and the bets on it lie in tables of their own.
PAIR = np.dtype(
    [
        ("estimate", np.float64),
        ("reward", np.float64),  # sum of rewards; the reward itself where one visit tells it
        ("stake", np.float64),  # max_y [ y - penalty log M(y) ], as found last ...
        ("guess", np.float64),  # ... and where
        ("drift", np.float64),  # as in NODE, of an outcome never seen
        ("evidence", np.float64),  # in trees: log M here and, on average, below
        *LINKS,
    ],
    align=True,
)

# By depth h = 0..H-1.
LEVEL = np.dtype(
    [
        ("span", np.float64),  # sigma_(H-h), the largest value
        ("cash", np.float64),
        ("weight", np.float64),  # of lambda: gamma^-h, or 1/sigma_H where evidence is pooled
        ("excess", np.float64),  # by how much W may exceed the span, relative to lambda
        ("tolerance", np.float64),
        ("price", np.float64),  # of the set of transitions
    ]
)

RULES = np.dtype(
    [
        ("gamma", np.float64),
        ("epsilon", np.float64),  # the gap to stop at
        ("resolution", np.float64),  # epsilon, or a small part of the range where that is 0
        ("low", np.float64),  # what 0 and 1 stand for, in the user's units
        ("width", np.float64),
        ("offset", np.float64),
        ("slope", np.float64),
        ("least", np.float64),  # least lambda
        ("kappa", np.float64),  # the same over the resolution
        ("log_share", np.float64),  # log(1/delta_s) of the penalised product
        ("delta_exploit", np.float64),
        ("delta_forced", np.float64),
        ("step", np.float64),  # of the grid of bounds
        ("stride", np.int64),  # of it to one of the grid of forced bets
        ("normaliser", np.float64),  # lgamma(B/2) - B lgamma(1/2)
        ("horizon", np.int64),
        ("cut", np.int64),  # an exploring episode ends after a pair visited fewer times
        ("bettors", np.int64),  # actions that have begun to bet ...
        ("forcers", np.int64),  # ... and on forced episodes
        ("most_actions", np.int64),  # of a state; where that is not known, what there is room for
        ("due", np.int64),  # calls at the next certificate, where nodes are merged ...
        ("sweeps", np.int64),  # ... and how many there were
        ("forced", np.bool_),  # whether the next episode is
        ("merged", np.bool_),
        ("pooled", np.bool_),  # merged over depths, evidence and all
        ("told", np.bool_),  # whether rewards are, by the model or by one visit
        ("learns", np.bool_),  # whether transitions are to be learnt
        ("same_actions", np.bool_),
        ("value_goal", np.bool_),
        ("fixed_rewards", np.bool_),
        ("known_rewards", np.bool_),
        ("known_transitions", np.bool_),
    ],
    align=True,
)

# By the number of steps to go, 0..H: the largest value, that of an unknown state (learnt), of the end.
STEPS = np.dtype([("sigma", np.float64), ("prior", np.float64), ("ended", np.float64)])

# Room to work in: a distribution and values on it; scores of actions, and their pairs; terms of a sum.
SCRATCH = np.dtype(
    [
        ("p", np.float64),
        ("f", np.float64),
        ("score", np.float64),
        ("link", np.int64),
        ("term", np.float64),
    ]
)

EXPLORE, EXPLOIT, FORCED = 0, 1, 2

# What the next episode does.
DECISION = np.dtype([("best", np.int64), ("kind", np.int64), ("play", np.int64)])

# Constants, chosen on the families for it in benchmarks/families.py. No bound rests on them; that the
# search ends rests on some (docs/bracket.md).
PRIOR = 0.6  # value of what was never seen, relative to the largest, at first
POOL_WEIGHT = 4.0  # visits that the pooled model counts for
CUT = 10  # see RULES
ANYTIME_CUT = 3  # the same where there is no gap to stop at
EXPLOIT_COST = 1.4  # calls of an exploit episode, relative to H, in the choice what to do next
EXPLORE_GAIN = 0.35  # part of the width above an estimate that exploring can take off
EXPLORE_START = 6.0  # calls that an action counts as having had
TIED = 0.1  # part of epsilon within which upper bounds are tied
REBUILD_GROWTH = 1.15  # of an action's calls, before its lambda is changed again
NEAR = 1.25  # factor within which lambda is left alone ...
SETTLED = 1.1  # ... unless it is to be the least one, and exceeds it by more than this factor
SETTLING_CALLS = 100.0  # lambda ends at the least one, in the long run: see `adapt`
SWEEP_GROWTH, SWEEP_CALLS = 1.05, 20  # of the calls, between two sweeps of a graph
FORCED_EVERY = 100  # episodes in a tree ...
FORCED_SWEEPS = 4  # ... and sweeps of a graph, after which all W are up to date
_TIE = 1e-12


class Bounds(NamedTuple):
    """Upper bounds, by depth where nodes and pairs stand for all depths; column 0 is all otherwise."""

    nodes: NDArray[np.float64]  # largest W of a state's actions
    caps: NDArray[np.float64]  # largest value of a state: the span, or less where the user knows
    pairs: NDArray[np.float64]  # W


class Search(NamedTuple):
    """Everything a chunk of episodes works on, the model and the random streams apart."""

    tree: TreeArrays
    bounds: Bounds
    bets: NDArray[np.float64]  # bets[pair, j]: S_j, on its weight
    stakes: NDArray[np.float64]  # stakes[h, j]: a_j
    pool: Pool
    graph: Graph  # of no use where nodes are not merged
    rules: Any  # one record of RULES
    levels: Any  # records of LEVEL
    steps: Any  # records of STEPS
    entropies: NDArray[np.float64]  # n log n - lgamma(n + 1/2) for small n
    promises: Any  # one record of PROMISES
    root: Any  # records of ARM
    moments: Any  # moments[action, q], records of MOMENTS
    wealth: NDArray[np.float64]  # wealth[account, grid point, q]
    forced_wealth: NDArray[np.float64]  # forced_wealth[account, grid point, fraction]
    decision: Any  # one record of DECISION
    path: Any  # records of STEP
    scratch: Any  # records of SCRATCH
    report: Any  # one record of REPORT


@inlined
def _column(rules: Any, h: int) -> int:
    """Where the bounds of depth h are kept."""
    return h if rules.pooled else 0


@inlined
def _depths(rules: Any, h: int) -> tuple[int, int]:
    """The depths, from and up to, that a node first seen at depth h stands for."""
    return (0, int(rules.horizon)) if rules.pooled else (h, h + 1)


@inlined
def _cap(search: Search, model: Any, at: int, first: int) -> int:
    """Limit the value of a new node by what the user knows; returns a status."""
    state, rules, bounds = search.tree.nodes[at].state, search.rules[0], search.bounds
    start, stop = _depths(rules, first)
    for h in range(start, stop):
        # Whatever the user's function does, what is left behind holds.
        bounds.caps[at, _column(rules, h)] = search.levels[h].span
        bounds.nodes[at, _column(rules, h)] = search.levels[h].span
    for h in range(start, stop):
        span = search.levels[h].span
        _, high = handles.value_bounds(model, state, h)
        if np.isnan(high):
            return break_promise(search.report, BAD_BOUNDS, state, 0, h, 0.0)
        # Where nodes are merged, the span is larger than any value by what evidence may add.
        largest_value = search.steps.sigma[rules.horizon - h]
        known = (high - rules.low * largest_value) / rules.width
        cap = max(0.0, min(span, known + span - largest_value))
        column = _column(rules, h)
        bounds.caps[at, column] = cap
        bounds.nodes[at, column] = cap
    return CHUNK_DONE


@inlined
def _plant(search: Search, model: Any, state: int) -> int:
    """Make the root; returns a status."""
    rules, tree = search.rules[0], search.tree
    actions = search.root.size
    add_node(tree, state, actions, 0.0, 0.0)
    status = _cap(search, model, 0, 0)
    span = search.bounds.caps[0, 0]
    root = tree.nodes[0]
    root.place = find_place(search.pool, state, actions, search.steps.prior)
    root.branch = NONE
    if rules.merged:
        join(search.graph, 0, state, 0)
    for action in range(actions):
        arm = search.root[action]
        arm.upper = span
        arm.estimate = PRIOR * span
        arm.penalty = rules.least
        arm.pair = NONE
    if rules.known_rewards:
        _expand_known(search, model, 0, 0)
        for link in range(actions):
            pair = tree.pairs[link]
            arm = search.root[pair.action]
            arm.pair = link
            arm.upper = min(span, search.bounds.pairs[link, 0])
            arm.estimate = pair.estimate
    return status


@inlined
def _expand_known(search: Search, model: Any, at: int, first: int) -> None:
    """Give every action of a new node its pair: where rewards are known, each is worth its own."""
    tree, rules, promise = search.tree, search.rules[0], search.promises[0]
    node, bounds = tree.nodes[at], search.bounds
    start, stop = _depths(rules, first)
    node.estimate = -np.inf
    for action in range(node.actions):
        raw = handles.mean_reward(model, node.state, action, first)
        reward = rules.offset + rules.slope * (raw - promise.lowest) / promise.width
        link = add_pair(tree, at, action)
        pair = tree.pairs[link]
        pair.reward = reward
        pair.estimate = reward + rules.gamma * search.steps.prior[rules.horizon - first - 1]
        pair.guess = 1.0
        node.estimate = max(node.estimate, pair.estimate)
        for h in range(start, stop):
            after = search.levels[h + 1].span if h + 1 < rules.horizon else 0.0
            column = _column(rules, h)
            bounds.pairs[link, column] = min(reward + rules.gamma * after, bounds.caps[at, column])
    for h in range(start, stop):
        _refresh_node(tree, search.bounds, rules, at, h)


@inlined
def _refresh_node(tree: TreeArrays, bounds: Bounds, rules: Any, at: int, h: int) -> None:
    """The largest W of a node at depth h."""
    node, column = tree.nodes[at], _column(rules, h)
    upper = bounds.caps[at, column] if node.tried < node.actions else -np.inf
    evidence = 0.0
    link = node.first
    while link != NONE:
        if bounds.pairs[link, column] > upper:
            upper = bounds.pairs[link, column]
            evidence = tree.pairs[link].evidence
        link = tree.pairs[link].sibling
    bounds.nodes[at, column] = upper
    node.evidence = evidence


@inlined
def _value(graph: Graph, bounds: Bounds, rules: Any, outcome: int, h: int) -> float:
    """f: the largest W of an outcome's state at depth h."""
    at = canonical(graph, rules.merged, outcome)
    return float(bounds.nodes[at, _column(rules, h)])


@inlined
def _best_outcome(search: Search, link: int, h: int, after: float) -> tuple[float, int]:
    """Largest f among the outcomes of a pair at depth h, `after` for one never seen; how many were."""
    tree, rules = search.tree, search.rules[0]
    top = -np.inf
    seen = 0
    step = tree.pairs[link].child
    while step != NONE:
        top = max(top, _value(search.graph, search.bounds, rules, step, h + 1))
        seen += 1
        step = tree.nodes[step].sibling
    if seen < search.promises[0].successors:
        top = max(top, after)
    return top, seen


@inlined
def _count_term(entropies: Any, n: int) -> float:
    """What n visits add to the complexity: n log n - lgamma(n + 1/2)."""
    if n < entropies.size:
        return float(entropies[n])
    return n * log(n) - log_gamma(n + 0.5)


@inlined
def _drift_bound(search: Search, link: int, h: int, top: float, seen: int, after: float) -> float:
    """The largest p.(mean d - d now) over the KL ball of the transitions, never too small."""
    tree, rules, ball = search.tree, search.rules[0], search.scratch
    pair, outcomes = tree.pairs[link], search.promises[0].successors
    n = pair.n
    complexity = log_gamma(n + 0.5 * outcomes) - n * log(n) - rules.normaliser
    k = 0
    step = pair.child
    while step != NONE:
        node = tree.nodes[step]
        ball[k].p = node.count / n
        value = _value(search.graph, search.bounds, rules, step, h + 1)
        ball[k].f = node.drift / n - rules.gamma * (top - value)
        complexity += _count_term(search.entropies, node.count)
        k += 1
        step = node.sibling
    unseen = -np.inf
    if seen < outcomes:
        unseen = pair.drift / n - rules.gamma * (top - after)
        complexity += (outcomes - seen) * search.entropies[0]
    radius = max((search.levels[h].price + complexity) / n, 0.0)
    return kl_ball_max(ball.p, ball.f, seen, unseen, radius)


@inlined
def _goes_on(rules: Any, h: int) -> bool:
    """Whether it matters where a call at depth h leads: after the last step it tells other depths."""
    return bool(rules.pooled or h + 1 < rules.horizon)


@inlined
def _pair_upper(
    search: Search, model: Any, at: int, link: int, h: int, penalty: float, renewed: bool
) -> None:
    """W(e) = gamma max f + max_y [ y - lambda weight_h log M(y) ] + max_p p.(mean d - d now).

    `renewed` says that nothing was bet since the first maximum was found, with the same lambda.
    """
    tree, rules, level = search.tree, search.rules[0], search.levels[h]
    pair = tree.pairs[link]
    goes_on = _goes_on(rules, h)
    random_next = goes_on and rules.learns
    value = pair.reward if rules.told else 0.0
    if (random_next or not rules.told) and not renewed:
        pair.stake, pair.guess = penalised_max(
            search.bets[link],
            search.stakes[h],
            pair.n,
            level.cash,
            penalty * level.weight,
            pair.guess,
            level.tolerance,
            search.scratch.term,
        )
    evidence = 0.0
    if random_next or not rules.told:
        # Where the reward is told, the bets are on 1 - d.
        value += pair.stake - (1.0 if rules.told else 0.0)
        evidence = (pair.guess - pair.stake) / (penalty * level.weight)
    if goes_on:
        after = search.levels[h + 1].span if h + 1 < rules.horizon else 0.0
        if rules.known_transitions:
            expected = 0.0
            left = 1.0
            state = tree.nodes[at].state
            step = pair.child
            while step != NONE:
                node = tree.nodes[step]
                ended = node.actions == 0
                p = handles.probability(model, state, pair.action, h, node.state, ended)
                expected += p * _value(search.graph, search.bounds, rules, step, h + 1)
                left -= p
                step = node.sibling
            value += rules.gamma * (expected + max(left, 0.0) * after)
        else:
            top, seen = _best_outcome(search, link, h, after)
            value += rules.gamma * top
            if random_next:
                value += _drift_bound(search, link, h, top, seen, after)
        if not rules.merged:
            step = pair.child
            while step != NONE:
                node = tree.nodes[step]
                evidence += node.count / pair.n * node.evidence
                step = node.sibling
    # No evidence can carry W further: log M >= log cash at every depth below.
    column = _column(rules, h)
    most = search.bounds.caps[at, column] + penalty * level.excess
    pair.evidence = evidence if value <= most else 0.0
    search.bounds.pairs[link, column] = max(0.0, min(value, most))


@inlined
def _score(search: Search, at: int, h: int) -> int:
    """Estimates of a node's actions, tree and pool together, and their pairs, in `scratch`.

    Returns how many; 0 where there are too many for the room there is.
    """
    tree, rules = search.tree, search.rules[0]
    node = tree.nodes[at]
    if node.actions > search.scratch.score.size:
        return 0
    k = rules.horizon - h
    for action in range(node.actions):
        search.scratch.score[action] = pooled_value(
            search.pool,
            node.place,
            action,
            k,
            rules.gamma,
            search.steps.prior,
            search.steps.ended,
        )
        search.scratch.link[action] = NONE
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        if not rules.pooled:
            # What was seen after this history counts for more than what the pool says of its state.
            pooled = search.scratch.score[pair.action]
            weight = pair.n + POOL_WEIGHT
            search.scratch.score[pair.action] = (pair.n * pair.estimate + POOL_WEIGHT * pooled) / weight
        search.scratch.link[pair.action] = link
        link = pair.sibling
    return int(node.actions)


@inlined
def _pair_estimate(search: Search, link: int, h: int) -> None:
    """Plug-in estimate of a pair that was visited."""
    tree, rules = search.tree, search.rules[0]
    pair = tree.pairs[link]
    estimate = pair.reward if rules.told else (pair.reward + search.steps.prior[1]) / (pair.n + 1)
    if h + 1 < rules.horizon:
        total = 0.0
        step = pair.child
        while step != NONE:
            node = tree.nodes[step]
            state = canonical(search.graph, rules.merged, step)
            total += node.count * tree.nodes[state].estimate
            step = node.sibling
        estimate += rules.gamma * total / pair.n
    pair.estimate = estimate


@inlined
def _node_estimate(search: Search, at: int, h: int) -> None:
    """The largest estimate of a node's actions."""
    tree, node = search.tree, search.tree.nodes[at]
    count = _score(search, at, h)
    if count > 0:
        node.estimate = largest(search.scratch.score[:count])
        return
    best = search.steps.prior[search.rules[0].horizon - h] if node.tried < node.actions else -np.inf
    link = node.first
    while link != NONE:
        best = max(best, tree.pairs[link].estimate)
        link = tree.pairs[link].sibling
    node.estimate = best


@inlined
def _optimistic(tree: TreeArrays, bounds: Bounds, column: int, at: int, ties: Any) -> int:
    """The pair with the largest W, NONE for an action never tried; ties at random."""
    node = tree.nodes[at]
    tied = node.actions - node.tried
    best = bounds.caps[at, column] if tied > 0 else -np.inf
    chosen = NONE
    link = node.first
    while link != NONE:
        upper = bounds.pairs[link, column]
        if upper > best + _TIE:
            best = upper
            chosen = link
            tied = 1
        elif upper >= best - _TIE:
            tied += 1
            if ties.random() * tied < 1.0:
                chosen = link
        link = tree.pairs[link].sibling
    return chosen


@inlined
def _add_pair(search: Search, at: int, action: int, h: int) -> int:
    link = add_pair(search.tree, at, action)
    pair, bounds = search.tree.pairs[link], search.bounds
    for column in range(bounds.caps.shape[1]):
        bounds.pairs[link, column] = bounds.caps[at, column]
    cap = bounds.caps[at, _column(search.rules[0], h)]
    pair.estimate = min(cap, search.steps.prior[search.rules[0].horizon - h])
    pair.guess = 1.0
    if at == 0:
        search.root[action].pair = link
    return link


@inlined
def _choose(search: Search, at: int, h: int, kind: int, play: int, ties: Any) -> int:
    """The pair to visit at depth h, made if need be."""
    if h == 0:
        link = search.root[play].pair
        if link == NONE:
            link = _add_pair(search, at, play, 0)
        return int(link)
    action = NONE
    count = _score(search, at, h) if kind == EXPLOIT else 0
    if count > 0:
        action = argmax_at_random(search.scratch.score[:count], NONE, _TIE, ties)
        link = search.scratch.link[action]
    else:
        column = _column(search.rules[0], h)
        link = _optimistic(search.tree, search.bounds, column, at, ties)
    if link == NONE:
        if action == NONE:
            action = untried_action(search.tree, at, ties)
        link = _add_pair(search, at, action, h)
    return int(link)


@inlined
def simulate(
    search: Search, model: Any, most: int, rng: Any, ties: Any
) -> tuple[int, float, bool, int]:
    """Play one episode of at most `most` steps, and add what it tells to the bets of its pairs.

    Before a call the values f of the outcomes are fixed, and with them d = gamma (max f - f); the bet
    is on r - d(s') <= 1, reward and successor together.

    Returns:
        Its length, its return, whether it came to its end, and CHUNK_DONE or why it was cut short.
    """
    tree, rules, pool, path = search.tree, search.rules[0], search.pool, search.path
    promises, report, decision = search.promises, search.report, search.decision[0]
    outcomes = promises[0].successors
    at = 0
    earned = 0.0
    discount = 1.0
    for h in range(min(rules.horizon, most)):
        left = rules.horizon - h - 1
        link = _choose(search, at, h, decision.kind, decision.play, ties)
        pair = tree.pairs[link]
        node = tree.nodes[at]
        # Decided before the call, so that what is cut off is not chosen by its outcome.
        cut = decision.kind == EXPLORE and pair.n < rules.cut
        after = search.levels[h + 1].span if left > 0 else 0.0
        top, seen = _best_outcome(search, link, h, after)
        successor, reward, ended, status = call_model(
            promises, report, model, node.state, pair.action, h, rng
        )
        if status != CHUNK_DONE:
            return h, earned, False, status
        x = rules.offset + rules.slope * reward
        if rules.fixed_rewards:
            if pair.n > 0 and abs(pair.reward - x) > 1e-9:
                promise = promises[0]
                raw = promise.lowest + promise.width * reward
                status = break_promise(report, REWARD_VARIES, node.state, pair.action, h, raw)
                return h, earned, False, status
            pair.reward = x
        elif not rules.known_rewards:
            pair.reward += x
        child = NONE
        drift = 0.0
        place = ENDED
        if _goes_on(rules, h):
            if rules.learns:
                step = pair.child
                while step != NONE:
                    seen_node = tree.nodes[step]
                    value = _value(search.graph, search.bounds, rules, step, h + 1)
                    seen_node.drift += rules.gamma * (top - value)
                    step = seen_node.sibling
                if seen < outcomes:
                    pair.drift += rules.gamma * (top - after)
            child, new, status = follow(
                tree, promises, report, model, at, link, successor, ended, h, after, 0.0
            )
            if status != CHUNK_DONE:
                return h, earned, False, status
            outcome = tree.nodes[child]
            if rules.learns:
                # A new outcome was an unseen one when d was fixed.
                value = after if new else _value(search.graph, search.bounds, rules, child, h + 1)
                drift = rules.gamma * (top - value)
            if new:
                status = _settle(search, model, child, h, link, ended)
                if status != CHUNK_DONE:
                    return h, earned, False, status
            outcome.count += 1
            place = outcome.place
        elif not ended:
            # Nothing is done in this state, so its actions are not asked for.
            if rules.same_actions:
                place = find_place(pool, successor, search.root.size, search.steps.prior)
            else:
                place = find(pool.places, successor, 0)
        z = (1.0 if rules.told else x) - drift
        for j in range(search.stakes.shape[1]):
            search.bets[link, j] += log_stake(search.stakes[h, j], z)
        pair.n += 1
        # After the last step a state may be new to the pool, and then does not count as an outcome that
        # has no place: later draws would be told apart from it.
        if place != NONE or left > 0:
            record(pool, node.place, pair.action, x, place)
        step_record = path[h]
        step_record.node = at
        step_record.pair = link
        earned += discount * x
        discount *= rules.gamma
        if ended:
            return h + 1, earned + discount * search.steps.ended[left], True, CHUNK_DONE
        if cut:
            return h + 1, earned, False, CHUNK_DONE
        if left > 0:
            at = canonical(search.graph, rules.merged, child)
    return min(rules.horizon, most), earned, most >= rules.horizon, CHUNK_DONE


@inlined
def _settle(search: Search, model: Any, child: int, h: int, link: int, ended: bool) -> int:
    """Fill in a new node, an outcome of pair `link` at depth h; returns a status."""
    tree, rules = search.tree, search.rules[0]
    node = tree.nodes[child]
    left = rules.horizon - h - 1
    node.depth = 0 if rules.pooled else h + 1
    node.branch = search.decision[0].play
    node.drift = tree.pairs[link].drift
    if ended:
        if rules.merged:
            search.graph.canonical[child] = child
        node.place = ENDED
        node.estimate = search.steps.ended[left]
        start, stop = _depths(rules, node.depth)
        for depth in range(start, stop):
            worth = search.steps.ended[rules.horizon - depth]
            search.bounds.nodes[child, _column(rules, depth)] = worth
        return CHUNK_DONE
    node.place = find_place(search.pool, node.state, node.actions, search.steps.prior)
    if rules.merged and not join(search.graph, child, node.state, node.depth):
        return CHUNK_DONE
    status = _cap(search, model, child, node.depth)
    node.estimate = search.steps.prior[left]
    if node.place != NONE:
        node.estimate = search.pool.values[node.place, left]
    node.estimate = min(search.bounds.caps[child, 0], node.estimate)
    if rules.known_rewards:
        _expand_known(search, model, child, node.depth)
    return status


@inlined
def backward(search: Search, model: Any, length: int) -> None:
    """Renew W and the estimates on the path, from the last step to the first, and U of its action."""
    tree, rules, pool = search.tree, search.rules[0], search.pool
    arm = search.root[search.decision[0].play]
    for h in range(length - 1, -1, -1):
        at = search.path[h].node
        link = search.path[h].pair
        _pair_upper(search, model, at, link, h, arm.penalty, False)
        _refresh_node(tree, search.bounds, rules, at, h)
        node = tree.nodes[at]
        left = rules.horizon - h
        if node.place >= 0:
            refresh(pool, node.place, left, rules.gamma, search.steps.prior, search.steps.ended)
        if not rules.pooled:
            _pair_estimate(search, link, h)
            _node_estimate(search, at, h)
    if rules.pooled:
        arm.estimate = pooled_value(
            pool,
            tree.nodes[0].place,
            search.decision[0].play,
            rules.horizon,
            rules.gamma,
            search.steps.prior,
            search.steps.ended,
        )
    else:
        arm.estimate = tree.pairs[arm.pair].estimate
    # The evidence behind one bound must be of one time. In a tree all W above a visit are renewed with
    # it; where nodes are merged, those on other ways to the same state are not.
    if not rules.merged:
        _renew_arm(rules, search.bounds, arm)
    arm.calls += length


@inlined
def _renew_arm(rules: Any, bounds: Bounds, arm: Any) -> None:
    """U of an action of the root, whose W is up to date."""
    bound = arm.penalty * rules.log_share + bounds.pairs[arm.pair, 0]
    arm.upper = min(arm.upper, bound)


@inlined
def certify(search: Search, model: Any) -> None:
    """Renew all W of a merged graph, from the last step to the first, and U with them."""
    tree, rules = search.tree, search.rules[0]
    for h in range(rules.horizon - 1, -1, -1):
        at = search.graph.heads[0 if rules.pooled else h]
        while at != NONE:
            if halted(search.report):
                return
            link = tree.nodes[at].first
            while link != NONE:
                if tree.pairs[link].n > 0:
                    # Every visit renewed its own.
                    _pair_upper(search, model, at, link, h, rules.least, True)
                link = tree.pairs[link].sibling
            _refresh_node(tree, search.bounds, rules, at, h)
            at = search.graph.peer[at]
    for action in range(search.root.size):
        if search.root[action].pair != NONE:
            _renew_arm(rules, search.bounds, search.root[action])


@inlined
def adapt(search: Search, model: Any, play: int) -> None:
    """Let lambda of an action follow the evidence: U is least where that equals log(1/delta_s).

    (U = lambda log(1/delta_s) + W, and W falls with lambda as fast as evidence against it is large.)
    Every lambda is valid at every time, on one event; but all W of the branch must be of one lambda, so
    they are renewed, children before parents.
    """
    tree, rules, arm = search.tree, search.rules[0], search.root[play]
    if (
        rules.merged
        or rules.log_share == 0.0
        or arm.pair == NONE
        or arm.calls < REBUILD_GROWTH * arm.rebuilt
        or tree.pairs[arm.pair].n == 0
    ):
        return
    change = min(max(tree.pairs[arm.pair].evidence / rules.log_share, 0.5), 2.0)
    most = rules.kappa * search.levels[0].span / sqrt(1.0 + arm.calls / SETTLING_CALLS)
    wanted = max(rules.least, min(arm.penalty * change, most))
    ratio = arm.penalty / wanted
    if 1.0 / NEAR <= ratio <= NEAR and not (wanted <= rules.least and ratio > SETTLED):
        return
    arm.penalty = wanted
    arm.rebuilt = arm.calls
    for at in range(tree.used[0] - 1, 0, -1):
        if halted(search.report):
            return
        node = tree.nodes[at]
        if node.branch == play and node.actions > 0:
            link = node.first
            while link != NONE:
                if tree.pairs[link].n > 0:
                    _pair_upper(search, model, at, link, node.depth, wanted, False)
                link = tree.pairs[link].sibling
            _refresh_node(tree, search.bounds, rules, at, node.depth)
    _pair_upper(search, model, 0, arm.pair, 0, wanted, False)
    _renew_arm(rules, search.bounds, arm)


@inlined
def decide(root: Any, rules: Any, decision: Any, episodes: int, ties: Any) -> None:
    """Which episode comes next: exploit the best estimate, or explore what keeps the gap open.

    Where there is no gap to stop at, every other episode explores the wider of the best and its rival
    instead, which serves the choice more than the certificate.
    """
    best = argmax_at_random(root.estimate, NONE, _TIE, ties)
    decision.best = best
    rival = NONE
    # With one action there is nothing to choose, but its value may be asked for.
    if root.size > 1 or rules.value_goal:
        rival = argmax_at_random(root.upper, NONE if rules.value_goal else best, _TIE, ties)
    if not rules.merged:
        rules.forced = (episodes + 1) % FORCED_EVERY == 0
    if rules.forced:
        rules.forced = False
        decision.kind = FORCED
        decision.play = argmax_at_random(root.upper, NONE, _TIE, ties)
        return
    arm = root[best]
    hope = arm.estimate
    if arm.exploits > 0:
        hope = max(hope, arm.returns / arm.exploits)
    least = 1e-3 * min(1.0, rules.resolution)
    below = EXPLOIT_COST * rules.horizon * (arm.exploits + 1) / max(hope - arm.lower, least)
    above = 0.0
    for a in range(root.size):
        near = rival != NONE and root[a].upper >= root[rival].upper - TIED * rules.resolution
        if near and (a != best or rules.value_goal):
            room = max(root[a].upper - root[a].estimate, least)
            above += (root[a].calls + EXPLORE_START) / (EXPLORE_GAIN * room)
    decision.kind = EXPLOIT if below < above or rival == NONE else EXPLORE
    decision.play = best if decision.kind == EXPLOIT else rival
    if rules.epsilon == 0.0 and rival != NONE and episodes % 2 != 0:
        decision.kind = EXPLORE
        wide = root[best].upper - root[best].estimate > root[rival].upper - root[rival].estimate
        decision.play = best if wide else rival


@inlined
def satisfied(root: Any, rules: Any, decision: Any) -> bool:
    """The stopping rule: max_{a != b} U(a) - L(b) <= epsilon for some b, which is then the answer.

    For the value goal, max U - max L <= 2 epsilon.
    """
    if rules.value_goal:
        return bool(largest(root.upper) - largest(root.lower) <= 2.0 * rules.epsilon)
    best, least = least_gap(root.upper, root.lower)
    if least <= rules.epsilon:
        decision.best = best
        return True
    return False


@kernel
def run(
    search: Search, model: Any, state: int, most_episodes: int, most_calls: int, rng: Any, ties: Any
) -> int:
    """Play episodes until one of the reasons in `pacplan.search.kernel` to return."""
    tree, rules, report = search.tree, search.rules[0], search.report[0]
    decision = search.decision[0]
    if tree.used[0] == 0:
        status = _plant(search, model, state)
        if status != CHUNK_DONE:
            return status
    pairs = rules.horizon
    if rules.known_rewards:
        pairs *= max(search.promises[0].most_actions, search.root.size)
    for _ in range(most_episodes):
        if rules.merged and (report.calls >= rules.due or report.calls >= most_calls):
            rules.due = int(SWEEP_GROWTH * report.calls) + SWEEP_CALLS
            rules.sweeps += 1
            rules.forced = rules.sweeps % FORCED_SWEEPS == 0
            certify(search, model)
        if satisfied(search.root, rules, decision):
            return RULE
        if report.calls >= most_calls:
            return SPENT
        if (
            tree.used[0] + rules.horizon > tree.nodes.size
            or tree.used[1] + pairs > tree.pairs.size
            or search.bets.shape[0] < tree.pairs.size
            or (rules.merged and not has_room(search.graph.table, rules.horizon))
            or not pool_has_room(search.pool, rules.horizon, rules.most_actions)
            or search.wealth.shape[0] <= rules.bettors < search.root.size
            or search.forced_wealth.shape[0] <= rules.forcers < search.root.size
        ):
            return NO_ROOM
        sweep(
            search.pool,
            search.report,
            rules.gamma,
            search.steps.sigma,
            search.steps.prior,
            search.steps.ended,
        )
        decide(search.root, rules, decision, report.episodes, ties)
        adapt(search, model, decision.play)
        most = most_calls - report.calls
        length, earned, whole, status = simulate(search, model, most, rng, ties)
        if length > 0:
            backward(search, model, length)
            report.calls += length
            report.episodes += 1
        if status != CHUNK_DONE:
            return status
        if whole and decision.kind == EXPLOIT:
            moments = search.moments[decision.play]
            bet_exploit(rules, search.root[decision.play], moments, search.wealth, earned)
        elif whole and decision.kind == FORCED:
            arm = search.root[decision.play]
            bet_forced(rules, arm, search.root.size, search.forced_wealth, earned)
    return CHUNK_DONE
