"""The tree explorer: what a script needs to walk through a search tree, as plain data."""

import json
import math
from base64 import b64encode
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import kernel
from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.engine.search_tree import SearchTree
from pacplan.engine.tree import NONE
from pacplan.views.evidence import Intervals

if TYPE_CHECKING:
    from pacplan.result import Plan

# Bytes of the tree on a page, at most, and the records to begin with, unless the user asks for more.
_MOST_BYTES = 700_000
_FIRST_MOST = 4000
# Successors of an action that are listed, the most frequent ones; and bytes of all drawings.
_MOST_SUCCESSORS, _MOST_DRAWN = 12, 600_000

Counts = NDArray[np.int64]


class Box(NamedTuple):
    """A state reached, or an action tried.

    Attributes:
        path: nodes from the root to the state, or to the state that the action was tried in.
        pair: the action's pair; None for a state.
        visits: how often the search came here, or the sum over the boxes below if that is larger. So
            no box is visited more often than the one above it.
    """

    path: tuple[int, ...]
    pair: int | None
    visits: int


def outline(tree: SearchTree, most: int) -> tuple[list[Box], int]:
    """The most visited boxes of a tree, those above others first; and how many were visited at all."""
    reached, tried = _visits(tree)
    order = count()
    # A tree that is only a root still has a box.
    waiting = [(-int(reached[0]), next(order), Box((0,), None, int(reached[0])))]
    boxes: list[Box] = []
    while waiting and len(boxes) < most:
        box = heappop(waiting)[2]
        boxes.append(box)
        paths = [box.path]
        if box.pair is not None:
            paths = [(*box.path, outcome.node) for outcome in tree.outcomes(box.pair)]
        if box.pair is None or tree.open_loop:
            below = [Box(p, pair, int(tried[pair])) for p in paths for pair in tree.tried(p[-1])]
        else:
            below = [Box(path, None, int(reached[path[-1]])) for path in paths]
        for child in below:
            if child.visits > 0:
                heappush(waiting, (-child.visits, next(order), child))
    # The states of an open-loop tree, except the root, are not boxes.
    states = reached[:1] if tree.open_loop else reached
    return boxes, int((states[1:] > 0).sum() + (tried > 0).sum()) + 1


def _visits(tree: SearchTree) -> tuple[Counts, Counts]:
    """How often each node was reached and each pair was tried, as in `Box.visits`."""
    reached, tried = np.zeros(len(tree.nodes), np.int64), np.zeros(len(tree.pairs), np.int64)
    # Columns, each in one piece, so that one compiled kernel serves the trees of all planners.
    columns = [tree.nodes[name] for name in ("first", "sibling", "count")]
    columns += [tree.pairs[name] for name in ("child", "sibling", "n")]
    first, outcome, visits, child, sibling, n = map(np.ascontiguousarray, columns)
    _sum_up(first, outcome, visits, child, sibling, n, reached, tried)
    return reached, tried


@kernel
def _sum_up(
    first: NDArray[np.int32],
    outcome: NDArray[np.int32],
    visits: NDArray[np.int32],
    child: NDArray[np.int32],
    sibling: NDArray[np.int32],
    n: NDArray[np.int32],
    reached: Counts,
    tried: Counts,
) -> None:
    """One pass from the last node to the first visits children before parents."""
    for at in range(first.size - 1, -1, -1):
        total = 0
        link = first[at]
        while link != NONE:
            below = 0
            step = child[link]
            while step != NONE:
                below += reached[step]
                step = outcome[step]
            tried[link] = max(n[link], below)
            total += tried[link]
            link = sibling[link]
        reached[at] = max(visits[at], total)


def explorer(plan: "Plan", render: Callable[[Any], str] | None) -> tuple[str, str] | None:
    """The most visited part of a plan's tree, and what is left out, in words; None without a tree.

    It consists of places (states, or sequences of actions) and the actions tried there, as JSON that is
    safe inside a script element.

    Args:
        plan: the plan.
        render: draws a state; None: states are not drawn.
    """
    if plan.tree is None:
        return None
    size = _FIRST_MOST
    while True:
        boxes, total = outline(plan.tree, size)
        records = _Records(plan, boxes)
        if len(_json(records.data).encode()) <= _MOST_BYTES or size == 1:
            break
        size //= 2
    drawings = _drawings(render, records.states)
    words = f"All {total:,} states and actions that were visited are here."
    if total > len(boxes):
        words = f"{len(boxes):,} of {total:,} states and actions are here, the most visited ones."
    if render is not None and len(drawings) < len(records.states):
        words += f" For lack of room, {len(records.states) - len(drawings):,} states are not drawn."
    return _json(records.data | {"drawings": drawings}), words


