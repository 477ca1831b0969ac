"""The search tree: compact records of states and state-action pairs, linked by their indices.

A *node* is a state reached by one history of actions and states; a *pair* is an action that was
tried in a node. Only what was visited is stored, and what one visit reads lies in one record:

    node --first--> pair --sibling--> pair ...       the actions tried in this node
    pair --child--> node --sibling--> node ...       the outcomes seen after this pair

Node 0 is the root. A child has a larger index than its parent, so one sweep from the last node to the
first visits children before parents.

A large tree is not in the caches, so what counts is how many loads wait for one another. Most nodes
have one pair. The others of a node lie side by side: with its second pair it gets records for the next
ones too (`add_pair`). A node also names its `eldest` pair, which lies apart, and a pair the `other`
outcome after its `child`: so all pairs of a node, or two outcomes, begin to load at once.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import begin_to_load, inlined

NONE = -1

# What every node has.
BARE_FIELDS = [
    ("state", np.int64),
    ("count", np.int32),  # how often the parent pair led here
    ("sibling", np.int32),  # next outcome of the parent pair
    ("first", np.int32),  # most recently made pair of this node
    ("eldest", np.int32),  # its first one
    ("actions", np.int32),  # how many are available; 0: the episode has ended here
    ("tried", np.int32),  # how many have a pair
]
BARE_NODE = np.dtype(BARE_FIELDS, align=True)

# What the nodes of planners with bounds have (`set_bounds`); their own fields may come after it.
NODE_FIELDS = [
    *BARE_FIELDS,
    ("upper", np.float64),  # max over the actions of their upper bounds
    ("lower", np.float64),  # max over the actions of their lower bounds
    ("favourite", np.int32),  # pair to try next; NONE: an untried action
]
NODE = np.dtype(NODE_FIELDS, align=True)

# What every pair has; planners put their own fields before it.
LINKS = [
    ("n", np.int32),  # visits
    ("action", np.int32),
    ("sibling", np.int32),  # next tried action of the same node
    ("child", np.int32),  # outcome seen last for the first time ...
    ("other", np.int32),  # ... and the one before it
]

Records = NDArray[Any]

# Pairs that lie side by side, after the first of a node. Longer lists have several such blocks.
BLOCK = 4

# Records are numbered in 32 bits, and so are their visits.
MOST_RECORDS, MOST_COUNTED = 2**31, 2**31 - 1

# Records at first. Untouched ones cost no memory, and most small searches never grow.
FIRST_ROOM = 1024


class NoRoomError(RuntimeError):
    """A planner added more records to the tree in an episode than it had announced."""

    def __init__(self) -> None:
        super().__init__(
            "the planner adds more to the tree in an episode than there is room for: add at most one "
            "pair and one node per step"
        )


class TreeArrays(NamedTuple):
    """The tree as kernels see it. `used` holds the numbers of records in use, of nodes and of pairs."""

    nodes: Records
    pairs: Records
    used: NDArray[np.int64]


@inlined
def add_node(tree: TreeArrays, state: int, actions: int) -> int:
    """Append an unvisited node, its planner's fields zero.

    Raises NoRoomError if the planner has reserved too little room.
    """
    index = tree.used[0]
    if index >= tree.nodes.size:
        raise NoRoomError
    tree.used[0] = index + 1
    node = tree.nodes[index]
    node.state = state
    node.sibling = NONE
    node.first = NONE
    node.eldest = NONE
    node.actions = actions
    return int(index)


@inlined
def set_bounds(tree: TreeArrays, at: int, upper: float, lower: float) -> None:
    """Give a new node its first bounds, and no favourite yet."""
    node = tree.nodes[at]
    node.upper = upper
    node.lower = lower
    node.favourite = NONE


@inlined
def add_pair(tree: TreeArrays, at: int, action: int) -> int:
    """Append an unvisited pair to node `at`, its planner's fields zero.

    Raises NoRoomError as `add_node` does. Records are used once, and are zero before.
    """
    node = tree.nodes[at]
    index = node.first + 1  # After its latest pair, unless that was its first, or the last of a block.
    if node.tried < 2 or (node.tried - 1) % BLOCK == 0:
        index = tree.used[1]
        block = 1 if node.tried == 0 else min(BLOCK, node.actions - node.tried)
        if index + block > tree.pairs.size:
            raise NoRoomError
        tree.used[1] = index + block
    pair = tree.pairs[index]
    pair.action = action
    pair.sibling = node.first
    pair.child = NONE
    pair.other = NONE
    if node.tried == 0:
        node.eldest = index
    node.first = index
    node.tried += 1
    return int(index)


@inlined
def untried_action(tree: TreeArrays, at: int, rng: Any) -> int:
    """A uniformly random action of node `at` among those that have no pair yet."""
    node = tree.nodes[at]
    # The action of this rank among the untried: raise it by the tried actions at or below it.
    action = rank = int(rng.random() * (node.actions - node.tried))
    while True:
        below = 0
        link = node.first
        while link != NONE:
            if tree.pairs[link].action <= action:
                below += 1
            link = tree.pairs[link].sibling
        if action == rank + below:
            return action
        action = rank + below


@inlined
def find_child(tree: TreeArrays, pair: int, state: int, ended: bool) -> tuple[int, int]:
    """The outcome of `pair` that is `state` (or the end), or NONE, and how many were seen."""
    link = tree.pairs[pair].child
    seen = 0
    while link != NONE:
        node = tree.nodes[link]
        # All ends are one outcome: nothing follows any of them.
        if (node.actions == 0) == ended and (ended or node.state == state):
            return link, seen
        seen += 1
        link = node.sibling
    return NONE, seen


@inlined
def link_child(tree: TreeArrays, pair: int, node: int) -> None:
    """Make `node` an outcome of `pair`."""
    above = tree.pairs[pair]
    tree.nodes[node].sibling = above.child
    above.other = above.child
    above.child = node


@inlined
def expect_pairs(tree: TreeArrays, at: int) -> None:
    """Begin to load the pairs of a node: its latest, those of its block before that, and its first."""
    node = tree.nodes[at]
    begin_to_load(tree.pairs, node.first)
    begin_to_load(tree.pairs, node.first - 2)
    begin_to_load(tree.pairs, node.eldest)


@inlined
def expect_outcomes(tree: TreeArrays, link: int) -> None:
    """Begin to load the outcomes of a pair."""
    pair = tree.pairs[link]
    begin_to_load(tree.nodes, pair.child)
    begin_to_load(tree.nodes, pair.other)
