"""The run of a plan: from what was asked to the answer."""

import math
import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pacplan.compiled.streams import streams
from pacplan.core.version import __version__
from pacplan.engine.checkpoint import Checkpoint, CheckpointKeeper, plain_state
from pacplan.engine.driver import Limits, drive
from pacplan.engine.query import Query
from pacplan.engine.search_tree import SearchTree
from pacplan.engine.tree import NoRoomError
from pacplan.models.protocol import Model
from pacplan.models.simulator import Simulator
from pacplan.origin import origin_of
from pacplan.parallel.pools import Workers
from pacplan.parallel.search import SpeculativeSearch, calls_made
from pacplan.parallel.session import SpeculativeSession
from pacplan.result import Plan
from pacplan.views.progress import live_display

if TYPE_CHECKING:
    from pacplan.algorithms.common.base import Planner

_FROM_RNG_ALONE = (
    "the simulator draws from rng alone, so that a call whose worker was lost could be made again, "
    "with the same seed, to the same outcome"
)


@dataclass(frozen=True, eq=False)
class Task:
    """A plan that was asked for: the arguments of `Planner.plan`, checked.

    Attributes:
        crew: who makes the calls, several at a time; None: the search itself, one by one.
        saved: the checkpoint to go on from.
        tree: where the search starts from, its root the state; None: a new one.
    """

    model: Model
    state: Any
    seed: np.random.SeedSequence
    limits: Limits
    progress: bool = False
    crew: Workers | None = None
    checkpoint: Path | None = None
    every: float = 60.0
    saved: Checkpoint | None = None
    tree: SearchTree | None = None

    def query(self) -> Query:
        """What the search is asked, with random numbers of its own."""
        actions, limits = self.model.actions(self.state), self.limits
        rng, ties = streams(self.seed, 2)
        return Query(
            self.model, self.state, actions, limits.budget, rng, ties, self.tree, limits.memory_limit
        )


def run(planner: "Planner", task: Task) -> Plan:
    """The plan that a planner makes of a task."""
    model = task.model
    limits = replace(task.limits, chunk=planner.chunk, keeper=_keeper(planner, task))
    began = time.perf_counter()
    _check_model(planner, model)
    query = task.query()
    planner.check_query(query, limits)
    with ExitStack() as stack:
        parallel: SpeculativeSession | None = None
        if task.crew is not None:
            simulator = cast(Simulator, model)
            submit = stack.enter_context(calls_made(simulator, task.seed, task.crew))
            parallel = SpeculativeSession(simulator, task.seed, submit, task.crew.handed_over)
        session: Any = model.open(task.seed) if parallel is None else parallel
        stack.callback(session.close)
        search = planner.start(query, session)
        session.agree(query.state, query.actions)
        display = live_display(search.target, limits.budget) if task.progress else nullcontext()
        driven: Any = search if parallel is None else SpeculativeSearch(search, parallel)
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
    made_again = parallel is not None and parallel.made_again
    return replace(
        plan,
        assumptions=(*plan.assumptions, *model.assumptions, *([_FROM_RNG_ALONE] if made_again else [])),
        interrupted=ending.interrupted,
        origin=origin_of(planner, task),
        gamma=getattr(planner, "gamma", None),
        epsilon=getattr(planner, "epsilon", None),
        delta=getattr(planner, "delta", None),
        calls_made=plan.samples if parallel is None else parallel.made,
    )


def _check_model(planner: "Planner", model: Model) -> None:
    """Refuse a model of another kind than the planner is for."""
    name = type(planner).__name__
    if model.two_player and not planner.two_player:
        raise ValueError(f"{name} plans for one player, but this model is a game of two; use UGapEMCTS")
    if planner.two_player and not model.two_player:
        raise ValueError(
            f"{name} plans in two-player games, such as envs.game_tree, but this model has one "
            "player. For a game, declare two_player=True"
        )
    if not (planner.reads or all(map(math.isfinite, model.reward_range))):
        raise ValueError(f"{name} needs a range of rewards: pass reward_range= to the model")


def _keeper(planner: "Planner", task: Task) -> CheckpointKeeper | None:
    """What writes the checkpoints of a plan; raises ValueError if the saved one is of another."""
    if task.checkpoint is None:
        return None
    if not planner.keeps_checkpoints:
        raise ValueError(f"{type(planner).__name__} writes no checkpoints; remove checkpoint=")
    header: dict[str, Any] = {
        "version": __version__,
        "planner": planner.identity,
        "model": task.model.fingerprint(),
    }
    if task.saved is not None:
        task.saved.check(**header)
    header |= {
        "state": plain_state(task.state),
        "entropy": task.seed.entropy,
        "spawn_key": list(task.seed.spawn_key),
        "budget": task.limits.budget,
    }
    return CheckpointKeeper(task.checkpoint, task.every, header, task.saved)


def crew_of(
    model: Model, workers: int | None, executor: Any, checkpoint: Path | None = None
) -> Workers | None:
    """Who makes the calls of a plan, several at a time; None: the search itself, one by one.

    Raises:
        ValueError: an argument out of range, or the calls of this plan cannot run in parallel.
        TypeError: an argument of the wrong type.
    """
    if workers is None and executor is None:
        return None
    crew = Workers(workers, executor)
    crew.check()
    if model.compiled:
        raise ValueError(
            "workers= and executor= only help slow Python simulators, but this model is compiled. "
            "Remove them"
        )
    if not model.anywhere:
        raise ValueError(
            "workers= and executor= need a pacplan.Simulator, because other models cannot be called "
            "in parallel. Remove them"
        )
    if checkpoint is not None:
        raise ValueError("a plan with workers= or executor= writes no checkpoints; remove checkpoint=")
    return crew
