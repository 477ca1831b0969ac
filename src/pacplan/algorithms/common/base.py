"""The base class of all planners: one way to ask for a plan."""

import copy
import math
import time
from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from pacplan.algorithms.common.many import Plans, Seeds, plan_all
from pacplan.algorithms.common.plans import plan_of
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.engine.checkpoint import Checkpoints
from pacplan.engine.driver import Callback, Limits, Snapshot, drive
from pacplan.engine.query import Query, seed_sequence
from pacplan.models.protocol import Model, check_model
from pacplan.models.simulator import Simulator
from pacplan.origin import origin_of
from pacplan.parallel.pools import Workers
from pacplan.parallel.search import SpeculativeSearch, parallel_session
from pacplan.result import Plan
from pacplan.views.progress import live_display

_FROM_RNG_ALONE = (
    "the simulator draws from rng alone, so that a call that Dask makes again, because its worker was "
    "lost, has the same outcome"
)


class Planner:
    """Settings in the constructor, a problem to `plan`.

    A planner holds no state between plans: it can be used again, from several threads, and pickled.
    Planners of one class with equal settings are equal.
    """

    name: ClassVar[str]
    keeps_checkpoints: ClassVar[bool] = True
    two_player: ClassVar[bool] = False
    parallel_calls: ClassVar[bool] = True
    """Whether a search can be played on with guesses and put back: its arrays are all that it is."""
    reads: ClassVar[bool] = False
    """Whether it reads probabilities instead of sampling, and so needs no range of rewards."""
    kind_matters: ClassVar[bool] = False
    """Whether plans differ between kinds of models, because their generators and states do."""
    goes_on: ClassVar[bool] = False
    """Whether the search for one decision can go on with the next, as an agent takes them."""
    chunk: int | None = None
    """Episodes between two returns to Python; by default what takes 50 ms. No result depends on it."""

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
        checkpoint: str | Path | None = None,
        every: float = 60.0,
        workers: int | None = None,
        executor: Any = None,
    ) -> Plan:
        """Decide what to do in a state.

        Ctrl-C ends the search, and you get the plan found so far, with `plan.interrupted` true. The
        second one, during the same plan or the next, raises KeyboardInterrupt.

        Args:
            model: the problem.
            state: where to plan from; by default the model's own initial state.
            seed: the same seed gives the same plan; None draws a fresh one.
            budget: maximum number of calls to the model. The last episode may be cut short.
            time_limit: maximum time in seconds. The first episode always ends, unless `workers` or
                `executor` make the calls. Loading the compiled search, once in a process, does not
                count.
            progress: show the intervals of the actions on the error stream.
            callback: called with a `Snapshot` after 1, 2, ... episodes, then every 5 % more, and at
                the end. A true result stops the search.
            memory_limit: maximum size of the search's records in bytes; by default the free memory.
                The states of a Python simulator do not count.
            checkpoint: a file for checkpoints, from which `resume` continues the plan.
            every: checkpoint interval, in seconds.
            workers: number of parallel calls to a slow Python simulator, in processes that receive it
                once. The plan does not depend on this number. It differs from the plan without
                `workers` and `executor`, because each call has its own generator.
            executor: your own `concurrent.futures.Executor`, such as a pool of threads, or a Dask
                client, which makes the calls; `workers` is then the number of parallel calls.

        Returns:
            The plan.

        Raises:
            ValueError: an argument out of range, an unknown state, or a problem that the planner
                cannot handle. It is raised before the first call to the model.
            TypeError: an argument of the wrong type.
            BrokenPromiseError: the model broke a promise (a reward out of range, too many
                successors). Errors of the simulator itself come through unchanged.
            OSError: the first checkpoint, at the start, cannot be written.
        """
        check_model(model)
        query = Query(
            model,
            model.initial_state() if state is None else state,
            seed_sequence(seed),
            Limits(budget, time_limit, callback, memory_limit),
            checks.flag("progress", progress),
            self.crew(model, workers, executor, checkpoint),
            None if checkpoint is None else Checkpoints(Path(checkpoint), every),
        )
        return self.run(query)

    def resume(
        self,
        path: str | Path,
        model: Model,
        *,
        time_limit: float | None = None,
        progress: bool = False,
        callback: Callback | None = None,
        memory_limit: int | None = None,
        every: float = 60.0,
    ) -> Plan:
        """Continue a plan from its last checkpoint, to the same result as if it had never stopped.

        Seed, state and budget are those of the plan. New checkpoints go to the same file.

        Args:
            path: the file that `plan(..., checkpoint=path)` wrote. Resume only files that you trust.
            model: the same problem.
            time_limit: maximum time from now on, in seconds.
            progress: as for `plan`, like the others below.
            callback: see there.
            memory_limit: see there.
            every: see there.

        Raises:
            ValueError: the file is damaged, or belongs to another planner, model or version of pacplan.
            OSError: the file cannot be read.
        """
        check_model(model)
        saved = Checkpoints.read(path, every)
        query = Query(
            model,
            saved.state(model),
            saved.seed,
            Limits(saved.header["budget"], time_limit, callback, memory_limit),
            checks.flag("progress", progress),
            checkpoints=saved,
        )
        return self.run(query)

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
        trees: bool = True,
    ) -> Plans:
        """Choose an action in each of many states, with several plans in parallel.

        Threads plan in compiled models, and processes in Python models, which they receive once. A plan
        does not depend on where it is made. It is that of `plan(model, states[i],
        seed=numpy.random.SeedSequence(seeds, spawn_key=(i,)))`, or of `plan(model, states[i],
        seed=seeds[i])` if every state has its own. `plan.origin` names it too.

        Ctrl-C ends the running plans and starts no other. You get the plans as they stand, with
        `plan.interrupted` true; the second one raises KeyboardInterrupt. (Of your own executor you get
        the finished plans.)

        Args:
            model: the problem.
            states: where to plan from: a list, or a generator, which is read as you ask for plans.
            seeds: one seed, of which each state gets a child; or a list with one for each state; None
                draws a fresh one.
            workers: number of parallel plans, by default one per core; 1 starts no thread and no
                process.
            executor: your own `concurrent.futures.Executor`, or a Dask client, which makes the plans.
            spread: "none": every plan has the planner's delta; "union": each has an equal part of
                it, and all guarantees hold together with probability at least 1 - delta.
            budget: limit of each plan, like the next two.
            time_limit: see `plan`.
            memory_limit: see `plan`.
            progress: show a bar on the error stream.
            trees: False drops the search trees, which saves memory, and time between processes.

        Returns:
            The plans, an iterator. Its `outcomes()` yield the error of a plan that raises, and
            continue.
        """
        return plan_all(
            self,
            model,
            states,
            seeds,
            Workers(workers, executor),
            Limits(budget, time_limit, None, memory_limit),
            spread=spread,
            progress=progress,
            trees=trees,
        )

    def run(self, query: Query) -> Plan:
        """The plan that a query asks for: check it, search, and say what was found."""
        model, crew, began = query.model, query.crew, time.perf_counter()
        if query.checkpoints is not None:
            query = replace(query, checkpoints=query.checkpoints.of(self, query))
        self._check_kind(model)
        _ = query.actions  # Raises if the model does not know the state.
        self.check_query(query, query.limits)
        kept = query.kept
        goes_on = kept is not None and kept.goes_on(query)
        opened: Any
        if kept is not None:
            opened = nullcontext(kept.search.session if goes_on else model.open(query.seed))
        elif crew is None:
            opened = closing(model.open(query.seed))
        else:
            opened = parallel_session(cast(Simulator, model), query.seed, crew)
        with opened as session:
            search = kept.search if kept is not None and goes_on else self.start(query, session)
            session.agree(query.state, query.actions)
            display = live_display(search.target, query.budget) if query.progress else nullcontext()
            driven: Any = search if crew is None else SpeculativeSearch(search, session)
            stopped_by, seconds, interrupted = drive(driven, query, began, display, self.chunk)
            plan = self.finish(query, search, stopped_by, seconds)
            session.verify()
        again = (_FROM_RNG_ALONE,) if crew is not None and crew.on_dask else ()
        plan = replace(
            plan,
            assumptions=(*plan.assumptions, *model.assumptions, *again),
            interrupted=interrupted,
            origin=origin_of(self, query),
            gamma=getattr(self, "gamma", None),
            epsilon=getattr(self, "epsilon", None),
            delta=getattr(self, "delta", None),
            calls_made=getattr(session, "made", plan.samples),
        )
        if kept is not None:  # Not before the origin has said whether the search went on.
            kept.search = search
        return plan

    def _check_kind(self, model: Model) -> None:
        """Refuse a model of another kind than the planner is for."""
        wrong = ""
        if model.two_player and not self.two_player:
            wrong = "plans for one player, but this model is a game of two; use UGapEMCTS"
        elif self.two_player and not model.two_player:
            wrong = "plans in games, but this model has one player. For a game, pass two_player=True"
        elif not (self.reads or all(map(math.isfinite, model.reward_range))):
            wrong = "needs a range of rewards: pass reward_range= to the model"
        if wrong:
            raise ValueError(f"{type(self).__name__} {wrong}")

    def crew(
        self, model: Model, workers: int | None, executor: Any, checkpoint: str | Path | None = None
    ) -> Workers | None:
        """Who makes the calls of a plan, several at a time; None: the search itself, one by one."""
        if workers is None and executor is None:
            return None
        crew, wrong = Workers(workers, executor), ""
        crew.check()
        if model.compiled:
            wrong = "only help slow Python simulators, but this model is compiled"
        elif not model.anywhere:
            wrong = "need a pacplan.Simulator, because other models cannot be called in parallel"
        elif not self.parallel_calls:
            wrong = f"do not help {type(self).__name__}, which makes one call at a time"
        elif checkpoint is not None:
            wrong = "write no checkpoints, but you passed checkpoint="
        if wrong:
            raise ValueError(f"workers= and executor= {wrong}. Remove them")
        return crew

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name, as scikit-learn has them: `type(planner)(**params)` is its equal."""
        # If a default follows from other settings, `name` holds it, and `_name` what was given.
        return {
            name: getattr(self, f"_{name}" if hasattr(self, f"_{name}") else name, None)
            for name in _defaults(type(self))  # type: ignore[arg-type]
        }

    @property
    def settings(self) -> dict[str, Any]:
        """What the planner was made with, without defaults."""
        given, defaults = self.get_params(), _defaults(type(self))  # type: ignore[arg-type]
        return {n: v for n, v in given.items() if v is not defaults.get(n) and v != defaults.get(n)}

    @property
    def identity(self) -> str:
        """Everything that a plan of this planner depends on in a version of pacplan, in words."""
        return self._call(described)

    def with_delta(self, delta: float) -> Self:
        """The same planner with another probability of failure."""
        other = copy.copy(self)
        vars(other)["delta"] = delta
        return other

    def check_query(self, query: Query, limits: Limits) -> None:
        """Raise ValueError for what this planner cannot handle."""

    def start(self, query: Query, session: Any) -> Any:
        """Set up the search, without a call to the model."""
        raise NotImplementedError

    def finish(self, query: Query, search: Any, stopped_by: str, seconds: float) -> Plan:
        """Make the plan of the search so far, from its bounds, or from its estimates if it has none."""
        return plan_of(self, query, search, stopped_by, seconds)

    def guarantee(self, model: Model, search: Any, snapshot: Snapshot) -> str:
        """What is proven when the search stands as the snapshot says."""
        return f"{type(self).__name__} gives no guarantee."

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        """What the guarantee assumes."""
        return ()

    def value_estimate(self, search: Any, snapshot: Snapshot) -> float | None:
        """The estimate of the state's value, by default as `plan_of` says."""
        if getattr(self, "goal", "action") == "value" and snapshot.lower is not None:
            return 0.5 * float(snapshot.lower.max() + snapshot.upper.max())
        return None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.settings == other.settings

    def __hash__(self) -> int:
        return hash((type(self), *self.settings))

    def __repr__(self) -> str:
        """The call that makes this planner, without settings at their defaults."""
        return self._call(repr)

    def _call(self, words: Callable[[Any], str]) -> str:
        listed = (f"{name}={words(value)}" for name, value in self.settings.items())
        return f"{type(self).__name__}({', '.join(listed)})"


@cache
def _defaults(planner: Callable[..., Planner]) -> dict[str, Any]:
    """The defaults of the settings of a class of planners."""
    named = signature(planner).parameters.items()
    return {name: p.default for name, p in named if p.kind is not Parameter.VAR_KEYWORD}


def check_stationary(model: Model, why: str) -> None:
    """Refuse a model in which what follows a state depends on the steps since the root."""
    if not model.stationary:
        raise ValueError(f"the model is not stationary: {why}")
