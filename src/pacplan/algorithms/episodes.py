"""The part that searches by episodes share: the tree, the calls to the kernel, broken promises."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pacplan import _checks
from pacplan._jit import records
from pacplan._notes import shown
from pacplan.algorithms.base import Planner, Query
from pacplan.models.protocol import BrokenPromiseError, Model, Session
from pacplan.models.states import advice
from pacplan.result import Plan
from pacplan.search import kernel
from pacplan.search.checkpoint import named_arrays
from pacplan.search.driver import Snapshot
from pacplan.search.room import OutOfTimeError, Room
from pacplan.search.tree import NODE, Reader, SearchTree, read_nothing
from pacplan.words import exactly

# Kernels and kinds of models (classes of handles) that are ready.
_prepared: set[Any] = set()
# Visits of a node or pair are counted in 32 bits; each is a call to the model.
MOST_COUNTED = np.iinfo(np.int32).max


class EpisodeSearch(ABC):
    """A search whose kernel plays episodes from the root over a search tree.

    Args:
        run: the kernel, `run(state, model, root, most_episodes, most_calls, rng, ties) -> status`.
        query: what is asked.
        session: the model, ready.
        pair: the type of the tree's pairs.
        node: the type of its nodes.
        gamma: discount.
        horizon: number of steps of an episode.
        deterministic: whether the user declared that every pair has one successor.
        pairs_a_node: most pairs that a new node brings with it.
        open_loop: whether the tree is one of action sequences.
    """

    target: float | None = None
    seconds_a_node: ClassVar[float] = 3e-8
    """Time that the plan takes to make once the search is over, for each node of the tree."""
    derived: ClassVar[frozenset[str]] = frozenset()
    """Arrays that kernels see and that follow from the others."""

    def __init__(
        self,
        run: Callable[..., int],
        query: Query,
        session: Session,
        pair: np.dtype[Any],
        node: np.dtype[Any] = NODE,
        *,
        gamma: float,
        horizon: int,
        deterministic: bool = False,
        pairs_a_node: int = 1,
        open_loop: bool = False,
    ) -> None:
        model = query.model
        self.session = session
        self.actions = query.actions
        self.horizon = horizon
        self.room = Room(query.memory_limit)
        self.tree = SearchTree(
            pair,
            node,
            gamma=gamma,
            horizon=horizon,
            states=session.states,
            labels=session.labels,
            open_loop=open_loop,
        )
        successors = 1 if deterministic else model.successors
        # Where B is not known, any number that is never exceeded will do.
        self.successors = np.iinfo(np.int32).max if successors is None else successors
        low, high = model.reward_range
        self.promises = records(
            np.array(
                [(low, high - low, self.successors, model.max_actions or 0, model.may_end)],
                kernel.PROMISES,
            )
        )
        self.path = records(np.zeros(horizon, kernel.STEP))
        self.reports = records(np.zeros(1, kernel.REPORT))
        self._reward_range = model.reward_range
        self._max_actions = model.max_actions
        self._deterministic = deterministic
        self._pairs_a_node = pairs_a_node
        self._rng, self._ties = query.rng, query.ties
        self._root = session.encode(query.state)
        if query.reuse is not None and query.reuse.tree is not None:
            self.tree.adopt(query.reuse.tree, session.encode)
        self.room.take(self.tree.nbytes)
        earlier = int(self.tree.nodes["count"].max(initial=0))
        self._most_calls = MOST_COUNTED - earlier
        self._run = run

    @abstractmethod
    def kernel_state(self) -> Any:
        """What the kernel works on. The tree's arrays move when it grows, so it is made anew."""

    @abstractmethod
    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands."""

    def standing(
        self,
        best: int,
        seconds: float,
        lower: NDArray[np.float64] | None = None,
        upper: NDArray[np.float64] | None = None,
    ) -> Snapshot:
        """A snapshot that recommends action `best`; its gap is max_{a != best} U(a) - L(best)."""
        gap = None
        if lower is not None and upper is not None:
            rivals = [bound for a, bound in enumerate(upper.tolist()) if a != best]
            gap = max(rivals) - float(lower[best]) if rivals else 0.0
        return Snapshot(
            actions=self.actions,
            lower=lower,
            upper=upper,
            action=self.actions[best],
            gap=gap,
            samples=int(self.report["calls"]),
            episodes=int(self.report["episodes"]),
            seconds=seconds,
        )

    def reader(self) -> Reader:
        """How the tree's pairs are read when the search is over. It outlives the session."""
        return read_nothing

    @property
    def report(self) -> Any:
        """Counters, and the promise that was broken, if any."""
        return self.reports[0]

    def reserve(self) -> int:
        """Make room for some more episodes; returns how many."""
        pairs = self.horizon * self._pairs_a_node
        episodes = max(1, 4096 // pairs, len(self.tree.pairs) // (4 * pairs))
        self.tree.reserve(episodes * self.horizon, episodes * pairs, self.room)
        return episodes

    def prepare(self) -> int:
        """Compile the kernel for this kind of model, or load it from the cache, once a process.

        The root is made on the way, which may ask the model; so it says how it ended, as `advance`.
        """
        handle = self.session.handle
        kind = self._run, type(handle), type(getattr(handle, "inner", None))
        if kind in _prepared:
            return kernel.CHUNK_DONE
        _prepared.add(kind)
        return self.advance(0, 0)

    def stop_at(self, deadline: float | None) -> None:
        """Begin no call to the model after this reading of `time.perf_counter`."""
        self.room.deadline = deadline
        self.session.stop_at(deadline)

    def finishing(self) -> float:
        """Seconds, at most, that the plan takes to make once the search has ended."""
        return self.seconds_a_node * float(self.tree.arrays().used[0])

    def halt(self) -> None:
        """Begin no further call to the model."""
        self.reports["halt"][0] = 1

    def advance(self, episodes: int, calls: int) -> int:
        """Play at most so many episodes, until so many calls in all; say how it ended."""
        last = int(self.report["episodes"]) + episodes
        countable = min(calls, self._most_calls)
        while True:
            status = int(
                self._run(
                    self.kernel_state(),
                    self.session.handle,
                    self._root,
                    last - int(self.report["episodes"]),
                    countable,
                    self._rng,
                    self._ties,
                )
            )
            if status == kernel.SPENT and countable < calls:
                return kernel.FULL
            called = status == kernel.ABORTED and not self.report["refused"]
            if called or self.report["promise"] == kernel.NO_ACTIONS:
                asked = int(self.report["action"]) if called else None
                self.session.diagnose(int(self.report["state"]), asked, int(self.report["h"]))
            if status != kernel.NO_ROOM:
                return status
            try:
                self.reserve()
            except MemoryError:
                return kernel.FULL
            except OutOfTimeError:
                self.reports["refused"][0] = 1
                return kernel.ABORTED

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """All that the search is between two chunks, by name."""
        own = dict(named_arrays(self.kernel_state()))
        streams = {"streams.rng": self._rng.words, "streams.ties": self._ties.words}
        arrays = {name: array for name, array in own.items() if name not in self.derived}
        return arrays | streams | self.session.memory()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Put the search where `state_arrays` found it; it was set up in the same way.

        Raises:
            ValueError: the arrays are not those of such a search.
        """
        self.session.recall({name: arrays[name] for name in arrays if name.startswith("session.")})
        for name, array in self.state_arrays().items():
            if name not in arrays or arrays[name].dtype != array.dtype:
                raise ValueError(f"the checkpoint does not fit this planner: {name} is another")
            saved = arrays[name]
            if saved.shape != array.shape:
                # Without compilation, kernels see a view of the array.
                owner = array if array.base is None else array.base
                self.room.take(max(0, saved.nbytes - array.nbytes))
                owner.resize(saved.shape, refcheck=False)
                array = dict(self.state_arrays())[name]
            array[...] = saved
        self.reserve()

    def broken_promise(self) -> Exception:
        """The error for a model that broke a promise."""
        report = self.report
        promise, key, action, h = (int(report[name]) for name in ("promise", "state", "action", "h"))
        state = key if self.session.states is None else self.session.states[key]
        low, high = self._reward_range
        where = f"state {shown(state)}, step {h}"
        if promise not in (kernel.NO_ACTIONS, kernel.TOO_MANY_ACTIONS):
            where = f"state {shown(state)}, action {shown(self.session.label(key, action))}, step {h}"
        promised = f"more than the promised {self.successors} successors were seen; raise successors="
        if self._deterministic:
            promised = "transitions were declared deterministic, but a second successor was seen"
        return BrokenPromiseError(
            {
                kernel.BAD_REWARD: f"{where}: the reward {report['reward']} lies outside the "
                f"promised reward_range=({low}, {high})",
                kernel.TOO_MANY_SUCCESSORS: f"{where}: {promised}, or {advice(state)}",
                kernel.NO_ACTIONS: f"the successor {shown(state)} offers no action; a state in which "
                "nothing can be done must be reached by a transition that terminates",
                kernel.TOO_MANY_ACTIONS: f"state {shown(state)} offers {action} actions, more than the "
                f"promised {self._max_actions or _checks.LARGEST}",
                kernel.REWARD_VARIES: f"{where}: rewards were declared deterministic, but this pair "
                f"paid {report['reward']} after having paid another reward",
                kernel.ENDED_EARLY: f"{where}: the episode ended, though may_end=False promised that "
                "it never does",
                kernel.MOVE_PAYS: f"{where}: a move that did not end the game paid {report['reward']}; "
                "only the last move of a game pays",
                kernel.ENDLESS_GAME: f"{where}: the game is not over after {self.horizon} moves; raise "
                "the planner's horizon=",
            }[promise]
        )


def size_assumptions(model: Model) -> tuple[str, ...]:
    """What a guarantee rests on that counts pairs: B, K and the rewards."""
    low, high = model.reward_range
    return (
        f"every state and action has at most {model.successors} successors",
        f"no state has more than {model.max_actions} actions",
        f"rewards lie in [{exactly(low)}, {exactly(high)}]",
    )


def within(
    values: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Estimates brought into their bounds; NaN, for none, stays NaN.

    An upper bound may lie below the lower one: where the guarantee failed, or in Bracket's, whose upper
    bound holds for the best action only. Then the lower bound is the estimate.
    """
    return np.maximum(np.minimum(values, upper), lower)


def best_estimate(values: NDArray[Any], order: NDArray[np.int64]) -> int:
    """Index of the largest estimate; ties, and no estimates (NaN) at all, are broken by `order`."""
    scores = np.where(np.isnan(values), -np.inf, values)
    return int(max(order, key=lambda action: scores[action]))


def estimates_plan(
    planner: Planner,
    query: Query,
    search: Any,
    stopped_by: str,
    seconds: float,
    *,
    guarantee: str | None = None,
    value: float | None = None,
    sequence: tuple[Hashable, ...] = (),
) -> Plan:
    """The plan of a planner that has estimates of the root's actions and no bounds on them.

    Args:
        planner: who plans.
        query: what it was asked.
        search: its search, with `values`, `calls` and `recommended()`.
        stopped_by: what ended it.
        seconds: time it took.
        guarantee: what is known; by default nothing.
        value: estimate of the state's value; by default that of the action recommended.
        sequence: actions to take one after the other.
    """
    values = search.values.copy()
    best = search.recommended()
    search.tree.close(search.reader())
    action = query.actions[best]
    proof = f"{type(planner).__name__} proves nothing." if guarantee is None else guarantee
    return Plan(
        action=action,
        actions=query.actions,
        lower=None,
        upper=None,
        values=values,
        calls=search.calls.copy(),
        gap=None,
        value=float(values[best]) if value is None else value,
        certified=False,
        stopped_by=stopped_by,
        guarantee=f"Action {action!r} is the best guess. {proof}",
        assumptions=(),
        samples=int(search.report["calls"]),
        episodes=int(search.report["episodes"]),
        seconds=seconds,
        horizon=search.horizon,
        planner=repr(planner),
        tree=search.tree if len(search.tree) else None,
        sequence=sequence,
        memory=search.room.held,
    )


def bounded_plan(
    planner: Planner,
    query: Query,
    search: Any,
    snapshot: Snapshot,
    stopped_by: str,
    *,
    guarantee: str,
    assumptions: tuple[str, ...],
    values: NDArray[np.float64],
    value: float | None = None,
    proven: bool = True,
) -> Plan:
    """The plan of a planner that has bounds on the values of the root's actions.

    Args:
        planner: who plans.
        query: what it was asked.
        search: its search, with `calls` and `horizon`.
        snapshot: how it stands.
        stopped_by: what ended it.
        guarantee: what is known.
        assumptions: what that rests on.
        values: estimates of the root's actions, NaN for those of which nothing was seen. In the plan
            they are brought into their bounds.
        value: estimate of the state's value; by default the largest of the estimates, brought into
            [max L, max U], and the middle of that if there are none.
        proven: whether its own rule is a certificate.
    """
    assert snapshot.lower is not None and snapshot.upper is not None
    values = within(values, snapshot.lower, snapshot.upper)
    low, high = float(snapshot.lower.max()), float(snapshot.upper.max())
    if value is None:
        found = values[~np.isnan(values)]
        best = float(found.max()) if len(found) else 0.5 * (low + high)
        value = max(min(best, high), low)
    if stopped_by == "rule" and proven:
        stopped_by = "certified"
    search.tree.close(search.reader())
    return Plan(
        action=snapshot.action,
        actions=query.actions,
        lower=snapshot.lower,
        upper=snapshot.upper,
        values=values,
        calls=search.calls.copy(),
        gap=snapshot.gap,
        value=value,
        certified=stopped_by == "certified",
        stopped_by=stopped_by,
        guarantee=guarantee,
        assumptions=assumptions,
        samples=snapshot.samples,
        episodes=snapshot.episodes,
        seconds=snapshot.seconds,
        horizon=search.horizon,
        planner=repr(planner),
        tree=search.tree if len(search.tree) else None,
        memory=search.room.held,
    )
