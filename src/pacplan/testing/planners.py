"""The planners that are verified, and what each of them promises."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from typing import Any

from pacplan.algorithms import planners
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

_ALL: tuple[tuple[Any, ...], ...] = (
    ("plan", _chosen, {"sample": True}, None, _CHANCE),
    ("bracket", _bracket, {}, None, _CHANCE),
    ("atlas", _BOUNDS, {}, None, {"changing"}),
    ("canopy", _HALVES),
    ("mdp-gape", _mdp_gape, {}, None, _UNTOLD),
    # In a single step no state recurs.
    ("mdp-gape/depth", _mdp_gape, {"merge": "depth"}, None, _UNTOLD | {"one step"}),
    ("mdp-gape/paper", _PAPER, {"thresholds": "paper"}, _ARMS),
    ("ugape-mcts", _BOUNDS),
    ("ugape-mcts/lucb", _BOUNDS, {"rule": "lucb"}),
    ("sparse-sampling", _BOUNDS, {}, _COARSE),
    ("stop", replace(_BOUNDS, endless=True), {}, _COARSE),
    ("trailblazer", _VALUE, {}, _COARSE),
    ("smooth-cruiser", _SOFT, {"temperature": _TEMPERATURE}, _COARSE),
    ("opd", _CERTAINTY, {}, _CERTAIN),
    ("opd/depth", _CERTAINTY, {"merge": "depth"}, _CERTAIN),
    ("opd/stationary", _CERTAINTY, {"merge": "stationary"}, _CERTAIN),
    ("op-mdp", _CERTAINTY, {}, _TABLES),
)
_KINDS = {"plan": Auto} | planners
PLANNERS: dict[str, PlannerEntry] = {
    name: PlannerEntry(name, _KINDS[name.partition("/")[0]], *rest) for name, *rest in _ALL
}
"""The planners of pacplan that promise something, by name."""
