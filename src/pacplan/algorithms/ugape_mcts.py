"""UGapE-MCTS and LUCB-MCTS (Kaufmann, Koolen 2017): best-arm identification in a game tree."""

from collections.abc import Sequence
from functools import partial
from math import log
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.confidence import check_accuracy, check_stops
from pacplan.algorithms.common.plans import root_field
from pacplan.bounds.bernoulli import kl_upper
from pacplan.compiled.jit import inlined
from pacplan.core import checks
from pacplan.core.words import at_least, at_most, complement, exactly
from pacplan.engine import episodes
from pacplan.engine.calls import (
    CHUNK_DONE,
    ENDLESS_GAME,
    MOVE_PAYS,
    TOO_MANY_SUCCESSORS,
    break_promise,
    count_actions,
)
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.root_rules import argmax_at_random, best_and_challenger, gap_of, wider
from pacplan.engine.search import KernelSearch, kernel_arrays
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.engine.tree import (
    LINKS,
    NONE,
    TreeArrays,
    add_node,
    add_pair,
    link_child,
    set_bounds,
    untried_action,
)
from pacplan.models.protocol import Model, Session

# A move. Payoffs are scaled to [0, 1]. One that ends the game has visits and no child.
PAIR = np.dtype(
    [
        ("upper", np.float64),
        ("lower", np.float64),
        ("estimate", np.float64),  # minimax of the mean payoffs below; NaN if there are none
        ("payoffs", np.float64),  # their sum, of a move that ends the game
        *LINKS,
    ],
    align=True,
)

# The root's moves.
ROOT = np.dtype(
    [
        ("upper", np.float64),
        ("lower", np.float64),
        ("estimate", np.float64),  # the middle of the payoffs until there is one
        ("pair", np.int64),
    ]
)

# What the next game does; `stands` until it is over, however it is divided into chunks.
DECISION = np.dtype([("stands", np.int64), ("best", np.int64), ("play", np.int64)])

_TIE = 1e-10


@kernel_arrays
class Search:
    """What the games work on. A move whose outcome is known is not asked for again."""

    epsilon: float
    level: float  # log(1/delta)
    lucb: bool
    root: Any  # records of ROOT
    decision: Any  # one record of DECISION


@inlined
def _representative(tree: TreeArrays, at: int, maximises: bool, rng: Any) -> int:
    """The move to look at: largest upper bound for MAX, smallest lower bound for MIN.

    Returns the pair, or NONE for a move never tried, about which nothing is known.
    """
    node, chosen = tree.nodes[at], NONE
    ties = node.actions - node.tried
    best = 1.0 if ties > 0 else -np.inf
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        score = pair.upper if maximises else 1.0 - pair.lower
        if score > best + _TIE:
            chosen = link
            best = score
            ties = 1
        elif score >= best - _TIE:
            ties += 1
            if rng.random() * ties < 1.0:
                chosen = link
        link = pair.sibling
    return chosen


@episodes.make_root.register(Search)
def _make_root(search: Any, model: Any, state: int, ties: Any) -> int:
    set_bounds(search.tree, add_node(search.tree, state, search.root.size), 1.0, 0.0)
    for action in range(search.root.size):
        arm = search.root[action]
        arm.upper, arm.estimate, arm.pair = 1.0, 0.5, NONE
    return CHUNK_DONE


@episodes.select.register(Search)
def _select(search: Any, at: int, h: int, ties: Any) -> int:
    """Go to the representative leaf of the move that was decided on."""
    tree, play = search.tree, search.decision[0].play
    link = search.root[play].pair if h == 0 else _representative(tree, at, h % 2 == 0, ties)
    if link == NONE:
        link = add_pair(tree, at, play if h == 0 else untried_action(tree, at, ties))
        tree.pairs[link].upper = 1.0
        # Until the first game with this move has ended and is backed up.
        tree.pairs[link].estimate = np.nan
        if h == 0:
            search.root[play].pair = link
    return int(link)


@episodes.known_child.register(Search)
def _known_child(search: Any, link: int) -> int:
    return int(search.tree.pairs[link].child)


