"""The tree explorer: what a script needs to walk through a search tree, as plain data."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pacplan.core.rivals import challenger
from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.engine.tree import Outcome, SearchTree
from pacplan.views.drawing import drawings
from pacplan.views.outline import Box, Outline, outline
from pacplan.views.svg import Intervals

if TYPE_CHECKING:
    from pacplan.result import Plan

# Bytes of the tree on a page, at most, and the records to begin with, unless the user asks for more.
_MOST_BYTES = 700_000
_FIRST_MOST = 4000
# Successors of an action that are listed, the most frequent ones.
_MOST_SUCCESSORS = 12


@dataclass(frozen=True)
class Explorer:
    """A part of a search tree, ready for a page.

    Attributes:
        data: places (states, or sequences of actions) and the actions tried there, as JSON that is safe
            inside a script element.
        left_out: what is not on the page, in words.
        undrawn: how many states are not drawn, since there was no room.
    """

    data: str
    left_out: str
    undrawn: int


def explorer(plan: "Plan", render: Callable[[Any], str] | None, most: int | None) -> Explorer | None:
    """The most visited part of a plan's tree; None if the planner keeps none.

    Args:
        plan: the plan.
        render: draws a state; None: states are not drawn.
        most: most states and actions; None: as many as make a page of moderate size.
    """
    if plan.tree is None:
        return None
    count = _FIRST_MOST if most is None else most
    while True:
        shown = outline(plan.tree, count)
        gathered = _Gathered(plan.tree, shown)
        data: dict[str, Any] = {
            "places": gathered.places,
            "actions": gathered.actions,
            "names": gathered.names,
            "openLoop": plan.tree.open_loop,
            **_roles(plan, gathered),
        }
        if most is not None or len(_json(data).encode()) <= _MOST_BYTES or count == 1:
            break
        count //= 2
    pictures, undrawn = drawings(render, gathered.named.items())
    data["drawings"] = {str(number): picture for number, picture in pictures.items()}
    return Explorer(_json(data), _cut(shown), undrawn)


def _json(data: Any) -> str:
    """JSON that is safe inside a script element, which a closing tag in a user's string would end."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")


def _roles(plan: "Plan", gathered: "_Gathered") -> dict[str, int | None]:
    """Which of the root's actions were taken and its challenger, by their numbers on the page."""
    assert plan.tree is not None
    known = Intervals.of(plan)
    by_index = {
        int(plan.tree.pairs[pair]["action"]): number
        for pair, number in gathered.numbers.items()
        if pair in gathered.of_root
    }
    rival = None if plan.upper is None else challenger(plan.upper, known.best)
    return {
        "taken": by_index.get(known.best),
        "challenger": None if rival is None else by_index.get(rival),
    }


@dataclass
class _Gathered:
    """Boxes of an outline as places and actions that refer to one another by number.

    Attributes:
        places: name, visits, actions offered, actions tried but left out, and the actions on the page.
        actions: name, visits, mean reward, its two bounds, value, lower, upper, successors (place or
            null, name or null at an end, count) and how many there are, listed or not.
        names: of states, each once, and of actions.
        named: states by the number of their name, the most visited first.
        numbers: actions by pair.
        of_root: pairs of the root.
    """

    tree: SearchTree
    shown: Outline
    places: list[list[Any]] = field(default_factory=list)
    actions: list[list[Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    named: dict[int, Any] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    of_root: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._names: dict[str, int] = {}
        self._states: dict[int, int] = {}  # names by the number of a state
        self._place_of: dict[int, int] = {}  # by node
        for box in self.shown.boxes:
            if box.pair is None:
                self._place(box.path[-1])
            else:
                self._action(box)
        for box in self.shown.boxes:
            if box.pair is not None:
                self.actions[self.numbers[box.pair]][-2:] = self._successors(box.pair)
        for node, number in self._place_of.items():
            listed = len(self.places[number][-1])
            self.places[number][3] = int(self.tree.nodes[node]["tried"]) - listed

    def _place(self, node: int) -> int:
        """The number of a node's place, which is made if there is none."""
        if node not in self._place_of:
            record = self.tree.nodes[node]
            name = None
            if record["actions"] > 0 and (node == 0 or not self.tree.open_loop):
                name = self._state(node)
            self._place_of[node] = len(self.places)
            # Of merged states, all visits count, whatever way they came.
            visits = sum(int(self.tree.pairs[pair]["n"]) for pair in self.tree.tried(node))
            visits = max(visits, int(record["count"]))
            self.places.append([name, visits, int(record["actions"]), 0, []])
        return self._place_of[node]

    def _action(self, box: Box) -> None:
        assert box.pair is not None
        node = box.path[-1]
        known = self.tree.evidence(box.pair, box.path)
        low, high = known.reward_interval or (None, None)
        down, up = (estimated, estimated) if low == high else (at_least, at_most)
        self.numbers[box.pair] = len(self.actions)
        if len(box.path) == 1:
            self.of_root.add(box.pair)
        # In a tree of sequences the places are not boxes.
        self.places[self._place(node)][-1].append(len(self.actions))
        self.actions.append(
            [
                self._action_name(node, box.pair),
                int(self.tree.pairs[box.pair]["n"]) or box.visits,
                _number(known.reward, estimated),
                _number(low, down),
                _number(high, up),
                _number(known.value, estimated),
                _number(known.lower, at_least),
                _number(known.upper, at_most),
                [],
                0,
            ]
        )

    def _action_name(self, node: int, pair: int) -> int:
        text = short(self.tree.action(node, pair), 60)
        return self._name(f"action {text}", text)

    def _successors(self, pair: int) -> list[Any]:
        """Where an action led: those listed, and how many more there are."""
        found = sorted(self.tree.outcomes(pair), key=lambda outcome: -outcome.count)
        return [[self._successor(each) for each in found[:_MOST_SUCCESSORS]], len(found)]

    def _successor(self, outcome: Outcome) -> list[Any]:
        name = None if outcome.ended or self.tree.open_loop else self._state(outcome.node)
        place = self._place_of.get(self.tree.acting_node(outcome.node))
        if place is None:
            place = self._place_of.get(outcome.node)
        return [place, name, outcome.count]

    def _state(self, node: int) -> int:
        """The number of a state's name; two states have two, even if they look the same."""
        key = int(self.tree.nodes[node]["state"])
        if key not in self._states:
            state = self.tree.state(node)
            self._states[key] = self._name(f"state {key}", short(state, 120))
            self.named[self._states[key]] = state
        return self._states[key]

    def _name(self, key: str, text: str) -> int:
        if key not in self._names:
            self._names[key] = len(self.names)
            self.names.append(text)
        return self._names[key]


def _number(value: float | None, rounded: Callable[[float], str]) -> float | None:
    """A number with four digits, on the safe side."""
    return None if value is None or not math.isfinite(value) else float(rounded(value))


def _cut(shown: Outline) -> str:
    """What is not on the page."""
    rest = shown.total - len(shown.boxes)
    if not rest:
        return f"All {shown.total:,} states and actions that were visited are here."
    least = min(box.visits for box in shown.boxes)
    return (
        f"{len(shown.boxes):,} of {shown.total:,} states and actions are here, the most visited ones, "
        f"down to {least:,} visit{'s' * (least != 1)}; left out: {rest:,}."
    )
