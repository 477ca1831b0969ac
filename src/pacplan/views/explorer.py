"""The tree explorer: what a script needs to walk through a search tree, as plain data."""

import json
import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.engine.search_tree import Outcome, SearchTree
from pacplan.views.evidence import Intervals

# Bytes of the tree on a page; and successors of an action that are listed, the most frequent ones.
_MOST_BYTES, _MOST_SUCCESSORS = 500_000, 12


def explorer(tree: SearchTree, known: Intervals) -> tuple[str, int]:
    """The most visited part of a plan's tree, and how many actions it has.

    It consists of places (states, or sequences of actions) and the actions tried there, as JSON that is
    safe inside a script element.
    """
    records = _Records(tree)
    root = {int(tree.pairs[pair]["action"]): number for number, pair in enumerate(tree.tried(0))}
    data = {
        "places": records.places,
        "actions": records.actions,
        "names": records.names,
        "openLoop": tree.open_loop,
        "taken": root.get(known.best),
        "challenger": None if known.rival is None else root.get(known.rival),
    }
    return _json(data), len(records.actions)


def _json(data: Any) -> str:
    """JSON that is safe inside a script element, which a closing tag in a user's string would end."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")


class _Records:
    """The most visited places of a tree, from the root on, as assets/explorer.js reads them.

    Attributes:
        places: of each, the number of its name, visits, actions offered, and numbers of those tried.
        actions: of each, the number of its name, visits, mean reward, its two bounds, value, lower and
            upper bound, successors, and how many there are, listed or not. Of each successor, its place
            (None: it is not here), the number of its name (None at an end), and how often it was seen.
        names: by number.
    """

    def __init__(self, tree: SearchTree) -> None:
        self._tree = tree
        self.places: list[list[Any]] = []
        self.actions: list[list[Any]] = []
        self.names: list[str] = []
        self._numbers: dict[object, int] = {}  # of names
        place_of: dict[int, int] = {}  # by node
        size, waiting = 0, list[tuple[int, int, tuple[int, ...]]]([(0, 0, (0,))])
        while waiting and size < _MOST_BYTES:
            path = heappop(waiting)[-1]
            before = len(self.actions), len(self.names)
            place_of[path[-1]] = len(self.places)
            for outcome in self._add(path):
                if tree.nodes[outcome.node]["tried"]:
                    visits = self._visits(outcome.node)
                    heappush(waiting, (-visits, outcome.node, (*path, outcome.node)))
            size += len(_json([self.actions[before[0] :], self.names[before[1] :]]).encode())
        for action in self.actions:
            for successor in action[-2]:
                successor[0] = place_of.get(tree.acting_node(successor[0]))

    def _visits(self, node: int) -> int:
        """How often the search came here; to merged states, whatever way it came."""
        tried = sum(int(self._tree.pairs[pair]["n"]) for pair in self._tree.tried(node))
        return max(tried, int(self._tree.nodes[node]["count"]))

    def _add(self, path: tuple[int, ...]) -> list[Outcome]:
        """Record the place at the end of a path of nodes; returns all successors of its actions."""
        tree, node, found = self._tree, path[-1], list[Outcome]()
        name = None if tree.open_loop and node > 0 else self._state(node)
        first, offered = len(self.actions), int(tree.nodes[node]["actions"])
        for pair in tree.tried(node):
            outcomes = sorted(tree.outcomes(pair), key=lambda outcome: -outcome.count)
            successors = [
                [o.node, None if o.ended or tree.open_loop else self._state(o.node), o.count]
                for o in outcomes[:_MOST_SUCCESSORS]
            ]
            self.actions.append([*self._action(path, pair), successors, len(outcomes)])
            found += outcomes
        numbers = list(range(first, len(self.actions)))
        self.places.append([name, self._visits(node), offered, numbers])
        return found

    def _action(self, path: tuple[int, ...], pair: int) -> list[Any]:
        """What is known of an action."""
        known = self._tree.evidence(pair, path)
        low, high = known.reward_interval or (None, None)
        down, up = (estimated, estimated) if low == high else (at_least, at_most)
        text = short(self._tree.action(path[-1], pair), 60)
        visits = int(self._tree.pairs[pair]["n"])
        visits = visits or sum(outcome.count for outcome in self._tree.outcomes(pair))
        return [
            self._name(("action", text), text),
            visits,
            _number(known.reward, estimated),
            _number(low, down),
            _number(high, up),
            _number(known.value, estimated),
            _number(known.lower, at_least),
            _number(known.upper, at_most),
        ]

    def _state(self, node: int) -> int:
        """The number of a state's name; two states have two, even if they look the same."""
        return self._name(int(self._tree.nodes[node]["state"]), short(self._tree.state(node), 120))

    def _name(self, key: object, text: str) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.names)
            self.names.append(text)
        return self._numbers[key]


def _number(value: float | None, rounded: Callable[[float], str]) -> float | None:
    """A number with four digits, on the safe side."""
    return None if value is None or not math.isfinite(value) else float(rounded(value))
