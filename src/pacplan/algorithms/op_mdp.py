"""OP-MDP (Buşoniu, Munos 2012): optimistic planning in a known model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.certainty import CertainPlanner, check_limits, read_certain, tails_of
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.plans import EstimateSearch, best_estimate, root_field
from pacplan.compiled.jit import begin_to_load, inlined
from pacplan.engine import steps
from pacplan.engine.calls import CHUNK_DONE, NO_ROOM, RULE, SPENT
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import kernel_arrays
from pacplan.engine.search_tree import Reader
from pacplan.engine.tree import LINKS, NODE_FIELDS, NONE, add_node, add_pair, link_child, set_bounds
from pacplan.models.protocol import Model, Session

PAIR = np.dtype(
    [
        ("reward", np.float64),  # its mean, in the user's units
        ("upper", np.float64),
        ("lower", np.float64),
        ("spread", np.float64),  # gamma times the largest p * spread of its successors
        *LINKS,
    ],
    align=True,
)

# An optimistic search visits no action of a node but its favourite, so the largest bounds of the others
# stay what they are until another becomes the favourite: a visit need not read those others.
NODE = np.dtype(
    [
        *NODE_FIELDS,
        ("next", np.int32),  # the favourite's widest outcome; NONE if its outcomes are not in the tree
        ("p", np.float64),  # probability, given the parent pair
        # Largest reach probability times gamma^d times width of a leaf below the optimistic policy.
        ("spread", np.float64),
        ("rival_upper", np.float64),  # largest of the actions that are not the favourite ...
        ("rival_lower", np.float64),  # ... for each bound
    ],
    align=True,
)


@kernel_arrays
class PolicyArrays:
    """What the tree of what can happen needs, with the optimistic policy marked in it."""

    last: int  # steps after which nothing counts; 0: no end
    per_step: bool
    tails: Any  # records of TAIL, one per depth; the last serves all deeper ones
    way: NDArray[np.int64]  # by depth: the node on the way to the leaf
    deepest: NDArray[np.int64]


@inlined
def _set_bounds(pair: Any, gamma: float, upper: float, lower: float, spread: float) -> None:
    """Bounds of a pair, given what is expected of its successors."""
    pair.upper = pair.reward + gamma * upper
    pair.lower = pair.reward + gamma * lower
    pair.spread = gamma * spread


@inlined
def _refresh_pair(search: Any, link: int) -> int:
    """Bounds of a pair from those of its successors; returns the one with the widest leaf below."""
    pair = search.tree.pairs[link]
    upper, lower, spread = 0.0, 0.0, 0.0
    widest = outcome = pair.child
    while outcome != NONE:
        node = search.tree.nodes[outcome]
        upper += node.p * node.upper
        lower += node.p * node.lower
        if node.p * node.spread > spread:
            spread = node.p * node.spread
            widest = outcome
        outcome = node.sibling
    _set_bounds(pair, search.problem[0].gamma, upper, lower, spread)
    return int(widest)


@inlined
def _choose_favourite(search: Any, at: int) -> None:
    """Bounds of a node from those of its actions, and the optimistic one of them."""
    tree, node = search.tree, search.tree.nodes[at]
    upper, lower = -np.inf, -np.inf  # of the favourite so far
    node.rival_upper = node.rival_lower = -np.inf
    link = node.first
    while link != NONE:
        pair = tree.pairs[link]
        if pair.upper >= upper:
            node.rival_upper, node.rival_lower = upper, max(node.rival_lower, lower)
            upper, lower, node.favourite = pair.upper, pair.lower, link
        else:
            node.rival_upper = max(node.rival_upper, pair.upper)
            node.rival_lower = max(node.rival_lower, pair.lower)
        link = pair.sibling
    # Its outcomes may not be in the tree.
    within = tree.pairs[node.favourite].child != NONE
    _follow_favourite(search, at, _refresh_pair(search, node.favourite) if within else NONE)


@inlined
def _follow_favourite(search: Any, at: int, widest: int) -> None:
    """Bounds of a node whose favourite is known, and that one's widest outcome."""
    node = search.tree.nodes[at]
    pair = search.tree.pairs[node.favourite]
    node.upper = pair.upper
    node.lower = max(pair.lower, node.rival_lower)
    node.spread, node.next = pair.spread, widest


