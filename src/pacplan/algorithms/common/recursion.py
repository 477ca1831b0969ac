"""Planners that recurse are Python generators; compiled code makes the calls that they ask for.

A recursion yields what it needs and goes on with the answer: `Draws`, or another generator, of which it
gets the result. So it can be as deep as it likes, and be stopped at every draw and go on from there.
"""

from abc import abstractmethod
from collections.abc import Generator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_steps
from pacplan.algorithms.common.plans import EstimateSearch
from pacplan.compiled.jit import kernel
from pacplan.compiled.reference import refer
from pacplan.core import checks
from pacplan.core.words import at_most, complement, exactly
from pacplan.engine import calls
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import kernel_arrays
from pacplan.engine.tree import LINKS
from pacplan.engine.values import step_range
from pacplan.models.protocol import Model, Session

Recursion = Generator[Any, Any, Any]

# Calls to ask for at once: a request takes Python some microseconds.
BLOCK = 1 << 14
# The successor of a draw that ended the episode: no state has this number.
END = np.iinfo(np.int64).min

REQUEST = np.dtype(
    [
        ("each", np.int64),  # draws of each pair
        ("h", np.int64),
        ("first", np.int64),  # root action that they are counted for
        ("offered", np.bool_),  # whether the successors' numbers of actions are asked for
        ("wanted", np.int64),
        ("done", np.int64),
    ]
)


@kernel_arrays
class RequestArrays:
    """What is asked for, and what was drawn."""

    request: Any  # one record of REQUEST
    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    successors: NDArray[np.int64]
    rewards: NDArray[np.float64]
    offered: NDArray[np.int64]


@kernel
def make_draws(
    search: Any, model: Any, state: int, most_episodes: int, most_calls: int, rng: Any, ties: Any
) -> int:
    """Draw what is asked for, as `pacplan.engine.episodes.play`: a call is an episode. RULE: done."""
    search, model = refer(search), refer(model)
    report, request, problem = search.report[0], search.request[0], search.problem[0]
    if report.halt != 0:
        report.refused = 1
        return calls.ABORTED
    h, first, offered, scale = request.h, request.first, request.offered, problem.width
    last = min(most_episodes, request.wanted - request.done, most_calls - report.calls)
    for k in range(request.done, request.done + last):
        pair = k // request.each
        successor, reward, ended, status = calls.draw_counted(
            search, model, search.states[pair], search.actions[pair], h, first, rng
        )
        if offered and not ended and status == calls.CHUNK_DONE:
            search.offered[k], status = calls.count_actions(search, model, successor, h + 1)
        if status != calls.CHUNK_DONE:
            return status
        search.rewards[k] = problem.lowest + scale * reward
        search.successors[k] = END if ended else successor
        request.done += 1
        report.episodes += 1
    if request.done == request.wanted:
        return calls.RULE
    return calls.SPENT if report.calls >= most_calls else calls.CHUNK_DONE


class Draws(NamedTuple):
    """A request for so many draws of each of some pairs.

    The answer, which lasts until the next request, is three arrays with a row for each pair: the
    successors (or END), the rewards, and how many actions the successors have.
    """

    states: Any
    actions: Any
    each: int
    h: int  # steps taken to the states
    first: int  # action of the root that the calls are counted for
    offered: bool = True  # whether the last array is needed


PAUSE = Draws([], [], 1, 0, 0)
"""Asks for nothing: where a long computation may be stopped."""


class RecursivePlanner(Planner):
    """A planner for the infinite horizon whose search recurses, by default to the state's `value()`."""

    keeps_checkpoints = False
    reference: ClassVar[str] = ""
    estimated: str = "The optimal value of the state"

    def __init__(self, *, epsilon: float, delta: float, gamma: float) -> None:
        self.epsilon = checks.positive("epsilon", epsilon)
        self.delta = checks.probability("delta", delta)
        self.gamma = checks.real("gamma", gamma)
        if not 0.0 < self.gamma < 1.0:
            raise ValueError(f"gamma must lie in (0, 1) for an infinite horizon, got {gamma}")

    def check_query(self, query: Query, limits: Limits) -> None:
        check_steps(query.model, None)

    def guarantee(self, model: Model, search: Any, snapshot: Snapshot) -> str:
        if not search.over:
            return "The recursion was not finished, so nothing is known about its value."
        return (
            f"{self.estimated} is within {at_most(self.epsilon)} of {exactly(search.value())}, with "
            f"probability at least {complement(self.delta)} ({self.reference})."
        )

    def value_estimate(self, search: Any, snapshot: Snapshot) -> float:
        return float(search.value())