@episodes.transition.register(Search)
def _transition(
    search: Any, model: Any, h: int, successor: int, ended: bool, ties: Any
) -> tuple[int, int]:
    """A finished game pays; a new position enters the tree."""
    tree, problem, step = search.tree, search.problem[0], search.path[h]
    pair = tree.pairs[step.pair]
    if ended:
        pair.n += 1
        pair.payoffs += step.reward
        return NONE, CHUNK_DONE
    paid, broken = problem.lowest + problem.width * step.reward, 0
    if pair.n > 0:
        broken = TOO_MANY_SUCCESSORS
    elif h + 1 == problem.horizon:
        broken = ENDLESS_GAME
    elif abs(paid) > 1e-9 * problem.width:
        broken = MOVE_PAYS
    if broken:
        return NONE, break_promise(search, broken, tree.nodes[step.node].state, pair.action, h, paid)
    actions, status = count_actions(search, model, successor, h + 1)
    if status != CHUNK_DONE:
        return NONE, status
    child = add_node(tree, successor, actions)
    set_bounds(tree, child, 1.0, 0.0)
    link_child(tree, step.pair, child)
    return child, CHUNK_DONE


@inlined
def _back_up_node(search: Any, h: int) -> None:
    """Bounds and estimate of the move that leads to step h: maximum or minimum over what follows it."""
    tree, path = search.tree, search.path
    node, above = tree.nodes[path[h].node], tree.pairs[path[h - 1].pair]
    maximises, untried = h % 2 == 0, node.tried < node.actions
    # Payoffs lie in [0, 1], so these change nothing below, but for a move never tried.
    above.upper = 0.0 if maximises and not untried else 1.0
    above.lower = 1.0 if not maximises and not untried else 0.0
    above.estimate = 0.0 if maximises else 1.0
    link = node.first
    while link != NONE:
        move = tree.pairs[link]
        if maximises:
            above.upper = max(above.upper, move.upper)
            above.lower = max(above.lower, move.lower)
            above.estimate = max(above.estimate, move.estimate)
        else:
            above.upper = min(above.upper, move.upper)
            above.lower = min(above.lower, move.lower)
            above.estimate = min(above.estimate, move.estimate)
        link = move.sibling


@episodes.backup.register(Search)
def _backup(search: Any, length: int, rest: float, ties: Any) -> None:
    """Bounds and estimates of what was visited, from the last move to the first."""
    tree, path, price = search.tree, search.path, search.level
    for h in range(length):
        price += log(tree.nodes[path[h].node].actions)
    pair = tree.pairs[path[length - 1].pair]
    mean = min(max(pair.payoffs / pair.n, 0.0), 1.0)
    radius = (price + 1.0 + log(1.0 + pair.n)) / pair.n
    pair.estimate = mean
    pair.upper = min(pair.upper, kl_upper(mean, radius))
    pair.lower = max(pair.lower, 1.0 - kl_upper(1.0 - mean, radius))
    for h in range(length - 1, 0, -1):
        _back_up_node(search, h)
    top = tree.pairs[path[0].pair]
    arm = search.root[top.action]
    arm.upper, arm.lower, arm.estimate = top.upper, top.lower, top.estimate
    search.decision[0].stands = 0


@episodes.finished.register(Search)
def _finished(search: Any, model: Any, most_calls: int, ties: Any) -> bool:
    """Choose b and c by UGapE's rule or by LUCB's; look at the one with the wider interval."""
    decision, upper, lower = search.decision[0], search.root.upper, search.root.lower
    if not decision.stands:
        best, challenger = best_and_challenger(upper, lower, _TIE, ties)
        if search.lucb and upper.size > 1:
            best = argmax_at_random(search.root.estimate, NONE, _TIE, ties)
            challenger = argmax_at_random(upper, best, _TIE, ties)
        decision.stands, decision.best = 1, best
        decision.play = wider(upper, lower, best, challenger, _TIE, ties)
    return bool(gap_of(upper, lower, decision.best) <= search.epsilon)


