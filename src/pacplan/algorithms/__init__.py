"""The planners, one module each."""

from pacplan.algorithms.bracket.planner import Bracket
from pacplan.algorithms.brue import BRUE
from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.mdp_gape.planner import MDPGapE
from pacplan.algorithms.olop import KLOLOP, OLOP
from pacplan.algorithms.op_mdp import OPMDP
from pacplan.algorithms.opd import OPD
from pacplan.algorithms.smooth_cruiser import SmoothCruiser
from pacplan.algorithms.sparse_sampling import SparseSampling
from pacplan.algorithms.stop import StOP
from pacplan.algorithms.trail_blazer import TrailBlazer
from pacplan.algorithms.uct import UCT
from pacplan.algorithms.ugape_mcts import UGapEMCTS

planners: dict[str, type[Planner]] = {
    cls.name: cls
    for cls in (
        Bracket,
        MDPGapE,
        SparseSampling,
        UCT,
        BRUE,
        OLOP,
        KLOLOP,
        OPD,
        OPMDP,
        StOP,
        TrailBlazer,
        SmoothCruiser,
        UGapEMCTS,
    )
}
"""The planners by the names that the command line gives them."""

__all__ = [
    "BRUE",
    "KLOLOP",
    "OLOP",
    "OPD",
    "OPMDP",
    "UCT",
    "Bracket",
    "MDPGapE",
    "Planner",
    "SmoothCruiser",
    "SparseSampling",
    "StOP",
    "TrailBlazer",
    "UGapEMCTS",
    "planners",
]
