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
    from pacplan.algorithms import BRUE as BRUE
    from pacplan.algorithms import KLOLOP as KLOLOP
    from pacplan.algorithms import OLOP as OLOP
    from pacplan.algorithms import OPD as OPD
    from pacplan.algorithms import OPMDP as OPMDP
    from pacplan.algorithms import UCT as UCT
    from pacplan.algorithms import Atlas as Atlas
    from pacplan.algorithms import Bracket as Bracket
    from pacplan.algorithms import Canopy as Canopy
    from pacplan.algorithms import MDPGapE as MDPGapE
    from pacplan.algorithms import SmoothCruiser as SmoothCruiser
    from pacplan.algorithms import SparseSampling as SparseSampling
    from pacplan.algorithms import StOP as StOP
    from pacplan.algorithms import TrailBlazer as TrailBlazer
    from pacplan.algorithms import UGapEMCTS as UGapEMCTS
    from pacplan.algorithms import ValueIteration as ValueIteration
    from pacplan.algorithms import planners as planners
    from pacplan.algorithms import register as register
    from pacplan.auto import Auto as Auto
    from pacplan.auto import plan as plan
    from pacplan.auto import plan_many as plan_many
    from pacplan.compiled.streams import Stream as Stream
    from pacplan.models import BrokenPromiseError as BrokenPromiseError
    from pacplan.models import Model as Model
    from pacplan.models import Outcomes as Outcomes
    from pacplan.models import Simulator as Simulator
    from pacplan.models import TabularMDP as TabularMDP
    from pacplan.models import from_gymnasium as from_gymnasium
    from pacplan.models import recorded as recorded
    from pacplan.result import Plan as Plan

# The public names by the module that defines them; and modules, found as if they had been imported.
_NAMES = {
    "agent": "Agent",
    "algorithms": "BRUE KLOLOP OLOP OPD OPMDP UCT Atlas Bracket Canopy MDPGapE SmoothCruiser "
    "SparseSampling StOP TrailBlazer UGapEMCTS ValueIteration planners register",
    "auto": "Auto plan plan_many",
    "compiled.streams": "Stream",
    "models": "BrokenPromiseError Model Outcomes Simulator TabularMDP from_gymnasium recorded",
    "result": "Plan",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
_PUBLIC = ["bounds", "envs", "exact", "theory", "views"]
_MODULES = ["algorithms", "comparison", "engine", "experiments", "extending", "models", "testing"]
_MODULES += _PUBLIC
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
