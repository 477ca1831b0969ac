"""TrailBlazer (Grill, Valko, Munos 2016): a value, with few calls off the nearly optimal paths."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_endless, check_gamma_below_one, most_actions
from pacplan.algorithms.common.plans import best_estimate, estimates_plan
from pacplan.algorithms.common.stepwise import StepSearch
from pacplan.algorithms.common.units import Units, units
from pacplan.compiled.jit import inlined
from pacplan.core import checks
from pacplan.core.words import at_most, complement, exactly
from pacplan.engine import steps
from pacplan.engine.calls import CHUNK_DONE, NO_ROOM, RULE, draw_counted, follow
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.engine.tree import LINKS, NONE, Evidence, Reader, TreeArrays, add_node, add_pair
from pacplan.models.protocol import Model, Session
from pacplan.result import Plan

# An AVG node. Its samples are a list, oldest first, so that "the first m" means something.
PAIR = np.dtype(
    [
        ("rewards", np.float64),  # sum over all samples
        ("value", np.float64),  # last estimate; NaN before the first
        ("oldest", np.int32),
        ("newest", np.int32),
        ("active", np.int32),  # how many samples the counts of its outcomes stand for ...
        ("last", np.int32),  # ... and the last of these
        ("candidate", np.int32),  # whether it may still be the best
        *LINKS,
    ],
    align=True,
)

SAMPLE = np.dtype([("outcome", np.int32), ("next", np.int32)])

# What comes next: the MAX node begins a round, or the AVG node samples, or it values its outcomes.
_COMPARE, _SAMPLE, _AVERAGE = 0, 1, 2

# A MAX node's call, and that of the one of its AVG nodes for which it waits.
FRAME = np.dtype(
    [
        ("accuracy", np.float64),
        ("spread", np.float64),  # U of the round under way
        ("node", np.int64),
        ("samples", np.int64),  # m
        ("stage", np.int64),  # l of the next round
        ("left", np.int64),  # candidates; if there is one, only its value is asked for
        ("phase", np.int64),
        ("pair", np.int64),
        ("pair_samples", np.int64),
        ("pair_accuracy", np.float64),
        ("outcome", np.int64),  # the one being valued
        ("total", np.float64),  # of those before, times their counts
    ]
)

RULES = np.dtype(
    [
        ("gamma", np.float64),
        ("eta", np.float64),
        ("top", np.float64),  # 1 / (1 - gamma)
        ("level", np.float64),  # log(K / delta) + gamma / (eta - gamma) + lambda + 1
        ("accuracy", np.float64),
        ("offset", np.float64),
        ("slope", np.float64),
        ("ended", np.float64),
        ("samples", np.int64),  # of the root
    ]
)

# More samples than this cannot be counted.
_MOST_SAMPLES = 2.0**61


class Search(NamedTuple):
    """The recursion as it stands."""

    tree: TreeArrays
    samples: Any  # records of SAMPLE
    frames: Any  # records of FRAME
    rules: Any  # one record of RULES
    problem: Any  # one record of PROBLEM
    used: NDArray[np.int64]  # [samples, frames, deepest frame so far]
    values: NDArray[np.float64]  # last estimates of the root's actions
    answer: NDArray[np.float64]  # [the root's value, once it has one]
    calls: NDArray[np.int64]  # spent on each of them
    report: Any  # one record of REPORT


@inlined
def _spread(rules: Any, round_: float, accuracy: float) -> float:
    """U(l) = 2/(1-gamma) sqrt( (log(K l / (delta epsilon)) + gamma/(eta-gamma) + lambda + 1) / l )."""
    level = rules.level + np.log(round_) - np.log(accuracy)
    return float(2.0 * rules.top * np.sqrt(max(level, 0.0) / round_))


@inlined
def _next_round(rules: Any, frame: Any, is_root: bool) -> int:
    """The next round that can matter: the first that could drop a candidate, or the last.

    Estimates lie in [0, 1/(1-gamma)], and a candidate is dropped if it is 4 U / (1 - eta) below the
    best. The samples of a round are among those of the rounds after it, and its estimates are
    replaced, so rounds that cannot drop anything may be left out. At the root every round at least
    doubles the last, so that there are estimates to show.
    """
    limit = (1.0 - rules.eta) * max(0.25 * rules.top, frame.accuracy)
    first = frame.stage
    if _spread(rules, first, frame.accuracy) < limit:
        return int(first)
    low, high = first, 2 * first
    while _spread(rules, high, frame.accuracy) >= limit and high < 2**61:
        low = high
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if _spread(rules, middle, frame.accuracy) >= limit:
            low = middle
        else:
            high = middle
    return int(min(high, 2 * first - 1)) if is_root else int(high)


@inlined
def _call_max(search: Search, node: int, samples: int, accuracy: float) -> None:
    """Call a MAX node, in a new frame. There must be room."""
    tree, at = search.tree, search.used[1]
    search.used[1] = at + 1
    search.used[2] = max(search.used[2], at + 1)
    frame = search.frames[at]
    frame.node = node
    frame.samples = samples
    frame.accuracy = accuracy
    frame.spread = np.inf
    frame.stage = 1
    frame.left = tree.nodes[node].actions
    frame.phase = _COMPARE
    # AVG nodes are made once. The last one made is the first in the list, so actions are in order.
    for action in range(tree.nodes[node].actions - 1 - tree.nodes[node].tried, -1, -1):
        pair = tree.pairs[add_pair(tree, node, action)]
        pair.value = np.nan
        pair.oldest = NONE
        pair.newest = NONE
        pair.last = NONE
    link = tree.nodes[node].first
    while link != NONE:
        tree.pairs[link].candidate = 1
        link = tree.pairs[link].sibling


@inlined
def _candidate(tree: TreeArrays, link: int) -> int:
    """The first candidate from `link` on, or NONE."""
    while link != NONE and not tree.pairs[link].candidate:
        link = tree.pairs[link].sibling
    return int(link)


@inlined
def _best(tree: TreeArrays, node: int) -> float:
    """Largest estimate among the candidates of a node."""
    top = -np.inf
    link = _candidate(tree, tree.nodes[node].first)
    while link != NONE:
        top = max(top, tree.pairs[link].value)
        link = _candidate(tree, tree.pairs[link].sibling)
    return top


@inlined
def _drop(tree: TreeArrays, node: int, margin: float) -> int:
    """Drop the candidates more than `margin` below the best; returns how many are left."""
    least = _best(tree, node) - margin
    left = 0
    link = _candidate(tree, tree.nodes[node].first)
    while link != NONE:
        pair = tree.pairs[link]
        if pair.value < least:
            pair.candidate = 0
        else:
            left += 1
        link = _candidate(tree, pair.sibling)
    return left


@inlined
def _compare(search: Search, frame: Any) -> None:
    """A MAX node returns the best estimate, or calls its candidates; the last one with its own m."""
    tree, rules = search.tree, search.rules[0]
    if frame.left > 1 and frame.spread < (1.0 - rules.eta) * frame.accuracy:
        _return_max(search, _best(tree, frame.node))
        return
    frame.pair = _candidate(tree, tree.nodes[frame.node].first)
    frame.phase = _SAMPLE
    if frame.left > 1:
        frame.stage = _next_round(rules, frame, search.used[1] == 1)
        frame.spread = _spread(rules, frame.stage, frame.accuracy)
        frame.pair_samples = frame.stage
        frame.pair_accuracy = frame.spread * rules.eta / (1.0 - rules.eta)
    else:
        frame.pair_samples = frame.samples
        frame.pair_accuracy = rules.eta * frame.accuracy


@inlined
def _return_max(search: Search, value: float) -> None:
    """A MAX node returns its value, which counts as often as the outcome was sampled."""
    search.used[1] -= 1
    if search.used[1] == 0:
        search.answer[0] = value
    else:
        above = search.frames[search.used[1] - 1]
        outcome = search.tree.nodes[above.outcome]
        above.total += outcome.count * value
        above.outcome = outcome.sibling


@inlined
def _return_avg(search: Search, frame: Any, value: float) -> None:
    """An AVG node returns its value; the next candidate is called, or the round ends."""
    tree = search.tree
    pair = tree.pairs[frame.pair]
    pair.value = value
    if search.used[1] == 1:
        search.values[pair.action] = value
    if frame.left == 1:
        _return_max(search, value)
        return
    frame.pair = _candidate(tree, pair.sibling)
    frame.phase = _SAMPLE
    if frame.pair == NONE:
        frame.left = _drop(tree, frame.node, 4.0 * frame.spread / (1.0 - search.rules[0].eta))
        frame.stage += 1
        frame.phase = _COMPARE


@inlined
def _activate(search: Search, link: int, samples: int) -> None:
    """Let the counts of a pair's outcomes stand for its first `samples` samples."""
    nodes, pair = search.tree.nodes, search.tree.pairs[link]
    if samples < pair.active:
        node = pair.child
        while node != NONE:
            nodes[node].count = 0
            node = nodes[node].sibling
        pair.active = 0
        pair.last = NONE
    while pair.active < samples:
        pair.last = pair.oldest if pair.last == NONE else search.samples[pair.last].next
        nodes[search.samples[pair.last].outcome].count += 1
        pair.active += 1


