"""The planners, one module each."""

from typing import TypeVar

from pacplan.algorithms.atlas.planner import Atlas
from pacplan.algorithms.bracket.bracket import Bracket
from pacplan.algorithms.brue import BRUE
from pacplan.algorithms.canopy.canopy import Canopy
from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.mdp_gape.planner import MDPGapE
from pacplan.algorithms.olop import KLOLOP, OLOP
from pacplan.algorithms.op_mdp import OPMDP
from pacplan.algorithms.opd.planner import OPD
from pacplan.algorithms.smooth_cruiser import SmoothCruiser
from pacplan.algorithms.sparse_sampling import SparseSampling
from pacplan.algorithms.stop import StOP
from pacplan.algorithms.trail_blazer import TrailBlazer
from pacplan.algorithms.uct import UCT
from pacplan.algorithms.ugape_mcts import UGapEMCTS
from pacplan.algorithms.value_iteration.planner import ValueIteration

planners: dict[str, type[Planner]] = {
    cls.name: cls
    for cls in (
        Atlas,
        Bracket,
        Canopy,
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
        ValueIteration,
    )
}
"""The planners by their names on the command line."""

P = TypeVar("P", bound=type[Planner])


def register(planner: P) -> P:
    """Make your own planner known by its name: to `pacplan.planners`, the command and sweeps.

    It can be used as a decorator. A class that is defined again, as in a notebook, replaces the old.

    Args:
        planner: a subclass of `Planner` with a `name`.

    Returns:
        The class.

    Raises:
        TypeError: it is not such a class, or has no name.
        ValueError: another class has that name.
    """
    if not (isinstance(planner, type) and issubclass(planner, Planner)):
        raise TypeError(f"register takes a class made from pacplan.extending.Planner, got {planner!r}")
    name = getattr(planner, "name", None)
    if not (isinstance(name, str) and name) or set(name) & set(":, \n"):
        raise TypeError(
            f"{planner.__name__} needs a name of one word, without colons and commas, such as "
            f'name = "{planner.__name__.lower()}"; it has {name!r}'
        )
    known = planners.get(name)
    if known is not None and _place(known) != _place(planner):
        raise ValueError(
            f"the name {name!r} is taken by {'.'.join(_place(known))}; give {planner.__name__} another"
        )
    planners[name] = planner
    return planner


def _place(planner: type[Planner]) -> tuple[str, str]:
    return planner.__module__, planner.__qualname__


__all__ = [
    "BRUE",
    "KLOLOP",
    "OLOP",
    "OPD",
    "OPMDP",
    "UCT",
    "Atlas",
    "Bracket",
    "Canopy",
    "MDPGapE",
    "Planner",
    "SmoothCruiser",
    "SparseSampling",
    "StOP",
    "TrailBlazer",
    "UGapEMCTS",
    "ValueIteration",
    "planners",
    "register",
]
