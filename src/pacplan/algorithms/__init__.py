"""The planners, one module each."""

from pacplan.algorithms.base import Planner
from pacplan.algorithms.brue import BRUE
from pacplan.algorithms.mdp_gape import MDPGapE
from pacplan.algorithms.olop import KLOLOP, OLOP
from pacplan.algorithms.op_mdp import OPMDP
from pacplan.algorithms.opd import OPD
from pacplan.algorithms.sparse_sampling import SparseSampling
from pacplan.algorithms.uct import UCT

planners: dict[str, type[Planner]] = {
    cls.name: cls for cls in (MDPGapE, SparseSampling, UCT, BRUE, OLOP, KLOLOP, OPD, OPMDP)
}
"""The planners by the names that the command line gives them."""

__all__ = [
    "BRUE",
    "KLOLOP",
    "OLOP",
    "OPD",
    "OPMDP",
    "UCT",
    "MDPGapE",
    "Planner",
    "SparseSampling",
    "planners",
]
