"""The Planner base: one way to ask, for every planner."""

import time
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cache
from importlib import metadata
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from pacplan.compiled.streams import Stream, streams
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.engine.checkpoint import Checkpoint, CheckpointKeeper, plain_state
from pacplan.engine.driver import Callback, Limits, drive
from pacplan.engine.query import Query, Reuse
from pacplan.models.protocol import Model
from pacplan.result import Plan


class Planner(ABC):
    """Settings in the constructor, a problem to `plan`.

    A planner holds no state between plans: it can be used again, from several threads, and pickled.

    Args:
        chunk: episodes between two returns to Python; by default as many as take about 50 ms. No
            result depends on it.
    """

    name: ClassVar[str]
    keeps_tree: ClassVar[bool] = True
    keeps_checkpoints: ClassVar[bool] = True
    two_player: ClassVar[bool] = False

    def __init__(self, *, chunk: int | None = None) -> None:
        self.chunk = None if chunk is None else checks.integer("chunk", chunk, least=1)

    def plan(
        self,
        model: Model,
        state: Any = None,
        *,
        seed: int | np.random.SeedSequence | None = None,
        budget: int | None = None,
        time_limit: float | None = None,
        progress: bool = False,
        callback: Callback | None = None,
        memory_limit: int | None = None,
        on_interrupt: Literal["return", "raise"] = "return",
        checkpoint: str | Path | None = None,
        every: float = 60.0,
    ) -> Plan:
        """Decide what to do in a state.

        Args:
            model: the problem.
            state: where to plan from; the model's own initial state if it is left out.
            seed: the same seed gives the same plan; None draws a fresh one.
            budget: most calls to the model; an episode is cut short when they are used up.
            time_limit: most seconds. (Compilation, where it is needed, does not count.)
            progress: show the intervals of the state's actions closing in, on the error stream.
            callback: called with a `Snapshot` after 1, 2, ... episodes and then every 5 % more, and
                at the end; a true result stops the search.
            memory_limit: most bytes for the records of the search; by default what the machine has
                left. The states of a Python simulator come on top.
            on_interrupt: "return": Ctrl-C ends the search, and the plan found so far is returned, with
                `plan.interrupted` true; a second one, during the same plan or the next, raises
                KeyboardInterrupt. "raise": every one raises.
            checkpoint: a file to write now and then what is needed to go on with `resume`.
            every: seconds between two checkpoints.

        Returns:
            The plan.

        Raises:
            ValueError: an argument out of range, an unknown state, a problem the planner cannot
                handle; all before the first call to the model.
            TypeError: an argument of the wrong type.
            BrokenPromiseError: the model broke a promise (a reward out of range, too many
                successors). What a simulator raises itself comes through unchanged.
            OSError: the first checkpoint, made at the start, cannot be written.
        """
        check_model(model)
        limits = self._limits(budget, time_limit, progress, callback, memory_limit, on_interrupt)
        root = seed_sequence(seed)
        if state is None:
            state = model.initial_state()
        if checkpoint is not None:
            header = {
                "version": package_version(),
                "planner": self._identity(),
                "model": fingerprint(model),
                "state": plain_state(state),
                "entropy": root.entropy,
                "spawn_key": list(root.spawn_key),
                "budget": limits.budget,
            }
            limits = replace(limits, keeper=self._keeper(checkpoint, every, header))
        return self._plan(model, state, root, limits)

    def resume(
        self,
        path: str | Path,
        model: Model,
        *,
        time_limit: float | None = None,
        progress: bool = False,
        callback: Callback | None = None,
        memory_limit: int | None = None,
        on_interrupt: Literal["return", "raise"] = "return",
        every: float = 60.0,
    ) -> Plan:
        """Go on with a plan from its last checkpoint, to the same result as if it had never stopped.

        Seed, state and budget are those of the plan; checkpoints go on in the same file.

        Args:
            path: the file that `plan(..., checkpoint=path)` wrote.
            model: the same problem. A Python simulator is called once for each state it had reached,
                so all its randomness must come from `rng`.
            time_limit: most seconds from now on.
            progress: as for `plan`.
            callback: as for `plan`.
            memory_limit: as for `plan`.
            on_interrupt: as for `plan`.
            every: as for `plan`.

        Raises:
            ValueError: the file is damaged, or of another planner, model or version of pacplan.
            OSError: the file cannot be read.
        """
        check_model(model)
        saved = Checkpoint.read(path)
        saved.check(version=package_version(), planner=self._identity(), model=fingerprint(model))
        limits = self._limits(saved.budget, time_limit, progress, callback, memory_limit, on_interrupt)
        keeper = self._keeper(path, every, saved.header, saved)
        root = np.random.SeedSequence(saved.entropy, spawn_key=saved.spawn_key)
        return self._plan(model, saved.state(model), root, replace(limits, keeper=keeper))

    def _limits(
        self,
        budget: int | None,
        time_limit: float | None,
        progress: bool = False,
        callback: Callback | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "return",
    ) -> Limits:
        """The limits of a plan, checked."""
        if time_limit is not None and checks.real("time_limit", time_limit) <= 0.0:
            raise ValueError(f"time_limit must be positive, got {time_limit}")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function, got {callback!r}")
        if memory_limit is not None:
            memory_limit = checks.integer("memory_limit", memory_limit, least=1)
        return Limits(
            budget=None if budget is None else checks.integer("budget", budget, least=1),
            time_limit=None if time_limit is None else float(time_limit),
            memory_limit=memory_limit,
            callback=callback,
            progress=checks.flag("progress", progress),
            chunk=self.chunk,
            raise_interrupts=checks.choice("on_interrupt", on_interrupt, ("return", "raise"))
            == "raise",
        )

    def _identity(self) -> str:
        """Everything that a plan of this planner depends on, in words."""
        settings = {
            name: getattr(self, f"_{name}", getattr(self, name, None))
            for name in _parameters(type(self))
            if name != "chunk"
        }
        listed = ", ".join(f"{name}={described(value)}" for name, value in settings.items())
        return f"{type(self).__name__}({listed})"

    def _keeper(
        self, path: str | Path, every: float, header: dict[str, Any], saved: Checkpoint | None = None
    ) -> CheckpointKeeper:
        """Who writes the checkpoints of a plan."""
        if not self.keeps_checkpoints:
            raise ValueError(f"{type(self).__name__} writes no checkpoints; leave checkpoint= out")
        return CheckpointKeeper(Path(path), checks.positive("every", every), header, saved)

    def _plan(
        self,
        model: Model,
        state: Any,
        root: np.random.SeedSequence,
        limits: Limits,
        *,
        reuse: Reuse | None = None,
    ) -> Plan:
        """Like `plan`, for a decision that may be one of several, or that goes on from a checkpoint."""
        _load_streams()
        began = time.perf_counter()
        if model.two_player != self.two_player:
            name = type(self).__name__
            raise ValueError(
                f"{name} plans in two-player games, which say so by two_player=True, as envs.game_tree "
                "does; this model has one player"
                if self.two_player
                else f"{name} plans for one player, and this model is a game of two; use UGapEMCTS"
            )
        rng, ties = streams(root, 2)
        query = Query(
            model, state, model.actions(state), limits.budget, rng, ties, reuse, limits.memory_limit
        )
        self.check_query(query, limits)
        session = model.open(root)
        try:
            search = self.start(query, session)
            session.agree(query.state, query.actions)
            ending = drive(search, limits, began)
            plan = self.finish(query, search, ending.reason, ending.seconds)
            session.verify()
        finally:
            session.close()
        stated: tuple[str, ...] = getattr(model, "assumptions", ())
        if stated:
            plan = replace(plan, assumptions=(*plan.assumptions, *stated))
        return replace(plan, interrupted=True) if ending.interrupted else plan

    def check_reuse(self, model: Model) -> None:
        """Raise ValueError unless the tree of one plan can start the next."""
        raise ValueError(f"{type(self).__name__} starts every plan anew; pass reuse=False")

    def price_of_reuse(self, model: Model, budget: int | None, share: float) -> float:
        """By what part more evidence a plan needs if it has only a share of delta."""
        return 0.0

    @abstractmethod
    def check_query(self, query: Query, limits: Limits) -> None:
        """Raise ValueError for what this planner cannot handle."""

    @abstractmethod
    def start(self, query: Query, session: Any) -> Any:
        """Set up the search, without a call to the model."""

    @abstractmethod
    def finish(self, query: Query, search: Any, stopped_by: str, seconds: float) -> Plan:
        """The answer, from where the search stands."""

    def __repr__(self) -> str:
        """The call that makes this planner, settings at their defaults left out."""
        settings = []
        for name, parameter in _parameters(type(self)).items():
            value = getattr(self, f"_{name}", getattr(self, name, None))
            if value is not parameter.default and value != parameter.default:
                settings.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(settings)})"


