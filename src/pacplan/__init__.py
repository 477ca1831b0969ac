"""Monte-Carlo planning in Markov decision processes, with guarantees.

A name is imported when it is first used, since Numba takes its time: `pacplan --help` needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pacplan.core.version import __version__ as __version__

if TYPE_CHECKING:
    from pacplan import bounds as bounds
    from pacplan import envs as envs
    from pacplan import exact as exact
    from pacplan import theory as theory
    from pacplan import views as views
    from pacplan.agent import Agent as Agent
    from pacplan.algorithms import *  # noqa: F403
    from pacplan.auto import Auto as Auto
    from pacplan.auto import plan as plan
    from pacplan.auto import plan_many as plan_many
    from pacplan.compiled.streams import Stream as Stream
    from pacplan.models import *  # noqa: F403
    from pacplan.result import Plan as Plan

# The public names by the module that defines them; and modules, found as if they had been imported.
_NAMES = {
    "agent": "Agent",
    "algorithms": "BRUE KLOLOP OLOP OPD OPMDP UCT Anytime Atlas Bracket Canopy MDPGapE "
    "SmoothCruiser SparseSampling StOP TrailBlazer UGapEMCTS ValueIteration planners register",
    "auto": "Auto plan plan_many",
    "compiled.streams": "Stream",
    "models": "BrokenPromiseError Model Outcomes Simulator TabularMDP from_gymnasium",
    "result": "Plan",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
_PUBLIC = ["bounds", "envs", "exact", "theory", "views"]
_MODULES = [*_PUBLIC, "algorithms", "comparison", "engine", "experiments", "extending", "models"]
_MODULES += ["testing"]
__all__ = sorted([*_HOMES, *_PUBLIC, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"pacplan.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'pacplan' has no attribute {name!r}")
    found = getattr(import_module(f"pacplan.{_HOMES[name]}"), name)
    globals()[name] = found  # So it is asked for only once.
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
