"""What a planner is asked."""

from typing import Any, NamedTuple

from pacplan.compiled.streams import Stream
from pacplan.engine.search_tree import SearchTree
from pacplan.models.protocol import Model


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
