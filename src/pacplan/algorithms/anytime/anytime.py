"""Anytime: the best move within a budget or a time limit. docs/anytime.md says why it is as it is."""

from collections.abc import Sequence
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.anytime.chart import (
    NODE,
    PAIR,
    best_case,
    count_outcome,
    hear,
    place,
    renew_state,
    sweep,
)
from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.plans import EstimateSearch, best_estimate, root_field
from pacplan.algorithms.means import check_anytime
from pacplan.bounds.elementary import powers
from pacplan.compiled.jit import inlined
from pacplan.engine import episodes
from pacplan.engine.calls import CHUNK_DONE, new_outcome
from pacplan.engine.driver import Limits
from pacplan.engine.merge_table import MergeTable, empty_table, find, grown, has_room, merge
from pacplan.engine.query import Query
from pacplan.engine.search import kernel_arrays
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.engine.tree import MOST_COUNTED, NONE, add_node, add_pair, untried_action
from pacplan.models.protocol import Model, Session

# The scale of exploring in a state: the spread of its actions' values, or twice the noise of the
# action's own; both are squared.
_NOISE = 4.0
# One episode in so many goes where the chart is poor.
_SURVEY = 4
# Steps of an episode after the first new state: so many, and this times the square root of the calls.
_BEYOND, _FURTHER = 4.0, 0.1
# Without noise that repeats, a pair has at most _FEW + _WIDE sqrt(visits) outcomes.
_FEW, _WIDE = 2.0, 1.0
# Nodes renewed by sweeps, for each call; unused work is kept for so many sweeps.
_RENEWED, _SAVED = 4.0, 4.0
# A recommendation counts so many calls of an action as if they had shown the worst one.
_DOUBTED = 2.0
# A chart with more nodes is not kept for the next decision.
_MOST_KEPT = 2**17
# Episodes end where less than this part of the value is left, and after so many steps.
_REST, _MOST_STEPS = 0.01, 1000

CONTROL = np.dtype(
    [
        ("surveys", np.int64),  # whether this episode does
        ("steps", np.int64),  # of this episode
        ("beyond", np.int64),  # its steps since the first new state
        ("most_beyond", np.int64),
        ("calls", np.int64),  # of this and earlier searches of the chart
        ("total", np.float64),  # of their rewards
        ("mean", np.float64),
        ("lowest", np.float64),
        ("highest", np.float64),
        ("sweeps", np.int64),
        ("renewed", np.float64),  # nodes, by sweeps
    ]
)


@kernel_arrays
class AnytimeArrays:
    """What Anytime's episodes work on."""

    table: MergeTable  # the nodes of states
    outcomes: MergeTable  # the nodes of outcomes, by their state and pair
    control: Any  # one record of CONTROL
    by_step: bool  # whether a state's value depends on the steps since the root
    to_go: NDArray[np.float64]  # discounted number of steps left, by the steps taken


@episodes.make_root.register(AnytimeArrays)
def _make_root(search: Any, model: Any, state: int, ties: Any) -> int:
    root = search.tree.nodes[add_node(search.tree, state, search.calls.size)]
    at = add_node(search.tree, state, search.calls.size)
    place(search, at, 0)
    root.same = at
    return CHUNK_DONE


@episodes.has_room.register(AnytimeArrays)
def _has_room(search: Any) -> bool:
    horizon = search.problem[0].horizon
    return has_room(search.table, horizon) and has_room(search.outcomes, horizon)


@episodes.acting_node.register(AnytimeArrays)
def _acting_node(search: Any, node: int) -> int:
    return int(search.tree.nodes[node].same)


@episodes.begin_episode.register(AnytimeArrays)
def _begin_episode(search: Any, model: Any, ties: Any) -> None:
    """Solve the chart as far as the calls so far pay for, and choose what the episode is for."""
    control, episode, size = search.control[0], search.report[0].episodes, search.tree.used[0]
    control.mean = control.total / max(control.calls, 1)
    due = _RENEWED * search.report[0].calls
    control.renewed = max(control.renewed, due - _SAVED * size)
    while control.renewed + size <= due:
        control.renewed += size
        if not sweep(search):
            break
    control.surveys = episode % _SURVEY == _SURVEY - 1
    control.beyond = 0
    control.most_beyond = int(_BEYOND + _FURTHER * sqrt(search.report[0].calls))
    if control.lowest == control.highest:  # Nothing was found yet that tells actions apart.
        control.most_beyond = int(min(search.problem[0].horizon, _BEYOND * 2.0 ** min(episode, 20)))