@inlined
def _refresh_node(search: Any, at: int) -> None:
    """Renew the bounds of a node after a visit to its favourite, which may then be another."""
    node = search.tree.nodes[at]
    widest = _refresh_pair(search, node.favourite)
    if search.tree.pairs[node.favourite].upper > node.rival_upper:
        _follow_favourite(search, at, widest)
    else:
        _choose_favourite(search, at)


@inlined
def _add_leaf(search: Any, state: int, actions: int, p: float, tail: Any) -> int:
    """Add a state that was not expanded."""
    leaf = add_node(search.tree, state, actions)
    set_bounds(search.tree, leaf, tail.upper, tail.lower)
    search.tree.nodes[leaf].p = p
    search.tree.nodes[leaf].spread = tail.upper - tail.lower
    return leaf


@inlined
def _probability(row: Any, k: int) -> float:
    """Of the k-th outcome of a row."""
    return float(row[k].cumulative - (row[k - 1].cumulative if k > 0 else 0.0))


@inlined
def _goes_on(search: Any, row: Any, k: int, h: int) -> float:
    """The probability of the k-th outcome of an action at depth h, or 0 if nothing follows it."""
    return 0.0 if row[k].ended or h + 1 == search.last else _probability(row, k)


@inlined
def _open_pair(search: Any, model: Any, at: int, action: int, h: int) -> None:
    """Give a node at depth h a pair, with its reward and bounds.

    Its outcomes enter the tree when one of them is to be expanded. Most never are.
    """
    pair = search.tree.pairs[add_pair(search.tree, at, action)]
    row = model.table.outcomes[h if search.per_step else 0, search.tree.nodes[at].state, action]
    tail = search.tails[min(h + 1, search.tails.size - 1)]
    pair.n = 1
    for k in range(row.size):
        pair.reward += _probability(row, k) * row[k].reward
    upper, lower, spread = 0.0, 0.0, 0.0
    # In the order in which outcomes are listed, so that sums are the same to the bit.
    for k in range(row.size - 1, -1, -1):
        p = _goes_on(search, row, k, h)
        if p > 0.0:
            upper += p * tail.upper
            lower += p * tail.lower
            spread = max(spread, p * (tail.upper - tail.lower))
    _set_bounds(pair, search.problem[0].gamma, upper, lower, spread)


@inlined
def _read_outcomes(search: Any, model: Any, at: int, h: int) -> None:
    """Let the outcomes of the favourite of a node at depth h enter the tree."""
    tree = search.tree
    link = tree.nodes[at].favourite
    state, action = tree.nodes[at].state, tree.pairs[link].action
    row = model.table.outcomes[h if search.per_step else 0, state, action]
    tail = search.tails[min(h + 1, search.tails.size - 1)]
    for k in range(row.size):
        p = _goes_on(search, row, k, h)
        if p > 0.0:
            actions = model.table.action_counts[row[k].state]
            link_child(tree, link, _add_leaf(search, row[k].state, actions, p, tail))
    tree.nodes[at].next = _refresh_pair(search, link)


@steps.make_root.register(PolicyArrays)
def _make_root(search: Any, model: Any, state: int) -> int:
    if search.tree.used[0] == 0:
        _add_leaf(search, state, search.calls.size, 1.0, search.tails[0])
    return CHUNK_DONE


@steps.compute.register(PolicyArrays)
def _compute(search: Any, model: Any, ties: Any) -> int:
    return RULE if search.tree.nodes[0].spread <= 0.0 else steps.CALL