class UGapEMCTS(Planner):
    """The best first move of a game whose outcomes are random, with a certificate.

    Two players move in turn, MAX first; a move leads to one position for certain, and the last one pays
    a random payoff. Every leaf has a confidence interval, all n and all leaves at once with probability
    at least 1 - delta,

        n kl(mean, q) <= log(1/delta) + sum over the positions on the way of log(number of moves)
                         + log(e (1 + n))

    (the shares delta / (k_1 k_2 ...) of all leaves add up to delta), and a position the maximum or the
    minimum of both ends over its moves. A position's representative leaf is found by following the
    largest upper end at MAX and the smallest lower end at MIN. At the root b and its challenger c are
    chosen as in `MDPGapE` (`rule="ugape"`), or b has the largest estimate and c the largest upper end
    of the others (`rule="lucb"`, LUCB-MCTS). The representative leaf of the wider of the two is drawn,
    until U(c) - L(b) <= epsilon.

    Models say that they are games by `two_player=True`; `envs.game_tree` makes small ones.

    Args:
        epsilon: by how much the move may be worse than the best, in the model's reward units.
        delta: probability with which the guarantee may fail.
        rule: "ugape" or "lucb".
        horizon: most moves of a game; a longer one is an error.
    """

    name = "ugape-mcts"
    two_player = True

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        rule: Literal["ugape", "lucb"] = "ugape",
        horizon: int = 1000,
    ) -> None:
        self.epsilon = check_accuracy(epsilon)
        self.delta = checks.probability("delta", delta)
        self.rule = checks.choice("rule", rule, ("ugape", "lucb"))
        self.horizon = checks.integer("horizon", horizon, least=1, most=checks.LARGEST)

    def check_query(self, query: Query, limits: Limits) -> None:
        check_stops(self.epsilon, limits)
        if query.model.successors != 1:
            says = "UGapEMCTS plans in games in which a move leads to one position"
            promised = query.model.successors
            raise ValueError(f"{says}: the model must promise successors=1, not {promised}")

    def start(self, query: Query, session: Session) -> "_GameSearch":
        return _GameSearch(self, query, session)

    def guarantee(self, model: Model, search: Any, snapshot: Snapshot) -> str:
        low, high = float(snapshot.lower.max()), float(snapshot.upper.max())
        return (
            f"Move {snapshot.action!r} is within {at_most(max(0.0, snapshot.gap))} of the best one "
            f"against the best replies, and the game is worth between {at_least(low)} and "
            f"{at_most(high)}, with probability at least {complement(self.delta)}."
        )

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        return (
            "the players move in turn, and a move leads to one position",
            "payoffs lie in [{}, {}]".format(*map(exactly, model.reward_range)),
        )


class _GameSearch(KernelSearch):
    """One search: the tree of positions, and the root's moves."""

    def __init__(self, planner: UGapEMCTS, query: Query, session: Session) -> None:
        low, high = query.model.reward_range
        self.target, self.units = planner.epsilon, (low, high - low)
        arrays = {
            "epsilon": planner.epsilon / (high - low),
            "level": -log(planner.delta),
            "lucb": planner.rule == "lucb",
            "root": np.zeros(len(query.actions), ROOT),
            "decision": np.zeros(1, DECISION),
        }
        settings: Any = {"arrays": arrays, "gamma": 1.0, "horizon": planner.horizon}
        super().__init__(query, session, PAIR, kind=Search, **settings)

    @property
    def values(self) -> NDArray[np.float64]:
        """Estimates of the root's moves; NaN for those after which no game was played to its end."""
        return np.asarray(self.in_units(root_field(self, "estimate", np.nan)))

    def reader(self) -> Reader:
        """Pairs hold the minimax of the payoffs below and bounds on it, all scaled."""
        return partial(_read, *self.units)


def _read(low: float, width: float, pair: Any, offered: Sequence[int]) -> Evidence:
    estimate = float(pair["estimate"])
    return Evidence(
        value=None if np.isnan(estimate) else low + width * estimate,
        lower=low + width * float(pair["lower"]),
        upper=low + width * float(pair["upper"]),
    )
