"""The base class of all planners: one way to ask for a plan."""

import copy
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import cache, partial
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np

from pacplan.algorithms.common.many import Plans, Seeds, plan_all, shared_delta
from pacplan.algorithms.common.plans import estimates_plan
from pacplan.compiled.streams import streams
from pacplan.core import checks
from pacplan.core.fragments import settings_html
from pacplan.core.identity import described
from pacplan.core.version import __version__
from pacplan.engine.checkpoint import Checkpoint, CheckpointKeeper, plain_state
from pacplan.engine.driver import Callback, Limits, drive
from pacplan.engine.executors import Workers
from pacplan.engine.query import Query, Reuse
from pacplan.engine.rehearsal import Rehearsed, calls_made
from pacplan.engine.seeds import seed_sequence
from pacplan.engine.tree import NoRoomError
from pacplan.models.protocol import Model, check_model
from pacplan.models.simulator import Simulator
from pacplan.models.tapes import TapedSession
from pacplan.origin import origin_of
from pacplan.result import Plan
from pacplan.views.progress import live_display

_FROM_RNG_ALONE = (
    "the simulator draws from rng alone, so that a call whose worker was lost could be made again, "
    "with the same seed, to the same outcome"
)


class Planner(ABC):
    """Settings in the constructor, a problem to `plan`.

    A planner holds no state between plans: it can be used again, from several threads, and pickled.

    Args:
        chunk: episodes between two returns to Python; by default what takes about 50 ms. No
            result depends on it.
    """

    name: ClassVar[str]
    keeps_tree: ClassVar[bool] = True
    keeps_checkpoints: ClassVar[bool] = True
    two_player: ClassVar[bool] = False
    rehearses: ClassVar[bool] = True
    """Whether a search can be played on with guesses and put back: its arrays are all that it is."""
    reads: ClassVar[bool] = False
    """Whether it reads probabilities instead of sampling, and so needs no range of rewards."""
    kind_matters: ClassVar[bool] = False
    """Whether plans differ between kinds of models, because their generators and states do."""

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
        workers: int | None = None,
        executor: Any = None,
    ) -> Plan:
        """Decide what to do in a state.

        Args:
            model: the problem.
            state: where to plan from; by default the model's own initial state.
            seed: the same seed gives the same plan; None draws a fresh one.
            budget: most calls to the model; an episode is cut short when they are used up.
            time_limit: most seconds; but the first episode is always played, whatever it takes,
                unless `workers` or `executor` make the calls. (To load the compiled search, once in a
                process, does not count.)
            progress: show the intervals of the state's actions closing in, on the error stream.
            callback: called with a `Snapshot` after 1, 2, ... episodes and then every 5 % more, and
                at the end; a true result stops the search.
            memory_limit: most bytes for the records of the search; by default what the machine has
                left. The states of a Python simulator come on top.
            on_interrupt: "return": Ctrl-C ends the search, and the plan found so far is returned, with
                `plan.interrupted` true; a second one, during the same plan or the next, raises
                KeyboardInterrupt. "raise": every Ctrl-C raises.
            checkpoint: a file that receives, now and then, what `resume` needs to go on.
            every: seconds between two checkpoints.
            workers: for a slow Python simulator: how many calls to it are made at a time, by processes
                to which it is sent once, with its functions. The plan depends on the seed alone, not on
                who makes the calls, nor on how many at a time; but it is another one than without
                `workers` and `executor`, since each call has a generator of its own.
            executor: a `concurrent.futures.Executor` of your own, such as a pool of threads, or a Dask
                client, which makes the calls instead; `workers` is then how many at a time.

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
        limits = Limits.checked(budget, time_limit, self.chunk, callback, memory_limit, on_interrupt)
        root = seed_sequence(seed)
        if state is None:
            state = model.initial_state()
        crew = self.crew(model, workers, executor, checkpoint)
        if checkpoint is not None:
            header = {
                "version": __version__,
                "planner": self.identity,
                "model": model.fingerprint(),
                "state": plain_state(state),
                "entropy": root.entropy,
                "spawn_key": list(root.spawn_key),
                "budget": limits.budget,
            }
            limits = replace(limits, keeper=self._keeper(checkpoint, every, header))
        return run(self, model, state, root, limits, progress=progress, crew=crew)

    def crew(
        self,
        model: Model,
        workers: int | None,
        executor: Any,
        checkpoint: str | Path | None = None,
    ) -> Workers | None:
        """Who makes the calls of a plan; raises as `plan` does if nobody can."""
        crew = crew_of(model, workers, executor, checkpoint)
        if crew is not None and not self.rehearses:
            raise ValueError(
                f"{type(self).__name__} makes its calls one at a time; leave workers= and executor= out"
            )
        return crew

    def plan_many(
        self,
        model: Model,
        states: Iterable[Any],
        *,
        seeds: Seeds = None,
        workers: int | None = None,
        executor: Any = None,
        spread: Literal["none", "union"] = "none",
        budget: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        progress: bool = False,
        on_interrupt: Literal["return", "raise"] = "return",
        trees: bool = True,
    ) -> Plans:
        """Decide what to do in each of many states: the plans that `plan` finds, several at a time.

        Models whose draws are compiled are planned in by threads, Python models by processes, to which
        the model is sent once, with its functions. Wherever a plan is made, it is the same:
        that of `plan(model, states[i], seed=numpy.random.SeedSequence(seeds, spawn_key=(i,)))`, or of
        `plan(model, states[i], seed=seeds[i])` if every state has its own. `plan.origin` names it too.

        Args:
            model: the problem.
            states: where to plan from: a list, or a generator, which is read as plans are asked for.
            seeds: one for all, of which each state gets a child; or one for each state; None draws a
                fresh one.
            workers: how many plans are made at a time, by default one per core; 1 starts no thread and
                no process.
            executor: a `concurrent.futures.Executor` of your own, or a Dask client, which computes
                instead; `workers` is then how many plans it makes at a time.
            spread: "none": every plan has the planner's delta; "union": each has an equal part of
                it, so that with probability at least 1 - delta all guarantees hold together.
            budget: most calls to the model for each plan.
            time_limit: most seconds for each plan.
            memory_limit: most bytes for the records of each search.
            progress: show a bar on the error stream.
            on_interrupt: "return": Ctrl-C, while a plan is waited for, begins no other and ends those
                under way, which are given as they stand, with `plan.interrupted` true; a second
                one raises KeyboardInterrupt. (An executor of your own is not told: what it has finished
                is given.) "raise": every Ctrl-C raises.
            trees: False leaves the search trees out of the plans, which saves memory, and time if they
                come from other processes.

        Returns:
            The plans, an iterator. Its `outcomes()` go on over a state whose plan raises.

        Raises:
            ValueError: an argument out of range.
            TypeError: an argument of the wrong type; or states of which the number is needed, and not
                known.
        """
        check_model(model)
        Limits.checked(budget, time_limit, self.chunk, None, memory_limit)
        planner: Planner = self
        if spread != "none":
            delta = getattr(self, "delta", None)
            if delta is None:
                raise ValueError(f"spread={spread!r} shares delta among plans, and {self!r} has none")
            planner = with_delta(self, shared_delta(delta, states, spread))
        return plan_all(
            partial(
                planner.plan,
                model,
                budget=budget,
                time_limit=time_limit,
                memory_limit=memory_limit,
            ),
            states,
            seeds,
            Workers(workers, executor),
            compiled=model.compiled,
            progress=progress,
            on_interrupt=on_interrupt,
            trees=trees,
        )

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
            path: the file that `plan(..., checkpoint=path)` wrote. Resume only files that you trust.
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
        saved.check(version=__version__, planner=self.identity, model=model.fingerprint())
        limits = Limits.checked(
            saved.budget, time_limit, self.chunk, callback, memory_limit, on_interrupt
        )
        limits = replace(limits, keeper=self._keeper(path, every, saved.header, saved))
        return run(self, model, saved.state(model), saved.seed, limits, progress=progress)

    @property
    def settings(self) -> dict[str, Any]:
        """What the planner was made with, without defaults and `chunk`, on which nothing depends."""
        found = {}
        for name, parameter in _parameters(type(self)).items():
            # If a default follows from other settings, `name` holds it, and `_name` what was given.
            value = getattr(self, f"_{name}" if hasattr(self, f"_{name}") else name, None)
            if name != "chunk" and value is not parameter.default and value != parameter.default:
                found[name] = value
        return found

    @property
    def identity(self) -> str:
        """Everything that a plan of this planner depends on in a version of pacplan, in words."""
        listed = (f"{name}={described(value)}" for name, value in self.settings.items())
        return f"{type(self).__name__}({', '.join(listed)})"

    def _keeper(
        self, path: str | Path, every: float, header: dict[str, Any], saved: Checkpoint | None = None
    ) -> CheckpointKeeper:
        """What writes the checkpoints of a plan."""
        if not self.keeps_checkpoints:
            raise ValueError(f"{type(self).__name__} writes no checkpoints; leave checkpoint= out")
        return CheckpointKeeper(Path(path), checks.positive("every", every), header, saved)

    def check_reuse(self, model: Model) -> None:
        """Raise ValueError unless the tree of one plan can start the next."""
        raise ValueError(f"{type(self).__name__} starts every plan anew; pass reuse=False")

    def price_of_reuse(self, model: Model, budget: int | None, share: float) -> float:
        """By what fraction the evidence grows that a plan needs if it has only a share of delta."""
        return 0.0

    @abstractmethod
    def check_query(self, query: Query, limits: Limits) -> None:
        """Raise ValueError for what this planner cannot handle."""

    @abstractmethod
    def start(self, query: Query, session: Any) -> Any:
        """Set up the search, without a call to the model."""

    def finish(self, query: Query, search: Any, stopped_by: str, seconds: float) -> Plan:
        """The answer, from where the search stands; by default the largest estimate, not guaranteed."""
        return estimates_plan(self, query, search, stopped_by, seconds)

    def _repr_html_(self) -> str:
        """The planner in a notebook: all its settings."""
        about = (getdoc(type(self)) or "").partition("\n")[0]
        given = self.settings
        listed = {
            name: repr(given.get(name, getattr(self, name, parameter.default)))
            + ("" if name in given else " (default)")
            for name, parameter in _parameters(type(self)).items()
            if name != "chunk"
        }
        return settings_html(type(self).__name__, about, listed)

    def __repr__(self) -> str:
        """The call that makes this planner, without settings at their defaults."""
        listed = [f"{name}={value!r}" for name, value in self.settings.items()]
        if self.chunk is not None:
            listed.append(f"chunk={self.chunk}")
        return f"{type(self).__name__}({', '.join(listed)})"


def run(
    planner: Planner,
    model: Model,
    state: Any,
    root: np.random.SeedSequence,
    limits: Limits,
    *,
    reuse: Reuse | None = None,
    progress: bool = False,
    crew: Workers | None = None,
) -> Plan:
    """Like `Planner.plan`, for a decision that may be one of several, or go on from a checkpoint.

    Args:
        planner: the planner.
        model: the problem, which `check_model` has seen.
        state: where to plan from.
        root: seed of all random numbers of the plan; it is used up.
        limits: what may end the search.
        reuse: how the search is linked to others; None: it stands alone.
        progress: show how it stands, on the error stream.
        crew: who makes the calls, several at a time; None: the search itself, one by one.
    """
    shown = checks.flag("progress", progress)
    began = time.perf_counter()
    if model.two_player != planner.two_player:
        name = type(planner).__name__
        raise ValueError(
            f"{name} plans in two-player games, which say so by two_player=True, as envs.game_tree "
            "does; this model has one player"
            if planner.two_player
            else f"{name} plans for one player, and this model is a game of two; use UGapEMCTS"
        )
    if not (planner.reads or all(map(math.isfinite, model.reward_range))):
        raise ValueError(
            f"{type(planner).__name__} needs a range of rewards: pass reward_range= to the model"
        )
    rng, ties = streams(root, 2)
    query = Query(
        model, state, model.actions(state), limits.budget, rng, ties, reuse, limits.memory_limit
    )
    planner.check_query(query, limits)
    with ExitStack() as stack:
        taped: TapedSession | None = None
        if crew is not None:
            simulator = cast(Simulator, model)
            submit = stack.enter_context(calls_made(simulator, root, crew))
            taped = TapedSession(simulator, root, submit, crew.handed_over)
        session: Any = model.open(root) if taped is None else taped
        stack.callback(session.close)
        search = planner.start(query, session)
        session.agree(query.state, query.actions)
        display = live_display(search.target, limits.budget) if shown else nullcontext()
        driven: Any = search if taped is None else Rehearsed(search, taped)
        try:
            ending = drive(driven, limits, began, display)
            plan = planner.finish(query, search, ending.reason, ending.seconds)
        except NoRoomError:
            raise RuntimeError(
                f"{type(planner).__name__} adds more to the tree in an episode than it said: give its "
                "search pairs_a_step=, the most pairs that one step adds, and add at most one node per "
                "step"
            ) from None
        session.verify()
    origin = origin_of(
        planner,
        model,
        state,
        root,
        budget=limits.budget,
        time_limit=limits.time_limit,
        memory_limit=limits.memory_limit,
        reused=reuse is not None and reuse.tree is not None,
        side_by_side=taped is not None,
    )
    assumptions = (*plan.assumptions, *model.assumptions)
    if taped is not None and taped.made_again:
        assumptions += (_FROM_RNG_ALONE,)
    return replace(
        plan,
        assumptions=assumptions,
        interrupted=ending.interrupted,
        origin=origin,
        gamma=getattr(planner, "gamma", None),
        epsilon=getattr(planner, "epsilon", None),
        delta=getattr(planner, "delta", None),
        calls_made=plan.samples if taped is None else taped.made,
    )


def crew_of(
    model: Model, workers: int | None, executor: Any, checkpoint: str | Path | None
) -> Workers | None:
    """Who makes the calls of a plan, several at a time; None: the search itself, one by one.

    Raises:
        ValueError: an argument out of range, or a plan of which the calls are not made side by side.
        TypeError: an argument of the wrong type.
    """
    if workers is None and executor is None:
        return None
    crew = Workers(workers, executor)
    crew.check()
    if model.compiled:
        raise ValueError(
            "workers= and executor= are for slow simulators in Python, and this model is compiled: a "
            "call takes less time than handing it to others. Leave them out"
        )
    if not model.anywhere:
        raise ValueError(
            "workers= and executor= are for pacplan.Simulator, whose function can be called in several "
            "places at once, and this model's cannot; leave them out"
        )
    if checkpoint is not None:
        raise ValueError(
            "a plan with workers= or executor= writes no checkpoints; leave checkpoint= out"
        )
    return crew


@cache
def _parameters(planner: type[Planner]) -> dict[str, Parameter]:
    named = signature(planner).parameters.items()
    return {name: parameter for name, parameter in named if parameter.kind is not Parameter.VAR_KEYWORD}


def with_delta(planner: Planner, delta: float) -> Planner:
    """The same planner with another probability of failure."""
    other: Any = copy.copy(planner)
    other.delta = delta
    return cast(Planner, other)


_RENUMBERED = (
    "what was seen h steps after one root says nothing about h - 1 steps after the next; "
    "pass reuse=False"
)


def check_stationary(model: Model, why: str = _RENUMBERED) -> None:
    """Refuse a model in which what follows a state depends on the steps since the root."""
    if not model.stationary:
        raise ValueError(f"the model is not stationary: {why}")
