"""Bracket from above: W of pairs, f of nodes, U of the root's actions (docs/bracket.md, "Above")."""

from math import exp, log
from typing import Any

import numpy as np

from pacplan.algorithms.bracket.constants import FINAL_SURPLUS
from pacplan.algorithms.bracket.records import Bounds
from pacplan.algorithms.bracket.state_model import ENDED
from pacplan.bounds.product import log_stake, penalised_max
from pacplan.bounds.simplex import ball_max
from pacplan.compiled.jit import called, inlined
from pacplan.engine.graph import Graph, canonical, pools
from pacplan.engine.tree import NONE, TreeArrays
from pacplan.models import handles


@inlined
def column(graph: Graph | None, h: int) -> int:
    """Where the bounds of depth h are kept."""
    if graph is None:
        return 0
    return h if graph.pooled else 0


@inlined
def depths(graph: Graph | None, horizon: int, h: int) -> tuple[int, int]:
    """The range of depths, its end excluded, that a node first seen at depth h stands for."""
    return (0, int(horizon)) if pools(graph) else (h, h + 1)


@inlined
def goes_on(search: Any, h: int) -> bool:
    """Whether it matters where a call at depth h leads: after the last step only to other depths."""
    return bool(h + 1 < search.settings[0].horizon or pools(search.graph))


@inlined
def unseen_value(search: Any, h: int) -> float:
    """The f of an outcome never seen after a call at depth h."""
    return float(search.levels[h + 1].span) if h + 1 < search.settings[0].horizon else 0.0


@inlined
def outcome_value(graph: Graph | None, bounds: Bounds, outcome: int, h: int) -> float:
    """The f of an outcome after a call at depth h: the largest W of its state at the next depth."""
    if graph is None:
        return float(bounds.nodes[outcome, 0])
    return float(bounds.nodes[graph.canonical[outcome], h + 1 if graph.pooled else 0])


@inlined
def outcome_estimate(search: Any, outcome: int, h: int) -> float:
    """The estimate of an outcome after a call at depth h."""
    node, left = search.tree.nodes[outcome], search.settings[0].horizon - h - 1
    if not pools(search.graph):
        return float(search.tree.nodes[canonical(search.graph, outcome)].estimate)
    if node.place == ENDED:
        return float(search.steps.ended[left])
    return float(
        search.steps.prior[left] if node.place == NONE else search.pool.values[node.place, left]
    )


@inlined
def says_nothing(search: Any, link: int) -> bool:
    """Whether a call of a pair at the last step would tell nothing, since its reward is revealed.

    Where it leads counts if evidence is pooled over depths.
    """
    settings = search.settings[0]
    revealed = settings.pays_means or (settings.fixed_rewards and search.tree.pairs[link].n > 0)
    return bool(revealed and not pools(search.graph))


@inlined
def _looks_ahead(search: Any) -> bool:
    """Whether bets go by what f may be in the end: in graphs, if there is a gap to stop at."""
    return bool(search.graph is not None and search.settings[0].epsilon != 0.0)


