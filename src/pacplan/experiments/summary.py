"""Many runs in a few numbers."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from pacplan.core.text import table
from pacplan.experiments.records import Record


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


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
        runs: how many.
        failed: how many of them raised.
        regret: mean regret of the others, if it is known.
        max_regret: the largest.
        median_samples: calls to the model, median of the others.
        max_samples: the most.
        certified: how many stopped by their own rule under proven thresholds.
        seconds: mean time of a search.
    """

    planner: str
    settings: str
    problem: str
    budget: int | None
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
    return [_group(*key, found) for key, found in members.items()]


def _group(
    planner: str, settings: str, problem: str, budget: int | None, records: Sequence[Record]
) -> Group:
    good = [record for record in records if not record.error]
    regrets = [record.regret for record in good if record.regret is not None]
    samples = [record.samples for record in good if record.samples is not None]
    seconds = [record.seconds for record in good if record.seconds is not None]
    return Group(
        planner=planner,
        settings=settings,
        problem=problem,
        budget=budget,
        runs=len(records),
        failed=len(records) - len(good),
        regret=mean(regrets) if regrets else None,
        max_regret=max(regrets, default=None),
        median_samples=float(np.median(samples)) if samples else None,
        max_samples=max(samples, default=None),
        certified=sum(record.certified for record in good),
        seconds=float(np.mean(seconds)) if seconds else None,
    )


_COLUMNS = (
    "planner",
    "settings",
    "problem",
    "budget",
    "runs",
    "failed",
    "mean_regret",
    "regret_low",
    "regret_high",
    "max_regret",
    "median_samples",
    "max_samples",
    "certified",
)


def write(found: Iterable[Group], path: Path) -> None:
    """Write summaries to a CSV file; times, which differ from run to run, are left out."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for group in found:
            regret = group.regret
            writer.writerow(
                [
                    group.planner,
                    group.settings,
                    group.problem,
                    group.budget,
                    group.runs,
                    group.failed,
                    *([None] * 3 if regret is None else [regret.value, regret.low, regret.high]),
                    group.max_regret,
                    group.median_samples,
                    group.max_samples,
                    group.certified,
                ]
            )


def show(found: Sequence[Group]) -> None:
    """Print summaries as a table."""
    several = len({group.problem for group in found}) > 1
    headers = ["planner", *(["problem"] if several else []), "budget", "runs", "failed"]
    headers += ["mean regret", "max regret", "median calls", "max calls", "ms per plan"]
    rows = [headers]
    for group in found:
        rows.append(
            [
                group.planner,
                *([group.problem] if several else []),
                "" if group.budget is None else f"{group.budget:,}",
                str(group.runs),
                str(group.failed),
                "" if group.regret is None else f"{group.regret.value:.1e}",
                "" if group.max_regret is None else f"{group.max_regret:.1e}",
                "" if group.median_samples is None else f"{group.median_samples:,.0f}",
                "" if group.max_samples is None else f"{group.max_samples:,}",
                "" if group.seconds is None else f"{group.seconds * 1e3:.2f}",
            ]
        )
    print("\n".join(table(rows, left=(0, 1) if several else (0,))))
