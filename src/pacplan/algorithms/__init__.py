"""The planners, one module each."""

from typing import TypeVar

from pacplan.algorithms.anytime.anytime import Anytime as Anytime
from pacplan.algorithms.atlas.planner import Atlas as Atlas
from pacplan.algorithms.bracket.bracket import Bracket as Bracket
from pacplan.algorithms.brue import BRUE as BRUE
from pacplan.algorithms.canopy.canopy import Canopy as Canopy
from pacplan.algorithms.common.base import Planner as Planner
from pacplan.algorithms.mdp_gape.planner import MDPGapE as MDPGapE
from pacplan.algorithms.olop import KLOLOP as KLOLOP
from pacplan.algorithms.olop import OLOP as OLOP
from pacplan.algorithms.op_mdp import OPMDP as OPMDP
from pacplan.algorithms.opd.planner import OPD as OPD
from pacplan.algorithms.smooth_cruiser import SmoothCruiser as SmoothCruiser
from pacplan.algorithms.sparse_sampling import SparseSampling as SparseSampling
from pacplan.algorithms.stop import StOP as StOP
from pacplan.algorithms.trail_blazer import TrailBlazer as TrailBlazer
from pacplan.algorithms.uct import UCT as UCT
from pacplan.algorithms.ugape_mcts import UGapEMCTS as UGapEMCTS
from pacplan.algorithms.value_iteration.planner import ValueIteration as ValueIteration

_FIRST = Atlas, Bracket, Canopy, MDPGapE, Anytime, SparseSampling, UCT, BRUE, OLOP, KLOLOP, OPD, OPMDP
_OTHERS = StOP, TrailBlazer, SmoothCruiser, UGapEMCTS, ValueIteration
planners: dict[str, type[Planner]] = {cls.name: cls for cls in _FIRST + _OTHERS}
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