@inlined
def _average(search: Search, frame: Any) -> int:
    """An AVG node calls its next outcome, or returns the mean of all; an end has its value already."""
    tree, rules = search.tree, search.rules[0]
    while frame.outcome != NONE:
        outcome = tree.nodes[frame.outcome]
        if outcome.actions > 0 and outcome.count > 0:
            full = tree.used[1] + outcome.actions > tree.pairs.size
            if full or search.used[1] == search.frames.size:
                return NO_ROOM
            _call_max(search, frame.outcome, outcome.count, frame.pair_accuracy / rules.gamma)
            return CHUNK_DONE
        frame.total += outcome.count * rules.ended
        frame.outcome = outcome.sibling
    pair = tree.pairs[frame.pair]
    mean = pair.rewards / pair.n + rules.gamma * frame.total / frame.pair_samples
    _return_avg(search, frame, mean)
    return CHUNK_DONE


@steps.make_root.register(Search)
def _make_root(search: Search, model: Any, state: int) -> int:
    if search.tree.used[0] == 0:
        add_node(search.tree, state, search.values.size, 0.0, 0.0)
        _call_max(search, 0, search.rules[0].samples, search.rules[0].accuracy)
    return CHUNK_DONE


@steps.compute.register(Search)
def _compute(search: Search, model: Any, ties: Any) -> int:
    if search.used[1] == 0:
        return RULE
    frame = search.frames[search.used[1] - 1]
    if frame.phase == _COMPARE:
        _compare(search, frame)
    elif frame.phase == _AVERAGE:
        return _average(search, frame)
    elif frame.pair_accuracy >= search.rules[0].top:
        _return_avg(search, frame, 0.0)
    elif search.tree.pairs[frame.pair].n < frame.pair_samples:
        return steps.CALL
    else:
        _activate(search, frame.pair, frame.pair_samples)
        frame.outcome = search.tree.pairs[frame.pair].child
        frame.total = 0.0
        frame.phase = _AVERAGE
    return CHUNK_DONE


