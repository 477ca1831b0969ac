"""Monte-Carlo planning in Markov decision processes, with guarantees.

A name is imported when it is first used, since Numba takes its time: `pacplan --help` needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pacplan.core.version import __version__

if TYPE_CHECKING:
    from pacplan import bounds, envs, exact, theory, views
    from pacplan.agent import Agent
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
    from pacplan.auto import Auto
    from pacplan.compiled.streams import Stream
    from pacplan.models import (
        BrokenPromiseError,
        Model,
        Outcomes,
        Simulator,
        TabularMDP,
        from_gymnasium,
        recorded,
    )
    from pacplan.planning import forecast, plan, plan_many
    from pacplan.result import Plan

__all__ = [
    "BRUE",
    "KLOLOP",
    "OLOP",
    "OPD",
    "OPMDP",
    "UCT",
    "Agent",
    "Atlas",
    "Auto",
    "Bracket",
    "BrokenPromiseError",
    "Canopy",
    "MDPGapE",
    "Model",
    "Outcomes",
    "Plan",
    "Simulator",
    "SmoothCruiser",
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
_HOMES = {"Agent": "agent", "Auto": "auto", "Plan": "result", "Stream": "compiled.streams"}
_HOMES |= dict.fromkeys(("forecast", "plan", "plan_many"), "planning")
_HOMES |= dict.fromkeys(("BrokenPromiseError", "Model", "Outcomes", "Simulator"), "models")
_HOMES |= dict.fromkeys(("TabularMDP", "from_gymnasium", "recorded"), "models")
# Those that are not in `__all__` are found as attributes as well, as if they had been imported.
_MODULES: tuple[str, ...] = (
    "algorithms",
    "bounds",
    "comparison",
    "engine",
    "envs",
    "exact",
    "experiments",
)
_MODULES += ("extending", "models", "testing", "theory", "views")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"pacplan.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'pacplan' has no attribute {name!r}")
    found = getattr(import_module(f"pacplan.{_HOMES.get(name, 'algorithms')}"), name)
    globals()[name] = found  # So it is asked for only once.
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
