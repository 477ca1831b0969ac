"""Monte-Carlo planning in Markov decision processes, with guarantees."""

from pacplan import bounds, envs, exact, theory, views
from pacplan.agent import Agent, Decision
from pacplan.algorithms import (
    BRUE,
    KLOLOP,
    OLOP,
    OPD,
    OPMDP,
    UCT,
    Bracket,
    Canopy,
    MDPGapE,
    SmoothCruiser,
    SparseSampling,
    StOP,
    TrailBlazer,
    UGapEMCTS,
    planners,
    register,
)
from pacplan.algorithms.common.many import Plans
from pacplan.compiled.streams import Stream
from pacplan.core.version import __version__
from pacplan.diagnosis import Advice, Diagnosis
from pacplan.engine import SearchTree, Snapshot
from pacplan.forecasting import Forecast, forecast
from pacplan.look import Look
from pacplan.models import BrokenPromiseError, Model, Simulator, TabularMDP, from_gymnasium, recorded
from pacplan.origin import Origin
from pacplan.planning import Choice, choose, plan, plan_many
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
    "Bracket",
    "BrokenPromiseError",
    "Canopy",
    "Choice",
    "Curve",
    "Decision",
    "Diagnosis",
    "Forecast",
    "Look",
    "MDPGapE",
    "Model",
    "Origin",
    "Plan",
    "Plans",
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
    "__version__",
    "bounds",
    "choose",
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
