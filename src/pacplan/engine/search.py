"""A search by a compiled kernel, as the driver sees it: its arrays, and the calls to the kernel."""

from collections.abc import Callable, Iterator, Mapping
from inspect import get_annotations
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.interpreted import interpreted
from pacplan.compiled.tiered import ready
from pacplan.engine import calls
from pacplan.engine.driver import Snapshot
from pacplan.engine.episodes import FIELDS, play
from pacplan.engine.memory import MemoryBudget
from pacplan.engine.query import Query
from pacplan.engine.search_tree import Reader, SearchTree, read_nothing
from pacplan.engine.tree import BLOCK, FIRST_ROOM, MOST_COUNTED, MOST_RECORDS, NODE, TreeArrays
from pacplan.models.protocol import Session

# Arrays that are not kept: the ground rules, and an episode that is over.
_NOT_KEPT = frozenset({"problem", "path"})
# Episodes at the first point of the curve; each further one comes after half as many episodes again. At
# the last one, more were played than are ever counted.
_FIRST_MARK, _MOST_POINTS = 32, 48


def kernel_arrays(declared: type) -> Any:
    """Make a class that annotates a planner's own arrays the class that its kernels work on.

    It is a named tuple of what the engine has (`pacplan.engine.episodes.FIELDS`) and of these arrays.
    """
    own = get_annotations(declared)
    made: Any = NamedTuple(declared.__name__, [*FIELDS, *own.items()])  # type: ignore[misc]
    made.__module__, made.__qualname__ = declared.__module__, declared.__qualname__
    made.__doc__ = declared.__doc__
    return made


