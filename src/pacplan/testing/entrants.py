"""The planners that are verified, and what each of them promises."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
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
from pacplan.planning import plan
from pacplan.result import Plan
from pacplan.testing.cases import Case, Family
from pacplan.testing.checks import Promise

_COMMON = ("epsilon", "delta", "gamma", "horizon")
_TEMPERATURE = 0.5


@dataclass(frozen=True, eq=False)
class Entrant:
    """A planner as it is verified.

    Attributes:
        name: what to call it.
        make: makes a planner from settings; it gets those of `epsilon`, `delta`, `gamma` and `horizon`
            that it takes, and what a family tells planners.
        promise: what it promises for the cases of a family.
        settings: further settings.
        only: names of the families that it is for; None: all that it can plan in.
        needs_successors: whether it must be told how many successors there are.
        endless: whether it plans for an infinite horizon if its `horizon` is None.
        stationary: whether laws must not depend on the step.
    """

    name: str
    make: Callable[..., Any]
    promise: Callable[[Family], Promise]
    settings: Mapping[str, Any] = field(default_factory=dict)
    only: frozenset[str] | None = None
    needs_successors: bool = False
    endless: bool = False
    stationary: bool = False

    @cached_property
    def _parameters(self) -> tuple[frozenset[str], bool]:
        """Names that `make` takes, and whether it takes any other."""
        found = signature(self.make).parameters
        return frozenset(found), any(p.kind is Parameter.VAR_KEYWORD for p in found.values())

    def accepts(self, setting: str) -> bool:
        """Whether `make` takes a setting."""
        names, any_other = self._parameters
        return any_other or setting in names

    def suits(self, family: Family) -> bool:
        """Whether it can plan in the cases of a family."""
        if self.only is not None and family.name not in self.only:
            return False
        if getattr(self.make, "two_player", False) != family.game:
            return False
        if family.endless and not self.endless:
            return False
        if family.untold and self.needs_successors:
            return False
        merge = self.settings.get("merge", "tree")
        # In a single step no state recurs, and if laws depend on the step evidence cannot be pooled.
        if family.per_step and (self.stationary or merge == "stationary"):
            return False
        if family.one_step and merge != "tree":
            return False
        return all(self.accepts(name) and name not in self.settings for name in family.settings)

    def build(self, case: Case) -> Any:
        """The planner for a case."""
        common = {name: getattr(case, name) for name in _COMMON if self.accepts(name)}
        return self.make(**common, **self.settings, **case.settings)


class _Chosen:
    """`pacplan.plan`, asked as planners are."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings

    def plan(self, model: Any, state: Any, **options: Any) -> Plan:
        """The plan of the planner that is chosen."""
        return plan(model, state, sample=True, **self._settings, **options)


def _bracket(family: Family) -> Promise:
    # One process of bets serves both sides, unless a value is asked for or everything is told. Of
    # delta, little is for the bounds of each side alone.
    if family.settings & {"goal", "rewards", "transitions"}:
        return _merged_bracket(family)
    above = JOINT_SHARE * (1.0 - JOINT_BELOW) * JOINT_ABOVE + 1.0 - JOINT_SHARE
    return Promise(below=JOINT_BELOW, above=above, upper="best")


def _merged_bracket(family: Family) -> Promise:
    # Half of delta for each side; above, nothing is left to chance if everything is told.
    return Promise(
        below=0.5,
        above=0.0 if family.told else 0.5,
        value=_value_share(family),
        upper="best",
    )


def _chosen(family: Family) -> Promise:
    # OPD where nothing is random; and the others promise as much as Bracket with equal states merged.
    return _certainty(family) if family.name in _CERTAIN else _merged_bracket(family)


def _canopy(family: Family) -> Promise:
    # Half of delta for each side, whatever is known.
    return Promise(below=0.5, above=0.5, upper="best")


def _mdp_gape(family: Family) -> Promise:
    # Lemma 2 is a union of three events, and for a single step only that of the rewards matters.
    share = 0.0 if family.told else 1.0 / 3.0 if family.one_step else 1.0
    return Promise(wrong=share, below=share, above=share, value=_value_share(family))


def _value_share(family: Family) -> float | None:
    return 1.0 if "goal" in family.settings else None


def _atlas(family: Family) -> Promise:
    # One event of probability delta has everything.
    return Promise(below=1.0, above=1.0, value=_value_share(family))


def _heuristic(family: Family) -> Promise:
    return Promise(below=1.0, above=1.0, judged=False)


def _bounds(family: Family) -> Promise:
    return Promise(below=1.0, above=1.0)


def _certainty(family: Family) -> Promise:
    return Promise(wrong=0.0, below=0.0, above=0.0)


def _policies(family: Family) -> Promise:
    return Promise(below=1.0, above=1.0, endless=True)


def _value_only(family: Family) -> Promise:
    return Promise(wrong=None, value=1.0, endless=True)


def _soft_value(family: Family) -> Promise:
    return Promise(wrong=None, value=1.0, endless=True, temperature=_TEMPERATURE)


_COARSE = frozenset({"coarse", "strict-coarse", "lotteries", "exits", "promised"})
_CERTAIN = frozenset({"certain"})
_TABLES = frozenset({"certain", "mixed", "ends", "joint", "lotteries", "exits"})
_ARMS = frozenset({"ties", "anytime", "lucky", "unlucky", "stopped"})

ENTRANTS: dict[str, Entrant] = {
    entrant.name: entrant
    for entrant in (
        Entrant("plan", _Chosen, _chosen),
        Entrant("bracket", Bracket, _bracket),
        Entrant("bracket/depth", Bracket, _merged_bracket, {"merge": "depth"}),
        Entrant("bracket/stationary", Bracket, _merged_bracket, {"merge": "stationary"}),
        Entrant("atlas", Atlas, _atlas, endless=True, stationary=True),
        Entrant("canopy", Canopy, _canopy),
        Entrant("mdp-gape", MDPGapE, _mdp_gape, needs_successors=True),
        Entrant("mdp-gape/depth", MDPGapE, _mdp_gape, {"merge": "depth"}, needs_successors=True),
        Entrant("mdp-gape/paper", MDPGapE, _heuristic, {"thresholds": "paper"}, only=_ARMS),
        Entrant("ugape-mcts", UGapEMCTS, _bounds),
        Entrant("ugape-mcts/lucb", UGapEMCTS, _bounds, {"rule": "lucb"}),
        Entrant("sparse-sampling", SparseSampling, _bounds, only=_COARSE),
        Entrant("stop", StOP, _policies, only=_COARSE),
        Entrant("trailblazer", TrailBlazer, _value_only, only=_COARSE),
        Entrant(
            "smooth-cruiser", SmoothCruiser, _soft_value, {"temperature": _TEMPERATURE}, only=_COARSE
        ),
        Entrant("opd", OPD, _certainty, only=_CERTAIN),
        Entrant("opd/depth", OPD, _certainty, {"merge": "depth"}, only=_CERTAIN),
        Entrant("opd/stationary", OPD, _certainty, {"merge": "stationary"}, only=_CERTAIN),
        Entrant("op-mdp", OPMDP, _certainty, only=_TABLES),
    )
}
"""The planners of pacplan that promise something, by name."""
