"""The planners, one module each."""

from pacplan.algorithms.base import Planner
from pacplan.algorithms.mdp_gape import MDPGapE

planners: dict[str, type[Planner]] = {cls.name: cls for cls in (MDPGapE,)}
"""The planners by the names that the command line gives them."""

__all__ = ["MDPGapE", "Planner", "planners"]