@steps.call.register(Search)
def _call(search: Search, model: Any, most: int, rng: Any) -> int:
    """A sample of an AVG node."""
    tree, rules, used = search.tree, search.rules[0], search.used
    if used[0] == search.samples.size or tree.used[0] == tree.nodes.size:
        return NO_ROOM
    h = used[1] - 1
    at, link = search.frames[h].node, search.frames[h].pair
    pair, first = tree.pairs[link], tree.pairs[search.frames[0].pair].action
    successor, reward, ended, status = draw_counted(
        search, model, tree.nodes[at].state, pair.action, h, first, rng
    )
    if status != CHUNK_DONE:
        return status
    outcome, _, status = follow(search, model, at, link, successor, ended, h, 0.0, 0.0)
    if status != CHUNK_DONE:
        return status
    pair.n += 1
    pair.rewards += rules.offset + rules.slope * reward
    search.samples[used[0]].outcome = outcome
    search.samples[used[0]].next = NONE
    if pair.newest == NONE:
        pair.oldest = used[0]
    else:
        search.samples[pair.newest].next = used[0]
    pair.newest = used[0]
    used[0] += 1
    return CHUNK_DONE


class TrailBlazer(Planner):
    """Estimates the optimal value of a state, with few calls off the nearly optimal paths.

    Two kinds of nodes call each other with a number of samples m and an accuracy. An AVG node (a state
    and an action) returns 0 if the accuracy is 1/(1 - gamma) or more; otherwise the mean reward plus
    gamma times the mean of its first m sampled successors' values, each distinct one called with its
    multiplicity and accuracy / gamma. A MAX node (a state) compares its actions in rounds l = 1, 2, ...

        U = 2/(1-gamma) sqrt( (log(K l / (delta accuracy)) + gamma/(eta-gamma) + lambda + 1) / l )

    calls each candidate with (l, U eta / (1 - eta)), drops those more than 4 U / (1 - eta) below the
    best, until U < (1 - eta) accuracy, and returns the best estimate; or, once a single candidate is
    left, that one's value, called with (m, eta accuracy). Here eta = gamma^(1 / max(2, log 1/epsilon)),

        lambda = 2 (log(epsilon (1-gamma)))^2 log( log(K) / (1-eta) ) / log(eta / gamma)

    (not below 0), and the root is called with m = (log(1/delta) + lambda) / ((1-gamma)^2 epsilon^2) and
    epsilon / 2. All this for rewards in [0, 1]; others are scaled. Rounds that cannot drop anything are
    left out where the samples and the result are the same without them.

    The paper's Theorem 1 says that the value is within epsilon with probability at least 1 - delta. The
    number of calls is polynomial in 1/epsilon and nevertheless very large: expect an answer for rough
    accuracies and small discounts only, and a budget or a deadline to end it otherwise.

    `plan.value` is the answer; the action recommended is the one with the largest estimate, about which
    nothing is claimed.

    Args:
        epsilon: accuracy of the value, in the model's reward units.
        delta: probability with which it may be missed.
        gamma: discount in (0, 1).
        chunk: see `Planner`; here in calls.
    """

    name = "trailblazer"
    keeps_checkpoints = False

    def __init__(self, *, epsilon: float, delta: float, gamma: float, chunk: int | None = None) -> None:
        super().__init__(chunk=chunk)
        self.epsilon = checks.positive("epsilon", epsilon)
        self.delta = checks.probability("delta", delta)
        self.gamma = check_gamma_below_one(gamma)
        if self.gamma == 0.0:
            raise ValueError("gamma must lie in (0, 1): without a future there is no trail to blaze")

    def _rules(self, model: Model) -> tuple[float, ...]:
        """A record of RULES."""
        scale = units(model, self.gamma)
        gamma, epsilon = self.gamma, self.epsilon / scale.width
        count = most_actions(self, model)
        eta = gamma ** (1.0 / max(2.0, -math.log(epsilon))) if epsilon > 0.0 else 1.0
        if not gamma < eta < 1.0:
            raise ValueError(
                f"TrailBlazer cannot compute with gamma={gamma} and epsilon={self.epsilon}: its eta, "
                "between gamma and 1, is rounded to one of them; give a smaller gamma or a larger "
                "epsilon"
            )
        extra = 0.0
        if count > 1:
            distance = math.log(epsilon) - math.log(scale.rest)
            extra = 2.0 * distance * distance / math.log(eta / gamma)
            extra *= max(0.0, math.log(math.log(count) / (1.0 - eta)))
        level = math.log(count) - math.log(self.delta) + gamma / (eta - gamma) + extra + 1.0
        # Rounds of fewer samples have no effect: U eta / (1 - eta) is not below 1/(1 - gamma).
        spread = 2.0 * eta / (1.0 - eta)
        least = (level + math.log(_MOST_SAMPLES) - math.log(0.5 * epsilon)) * spread * spread
        if count > 1 and least > _MOST_SAMPLES:
            raise ValueError(
                f"TrailBlazer with gamma={gamma} and epsilon={self.epsilon} would need {least:.3g} "
                "samples of every action before it looks further ahead; give a smaller gamma"
            )
        ratio = scale.rest / epsilon
        samples = (extra - math.log(self.delta)) * ratio * ratio
        samples = max(1, math.ceil(min(samples, 2.0**62)))
        scaling = (scale.offset, scale.slope, scale.ended)
        return gamma, eta, scale.rest, level, 0.5 * epsilon, *scaling, samples

    def check_query(self, query: Query, limits: Limits) -> None:
        check_endless(query.model)
        self._rules(query.model)

    def start(self, query: Query, session: Session) -> "_TrailSearch":
        return _TrailSearch(self, query, session)

    def finish(self, query: Query, search: "_TrailSearch", stopped_by: str, seconds: float) -> Plan:
        value = search.value()
        guarantee = "The recursion was not finished, so nothing is known about its value."
        if stopped_by == "rule":
            guarantee = (
                f"The optimal value of the state is within {at_most(self.epsilon)} of {exactly(value)}"
                f", with probability at least {complement(self.delta)} (Grill, Valko, Munos 2016)."
            )
        search.horizon = search.deepest()
        return estimates_plan(
            self, query, search, stopped_by, seconds, guarantee=guarantee, value=value
        )


