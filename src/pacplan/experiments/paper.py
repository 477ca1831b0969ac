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
from pacplan.experiments.records import Estimate, Group
from pacplan.experiments.sweep import PlannerSpec, ProblemSpec, Sweep
from pacplan.registry import FIXED_BUDGET

GAMMA, DELTA = 0.7, 0.1
ACTIONS, SUCCESSORS = 5, 2
PAPER_EXPONENT = 3.9
PARTS = ("table4", "figure1", "figure2")

_TABLE_EPSILONS = (1.0, 0.5, 0.2)
_FIGURE_EPSILONS = (1.0, 0.66, 0.5, 0.33, 0.2)
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
        if self.what not in (*PARTS, "all"):
            raise ValueError(f"there is no {self.what!r} to reproduce; try {', '.join(PARTS)} or all")
        checks.integer("mdps", self.mdps, least=1)
        for name in self.thresholds:
            exploration.check(name)
        if not self.planners:
            raise ValueError("name at least one planner")
        if self.what in ("table4", "figure1") and not self.certifying():
            known = " and ".join(_FIXED_CONFIDENCE)
            raise ValueError(f"{self.what} is about planners that stop by themselves: {known}")

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that are asked for."""
        return PARTS if self.what == "all" else (self.what,)

    @property
    def command(self) -> str:
        """The command that runs it, without the folder."""
        words = f"pacplan reproduce {self.what} --mdps {self.mdps} --seed {self.seed}"
        if self.thresholds:
            words += f" --thresholds {','.join(self.thresholds)}"
        if self.planners != _PLANNERS:
            words += f" --planners {','.join(self.planners)}"
        return words + " --quick" * self.quick

    @property
    def problem_seeds(self) -> range:
        """Seeds of the random MDPs."""
        return range(self.seed, self.seed + (min(self.mdps, _QUICK_MDPS) if self.quick else self.mdps))

    def certifying(self) -> list[tuple[float, PlannerSpec]]:
        """The planners of Table 4 and Figure 1, each with its accuracy."""
        wanted = {"figure1": _FIGURE_EPSILONS, "table4": _TABLE_EPSILONS}
        epsilons: Sequence[float] = next((e for part, e in wanted.items() if part in self.parts), ())
        given = tuple(t for t in self.thresholds if not exploration.for_a_budget(t)) or ("paper",)
        return [
            (epsilon, PlannerSpec(name, {"epsilon": epsilon, "delta": DELTA} | more, label, (None,)))
            for epsilon in epsilons
            if not self.quick or epsilon >= _QUICK_EPSILON
            for name in self.planners
            if name in _FIXED_CONFIDENCE
            for label, more in _variants(name, given)
        ]

    def budgeted(self) -> list[PlannerSpec]:
        """The planners of Figure 2."""
        if "figure2" not in self.parts:
            return []
        budgets = tuple(n for n in _BUDGETS if not self.quick or n <= _QUICK_BUDGET)
        given = tuple(t for t in self.thresholds if exploration.for_a_budget(t)) or ("sharp", "budget")
        return [
            PlannerSpec(name, FIXED_BUDGET.get(name, {}) | more, label, budgets)
            for name in self.planners
            for label, more in _variants(name, given)
        ]

    def sweep(self) -> Sweep:
        """All runs."""
        return Sweep(
            planners=[*(spec for _, spec in self.certifying()), *self.budgeted()],
            problems=[ProblemSpec("garnet")],
            seeds=self.problem_seeds,
            seed=self.seed,
        )


def _variants(name: str, thresholds: Sequence[str]) -> list[tuple[str, dict[str, object]]]:
    """Label and settings of a planner, once for each of the thresholds if it takes any."""
    if name != "mdp-gape":
        return [(name, {"gamma": GAMMA})]
    return [
        (name if len(thresholds) == 1 else f"{name} ({given})", {"gamma": GAMMA, "thresholds": given})
        for given in thresholds
    ]


# What the paper found ---------------------------------------------------------------------------------


class PaperAccuracy(NamedTuple):
    """A line of the paper's Table 4."""

    horizon: int
    max_regret: float
    median_n: float
    max_n: float
    n_sparse_sampling: float


def _data(name: str) -> list[dict[str, str]]:
    text = resources.files("pacplan.experiments").joinpath("data", name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def paper_table() -> dict[float, PaperAccuracy]:
    """The paper's Table 4 by epsilon."""
    return {
        float(row.pop("epsilon")): PaperAccuracy(int(row.pop("horizon")), *map(float, row.values()))
        for row in _data("table4.csv")
    }


@cache
def paper_curves() -> dict[str, dict[int, Estimate]]:
    """The paper's Figure 2: mean regret by our name for the planner and by budget."""
    curves: dict[str, dict[int, Estimate]] = {}
    for row in _data("figure2.csv"):
        point = Estimate(*(float(row[key]) for key in ("simple_regret", "ci95_low", "ci95_high")))
        curves.setdefault(row["planner"].lower(), {})[int(row["budget"])] = point
    return curves


# What we find -----------------------------------------------------------------------------------------


class Accuracy(NamedTuple):
    """How a planner did at one accuracy, where it made a plan: a line of our Table 4."""

    label: str
    epsilon: float
    group: Group

    @property
    def horizon(self) -> int:
        """Steps, H."""
        return max(row.horizon or 0 for row in self.group.plans)

    @property
    def samples(self) -> NDArray[np.int64]:
        """The number of calls n of each plan."""
        return np.array([row.samples for row in self.group.plans])


def accuracies(reproduction: Reproduction, groups: Sequence[Group]) -> list[Accuracy]:
    """How every planner did at every accuracy, without those that made no plan."""
    found = {(group.settings, group.budget): group for group in groups if group.plans}
    asked = [(spec.name, epsilon, (spec.key, None)) for epsilon, spec in reproduction.certifying()]
    return [Accuracy(label, epsilon, found[key]) for label, epsilon, key in asked if key in found]


def exponents(lines: Sequence[Accuracy]) -> dict[str, theory.Exponent]:
    """The growth of n in 1/epsilon of each planner, over the MDPs that it solved at all accuracies."""
    found = {}
    for label in dict.fromkeys(line.label for line in lines):
        own = [line for line in lines if line.label == label]
        calls = [{row.problem_seed: row.samples or 0 for row in line.group.plans} for line in own]
        seeds = sorted(set.intersection(*map(set, calls)))
        if len(own) > 1 and seeds:
            samples = [[at_one[seed] for at_one in calls] for seed in seeds]
            found[label] = theory.exponent([line.epsilon for line in own], samples)
    return found


class Curve(NamedTuple):
    """Mean regret of a planner by budget: a line of our Figure 2."""

    label: str
    planner: str
    points: dict[int, Estimate]


def curves(reproduction: Reproduction, groups: Sequence[Group]) -> list[Curve]:
    """The lines of Figure 2, without planners that made no plan."""
    found = []
    for spec in reproduction.budgeted():
        points = {
            group.budget: group.regret
            for group in sorted(groups, key=lambda group: group.budget or 0)
            if group.settings == spec.key and group.budget and group.regret
        }
        if points:
            found.append(Curve(spec.name, str(spec.planner), points))
    return found
