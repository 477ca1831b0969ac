"""What a planner may ask of a problem: the Model protocol and the models that come with pacplan."""

from pacplan.models.gymnasium import from_gymnasium
from pacplan.models.outcomes import Outcomes
from pacplan.models.protocol import BrokenPromiseError, Model
from pacplan.models.simulator import Simulator
from pacplan.models.tabular import TabularMDP

__all__ = ["BrokenPromiseError", "Model", "Outcomes", "Simulator", "TabularMDP", "from_gymnasium"]
