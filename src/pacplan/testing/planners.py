"""The planners that are verified, and what each of them promises."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from typing import Any

from pacplan.algorithms import (
    OPD,
    OPMDP,
    Atlas,
    Bracket,
    Canopy,
    MDPGapE,
    SmoothCruiser,
    SparseSampling,
    StOP,
    TrailBlazer,
    UGapEMCTS,
)
from pacplan.algorithms.bracket.constants import JOINT_ABOVE, JOINT_BELOW, JOINT_SHARE
from pacplan.auto import Auto
from pacplan.testing.checks import Promise
from pacplan.testing.problems import Case, Family

_TEMPERATURE = 0.5


@dataclass(frozen=True, eq=False)
class PlannerEntry:
    """A planner as it is verified.

    Attributes:
        name: what to call it.
        make: makes a planner from settings; it gets those of `epsilon`, `delta`, `gamma` and `horizon`
            that it takes, and what a family tells planners.
        promises: what it promises, perhaps as a function of the family.
        settings: further settings.
        only: names of the families that it is for; None: all that it can plan in.
        refuses: traits of families that it cannot plan in.
    """

    name: str
    make: Callable[..., Any]
    promises: Promise | Callable[[Family], Promise]
    settings: Mapping[str, Any] = field(default_factory=dict)
    only: Set[str] | None = None
    refuses: Set[str] = frozenset({"endless"})

    def promise(self, family: Family) -> Promise:
        """What it promises for the cases of a family; if the value is the goal, this as well."""
        given = self.promises if isinstance(self.promises, Promise) else self.promises(family)
        return replace(given, value=1.0) if "goal" in family.settings else given

    def accepts(self, setting: str) -> bool:
        """Whether `make` takes a setting."""
        takes = signature(self.make).parameters
        return setting in takes or any(p.kind is Parameter.VAR_KEYWORD for p in takes.values())

    def suits(self, family: Family) -> bool:
        """Whether it can plan in the cases of a family."""
        return (
            (self.only is None or family.name in self.only)
            and getattr(self.make, "two_player", False) == ("game" in family.traits)
            and not self.refuses & family.traits
            and all(self.accepts(name) and name not in self.settings for name in family.settings)
        )

    def build(self, case: Case) -> Any:
        """The planner for a case."""
        names = filter(self.accepts, ("epsilon", "delta", "gamma", "horizon"))
        return self.make(**{n: getattr(case, n) for n in names}, **self.settings, **case.settings)


_CERTAINTY = Promise(wrong=0.0, below=0.0, above=0.0)
_BOUNDS = Promise(below=1.0, above=1.0)
_HALVES = Promise(below=0.5, above=0.5, upper="best")
_VALUE = Promise(wrong=None, value=1.0, endless=True)


def _bracket(family: Family) -> Promise:
    # One process of bets serves both sides, unless a value is asked for. Of delta, little is for the
    # bounds of each side alone.
    if family.settings & {"goal", "rewards", "transitions"}:
        return _HALVES
    above = JOINT_SHARE * (1.0 - JOINT_BELOW) * JOINT_ABOVE + 1.0 - JOINT_SHARE
    return Promise(below=JOINT_BELOW, above=above, upper="best")


def _chosen(family: Family) -> Promise:
    # OPD where nothing is random; and the others promise no less than the halves.
    return _CERTAINTY if family.name in _CERTAIN else _HALVES


def _mdp_gape(family: Family) -> Promise:
    # Lemma 2 is a union of three events, and for a single step only that of the rewards matters.
    share = 0.0 if "told" in family.traits else 1.0 / 3.0 if "one step" in family.traits else 1.0
    return Promise(wrong=share, below=share, above=share)


_CERTAIN = {"certain"}
_COARSE = {"coarse", "strict-coarse", "lotteries", "exits", "promised"}
_TABLES = {"certain", "mixed", "ends", "joint", "lotteries", "exits"}
_ARMS = {"ties", "anytime", "lucky", "unlucky", "stopped"}
_CHANCE = {"endless", "told"}  # Something must be left to chance.
_UNTOLD = {"endless", "untold"}
_SOFT = replace(_VALUE, temperature=_TEMPERATURE)
_PAPER = replace(_BOUNDS, judged=False)

_ALL = (
    PlannerEntry("plan", Auto, _chosen, {"sample": True}, refuses=_CHANCE),
    PlannerEntry("bracket", Bracket, _bracket, refuses=_CHANCE),
    PlannerEntry("atlas", Atlas, _BOUNDS, refuses={"changing"}),
    PlannerEntry("canopy", Canopy, _HALVES),
    PlannerEntry("mdp-gape", MDPGapE, _mdp_gape, refuses=_UNTOLD),
    # In a single step no state recurs.
    PlannerEntry(
        "mdp-gape/depth", MDPGapE, _mdp_gape, {"merge": "depth"}, None, _UNTOLD | {"one step"}
    ),
    PlannerEntry("mdp-gape/paper", MDPGapE, _PAPER, {"thresholds": "paper"}, _ARMS),
    PlannerEntry("ugape-mcts", UGapEMCTS, _BOUNDS),
    PlannerEntry("ugape-mcts/lucb", UGapEMCTS, _BOUNDS, {"rule": "lucb"}),
    PlannerEntry("sparse-sampling", SparseSampling, _BOUNDS, only=_COARSE),
    PlannerEntry("stop", StOP, replace(_BOUNDS, endless=True), only=_COARSE),
    PlannerEntry("trailblazer", TrailBlazer, _VALUE, only=_COARSE),
    PlannerEntry("smooth-cruiser", SmoothCruiser, _SOFT, {"temperature": _TEMPERATURE}, _COARSE),
    PlannerEntry("opd", OPD, _CERTAINTY, only=_CERTAIN),
    PlannerEntry("opd/depth", OPD, _CERTAINTY, {"merge": "depth"}, _CERTAIN),
    PlannerEntry("opd/stationary", OPD, _CERTAINTY, {"merge": "stationary"}, _CERTAIN),
    PlannerEntry("op-mdp", OPMDP, _CERTAINTY, only=_TABLES),
)
PLANNERS: dict[str, PlannerEntry] = {entry.name: entry for entry in _ALL}
"""The planners of pacplan that promise something, by name."""
