"""What a planner is asked: the arguments of `Planner.plan`, checked."""

import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pacplan.compiled.streams import Stream, streams
from pacplan.core import checks
from pacplan.engine.checkpoint import Checkpoints
from pacplan.engine.driver import Limits
from pacplan.models.protocol import Model

if TYPE_CHECKING:
    from pacplan.parallel.pools import Workers

_NO_LIMITS = Limits()
Seed = int | np.random.SeedSequence | None


@dataclass(frozen=True, eq=False)
class Query:
    """What a planner is asked: to plan from a state of a model, within limits.

    Attributes:
        model: the problem.
        state: where to plan from.
        seed: of all random numbers.
        limits: what ends the search.
        progress: whether to show it.
        crew: who makes the calls, several at a time; None: the search itself, one by one.
        checkpoints: writes them, and knows which one to go on from.
        kept: the search that goes on from decision to decision; None: each begins anew.
    """

    model: Model
    state: Any
    seed: np.random.SeedSequence
    limits: Limits = _NO_LIMITS
    progress: bool = False
    crew: "Workers | None" = None
    checkpoints: Checkpoints | None = None
    kept: "Kept | None" = None

    @cached_property
    def actions(self) -> tuple[Any, ...]:
        """The actions of the state; raises if the model does not know it."""
        return self.model.actions(self.state)

    @property
    def budget(self) -> int | None:
        """The calls that the search may spend."""
        return self.limits.budget

    @cached_property
    def streams(self) -> list[Stream]:
        """Random numbers for the model, and for the planner."""
        return streams(self.seed, 2)

    @property
    def ties(self) -> Stream:
        """Those for the planner."""
        return self.streams[1]


class Kept:
    """A search that goes on from decision to decision, once there is one, and its session.

    Attributes:
        search: the last search; None: the next one begins anew.
    """

    search: Any = None

    def goes_on(self, query: Query) -> bool:
        """Take the search to where a query asks from; if it cannot go there, forget it."""
        if self.search is not None and self.search.go_on(query):
            return True
        self.forget()
        return False

    def forget(self) -> None:
        """Release what was kept."""
        if self.search is not None:
            self.search.session.close()
        self.search = None


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """The seed of all random numbers of a plan."""
    if isinstance(seed, np.random.SeedSequence):
        # A copy, so that planning twice with one sequence gives the same plan.
        return np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)
    if seed is None:  # One that can be given again, and of which every reader of JSON keeps all digits.
        return np.random.SeedSequence(secrets.randbits(53))
    return np.random.SeedSequence(checks.integer("seed", seed, least=0))
