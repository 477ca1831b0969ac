"""Origin: where a plan comes from, and what it takes to make it again."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from pacplan.core.notes import shown
from pacplan.core.version import __version__
from pacplan.core.words import short

_VERSIONS = {
    "pacplan": __version__,
    "Python": platform.python_version(),
    "NumPy": np.__version__,
    "Numba": numba.__version__,
}
# A state or model of the user's may have an endless repr.
_MOST_LETTERS = 400


@dataclass(frozen=True)
class Origin:
    """What a plan was made from: with the same model, it can be made again.

    Attributes:
        model: the model, as its repr.
        state: the state planned from, as its repr.
        package: where to import the planner's class from; `Plan.planner` is the call that makes it.
        seed: of all random numbers, drawn if the user gave none.
        spawn_key: what tells this plan's numbers from those of others of the same seed; empty unless a
            `numpy.random.SeedSequence` was given that has one, as an `Agent` does.
        budget: most calls to the model, or None.
        time_limit: most seconds, or None.
        memory_limit: most bytes, or None.
        reused: whether the search began with the tree of an earlier decision.
        side_by_side: whether calls were made side by side, by any number of workers: then each had a
            generator of its own.
        versions: of what the plan depends on, by name.
        machine: operating system and processor.
    """

    model: str
    state: str
    package: str
    seed: int | tuple[int, ...]
    spawn_key: tuple[int, ...]
    budget: int | None
    time_limit: float | None
    memory_limit: int | None
    reused: bool
    side_by_side: bool
    versions: dict[str, str]
    machine: str

    def code(self, planner: str) -> str:
        """Lines of Python that make the plan again, for someone who has the model."""
        limits = {name: getattr(self, name) for name in ("budget", "time_limit", "memory_limit")}
        limits["workers"] = 1 if self.side_by_side else None
        given = "".join(f", {name}={value!r}" for name, value in limits.items() if value is not None)
        imports, seed = "", repr(self.seed)
        if self.spawn_key:
            imports = "import numpy\n"
            seed = f"numpy.random.SeedSequence({self.seed!r}, spawn_key={self.spawn_key!r})"
        return (
            f"{imports}from {self.package} import {planner.partition('(')[0]}\n\n"
            f"model = ...  # {self.model}\n"
            f"state = {self.state}\n"
            f"planner = {planner}\n"
            f"plan = planner.plan(model, state, seed={seed}{given})"
        )


def origin_of(planner: Any, query: Any) -> Origin:
    """The origin of a plan that a planner makes of a query."""
    module, limits = type(planner).__module__, query.limits
    entropy: Any = query.seed.entropy
    return Origin(
        model=short(shown(query.model), _MOST_LETTERS),
        state=short(shown(query.state), _MOST_LETTERS),
        package="pacplan" if module.startswith("pacplan.") else module,
        seed=tuple(map(int, entropy)) if isinstance(entropy, Sequence) else int(entropy),
        spawn_key=tuple(map(int, query.seed.spawn_key)),
        budget=limits.budget,
        time_limit=limits.time_limit,
        memory_limit=limits.memory_limit,
        reused=query.kept is not None and query.kept.search is not None,
        side_by_side=query.crew is not None,
        versions=_VERSIONS,
        machine=f"{platform.system()} {platform.machine()}",
    )
