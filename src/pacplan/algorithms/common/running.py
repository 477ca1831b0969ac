"""What a plan was asked: the arguments of `Planner.plan`, checked."""

from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from pacplan.compiled.streams import streams
from pacplan.core.version import __version__
from pacplan.engine.checkpoint import Checkpoint, CheckpointKeeper, plain_state
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.engine.search_tree import SearchTree
from pacplan.models.protocol import Model
from pacplan.models.simulator import Simulator
from pacplan.parallel.pools import Workers
from pacplan.parallel.search import parallel_session


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

    def session(self) -> AbstractContextManager[Any]:
        """The model, ready for calls; made in parallel, if there is a crew."""
        if self.crew is None:
            return closing(self.model.open(self.seed))
        return parallel_session(cast(Simulator, self.model), self.seed, self.crew)

    def checkpoints(self, planner: Any) -> CheckpointKeeper | None:
        """What writes the checkpoints; raises ValueError if the saved one is of another plan."""
        if self.checkpoint is None:
            return None
        if not planner.keeps_checkpoints:
            raise ValueError(f"{type(planner).__name__} writes no checkpoints; remove checkpoint=")
        header: dict[str, Any] = {
            "version": __version__,
            "planner": planner.identity,
            "model": self.model.fingerprint(),
        }
        if self.saved is not None:
            self.saved.check(**header)
        header |= {
            "state": plain_state(self.state),
            "entropy": self.seed.entropy,
            "spawn_key": list(self.seed.spawn_key),
            "budget": self.limits.budget,
        }
        return CheckpointKeeper(self.checkpoint, self.every, header, self.saved)