@episodes.select.register(AnytimeArrays)
def _select(search: Any, at: int, h: int, ties: Any) -> int:
    """An action never tried, or else the best by its value and a bonus, or in surveys by optimism."""
    tree, node, control = search.tree, search.tree.nodes[at], search.control[0]
    control.steps = h + 1
    if node.tried == 0 or control.beyond > 0:
        control.beyond += 1
    if node.tried < node.actions:
        return add_pair(tree, at, untried_action(tree, at, ties))
    spread, confidence = 0.0, log(max(node.visits, 1))
    if not control.surveys:
        spread = _spread(tree, node) ** 2
    best, top, tied = NONE, -np.inf, 0
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        score = np.inf  # A pair without a call was left by an episode that was cut off.
        if pair.n > 0 and control.surveys:
            score = pair.hopeful
        elif pair.n > 0:
            scale = max(spread, _NOISE * pair.variance)
            score = pair.value + sqrt(scale * confidence / pair.visits)
        if score > top:
            best, top, tied = link, score, 1
        elif score == top:
            tied += 1
            if ties.random() * tied < 1.0:
                best = link
        link = pair.sibling
    return best


@inlined
def _spread(tree: Any, node: Any) -> float:
    """How far the values of a node's pairs lie apart."""
    low, high = np.inf, -np.inf
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.n > 0:
            low, high = min(low, pair.value), max(high, pair.value)
        link = pair.sibling
    return max(high - low, 0.0)


@episodes.known_child.register(AnytimeArrays)
def _known_child(search: Any, link: int) -> int:
    """Where every call of a pair has led elsewhere: often one of these outcomes, without a call."""
    tree, pair = search.tree, search.tree.pairs[link]
    pair.visits += 1
    enough = pair.n >= _FEW + _WIDE * sqrt(pair.visits)
    if pair.n != pair.distinct or not enough or search.control[0].steps == search.problem[0].horizon:
        return NONE
    child = pair.child
    for _ in range(pair.visits % pair.distinct):
        child = tree.nodes[child].sibling
    return int(child) if tree.nodes[child].actions > 0 else NONE


@episodes.transition.register(AnytimeArrays)
def _transition(
    search: Any, model: Any, h: int, successor: int, ended: bool, ties: Any
) -> tuple[int, int]:
    """Chart the outcome; go on until the episode is long enough."""
    step, control, problem = search.path[h], search.control[0], search.problem[0]
    pair = search.tree.pairs[step.pair]
    # All ends of a pair are one outcome. Lists of outcomes may be long, so they are not searched.
    kind = -1 - step.pair if ended else step.pair
    child = find(search.outcomes, 0 if ended else successor, kind)
    if child == NONE:
        child, status = new_outcome(
            search, model, step.node, step.pair, pair.distinct, successor, ended, h
        )
        if status != CHUNK_DONE:
            return child, status
        merge(search.outcomes, search.tree.nodes[child].state, kind, child)
        place(search, child, h + 1)
        pair.distinct += 1
    reward = problem.lowest + problem.width * step.reward
    most = best_case(search, search.tree.nodes[step.node].depth)
    count_outcome(search, step.pair, child, reward, most)
    control.lowest = min(control.lowest, reward)
    control.highest = max(control.highest, reward)
    control.total += reward
    control.calls += 1
    far = h + 1 >= 2 * control.most_beyond and not control.surveys
    if far or control.beyond >= control.most_beyond or h + 1 == problem.horizon:
        return child, episodes.CONCLUDE
    return child, CHUNK_DONE


@episodes.update.register(AnytimeArrays)
def _update(search: Any, model: Any, length: int, ties: Any) -> None:
    """Renew the values on the way, the last first."""
    for h in range(length - 1, -1, -1):
        step = search.path[h]
        most = best_case(search, search.tree.nodes[step.node].depth)
        hear(search, step.pair, step.child, most)
        renew_state(search, step.node, most)