@steps.call.register(PolicyArrays)
def _call(search: Any, model: Any, most: int, rng: Any) -> int:
    """Give the widest leaf of the optimistic policy all its actions."""
    tree, way, at, h = search.tree, search.way, 0, 0
    while tree.nodes[at].first != NONE:
        if h == way.size:
            return NO_ROOM
        if tree.nodes[at].next == NONE:
            if tree.used[0] + model.table.outcomes.shape[-1] > tree.nodes.size:
                return NO_ROOM
            _read_outcomes(search, model, at, h)
        way[h] = at
        # What the way up will need: the pair, and its other outcomes, which lie beside the next one.
        begin_to_load(tree.pairs, tree.nodes[at].favourite)
        at = tree.nodes[at].next
        begin_to_load(tree.nodes, at - 1)
        begin_to_load(tree.nodes, at + 1)
        h += 1
    actions = tree.nodes[at].actions
    if actions > most:
        return SPENT
    if tree.used[1] + actions > tree.pairs.size:
        return NO_ROOM
    for action in range(actions):
        _open_pair(search, model, at, action, h)
        search.calls[action if h == 0 else tree.pairs[tree.nodes[0].favourite].action] += 1
    search.report[0].calls += actions
    search.deepest[0] = max(search.deepest[0], h + 1)
    _choose_favourite(search, at)
    for step in range(h - 1, -1, -1):
        _refresh_node(search, way[step])
    return CHUNK_DONE


class OPMDP(CertainPlanner):
    """Optimistic planning with known probabilities and rewards: no sampling, certain bounds.

    Leaves are worth between 0 and 1/(1-gamma) (for rewards in [0, 1]), inner states the largest over
    their actions of the expectation, for each bound. The optimistic policy takes the action with the
    largest upper bound everywhere. Among its leaves the one with the largest reach probability times
    gamma^d / (1-gamma) is expanded. Recommends the action with the largest lower bound.

    A call to the model reads one state and action from its table, so an expansion takes one call per
    action of the state.

    Args:
        gamma: discount in [0, 1); 1 with a horizon.
        horizon: steps after which nothing counts; None: the infinite-horizon problem.
    """

    name = "op-mdp"
    keeps_checkpoints = False

    def __init__(self, *, gamma: float, horizon: int | None = None) -> None:
        self.gamma, self.horizon = check_gamma_and_horizon(gamma, horizon)

    def check_query(self, query: Query, limits: Limits) -> None:
        if not query.model.known:
            kinds = "a TabularMDP, or a model that publishes its table like one"
            raise ValueError(f"OPMDP needs {kinds}; got {type(query.model).__name__}")
        check_limits(self, limits, query.model)
        first = f"first step, which reads all {len(query.actions)} actions of the state"
        if limits.budget is not None and limits.budget < len(query.actions):
            raise ValueError(f"budget={limits.budget} is less than OPMDP's {first}; raise it")

    def start(self, query: Query, session: Session) -> "_PolicySearch":
        return _PolicySearch(self, query, session)

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        return ("the tables of the model are true",)


class _PolicySearch(EstimateSearch):
    """The tree; an episode is an expansion."""

    def __init__(self, planner: OPMDP, query: Query, session: Session) -> None:
        model = query.model
        self._rows = int(session.handle.table.outcomes.shape[-1])
        self._most_actions = model.max_actions or len(query.actions)
        arrays = {
            "last": planner.horizon or 0,
            "per_step": model.steps is not None,
            "tails": tails_of(planner.gamma, planner.horizon, model),
            "way": np.zeros(64, np.int64),
            "deepest": np.zeros(1, np.int64),
        }
        settings: Any = {"kind": PolicyArrays, "arrays": arrays, "gamma": planner.gamma, "horizon": 1}
        super().__init__(query, session, PAIR, NODE, run=steps.work, **settings)

    def reserve(self) -> int:
        """Make room for at least one expansion, half as many nodes again, and a longer way."""
        pairs = self._most_actions + len(self.tree.pairs) // 2
        self.grow_tree(self._rows + len(self.tree) // 2, pairs)
        if self.deepest() + 1 >= len(self.arrays["way"]):
            self.extend("way", 2 * len(self.arrays["way"]))
        return pairs // self._most_actions

    def _bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds of the root's actions."""
        tail = self.arrays["tails"][0]
        return root_field(self, "lower", tail["lower"]), root_field(self, "upper", tail["upper"])

    @property
    def values(self) -> NDArray[np.float64]:
        """Lower bounds of the root's actions that were tried."""
        return np.where(self.calls > 0, self._bounds()[0], np.nan)

    def deepest(self) -> int:
        """Depth of the tree."""
        return int(self.arrays["deepest"][0])

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands; the action with the largest lower bound is recommended."""
        lower, upper = self._bounds()
        return self.standing(best_estimate(lower, self.order), seconds, lower, upper)

    def reader(self) -> Reader:
        return read_certain