def _json(data: Any) -> str:
    """JSON that is safe inside a script element, which a closing tag in a user's string would end."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")


class _Records:
    """Boxes as records that refer to one another by number, as assets/explorer.js reads them.

    A place has a name, visits, the actions offered, how many that were tried are left out, and those on
    the page. An action has a name, visits, mean reward, its two bounds, value, lower, upper, successors
    (place or null, name or null at an end, count) and how many there are, listed or not.

    Attributes:
        data: the records.
        states: states by the number of their name, the most visited first.
    """

    def __init__(self, plan: "Plan", boxes: list[Box]) -> None:
        assert plan.tree is not None
        self._tree = tree = plan.tree
        self._places: list[list[Any]] = []
        self._names: dict[object, int] = {}
        self._texts: list[str] = []
        self._place_of: dict[int, int] = {}  # by node
        self.states: dict[int, Any] = {}
        actions: list[list[Any]] = []
        pairs = [(box, box.pair) for box in boxes if box.pair is not None]
        for box in boxes:
            # In a tree of sequences the places are not boxes.
            place = self._place(box.path[-1])
            if box.pair is not None:
                self._places[place][-1].append(len(actions))
                actions.append(self._action(box, box.pair))
        for action, (_, pair) in zip(actions, pairs, strict=True):
            found = sorted(tree.outcomes(pair), key=lambda outcome: -outcome.count)
            action += [list(map(self._successor, found[:_MOST_SUCCESSORS])), len(found)]
        for node, number in self._place_of.items():
            self._places[number][3] = int(tree.nodes[node]["tried"]) - len(self._places[number][-1])
        known = Intervals(plan)
        roots = {
            int(tree.pairs[pair]["action"]): number
            for number, (box, pair) in enumerate(pairs)
            if len(box.path) == 1
        }
        self.data: dict[str, Any] = {
            "places": self._places,
            "actions": actions,
            "names": self._texts,
            "openLoop": tree.open_loop,
            "taken": roots.get(known.best),
            "challenger": None if known.rival is None else roots.get(known.rival),
        }

    def _place(self, node: int) -> int:
        """The number of a node's place, which is made if there is none."""
        if node not in self._place_of:
            record = self._tree.nodes[node]
            named = record["actions"] > 0 and (node == 0 or not self._tree.open_loop)
            name = self._state(node) if named else None
            # Of merged states, all visits count, whatever way they came.
            visits = sum(int(self._tree.pairs[pair]["n"]) for pair in self._tree.tried(node))
            visits = max(visits, int(record["count"]))
            self._place_of[node] = len(self._places)
            self._places.append([name, visits, int(record["actions"]), 0, []])
        return self._place_of[node]

    def _action(self, box: Box, pair: int) -> list[Any]:
        known = self._tree.evidence(pair, box.path)
        low, high = known.reward_interval or (None, None)
        down, up = (estimated, estimated) if low == high else (at_least, at_most)
        text = short(self._tree.action(box.path[-1], pair), 60)
        numbers = (
            (known.reward, estimated),
            (low, down),
            (high, up),
            (known.value, estimated),
            (known.lower, at_least),
            (known.upper, at_most),
        )
        visits = int(self._tree.pairs[pair]["n"]) or box.visits
        return [self._name(("action", text), text), visits, *(_number(*each) for each in numbers)]

    def _successor(self, outcome: Any) -> list[Any]:
        name = None if outcome.ended or self._tree.open_loop else self._state(outcome.node)
        acting = self._place_of.get(self._tree.acting_node(outcome.node))
        return [self._place_of.get(outcome.node) if acting is None else acting, name, outcome.count]

    def _state(self, node: int) -> int:
        """The number of a state's name; two states have two, even if they look the same."""
        key = int(self._tree.nodes[node]["state"])
        if key not in self._names:
            state = self._tree.state(node)
            self.states[self._name(key, short(state, 120))] = state
        return self._names[key]

    def _name(self, key: object, text: str) -> int:
        if key not in self._names:
            self._names[key] = len(self._texts)
            self._texts.append(text)
        return self._names[key]


def _number(value: float | None, rounded: Callable[[float], str]) -> float | None:
    """A number with four digits, on the safe side."""
    return None if value is None or not math.isfinite(value) else float(rounded(value))


def _drawings(render: Callable[[Any], str] | None, states: dict[int, Any]) -> dict[str, str]:
    """Drawings of states by number, as many as a page has room for."""
    found: dict[str, str] = {}
    room = _MOST_DRAWN
    for number, state in states.items() if render is not None else ():
        found[str(number)] = _drawing(render, state)  # type: ignore[arg-type]
        room -= len(found[str(number)].encode())
        if room <= 0:
            break
    return found


def _drawing(render: Callable[[Any], str], state: Any) -> str:
    """What `render` makes of a state: text, or the address of a picture that holds its SVG.

    A picture runs no scripts and loads nothing, whatever the SVG says.
    """
    try:
        found = render(state)
    except Exception as error:
        error.add_note(f"raised by render= for state {state!r}")
        raise
    if not isinstance(found, str):
        raise TypeError(f"render must return text or SVG, as a string; got {found!r} for {state!r}")
    start = found.lstrip()[:5].lower()
    if start not in ("<svg ", "<svg>", "<?xml"):
        return found
    svg = found.strip()
    if "xmlns=" not in svg.partition(">")[0] and not start.startswith("<?"):
        svg = f'<svg xmlns="http://www.w3.org/2000/svg"{svg[4:]}'  # Without it, it is no picture.
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
