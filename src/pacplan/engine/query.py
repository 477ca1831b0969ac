"""What a planner is asked."""

from typing import Any, NamedTuple

from pacplan.compiled.streams import Stream
from pacplan.engine.tree import SearchTree
from pacplan.models.protocol import Model


class Reuse(NamedTuple):
    """How a search is linked to those before and after it in a sequence of decisions.

    Attributes:
        tree: the tree to start from, its root the state to plan from; None: a new one.
        share: the part of delta that is left for this search. What the tree holds may have chosen the
            actions that led here, and the guarantee has to cover every choice.
    """

    tree: SearchTree | None = None
    share: float = 1.0


class Query(NamedTuple):
    """What a planner is asked: a model, a state of it, and the calls it may spend.

    `reuse` is None for a search that stands alone.
    """

    model: Model
    state: Any
    actions: tuple[Any, ...]
    budget: int | None
    rng: Stream
    ties: Stream
    reuse: Reuse | None = None
    memory_limit: int | None = None