@inlined
def bet_depth(search: Any, h: int) -> int:
    """The depth whose f bets on a call at depth h go by: a middle one, if they look ahead and pool."""
    horizon = search.settings[0].horizon
    return min(horizon // 2, horizon - 2) if pools(search.graph) and _looks_ahead(search) else h


@inlined
def final_part(search: Any) -> float:
    """Which part of f's surplus over the estimates may be left when the search ends, roughly.

    That of the action played is then at most epsilon and what it is worse than the best.
    """
    settings, decision = search.settings[0], search.decision[0]
    if not _looks_ahead(search):
        return 1.0
    arm = search.root[decision.play]
    behind = search.root[decision.best].estimate - arm.estimate
    left = FINAL_SURPLUS * (settings.resolution + max(behind, 0.0))
    return float(left / max(arm.upper - arm.estimate, left))


@inlined
def final_value(search: Any, outcome: int, h: int, part: float) -> float:
    """What bets on a call at depth h go by, g: the f of an outcome, or what it may be in the end.

    f may exceed the largest value, by what evidence may add; g does not, so bets have a fixed range.
    """
    f = min(outcome_value(search.graph, search.bounds, outcome, h), unseen_value(search, h))
    if part == 1.0:
        return f
    estimate = min(max(outcome_estimate(search, outcome, h), 0.0), f)
    return estimate + part * (f - estimate)


@inlined
def best_outcome(search: Any, link: int, h: int, part: float) -> tuple[float, int]:
    """The largest g over the outcomes of a pair at depth h, seen or not, and how many were seen."""
    tree = search.tree
    top = -np.inf
    seen = 0
    outcome = tree.pairs[link].child
    while outcome != NONE:
        top = max(top, final_value(search, outcome, h, part))
        seen += 1
        outcome = tree.nodes[outcome].sibling
    if seen < search.problem[0].successors:
        top = max(top, unseen_value(search, h))
    return top, seen


@inlined
def _largest_value(search: Any, link: int, h: int) -> tuple[float, int]:
    """The largest f over the outcomes of a pair at depth h, seen or not, and how many were seen."""
    tree = search.tree
    top = -np.inf
    seen = 0
    outcome = tree.pairs[link].child
    while outcome != NONE:
        top = max(top, outcome_value(search.graph, search.bounds, outcome, h))
        seen += 1
        outcome = tree.nodes[outcome].sibling
    if seen < search.problem[0].successors:
        top = max(top, unseen_value(search, h))
    return top, seen


@inlined
def add_drifts(search: Any, link: int, h: int, part: float, top: float, seen: int) -> None:
    """Add d = gamma (max g - g), fixed before a call, to the sums of all outcomes of a pair."""
    tree, gamma = search.tree, search.settings[0].gamma
    pair = tree.pairs[link]
    outcome = pair.child
    while outcome != NONE:
        node = tree.nodes[outcome]
        node.drift += gamma * (top - final_value(search, outcome, h, part))
        outcome = node.sibling
    if seen < search.problem[0].successors:
        pair.drift += gamma * (top - unseen_value(search, h))


@inlined
def bet(search: Any, link: int, h: int, x: float) -> None:
    """A call of a pair at depth h gave x = r - d(s') <= 1: S_j += log(a_j - x)."""
    for j in range(search.stakes.shape[1]):
        search.bets[link, j] += log_stake(search.stakes[h, j], x)


@inlined
def _first_maximum(
    search: Any, link: int, h: int, penalty: float, renewed: bool
) -> tuple[float, float]:
    """max_y [ y - lambda weight_h log M(y) ], and log M where it was found.

    `renewed`: nothing was bet since it was last found, and lambda is the same.
    """
    level, pair = search.levels[h], search.tree.pairs[link]
    if not renewed:
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
    return pair.stake, (pair.guess - pair.stake) / (penalty * level.weight)


@inlined
def renew_stake(search: Any, link: int, h: int, penalty: float) -> None:
    """Renew the first maximum of a pair that was called, so that `refresh_pair` need not."""
    settings = search.settings[0]
    if not settings.told or (goes_on(search, h) and settings.learns):
        _first_maximum(search, link, h, penalty, False)


@inlined
def predict(search: Any, link: int, count: int, seen: int) -> None:
    """Note how probable the predictors thought an outcome, seen `count` times before this call."""
    n = search.tree.pairs[link].n
    for q in range(search.predictors.size):
        predictor = search.predictors[q]
        mass = predictor.fresh + predictor.fresher * seen
        if count > 0:
            mass = count - predictor.discount
        search.predicted[link, q] += log(mass / (n + predictor.strength))


@inlined
def _log_predicted(predicted: Any) -> float:
    """The log of the mean over predictors of what they gave to the outcomes of a pair."""
    top = predicted[0]
    for q in range(1, predicted.size):
        top = max(top, predicted[q])
    total = 0.0
    for q in range(predicted.size):
        total += exp(predicted[q] - top)
    return float(top + log(total / predicted.size))


@inlined
def _entropy(entropies: Any, n: int) -> float:
    """The number n log n."""
    return float(entropies[n]) if n < entropies.size else n * log(n)


@inlined
def _second_maximum(search: Any, at: int, link: int, h: int, top: float, seen: int) -> float:
    """The largest p.(mean d - d now) over the ball, never too small."""
    tree, settings, ball = search.tree, search.settings[0], search.scratch
    pair = tree.pairs[link]
    n = pair.n
    unseen = -np.inf
    if seen < search.problem[0].successors:
        unseen = pair.drift / n - settings.gamma * (top - unseen_value(search, h))
    counted = 0
    k = 0
    entropy = 0.0
    outcome = pair.child
    while outcome != NONE:
        node = tree.nodes[outcome]
        f = node.drift / n - settings.gamma * (
            top - outcome_value(search.graph, search.bounds, outcome, h)
        )
        count = node.count - settings.least_count
        if count > 0:
            ball[k].p = count
            ball[k].f = f
            counted += count
            entropy += _entropy(search.entropies, count)
            k += 1
        else:
            # To the ball it is like an outcome never seen.
            unseen = max(unseen, f)
        outcome = node.sibling
    if counted == 0:
        return float(unseen)
    for i in range(k):
        ball[i].p /= counted
    entropy -= _entropy(search.entropies, counted)
    price = search.levels[h].price + tree.nodes[at].price
    radius = max(price + entropy - _log_predicted(search.predicted[link]), 0.0) / counted
    return ball_max(ball.p, ball.f, k, unseen, radius)


@inlined
def _known_expectation(search: Any, model: Any, at: int, link: int, h: int) -> float:
    """p.f by the model's own probabilities."""
    tree = search.tree
    state, action = tree.nodes[at].state, tree.pairs[link].action
    expected = 0.0
    left = 1.0
    outcome = tree.pairs[link].child
    while outcome != NONE:
        node = tree.nodes[outcome]
        p = handles.probability(model, state, action, h, node.state, node.actions == 0)
        expected += p * outcome_value(search.graph, search.bounds, outcome, h)
        left -= p
        outcome = node.sibling
    return expected + max(left, 0.0) * unseen_value(search, h)


@inlined
def _with_evidence_below(tree: TreeArrays, graph: Graph | None, link: int, evidence: float) -> float:
    """The evidence on a pair, plus, in trees only, the average evidence below it."""
    if graph is not None:
        return evidence
    pair = tree.pairs[link]
    outcome = pair.child
    while outcome != NONE:
        node = tree.nodes[outcome]
        evidence += node.count / pair.n * node.evidence
        outcome = node.sibling
    return evidence


@called
def refresh_pair(
    search: Any, model: Any, at: int, link: int, h: int, penalty: float, renewed: bool
) -> None:
    """W(e) = gamma max f + max_y [ y - lambda weight_h log M(y) ] + max_p p.(mean d - d now).

    Cut to [0, cap + lambda weight_h C_h]. For `renewed` see `_first_maximum`.
    """
    settings, level = search.settings[0], search.levels[h]
    pair, place = search.tree.pairs[link], column(search.graph, h)
    next_matters = goes_on(search, h)
    random_next = next_matters and settings.learns
    value = pair.reward if settings.told else 0.0
    evidence = 0.0
    if random_next or not settings.told:
        found, evidence = _first_maximum(search, link, h, penalty, renewed)
        # If the reward is told, the bets are on 1 - d.
        value += found - (1.0 if settings.told else 0.0)
    if next_matters and settings.known_transitions:
        value += settings.gamma * _known_expectation(search, model, at, link, h)
    elif next_matters:
        top, seen = _largest_value(search, link, h)
        value += settings.gamma * top
        if random_next:
            value += _second_maximum(search, at, link, h, top, seen)
    if next_matters:
        evidence = _with_evidence_below(search.tree, search.graph, link, evidence)
    # No evidence can carry W further: log M >= log cash at every depth below.
    most = search.bounds.caps[at, place] + penalty * level.excess
    pair.evidence = evidence if value <= most else 0.0
    search.bounds.pairs[link, place] = max(0.0, min(value, most))


@inlined
def refresh_node(search: Any, at: int, h: int) -> None:
    """f: the largest W of a node at depth h, including that of an action never tried."""
    tree, bounds, place = search.tree, search.bounds, column(search.graph, h)
    node = tree.nodes[at]
    upper = bounds.caps[at, place] if node.tried < node.actions else -np.inf
    evidence = 0.0
    link = node.first
    while link != NONE:
        if bounds.pairs[link, place] > upper:
            upper = bounds.pairs[link, place]
            evidence = tree.pairs[link].evidence
        link = tree.pairs[link].sibling
    bounds.nodes[at, place] = upper
    node.evidence = evidence


@inlined
def refresh_arm(search: Any, action: int) -> None:
    """U(a) = min over time of lambda log(1/delta_s) + W(a); all W of its branch are up to date."""
    arm = search.root[action]
    if arm.pair != NONE:
        bound = arm.penalty * search.settings[0].log_share + search.bounds.pairs[arm.pair, 0]
        arm.upper = min(arm.upper, bound)
