"""The row of each run of a sweep, and many of them in a few numbers."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from pacplan.theory import Estimate
from pacplan.views import terminal


@dataclass(frozen=True)
class Record:
    """The result of one run.

    Attributes:
        planner: label of the planner.
        settings: what identifies the planner, as JSON (`PlannerSpec.key`).
        problem: name of the problem.
        problem_seed: its seed.
        budget: maximum number of calls to the model, if there was one.
        seed: of the plan.
        horizon: steps planned.
        action: the planner's choice.
        samples: calls to the model that it made.
        episodes: episodes that it played.
        regret: max_a Q(s, a) - Q(s, action), by exact dynamic programming: of the infinite-horizon
            problem, or of the problem of `horizon` steps if gamma is 1 or the model is not
            stationary. None if the model has no tables.
        gap: the planner's own bound on its regret.
        certified: whether the planner stopped by its own rule under proven thresholds.
        stopped_by: why it stopped.
        seconds: time of the search.
        error: why there is no plan; "" if there is one.
    """

    planner: str
    settings: str
    problem: str
    problem_seed: int
    budget: int | None
    seed: int
    horizon: int | None = None
    action: str = ""
    samples: int = 0
    episodes: int = 0
    regret: float | None = None
    gap: float | None = None
    certified: bool = False
    stopped_by: str = ""
    seconds: float = 0.0
    error: str = ""

    @property
    def key(self) -> tuple[str, str, int, int | None]:
        """Identifies the run in its sweep."""
        return self.settings, self.problem, self.problem_seed, self.budget


def mean(values: ArrayLike) -> Estimate:
    """The mean, with an interval by the bootstrap (its ends may be equal)."""
    numbers = np.asarray(values, np.float64)
    draws = np.random.default_rng(0).choice(numbers, size=(2000, len(numbers))).mean(-1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Estimate(float(numbers.mean()), float(low), float(high))


@dataclass(frozen=True)
class Group:
    """The runs of one planner on one problem with one budget.

    Attributes:
        planner: its label.
        settings: what identifies it, as JSON.
        problem: the problem.
        budget: the budget, or None.
        plans: the rows of those that made a plan; what follows is about them.
        runs: how many there are in all.
        failed: how many of them raised.
        regret: mean regret, if it is known.
        max_regret: the largest.
        median_samples: calls to the model, median.
        max_samples: the maximum.
        certified: how many stopped by their own rule under proven thresholds.
        seconds: mean time of a search.
    """

    planner: str
    settings: str
    problem: str
    budget: int | None
    plans: list[Record]
    runs: int
    failed: int
    regret: Estimate | None
    max_regret: float | None
    median_samples: float | None
    max_samples: int | None
    certified: int
    seconds: float | None


def groups(records: Iterable[Record]) -> list[Group]:
    """Summaries, in the order in which their first rows come."""
    members: dict[tuple[str, str, str, int | None], list[Record]] = {}
    for record in records:
        key = (record.planner, record.settings, record.problem, record.budget)
        members.setdefault(key, []).append(record)
    found = []
    for key, rows in members.items():
        plans = [row for row in rows if not row.error]
        regrets = [row.regret for row in plans if row.regret is not None]
        samples = [row.samples for row in plans]
        group = Group(
            *key,
            plans=plans,
            runs=len(rows),
            failed=len(rows) - len(plans),
            regret=mean(regrets) if regrets else None,
            max_regret=max(regrets, default=None),
            median_samples=float(np.median(samples)) if plans else None,
            max_samples=max(samples) if plans else None,
            certified=sum(row.certified for row in plans),
            seconds=float(np.mean([row.seconds for row in plans])) if plans else None,
        )
        found.append(group)
    return found


def write(folder: Path, records: Sequence[Record]) -> list[Group]:
    """Write runs.csv, a row for every run, and summary.csv; returns the summary.

    Times differ from run to run, so the summary in the file leaves them out.
    """
    found, summaries = groups(records), []
    for group in found:
        row = vars(group).copy()
        del row["plans"], row["seconds"]
        regret = row.pop("regret") or (None,) * 3
        parts = zip(Estimate._fields, regret, strict=True)
        summaries.append(row | {f"regret_{name}": part for name, part in parts})
    for name, rows in (("runs", [vars(record) for record in records]), ("summary", summaries)):
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return found


_COLUMNS = {
    **{"planner": ("planner", "{}"), "problem": ("problem", "{}"), "budget": ("budget", "{:,}")},
    **{"runs": ("runs", "{}"), "failed": ("failed", "{}")},
    **{"mean regret": ("regret", "{.value:.1e}"), "max regret": ("max_regret", "{:.1e}")},
    **{"median calls": ("median_samples", "{:,.0f}"), "max calls": ("max_samples", "{:,}")},
    "seconds a plan": ("seconds", "{:.2g}"),
}


def show(found: Sequence[Group]) -> None:
    """Print summaries as a table."""
    rows = [list(_COLUMNS)]
    for group in found:
        cells = [(form, getattr(group, name)) for name, form in _COLUMNS.values()]
        rows.append(["" if number is None else form.format(number) for form, number in cells])
    terminal.show(terminal.table(rows, left=(0, 1)))