class AnytimeSearch(EstimateSearch):
    """The chart of one search, or of several that follow one another; see `KernelSearch`."""

    derived = frozenset({"to_go"})

    def __init__(self, planner: "Anytime", query: Query, session: Session) -> None:
        gamma, horizon = planner.gamma, planner.steps(query.model)
        by_step = planner.horizon is not None or not query.model.stationary
        to_go = [*np.cumsum(powers(gamma, horizon))[::-1], 0.0] if by_step else [1.0 / (1.0 - gamma)]
        arrays: dict[str, Any] = {
            "table": empty_table(16),
            "outcomes": empty_table(16),
            "control": np.zeros(1, CONTROL),
            "by_step": by_step,
            "to_go": np.array(to_go),
        }
        settings: Any = {"kind": AnytimeArrays, "arrays": arrays, "gamma": gamma, "horizon": horizon}
        super().__init__(query, session, PAIR, NODE, **settings)
        self.mark = MOST_COUNTED  # Without bounds there is no curve.
        arrays["control"]["lowest"], arrays["control"]["highest"] = np.inf, -np.inf

    def go_on(self, query: Query) -> bool:
        """Plan on from another state, if the chart has it."""
        if self.arrays["by_step"] or len(self.tree) > _MOST_KEPT:
            return False
        nodes, state = self.tree.nodes, self.session.encode(query.state)
        here = (nodes["state"] == state) & (nodes["same"] == np.arange(len(nodes)))
        (found,) = np.nonzero(here & (nodes["tried"] > 0))
        if len(found) == 0:
            return False
        self.begin_again(query)
        root = nodes[0]
        root["state"], root["actions"], root["same"] = state, len(query.actions), found[-1]
        self.arrays["control"]["renewed"] = 0.0
        self.order = query.ties.permutation(len(query.actions))
        return True

    @property
    def charted(self) -> int:
        """Calls that the chart holds."""
        return int(self.arrays["control"]["calls"][0])

    def make_room(self, episodes: int) -> None:
        for name in ("table", "outcomes"):
            self.arrays[name] = grown(self.arrays[name], episodes * self.horizon + 1, self.memory)

    @property
    def values(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN for those never called."""
        nodes = self.tree.nodes
        if len(nodes) > 0:  # Let the root be read like any other node.
            for field in ("first", "eldest", "tried"):
                nodes[field][0] = nodes[field][nodes["same"][0]]
        return np.where(root_field(self, "n", 0.0) > 0.0, root_field(self, "value", np.nan), np.nan)

    def recommended(self) -> int:
        """Index of the best action, those called least being doubted most."""
        values, n = self.values, root_field(self, "n", 0.0)
        worst = np.nanmin(values, initial=np.inf)
        return best_estimate((n * values + _DOUBTED * worst) / (n + _DOUBTED), self.order)

    def reader(self) -> Reader:
        return _read


def _read(pair: Any, offered: Sequence[int]) -> Evidence:
    if pair["n"] == 0:
        return Evidence()
    return Evidence(reward=float(pair["reward"]), value=float(pair["value"]))


class Anytime(Planner):
    """The best move within a budget or a time limit: no settings, and no promise.

    It charts the states that it meets and keeps the chart solved. Most episodes follow the values
    found, with a bonus in units of their spread for actions tried less. Some go where the chart is
    poor, as if whatever is hardly known were the best there can be.

    Args:
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: number of steps, after which rewards do not count; by default there is no end.
    """

    name = "anytime"
    goes_on = True

    def __init__(self, *, gamma: float, horizon: int | None = None) -> None:
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)

    def steps(self, model: Model) -> int:
        """Most steps of an episode."""
        if self.horizon is not None:
            return self.horizon
        steps = _MOST_STEPS
        if self.gamma < 1.0:
            steps = 1 if self.gamma == 0.0 else min(steps, ceil(log(_REST) / log(self.gamma)))
        return steps if model.steps is None else min(steps, model.steps)

    def check_query(self, query: Query, limits: Limits) -> None:
        check_anytime(self, query, limits, self.steps(query.model))

    def start(self, query: Query, session: Session) -> AnytimeSearch:
        return AnytimeSearch(self, query, session)