class KernelSearch:
    """A search over a tree by a compiled kernel: by default the one that plays episodes.

    The engine makes the tree and its own arrays, hands them to the kernel with those of the planner
    (`arrays`), makes room in them, and keeps and restores them all.

    Args:
        query: what is asked.
        session: the model, ready.
        pair: the type of the tree's pairs.
        node: the type of its nodes.
        kind: the class of named tuples that the kernel works on.
        arrays: the planner's own arrays in it, by the names of its fields; also named tuples of arrays.
        gamma: discount.
        horizon: most steps of an episode.
        deterministic: whether the user declared that every pair has one successor.
        run: the kernel, `run(state, model, root, most_episodes, most_calls, rng, ties) -> status`.

    Attributes:
        mark: episodes at the next point of the curve.
    """

    target: float | None = None
    units: tuple[float, float] = (0.0, 1.0)
    """What 0 and the width of a unit stand for, where kernels keep bounds in `root`."""
    certifies: bool = True
    """Whether its own stopping rule is a certificate."""
    waits: ClassVar[bool] = True
    seconds_a_node: ClassVar[float] = 3e-8
    """Time that the plan takes to make once the search is over, for each node of the tree."""
    derived: ClassVar[frozenset[str]] = frozenset()
    """Arrays that kernels see and that follow from the planner's settings or from the others."""

    def __init__(
        self,
        query: Query,
        session: Session,
        pair: np.dtype[Any],
        node: np.dtype[Any] = NODE,
        *,
        kind: Any = None,
        arrays: Mapping[str, Any] | None = None,
        gamma: float,
        horizon: int,
        deterministic: bool = False,
        run: Callable[..., int] = play,
    ) -> None:
        model, actions = query.model, len(query.actions)
        self.session, self.actions, self.horizon = session, query.actions, horizon
        self.memory = MemoryBudget(query.limits.memory_limit)
        records = np.zeros(FIRST_ROOM, node), np.zeros(FIRST_ROOM, pair), np.zeros(2, np.int64)
        self.tree = SearchTree(TreeArrays(*records), gamma, horizon, session.states, session.labels)
        # If B is not known, any number that is never exceeded will do.
        self.successors = 1 if deterministic else model.successors or MOST_COUNTED
        self.problem = calls.problem_of(model, successors=self.successors, horizon=horizon, gamma=gamma)
        self.calls, self.path = np.zeros(actions, np.int64), np.zeros(horizon, calls.STEP)
        self.reports = np.zeros(1, calls.REPORT)
        self.report: Any = self.reports[0]
        # Rows: calls, the gap, and bounds of the root's actions.
        self.points, self.mark = np.zeros((_MOST_POINTS, 2 + 2 * actions)), _FIRST_MARK
        self.arrays: dict[str, Any] = dict(arrays or {})
        self._kind, self._run, self._compiled = kind, run, False
        self._deterministic, (self._rng, self._ties) = deterministic, query.streams
        self.root_state = session.encode(query.state)
        self.memory.request(self.tree.nbytes)
        if kind is not None:
            self.reserve()

    def begin_again(self, query: Query) -> None:
        """Get ready to plan from another state of the same model, with all records."""
        self.actions, (self._rng, self._ties) = query.actions, query.streams
        self.root_state = self.session.encode(query.state)
        self.calls = np.zeros(len(query.actions), np.int64)
        self.reports[:] = 0
        self.session.deadline = np.inf

    # What the kernel works on.

    def kernel_state(self) -> Any:
        """The named tuple that the kernel works on, made anew for every chunk, as arrays move."""
        engine = self.tree.arrays, self.problem, self.path, self.calls, self.reports
        return self._kind(*engine, **self.arrays)

    def reserve(self) -> int:
        """Make room for some more episodes; returns how many."""
        pairs = self.horizon * BLOCK  # Others may be kept free beside the one that a step adds.
        episodes = max(1, FIRST_ROOM // pairs, len(self.tree.pairs) // (4 * pairs))
        self.grow_tree(episodes * self.horizon, episodes * pairs)
        self.make_room(episodes)
        return episodes

    def grow_tree(self, nodes: int, pairs: int) -> None:
        """Make room for more records in the tree."""
        old = self.tree.arrays
        nodes, pairs = nodes + int(old.used[0]), pairs + int(old.used[1])
        if max(nodes, pairs) >= MOST_RECORDS:
            raise MemoryError("the search tree has reached 2**31 records")
        grown = self.memory.extend(old.nodes, nodes), self.memory.extend(old.pairs, pairs)
        self.tree.arrays = TreeArrays(*grown, old.used)

    def make_room(self, episodes: int) -> None:
        """Make room for so many more episodes in arrays that do not grow with the tree."""
        return

    def extend(self, name: str, rows: int) -> None:
        """Make room for so many rows in one of the planner's own arrays, new ones zero."""
        self.arrays[name] = self.memory.extend(self.arrays[name], rows)

    def advance(self, episodes: int, most: int) -> int:
        """Play at most `episodes` more, until `most` calls in all; returns how it ended.

        If there are none to play, it gets the kernel ready and makes the root.
        """
        last = int(self.report["episodes"]) + episodes
        countable = min(most, MOST_COUNTED)
        while True:
            left = last - int(self.report["episodes"])
            search, root, streams = self.kernel_state(), self.root_state, (self._rng, self._ties)
            arguments = (search, self.session.handle, root, left, countable, *streams)
            if not self._compiled:
                self._compiled = ready(self._run, arguments)
            run = self._run if self._compiled else interpreted(self._run)
            status = int(run(*arguments))
            if status == calls.SPENT and countable < most:
                return calls.FULL
            called = status == calls.ABORTED and not self.report["refused"]
            if called or self.report["promise"] == calls.NO_ACTIONS:
                asked = int(self.report["action"]) if called else None
                self.session.diagnose(int(self.report["state"]), asked, int(self.report["h"]))
            if status != calls.NO_ROOM:
                return status
            try:
                self.reserve()
            except MemoryError:
                return calls.FULL

    # What the driver asks.

    def halt(self) -> None:
        """Begin no further call to the model."""
        self.report["halt"] = 1

    def broken_promise(self, **noted: float) -> Exception:
        """The error for a model that broke a promise, as was reported, or is `noted` now."""
        for name, value in noted.items():
            self.report[name] = value
        return calls.broken_promise(self.report, self.problem[0], self.session, self._deterministic)

    # How the search stands.

    def in_units(self, scaled: Any) -> Any:
        """Bounds as kernels keep them in `root`, in the user's units."""
        return self.units[0] + self.units[1] * scaled

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands: by default with the bounds in `root`, and the `best` of `decision`."""
        root, best = self.arrays["root"], int(self.arrays["decision"][0]["best"])
        return self.standing(best, seconds, self.in_units(root["lower"]), self.in_units(root["upper"]))

    def standing(
        self,
        best: int,
        seconds: float,
        lower: NDArray[np.float64] | None = None,
        upper: NDArray[np.float64] | None = None,
        losses: NDArray[np.float64] | None = None,
    ) -> Snapshot:
        """A snapshot that recommends action `best`.

        Its gap is max_{a != best} U(a) - L(best), or the largest of `losses`, of how much better each
        other action can be, if the search knows more of that.
        """
        gap = None
        if lower is not None and upper is not None:
            others = upper - lower[best] if losses is None else losses.copy()
            others[best] = -np.inf
            gap = float(others.max()) if len(upper) > 1 else 0.0
        calls, episodes = int(self.report["calls"]), int(self.report["episodes"])
        return Snapshot(self.actions, lower, upper, self.actions[best], gap, calls, episodes, seconds)

    def verdicts(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """By action: its gap, were it taken, and whether it is ruled out, as it lies below another."""
        if len(upper) == 1:
            return np.zeros(1), np.zeros(1, np.bool_)
        return losses(lower, upper), upper < lower.max()

    def sequence(self) -> tuple[Any, ...]:
        """The actions to take one after the other, if it looks for such; else none."""
        return ()

    def note(self, found: Snapshot) -> None:
        """Add how the search stands to its curve, if it has bounds."""
        if found.lower is not None and found.upper is not None:
            row = (found.samples, found.gap, *found.lower, *found.upper)
            self.points[np.count_nonzero(self.points[:, 0])] = row
        while self.mark <= self.report["episodes"]:
            self.mark += self.mark // 2

    def curve(self) -> tuple[NDArray[np.float64], ...]:
        """Calls, gaps, lower and upper bounds of the root's actions so far, in the order of time."""
        points, actions = self.points[self.points[:, 0] > 0.0], len(self.actions)
        return points[:, 0], points[:, 1], points[:, 2 : 2 + actions], points[:, 2 + actions :]

    def reader(self) -> Reader:
        """Reads the tree's pairs when the search is over. It outlives the session."""
        return read_nothing

    def close_tree(self) -> None:
        """End of the search: give back the room that is not in use, and let the tree be read."""
        self.tree.read, arrays = self.reader(), self.tree.arrays
        for records, used in zip(arrays[:2], arrays.used.tolist(), strict=True):
            records.resize(used, refcheck=False)

    # Its arrays between two chunks: saved, restored, and put back.

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """The whole search between two chunks: its arrays by name."""
        own = dict(_named_arrays(self.kernel_state()))
        streams = {"streams.rng": self._rng.words, "streams.ties": self._ties.words}
        for name in self.derived | _NOT_KEPT:
            own.pop(name, None)
        return own | streams | {"points": self.points}

    def put_back(self, kept: Mapping[str, NDArray[Any]], memory: int) -> None:
        """Put the search to where it stood, when it was granted so much memory."""
        for name, array in self.state_arrays().items():
            array.resize(kept[name].shape, refcheck=False)
            array[...] = kept[name]
        self.memory.used = memory

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Put a search that was set up in the same way to where a checkpoint's arrays found it.

        Raises:
            ValueError: the arrays are not those of this search.
        """
        memory = self.session.memory()
        arrays = self.state_arrays() | memory
        if saved.keys() != arrays.keys() or any(
            (array.dtype, array.shape[1:]) != (saved[name].dtype, saved[name].shape[1:])
            for name, array in arrays.items()
        ):
            raise ValueError("the checkpoint belongs to another planner or model; plan anew")
        self.session.recall({name: saved[name] for name in memory})
        more = sum(saved[name].nbytes - array.nbytes for name, array in self.state_arrays().items())
        self.put_back(saved, self.memory.used + more)
        self.reserve()
        while self.mark <= self.report["episodes"]:
            self.mark += self.mark // 2
        # A deadline that came while it was saved is not that of the search that goes on.
        for field in ("promise", "state", "action", "h", "halt", "refused"):
            self.report[field] = 0


def losses(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much each action can be worse than the best of the others, at most."""
    first = int(upper.argmax())
    rivals = np.full(len(upper), upper[first])
    rivals[first] = np.delete(upper, first).max(initial=-np.inf)
    return np.asarray(rivals - lower)


def _named_arrays(group: Any, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """All arrays in nested named tuples, by their path."""
    for name, value in zip(group._fields, group, strict=True):
        if isinstance(value, np.ndarray):
            yield prefix + name, value
        elif hasattr(value, "_fields"):
            yield from _named_arrays(value, f"{prefix}{name}.")
