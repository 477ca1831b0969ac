"""A search by a compiled kernel, as the driver sees it: the tree, room, and the calls to the kernel."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import records
from pacplan.engine.calls import ABORTED, CHUNK_DONE, FULL, NO_ROOM, REPORT, SPENT, STEP
from pacplan.engine.checkpoint import named_arrays
from pacplan.engine.curve import FIRST_MARK, Points, new_points, points_of
from pacplan.engine.driver import Snapshot
from pacplan.engine.episodes import play
from pacplan.engine.promises import NO_ACTIONS, TERMS, broken_promise
from pacplan.engine.query import Query
from pacplan.engine.room import OutOfTimeError, Room
from pacplan.engine.tree import BLOCK, FIRST_ROOM, NODE, Reader, SearchTree, read_nothing
from pacplan.models.protocol import Session

# Kernels that are ready, with the kinds of searches and models (classes of tuples).
_prepared: set[Any] = set()
# Of several threads that need a kernel, one compiles it, and the clocks of all stand still. (A model
# may make plans itself.)
_preparing = threading.RLock()
# Visits of a node or pair are counted in 32 bits; each is a call to the model.
MOST_COUNTED = 2**31 - 1
# Nodes, at most, that there is room for at first; more would take long to clear if it ends early.
_MOST_EXPECTED = 1 << 15


class Kept(NamedTuple):
    """How a search stood.

    Attributes:
        arrays: all its arrays, by name.
        held: bytes granted to it.
    """

    arrays: dict[str, NDArray[Any]]
    held: int


class KernelSearch(ABC):
    """A search over a tree by a compiled kernel: by default the one that plays episodes.

    Attributes:
        report: counters, and the promise that was broken, if any.
        points: of its curve, as they were noted (`pacplan.engine.curve`).

    Args:
        query: what is asked.
        session: the model, ready.
        pair: the type of the tree's pairs.
        node: the type of its nodes.
        step: the type of the records of an episode's steps.
        gamma: discount.
        horizon: most steps of an episode.
        deterministic: whether the user declared that every pair has one successor.
        pairs_a_step: most pairs that one step adds to the tree, all to one node.
        nodes: about how many the tree will have, if that is known: whenever it has to grow, the kernel
            returns to Python.
        open_loop: whether the tree is one of action sequences.
        run: the kernel, `run(state, model, root, most_episodes, most_calls, rng, ties) -> status`.
    """

    target: float | None = None
    notes: ClassVar[bool] = True
    """Whether the driver is to ask for the points of the curve; a kernel may note them itself."""
    seconds_a_node: ClassVar[float] = 3e-8
    """Time that the plan takes to make once the search is over, for each node of the tree."""
    derived: ClassVar[frozenset[str]] = frozenset()
    """Arrays that kernels see and that follow from the others."""

    def __init__(
        self,
        query: Query,
        session: Session,
        pair: np.dtype[Any],
        node: np.dtype[Any] = NODE,
        step: np.dtype[Any] = STEP,
        *,
        gamma: float,
        horizon: int,
        deterministic: bool = False,
        pairs_a_step: int = 1,
        nodes: int = 0,
        open_loop: bool = False,
        run: Callable[..., int] = play,
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
            room=FIRST_ROOM if self.room.limit else max(FIRST_ROOM, min(nodes, _MOST_EXPECTED)),
        )
        successors = 1 if deterministic else model.successors
        # If B is not known, any number that is never exceeded will do.
        self.successors = MOST_COUNTED if successors is None else successors
        low, high = model.reward_range
        terms = np.zeros(1, TERMS)
        terms["lowest"], terms["width"], terms["gamma"] = low, high - low, gamma
        terms["successors"], terms["most_actions"] = self.successors, model.max_actions or 0
        # Other records may be kept free beside the last pair that a step adds.
        pairs_a_step += max(0, min(BLOCK, (model.max_actions or BLOCK + 1) - 1) - 1)
        terms["horizon"], terms["pairs_a_step"] = horizon, pairs_a_step
        terms["may_end"] = model.may_end
        self.calls = np.zeros(len(query.actions), np.int64)
        self.terms = records(terms)
        self.path = records(np.zeros(horizon, step))
        self.reports = records(np.zeros(1, REPORT))
        self.report: Any = self.reports[0]
        self.report["mark"] = FIRST_MARK
        self.points = new_points(len(query.actions))
        self._deterministic = deterministic
        self._pairs_a_step = pairs_a_step
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
        """The named tuple that the kernel works on: what `engine_fields` has, and the planner's own.

        The tree's arrays move when it grows, so the tuple is made anew for every chunk.
        """

    def engine_fields(self) -> dict[str, Any]:
        """The fields of the kernel's tuple that belong to the engine (`pacplan.engine.episodes`)."""
        return {
            "tree": self.tree.arrays(),
            "terms": self.terms,
            "path": self.path,
            "calls": self.calls,
            "report": self.reports,
        }

    @abstractmethod
    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands."""

    def standing(
        self,
        best: int,
        seconds: float,
        lower: NDArray[np.float64] | None = None,
        upper: NDArray[np.float64] | None = None,
        losses: NDArray[np.float64] | None = None,
    ) -> Snapshot:
        """A snapshot that recommends action `best`.

        Its gap is max_{a != best} U(a) - L(best), or the largest of `losses`, if the search knows more
        of how much each other action is better than `best`, at most.
        """
        gap = None
        if lower is not None and upper is not None:
            others = upper - lower[best] if losses is None else losses.copy()
            others[best] = -np.inf
            gap = float(others.max()) if len(upper) > 1 else 0.0
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

    def note(self) -> bool:
        """Add how the search stands to its curve; returns whether there are bounds."""
        found = self.snapshot(0.0)
        if found.lower is None or found.upper is None:
            return False
        self.points[self.report["points"]] = (found.samples, found.gap, *found.lower, *found.upper)
        self.report["points"] += 1
        return True

    def curve(self) -> Points:
        """How the bounds have closed in so far, in the user's units."""
        return points_of(self.points, int(self.report["points"]))

    def reader(self) -> Reader:
        """Reads the tree's pairs when the search is over. It outlives the session."""
        return read_nothing

    def acting_nodes(self) -> NDArray[np.int32] | None:
        """By node, the one that holds its state's actions, if equal states are merged; else None."""
        return None

    def reserve(self) -> int:
        """Make room for some more episodes; returns how many."""
        pairs = self.horizon * self._pairs_a_step
        episodes = max(1, FIRST_ROOM // pairs, len(self.tree.pairs) // (4 * pairs))
        self.tree.reserve(episodes * self.horizon, episodes * pairs, self.room)
        return episodes

    def prepare(self) -> int:
        """Compile the kernel for this kind of model, or load it from the cache, once per process.

        This makes the root, which may ask the model; so it returns how that ended, as `advance` does.
        """
        state = self.kernel_state()
        kind = self._run, *map(type, (state, *state))
        if kind in _prepared:
            return CHUNK_DONE
        with _preparing:
            status = self.advance(0, 0)
            _prepared.add(kind)
        return status

    def stop_at(self, deadline: float | None) -> None:
        """Begin no call to the model after this reading of `time.perf_counter`."""
        self.room.deadline = deadline
        self.session.stop_at(deadline)

    def finishing(self) -> float:
        """Seconds, at most, that the plan takes to make once the search has ended."""
        return self.seconds_a_node * float(self.tree.arrays().used[0])

    def halt(self) -> None:
        """Begin no further call to the model."""
        self.report["halt"] = 1

    def advance(self, episodes: int, calls: int) -> int:
        """Play at most `episodes` more, until `calls` in all; returns how it ended."""
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
            if status == SPENT and countable < calls:
                return FULL
            called = status == ABORTED and not self.report["refused"]
            if called or self.report["promise"] == NO_ACTIONS:
                asked = int(self.report["action"]) if called else None
                self.session.diagnose(int(self.report["state"]), asked, int(self.report["h"]))
            if status != NO_ROOM:
                return status
            try:
                self.reserve()
            except MemoryError:
                return FULL
            except OutOfTimeError:
                self.report["refused"] = 1
                return ABORTED

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """The whole search between two chunks: its arrays by name."""
        own = dict(named_arrays(self.kernel_state()))
        streams = {"streams.rng": self._rng.words, "streams.ties": self._ties.words}
        arrays = {name: array for name, array in own.items() if name not in self.derived}
        return arrays | streams | {"points": self.points} | self.session.memory()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Put a search that was set up in the same way where `state_arrays` found it.

        Raises:
            ValueError: the arrays do not fit this search.
        """
        self.session.recall({name: arrays[name] for name in arrays if name.startswith("session.")})
        for name, array in self.state_arrays().items():
            if name not in arrays or arrays[name].dtype != array.dtype:
                raise ValueError(f"the checkpoint does not fit this planner: {name} differs")
            self.room.take(max(0, arrays[name].nbytes - array.nbytes))
            self._fill(name, array, arrays[name])
        # A deadline that came while it was saved is not that of the search that goes on.
        self.report["halt"] = self.report["refused"] = 0
        self.reserve()

    def keep(self, before: Kept | None = None) -> Kept:
        """How the search stands between two chunks, for `put_back`.

        What was kept `before` is no longer needed: its memory is used again.
        """
        arrays = {} if before is None else before.arrays
        for name, array in self.state_arrays().items():
            kept = arrays.get(name)
            if kept is None or kept.shape != array.shape:
                kept = arrays[name] = np.empty_like(array)
            _copy(array, kept)
        return Kept(arrays, self.room.held)

    def put_back(self, kept: Kept) -> None:
        """Put the search back to where it stood."""
        for name, array in self.state_arrays().items():
            self._fill(name, array, kept.arrays[name])
        self.room.held = kept.held

    def _fill(self, name: str, array: NDArray[Any], saved: NDArray[Any]) -> None:
        if saved.shape != array.shape:
            if name in ("tree.nodes", "tree.pairs"):
                self.tree.fit(name.removeprefix("tree."), len(saved))
            else:
                # Without compilation, kernels see a view of the array.
                owner = array if array.base is None else array.base
                owner.resize(saved.shape, refcheck=False)
            array = self.state_arrays()[name]
        _copy(saved, array)

    def broken_promise(self) -> Exception:
        """The error for a model that broke a promise."""
        return broken_promise(self.report, self.terms[0], self.session, self._deterministic)


def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copy an array to one of the same kind: records as bytes, since NumPy would copy every field."""
    if target.dtype.names is not None:
        source, target = source.reshape(-1).view(np.uint8), target.reshape(-1).view(np.uint8)
    target[...] = source