class _TrailSearch(StepSearch):
    """The tree, the samples and the recursion's frames; an episode is one call."""

    def __init__(self, planner: TrailBlazer, query: Query, session: Session) -> None:
        super().__init__(planner, query, session, PAIR)
        self._units = units(query.model, planner.gamma)
        self._rules = np.array([planner._rules(query.model)], RULES)
        self._most_actions = max(most_actions(planner, query.model), len(query.actions))
        self._samples = np.zeros(4096, SAMPLE)
        self._frames = np.zeros(64, FRAME)
        self._used = np.zeros(3, np.int64)
        self._scaled = np.full(len(query.actions), np.nan)
        self._answer = np.full(1, np.nan)
        self.reserve()

    def kernel_state(self) -> Search:
        return Search(
            tree=self.tree.arrays(),
            samples=self._samples,
            frames=self._frames,
            rules=self._rules,
            problem=self.problem,
            used=self._used,
            values=self._scaled,
            answer=self._answer,
            calls=self.calls,
            report=self.reports,
        )

    def reserve(self) -> int:
        """Make room for some more calls, and frames."""
        more = max(1024, int(self._used[0]) // 2)
        pairs = self._most_actions + max(more, len(self.tree.pairs) // 2)
        self.tree.reserve(more, pairs, self.memory)
        self.memory.extend(self._samples, int(self._used[0]) + more)
        if self._used[1] == len(self._frames):
            self.memory.extend(self._frames, 2 * len(self._frames))
        return more

    @property
    def values(self) -> NDArray[np.float64]:
        """Estimates of the root's actions in the user's units; NaN if there is none."""
        seen = self._scaled.copy()
        # The recursion gives the value 0 to what it need not look at, which is not an estimate.
        seen[self.calls == 0] = np.nan
        return self._units.low * self._units.rest + self._units.width * seen

    def deepest(self) -> int:
        """Steps that the recursion looked ahead."""
        return int(self._used[2])

    def recommended(self) -> int:
        """Index of the largest estimate among the candidates."""
        scores = self._scaled.copy()
        for link in self.tree.tried(0) if len(self.tree) else ():
            pair = self.tree.pairs[link]
            if not pair["candidate"]:
                scores[pair["action"]] = -np.inf
        return best_estimate(scores, self.order)

    def value(self) -> float:
        """The answer, or the largest estimate while there is none, in the user's units."""
        if np.isnan(self._answer[0]):
            return float(self.values[self.recommended()])
        return self._units.value(float(self._answer[0]))

    def reader(self) -> Reader:
        """Pairs hold the sum of their rewards and an estimate, both scaled."""
        return partial(_read, self._units)


def _read(scale: Units, pair: Any, offered: Sequence[int]) -> Evidence:
    n, value = int(pair["n"]), float(pair["value"])
    return Evidence(
        reward=scale.low + scale.width * float(pair["rewards"]) / n if n > 0 else None,
        value=None if np.isnan(value) or n == 0 else scale.value(value),
    )
