"""The experiments of the MDP-GapE paper's section 5: what to run, what the paper and what we find."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan import theory
from pacplan.bounds import thresholds as exploration
from pacplan.core import checks
from pacplan.experiments.records import Group
from pacplan.experiments.sweep import PlannerSpec, ProblemSpec, Sweep
from pacplan.registry import FIXED_BUDGET

GAMMA, DELTA = 0.7, 0.1
ACTIONS, SUCCESSORS = 5, 2
PAPER_EXPONENT = 3.9
PARTS = ("table4", "figure1", "figure2")

_EPSILONS = {"figure1": (1.0, 0.66, 0.5, 0.33, 0.2), "table4": (1.0, 0.5, 0.2)}
_BUDGETS = (10, 31, 100, 316, 1_000, 3_162, 10_000, 31_623, 100_000)
_PLANNERS = ("bracket", "mdp-gape", "kl-olop", "brue", "uct")
# Planners that stop by themselves within a reasonable time, on problems of this size.
_FIXED_CONFIDENCE = ("mdp-gape", "bracket")
_QUICK_MDPS, _QUICK_EPSILON, _QUICK_BUDGET = 20, 0.33, 10_000


@dataclass(frozen=True)
class Reproduction:
    """Which of the paper's experiments to run, and how.

    Attributes:
        what: "table4", "figure1", "figure2" or "all".
        mdps: number of random MDPs, 200 in the paper.
        seed: of the first MDP, and of the plans.
        thresholds: of MDP-GapE. Those for a fixed budget are for Figure 2, by default "sharp", which we
            tuned, and "budget", the paper's text; the others to Table 4 and Figure 1, by default
            "paper".
        planners: names; all are for Figure 2, and those that certify also for Table 4 and Figure 1.
        quick: a small part of it, for a first look.
    """

    what: str = "all"
    mdps: int = 200
    seed: int = 0
    thresholds: tuple[str, ...] = ()
    planners: tuple[str, ...] = _PLANNERS
    quick: bool = False

    def __post_init__(self) -> None:
        checks.choice("what to reproduce", self.what, (*PARTS, "all"))
        checks.integer("mdps", self.mdps, least=1)
        for name in self.thresholds:
            exploration.check(name)
        if not self.certifying() and not self.budgeted():
            known = " and ".join(_FIXED_CONFIDENCE)
            raise ValueError(f"name a planner; Table 4 and Figure 1 are about {known} only")

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that are asked for."""
        return PARTS if self.what == "all" else (self.what,)

    @property
    def problem_seeds(self) -> range:
        """Seeds of the random MDPs."""
        return range(self.seed, self.seed + (min(self.mdps, _QUICK_MDPS) if self.quick else self.mdps))

    def certifying(self) -> list[tuple[float, PlannerSpec]]:
        """The planners of Table 4 and Figure 1, each with its accuracy."""
        epsilons = next((given for part, given in _EPSILONS.items() if part in self.parts), ())
        return [
            (epsilon, PlannerSpec(name, {"epsilon": epsilon, "delta": DELTA} | more, label, (None,)))
            for epsilon in epsilons
            if not self.quick or epsilon >= _QUICK_EPSILON
            for name in self.planners
            if name in _FIXED_CONFIDENCE
            for label, more in self._variants(name, "paper", for_a_budget=False)
        ]

    def budgeted(self) -> list[PlannerSpec]:
        """The planners of Figure 2."""
        budgets = tuple(n for n in _BUDGETS if not self.quick or n <= _QUICK_BUDGET)
        return [
            PlannerSpec(name, FIXED_BUDGET.get(name, {}) | more, label, budgets)
            for name in (self.planners if "figure2" in self.parts else ())
            for label, more in self._variants(name, "sharp", "budget", for_a_budget=True)
        ]

    def _variants(
        self, name: str, *usual: str, for_a_budget: bool
    ) -> list[tuple[str, dict[str, object]]]:
        """Label and settings of a planner, once for each of the thresholds if it takes any."""
        if name != "mdp-gape":
            return [(name, {"gamma": GAMMA})]
        chosen = [t for t in self.thresholds if exploration.for_a_budget(t) == for_a_budget] or usual
        return [
            (name if len(chosen) == 1 else f"{name} ({given})", {"gamma": GAMMA, "thresholds": given})
            for given in chosen
        ]

    def sweep(self) -> Sweep:
        """All runs."""
        return Sweep(
            planners=[*(spec for _, spec in self.certifying()), *self.budgeted()],
            problems=[ProblemSpec("garnet")],
            seeds=self.problem_seeds,
            seed=self.seed,
        )


# What the paper found ---------------------------------------------------------------------------------


class PaperAccuracy(NamedTuple):
    """A line of the paper's Table 4."""

    horizon: int
    max_regret: float
    median_n: float
    max_n: float


PAPER_TABLE = {
    1.0: PaperAccuracy(6, 6e-2, 6.3e3, 1.9e4),
    0.5: PaperAccuracy(8, 4e-3, 5.5e4, 2.2e5),
    0.2: PaperAccuracy(10, 2.9e-3, 3.4e5, 2.3e6),
}
"""The paper's Table 4 by epsilon."""


@cache
def paper_curves() -> dict[str, dict[int, theory.Estimate]]:
    """The paper's Figure 2: mean regret by our name for the planner and by budget."""
    curves: dict[str, dict[int, theory.Estimate]] = {}
    text = resources.files("pacplan.experiments").joinpath("data", "figure2.csv").read_text("utf-8")
    for planner, budget, *numbers in list(csv.reader(text.splitlines()))[1:]:
        curves.setdefault(planner.lower(), {})[int(budget)] = theory.Estimate(*map(float, numbers))
    return curves


# What we find -----------------------------------------------------------------------------------------


class Accuracy(NamedTuple):
    """How a planner did at one accuracy, where it made a plan: a line of our Table 4.

    It took H steps, and n calls for each plan.
    """

    label: str
    epsilon: float
    group: Group
    horizon: int
    samples: NDArray[np.int64]


def accuracies(reproduction: Reproduction, groups: Sequence[Group]) -> list[Accuracy]:
    """How every planner did at every accuracy, without those that made no plan."""
    found = {(group.settings, group.budget): group for group in groups if group.plans}
    return [
        Accuracy(
            *(spec.name, epsilon, group),
            horizon=max(row.horizon or 0 for row in group.plans),
            samples=np.array([row.samples for row in group.plans]),
        )
        for epsilon, spec in reproduction.certifying()
        if (group := found.get((spec.key, None))) is not None
    ]


def exponents(lines: Sequence[Accuracy]) -> dict[str, theory.Estimate]:
    """The growth of n in 1/epsilon of each planner that solved all MDPs at several accuracies."""
    found = {}
    for label in dict.fromkeys(line.label for line in lines):
        own = [line for line in lines if line.label == label]
        if len(own) > 1 and not any(line.group.failed for line in own):
            samples = np.stack([line.samples for line in own], axis=1)
            found[label] = theory.exponent([line.epsilon for line in own], samples)
    return found


class Curve(NamedTuple):
    """Mean regret of a planner by budget: a line of our Figure 2."""

    label: str
    planner: str
    points: dict[int, theory.Estimate]


def curves(reproduction: Reproduction, groups: Sequence[Group]) -> list[Curve]:
    """The lines of Figure 2, without planners that made no plan."""
    found = []
    for spec in reproduction.budgeted():
        points = {
            group.budget: group.regret
            for group in groups
            if group.settings == spec.key and group.budget and group.regret
        }
        if points:
            found.append(Curve(spec.name, str(spec.planner), points))
    return found