def package_version() -> str:
    """The version of pacplan, without an import of the whole package from within it."""
    return metadata.version("pacplan")


def fingerprint(model: Model) -> str:
    """What tells a model from others, as far as it can: see each model's `fingerprint`."""
    told = getattr(model, "fingerprint", None)
    return repr(model) if told is None else str(told())


_model_classes: set[type] = set()


def check_model(model: Any) -> None:
    """Raise unless `model` is one. Looking at a protocol takes a while, so it is done once a class."""
    if type(model) not in _model_classes:
        if not isinstance(model, Model):
            raise TypeError(
                "model must be a pacplan model such as TabularMDP or Simulator, "
                f"got {type(model).__name__}"
            )
        _model_classes.add(type(model))


@cache
def _load_streams() -> None:
    """Compile what puts actions in random order, or load it from the cache, before a clock runs."""
    Stream(np.ones(4, np.uint64)).permutation(2)


@cache
def _parameters(planner: type[Planner]) -> dict[str, Parameter]:
    return dict(signature(planner).parameters)


def seed_sequence(seed: int | np.random.SeedSequence | None) -> np.random.SeedSequence:
    """The root of all random numbers of a plan."""
    if isinstance(seed, np.random.SeedSequence):
        # A copy, so that planning twice with one sequence gives the same plan.
        return np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)
    return np.random.SeedSequence(None if seed is None else checks.integer("seed", seed, least=0))


_RENUMBERED = (
    "what was seen h steps after one root says nothing about h - 1 steps after the next; "
    "pass reuse=False"
)


def check_stationary(model: Model, why: str = _RENUMBERED) -> None:
    """Refuse a model in which what follows a state depends on the steps since the root."""
    if model.steps is not None or not getattr(model, "stationary", True):
        raise ValueError(f"the model is not stationary: {why}")
