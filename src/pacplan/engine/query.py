"""What a planner is asked, and the seed of its random numbers."""

import secrets
from typing import Any, NamedTuple

import numpy as np

from pacplan.compiled.streams import Stream
from pacplan.core import checks
from pacplan.engine.search_tree import SearchTree
from pacplan.models.protocol import Model

Seed = int | np.random.SeedSequence | None


class Query(NamedTuple):
    """What a planner is asked: a model, a state of it, and the calls it may spend.

    The search starts from `tree`, whose root is the state, unless it is None.
    """

    model: Model
    state: Any
    actions: tuple[Any, ...]
    budget: int | None
    rng: Stream
    ties: Stream
    tree: SearchTree | None = None
    memory_limit: int | None = None


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """The seed of all random numbers of a plan."""
    if isinstance(seed, np.random.SeedSequence):
        # A copy, so that planning twice with one sequence gives the same plan.
        return np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)
    if seed is None:  # One that can be given again, and of which every reader of JSON keeps all digits.
        return np.random.SeedSequence(secrets.randbits(53))
    return np.random.SeedSequence(checks.integer("seed", seed, least=0))
