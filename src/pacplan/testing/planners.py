"""The planners that are verified, and what each of them promises."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

_COMMON = ("epsilon", "delta", "gamma", "horizon")
_TEMPERATURE = 0.5


@dataclass(frozen=True, eq=False)
class PlannerEntry:
    """A planner as it is verified.

    Attributes:
        name: what to call it.
        make: makes a planner from settings; it gets those of `epsilon`, `delta`, `gamma` and `horizon`
            that it takes, and what a family tells planners.
        promise: what it promises for the cases of a family.
        settings: further settings.
        only: names of the families that it is for; None: all that it can plan in.
        refuses: traits of families that it cannot plan in.
    """

    name: str
    make: Callable[..., Any]
    promise: Callable[[Family], Promise]
    settings: Mapping[str, Any] = field(default_factory=dict)
    only: frozenset[str] | None = None
    refuses: frozenset[str] = frozenset({"endless"})

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
        common = {name: getattr(case, name) for name in _COMMON if self.accepts(name)}
        return self.make(**common, **self.settings, **case.settings)


def _always(**shares: Any) -> Callable[[Family], Promise]:
    """The same promise for all families."""
    given = Promise(**shares)
    return lambda family: given


def _bracket(family: Family) -> Promise:
    # One process of bets serves both sides, unless a value is asked for. Of delta, little is for the
    # bounds of each side alone.
    if family.settings & {"goal", "rewards", "transitions"}:
        return _halves(family)
    above = JOINT_SHARE * (1.0 - JOINT_BELOW) * JOINT_ABOVE + 1.0 - JOINT_SHARE
    return Promise(below=JOINT_BELOW, above=above, upper="best")


def _halves(family: Family) -> Promise:
    # Half of delta for each side.
    return Promise(below=0.5, above=0.5, value=_value_share(family), upper="best")


def _chosen(family: Family) -> Promise:
    # OPD where nothing is random; and the others promise no less than the halves.
    return _CERTAINTY(family) if family.name in _CERTAIN else _halves(family)


def _mdp_gape(family: Family) -> Promise:
    # Lemma 2 is a union of three events, and for a single step only that of the rewards matters.
    share = 0.0 if "told" in family.traits else 1.0 / 3.0 if "one step" in family.traits else 1.0
    return Promise(wrong=share, below=share, above=share, value=_value_share(family))


def _value_share(family: Family) -> float | None:
    return 1.0 if "goal" in family.settings else None


def _atlas(family: Family) -> Promise:
    # One event of probability delta has everything.
    return Promise(below=1.0, above=1.0, value=_value_share(family))


_BOUNDS = _always(below=1.0, above=1.0)
_CERTAINTY = _always(wrong=0.0, below=0.0, above=0.0)
_COARSE = frozenset({"coarse", "strict-coarse", "lotteries", "exits", "promised"})
_CERTAIN = frozenset({"certain"})
_CHANCE = frozenset({"endless", "told"})  # Something must be left to chance.
_UNTOLD = frozenset({"endless", "untold"})
_TABLES = frozenset({"certain", "mixed", "ends", "joint", "lotteries", "exits"})
_ARMS = frozenset({"ties", "anytime", "lucky", "unlucky", "stopped"})

PLANNERS: dict[str, PlannerEntry] = {
    entry.name: entry
    for entry in (
        PlannerEntry("plan", Auto, _chosen, {"sample": True}, refuses=_CHANCE),
        PlannerEntry("bracket", Bracket, _bracket, refuses=_CHANCE),
        PlannerEntry("atlas", Atlas, _atlas, refuses=frozenset({"changing"})),
        PlannerEntry("canopy", Canopy, _always(below=0.5, above=0.5, upper="best")),
        PlannerEntry("mdp-gape", MDPGapE, _mdp_gape, refuses=_UNTOLD),
        # In a single step no state recurs.
        PlannerEntry(
            "mdp-gape/depth", MDPGapE, _mdp_gape, {"merge": "depth"}, refuses=_UNTOLD | {"one step"}
        ),
        PlannerEntry(
            "mdp-gape/paper",
            MDPGapE,
            _always(below=1.0, above=1.0, judged=False),
            {"thresholds": "paper"},
            only=_ARMS,
        ),
        PlannerEntry("ugape-mcts", UGapEMCTS, _BOUNDS),
        PlannerEntry("ugape-mcts/lucb", UGapEMCTS, _BOUNDS, {"rule": "lucb"}),
        PlannerEntry("sparse-sampling", SparseSampling, _BOUNDS, only=_COARSE),
        PlannerEntry("stop", StOP, _always(below=1.0, above=1.0, endless=True), only=_COARSE),
        PlannerEntry(
            "trailblazer", TrailBlazer, _always(wrong=None, value=1.0, endless=True), only=_COARSE
        ),
        PlannerEntry(
            "smooth-cruiser",
            SmoothCruiser,
            _always(wrong=None, value=1.0, endless=True, temperature=_TEMPERATURE),
            {"temperature": _TEMPERATURE},
            only=_COARSE,
        ),
        PlannerEntry("opd", OPD, _CERTAINTY, only=_CERTAIN),
        PlannerEntry("opd/depth", OPD, _CERTAINTY, {"merge": "depth"}, only=_CERTAIN),
        PlannerEntry("opd/stationary", OPD, _CERTAINTY, {"merge": "stationary"}, only=_CERTAIN),
        PlannerEntry("op-mdp", OPMDP, _CERTAINTY, only=_TABLES),
    )
}
"""The planners of pacplan that promise something, by name."""
