"""Many runs in a few numbers."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pacplan.experiments.runs import Record
from pacplan.views import terminal


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
        max_samples: the maximum.
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
    return [_group(key, found) for key, found in members.items()]


def _group(key: tuple[str, str, str, int | None], records: Sequence[Record]) -> Group:
    good = [record for record in records if not record.error]
    regrets, samples, seconds = (
        [value for record in good if (value := getattr(record, name)) is not None]
        for name in ("regret", "samples", "seconds")
    )
    return Group(
        *key,
        runs=len(records),
        failed=len(records) - len(good),
        regret=mean(regrets) if regrets else None,
        max_regret=max(regrets, default=None),
        median_samples=float(np.median(samples)) if samples else None,
        max_samples=max(samples, default=None),
        certified=sum(record.certified for record in good),
        seconds=float(np.mean(seconds)) if seconds else None,
    )


def write(folder: Path, records: Sequence[Record]) -> list[Group]:
    """Write runs.csv, a row for every run, and summary.csv; returns the summary.

    Times differ from run to run, so the summary in the file leaves them out.
    """
    found = groups(records)
    _write(folder / "runs.csv", [asdict(record) for record in records])
    rows = [asdict(group) for group in found]
    for row in rows:
        regret = row.pop("regret") or {}
        row |= {f"regret_{name}": regret.get(name) for name in ("value", "low", "high")}
        del row["seconds"]
    _write(folder / "summary.csv", rows)
    return found


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def show(found: Sequence[Group]) -> None:
    """Print summaries as a table."""
    header = "planner | problem | budget | runs | failed | mean regret | max regret | median calls"
    rows = [[*header.split(" | "), "max calls", "ms per plan"]]
    for group in found:
        regret = None if group.regret is None else group.regret.value
        numbers = [
            ("{:,}", group.budget),
            ("{}", group.runs),
            ("{}", group.failed),
            ("{:.1e}", regret),
            ("{:.1e}", group.max_regret),
            ("{:,.0f}", group.median_samples),
            ("{:,}", group.max_samples),
            ("{:.2f}", None if group.seconds is None else 1e3 * group.seconds),
        ]
        cells = ["" if number is None else form.format(number) for form, number in numbers]
        rows.append([group.planner, group.problem, *cells])
    terminal.show(terminal.table(rows, left=(0, 1)))