class RecursiveSearch(EstimateSearch):
    """A search that a recursion makes.

    In it values are scaled: every step pays between 0 and 1, and what can be earned from a step on lies
    between 0 and `rest`.
    """

    def __init__(self, planner: Any, query: Query, session: Session, horizon: int = 1) -> None:
        integers = ("states", "actions", "successors", "offered")
        arrays: dict[str, Any] = {name: np.zeros(0, np.int64) for name in integers}
        arrays |= {"request": np.zeros(1, REQUEST), "rewards": np.zeros(0)}
        super().__init__(
            query,
            session,
            np.dtype(LINKS),
            kind=RequestArrays,
            arrays=arrays,
            gamma=planner.gamma,
            horizon=horizon,
            run=make_draws,
        )
        self.ties = query.ties
        self.shortage = ""  # what it says about memory, if that ended it
        self._under_way: list[Recursion] = [self.recurse()]
        self._asked: Draws | None = None
        self.low, high = step_range(query.model.reward_range, query.model.may_end)
        self.width = high - self.low
        if planner.gamma < 1.0:
            self.rest: float = 1.0 / (1.0 - planner.gamma)
            self.ended = -self.low / self.width * self.rest  # the value of having ended
            self.units = self.low * self.rest, self.width

    @property
    def over(self) -> bool:
        """Whether the recursion has come to its end."""
        return not self._under_way

    @abstractmethod
    def recurse(self) -> Recursion:
        """The whole search."""

    def scaled(self, reward: Any) -> Any:
        """A reward, between 0 and 1."""
        return (reward - self.low) / self.width

    def advance(self, episodes: int, most: int) -> int:
        """Go on for at most so many draws, until `most` calls in all; returns how it ended."""
        last = int(self.report["episodes"]) + episodes
        while True:
            answer = None
            if self._asked is not None:
                status = super().advance(last - int(self.report["episodes"]), most)
                if status != calls.RULE:
                    return status
                if getattr(self.session, "needed", None) is not None:
                    return calls.CHUNK_DONE  # Guesses stand in for draws that are under way.
                shape = len(self._asked.states), self._asked.each
                drawn = (self.arrays[name] for name in ("successors", "rewards", "offered"))
                answer = tuple(array[: shape[0] * shape[1]].reshape(shape) for array in drawn)
            try:
                self._asked = self._next(answer)
                if self._asked is None:
                    return calls.RULE
                self._ask(self._asked)
            except MemoryError as error:
                self.shortage = f" It stopped because {error}."
                return calls.FULL

    def _next(self, answer: Any) -> Draws | None:
        """Go on to the next request; None if the recursion is over."""
        while self._under_way:
            try:
                asked = self._under_way[-1].send(answer)
            except StopIteration as over:
                self._under_way.pop()
                answer = over.value
                continue
            if isinstance(asked, Draws):
                return asked
            answer = None
            self._under_way.append(asked)
        return None

    def _ask(self, asked: Draws) -> None:
        pairs, draws = len(asked.states), len(asked.states) * asked.each
        for name, array in self.arrays.items():
            rows = pairs if name in ("states", "actions") else draws
            if name != "request" and len(array) < rows:
                self.extend(name, rows)
        self.arrays["states"][:pairs], self.arrays["actions"][:pairs] = asked.states, asked.actions
        self.arrays["request"][0] = (asked.each, asked.h, asked.first, asked.offered, draws, 0)

    def check_successors(self, seen: int, state: int, action: int, h: int) -> None:
        """Raise if a pair has shown more outcomes than the model promised."""
        if seen > self.successors:
            promise = calls.TOO_MANY_SUCCESSORS
            raise self.broken_promise(promise=promise, state=state, action=action, h=h)

    def draw(self, pairs: list["Pair"], count: int) -> Recursion:
        """Let each of some pairs of a node have at least so many draws."""
        node = pairs[0].node
        while (least := min(map(len, pairs))) < count:
            first = next(pair.first for pair in pairs if len(pair) == least)
            behind = [pair for pair in pairs if len(pair) == least and pair.first == first]
            more = min(count - least, max(1, BLOCK // len(behind)))
            self.memory.request(16 * more * len(behind))
            actions = [pair.action for pair in behind]
            drawn = yield Draws([node.state] * len(behind), actions, more, node.h, first)
            for pair, *rows in zip(behind, *drawn, strict=True):
                pair.append(*rows)
                self.check_successors(len(pair.children), node.state, pair.action, node.h)


class Node:
    """A state reached by one history, after h steps, of which `first` was the first action."""

    def __init__(self, state: int, h: int, actions: int, first: int | None = None) -> None:
        self.state, self.h, self.first = state, h, first
        self._actions = actions

    @cached_property
    def pairs(self) -> list["Pair"]:
        """One for each action. Most states are never acted in."""
        return [Pair(self, action) for action in range(self._actions)]


class Pair:
    """A stack of draws of one action of a node: its first draw, its second, and so on."""

    def __init__(self, node: Node, action: int) -> None:
        self.node, self.action = node, action
        self.first = action if node.first is None else node.first
        self.children: dict[int, Node | None] = {}  # by state, in order of discovery; None for the end
        self.earned = np.zeros(1)  # sums of the first 0, 1, 2, ... rewards, and room for more
        self._outcomes = np.zeros(0, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def visits(self, draws: int) -> list[tuple[int, Node, int]]:
        """Outcomes among the first draws: number, node, how often. The end is left out."""
        outcomes = self._outcomes[: min(draws, self._count)]
        counts = np.bincount(outcomes, minlength=len(self.children)).tolist()
        seen = enumerate(zip(self.children.values(), counts, strict=True))
        return [(i, node, n) for i, (node, n) in seen if node is not None and n > 0]

    def append(
        self, successors: NDArray[np.int64], rewards: NDArray[np.float64], actions: NDArray[np.int64]
    ) -> None:
        """Add draws: the next states, the rewards, and how many actions the states offer."""
        distinct, places, which = np.unique(successors, return_index=True, return_inverse=True)
        for place in np.sort(places).tolist():
            state = int(successors[place])
            if state not in self.children:
                child = Node(state, self.node.h + 1, int(actions[place]), self.first)
                self.children[state] = None if state == END else child
        before, self._count = self._count, self._count + len(successors)
        if self._count > len(self._outcomes):
            # Room for half as many again, so that the work stays proportional to the draws.
            room = self._count * 3 // 2
            self._outcomes.resize(room, refcheck=False)
            self.earned.resize(room + 1, refcheck=False)
        numbers = {state: number for number, state in enumerate(self.children)}
        found = np.array([numbers[state] for state in distinct.tolist()], np.int32)
        self._outcomes[before : self._count] = found[which]
        self.earned[before + 1 : self._count + 1] = self.earned[before] + np.cumsum(rewards)
