"""Monte-Carlo planning in Markov decision processes, with guarantees.

A name is imported when it is first used, since Numba takes its time: `pacplan --help` needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pacplan.core.version import __version__

if TYPE_CHECKING:
    from pacplan import bounds, envs, exact, theory, views
    from pacplan.agent import Agent, Decision
    from pacplan.algorithms import (
        BRUE,
        KLOLOP,
        OLOP,
        OPD,
        OPMDP,
        UCT,
        Atlas,
        Bracket,
        Canopy,
        MDPGapE,
        SmoothCruiser,
        SparseSampling,
        StOP,
        TrailBlazer,
        UGapEMCTS,
        ValueIteration,
        planners,
        register,
    )
    from pacplan.algorithms.common.many import Plans
    from pacplan.auto import Auto
    from pacplan.compiled.streams import Stream
    from pacplan.diagnosis import Advice, Diagnosis
    from pacplan.engine import SearchTree, Snapshot
    from pacplan.models import (
        BrokenPromiseError,
        Model,
        Outcomes,
        Simulator,
        TabularMDP,
        from_gymnasium,
        recorded,
    )
    from pacplan.origin import Origin
    from pacplan.planning import forecast, plan, plan_many
    from pacplan.policy import Policy
    from pacplan.result import Curve, Plan

__all__ = [
    "BRUE",
    "KLOLOP",
    "OLOP",
    "OPD",
    "OPMDP",
    "UCT",
    "Advice",
    "Agent",
    "Atlas",
    "Auto",
    "Bracket",
    "BrokenPromiseError",
    "Canopy",
    "Curve",
    "Decision",
    "Diagnosis",
    "MDPGapE",
    "Model",
    "Origin",
    "Outcomes",
    "Plan",
    "Plans",
    "Policy",
    "SearchTree",
    "Simulator",
    "SmoothCruiser",
    "Snapshot",
    "SparseSampling",
    "StOP",
    "Stream",
    "TabularMDP",
    "TrailBlazer",
    "UGapEMCTS",
    "ValueIteration",
    "__version__",
    "bounds",
    "envs",
    "exact",
    "forecast",
    "from_gymnasium",
    "plan",
    "plan_many",
    "planners",
    "recorded",
    "register",
    "theory",
    "views",
]

# Where the names of `__all__` are defined, if they are no modules and not in `pacplan.algorithms`.
_HOMES = {
    "agent": ("Agent", "Decision"),
    "algorithms.common.many": ("Plans",),
    "auto": ("Auto",),
    "compiled.streams": ("Stream",),
    "diagnosis": ("Advice", "Diagnosis"),
    "engine": ("SearchTree", "Snapshot"),
    "models": (
        "BrokenPromiseError",
        "Model",
        "Outcomes",
        "Simulator",
        "TabularMDP",
        "from_gymnasium",
        "recorded",
    ),
    "origin": ("Origin",),
    "planning": ("forecast", "plan", "plan_many"),
    "policy": ("Policy",),
    "result": ("Curve", "Plan"),
}
# Those that are not in `__all__` are found as attributes as well, as if they had been imported.
_MODULES = (
    "algorithms",
    "bounds",
    "comparison",
    "engine",
    "envs",
    "exact",
    "experiments",
    "extending",
    "models",
    "testing",
    "theory",
    "views",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"pacplan.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'pacplan' has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "algorithms")
    found = getattr(import_module(f"pacplan.{home}"), name)
    globals()[name] = found  # So it is asked for only once.
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
