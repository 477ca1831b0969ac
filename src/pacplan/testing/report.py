"""What a verification found: failures against what was promised, and the verdict."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pacplan.core.text import table
from pacplan.testing.checks import CHECKS, Promise
from pacplan.testing.intervals import clopper_pearson

FALSE_ALARM = 1e-6
"""Probability with which a run flags anything at all if every promise holds."""
_SHOWN_TAIL = 0.025
_NAMED = 5


@dataclass(frozen=True, eq=False)
class Cell:
    """One planner on one family.

    Attributes:
        family: name of the family.
        planner: name of the planner.
        delta: of the cases.
        promise: what the planner promises.
        plans: how many plans it made.
        calls: to the model, in all.
        seconds: in all.
        claims: for every check, in how many cases something was claimed about it.
        failed: for every check, the numbers of the cases that failed it.
        errors: numbers of the cases that raised something, and what.
    """

    family: str
    planner: str
    delta: float
    promise: Promise
    plans: int
    calls: int
    seconds: float
    claims: dict[str, int]
    failed: dict[str, list[int]]
    errors: list[tuple[int, str]]


@dataclass(frozen=True)
class Verdict:
    """One check of one planner on one family.

    Attributes:
        family: name of the family.
        planner: name of the planner.
        check: what was checked, see `CHECKS`.
        plans: how many plans.
        claims: in how many of them something was claimed that could fail.
        failures: how many failed.
        rate: their share of all plans, which is what promises are about.
        low: lower end of the 95 % Clopper-Pearson interval of the probability of failure.
        high: its upper end.
        surely: lower end at the corrected confidence.
        promised: the probability with which it may fail; None: nothing is promised.
        violated: whether `surely` exceeds `promised`.
        cases: numbers of the cases that failed.
    """

    family: str
    planner: str
    check: str
    plans: int
    claims: int
    failures: int
    rate: float
    low: float
    high: float
    surely: float
    promised: float | None
    violated: bool
    cases: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Report:
    """The result of a verification. `str()` of it is a table.

    Attributes:
        cells: one for each planner on each family.
        complete: False if Ctrl-C ended the run.
    """

    cells: tuple[Cell, ...]
    complete: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing was violated and nothing raised."""
        return not self.violations and not self.errors

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One for every check about which something was promised and claimed."""
        promised = [
            (cell, check)
            for cell in self.cells
            for check in CHECKS
            if cell.promise.share(check) is not None
        ]
        judged = sum(cell.promise.judged for cell, _ in promised)
        tail = FALSE_ALARM / max(judged, 1)
        return tuple(_verdict(cell, check, tail) for cell, check in promised if cell.claims[check] > 0)

    @property
    def violations(self) -> tuple[Verdict, ...]:
        """What was promised and does not hold."""
        return tuple(verdict for verdict in self.verdicts if verdict.violated)

    @property
    def errors(self) -> tuple[tuple[str, str, int, str], ...]:
        """Family, planner, number and words of what was raised."""
        return tuple(
            (cell.family, cell.planner, number, words)
            for cell in self.cells
            for number, words in cell.errors
        )

    @property
    def plans(self) -> int:
        """How many plans were made."""
        return sum(cell.plans for cell in self.cells)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that `json.dumps` takes."""
        return {
            "ok": self.ok,
            "complete": self.complete,
            "plans": self.plans,
            "calls": sum(cell.calls for cell in self.cells),
            "seconds": sum(cell.seconds for cell in self.cells),
            "false_alarm": FALSE_ALARM,
            "verdicts": [vars(verdict) | {"cases": list(verdict.cases)} for verdict in self.verdicts],
            "errors": [list(error) for error in self.errors],
        }

    def __str__(self) -> str:
        return "\n".join([*self.table(), "", *self.summary()])

    def table(self) -> list[str]:
        """A line for each family and planner, below a head."""
        rows: list[tuple[str, ...]] = [("family", "planner", "plans", "calls each", *CHECKS)]
        found = {(v.family, v.planner, v.check): v for v in self.verdicts}
        for cell in self.cells:
            cells = [_shown(found.get((cell.family, cell.planner, check))) for check in CHECKS]
            each = f"{cell.calls / cell.plans:,.0f}" if cell.plans else "-"
            rows.append((cell.family, cell.planner, f"{cell.plans:,}", each, *cells))
        numbers = (2, 3)
        left = [place for place in range(len(rows[0])) if place not in numbers]
        return table(rows, left)

    def summary(self) -> list[str]:
        """What the table amounts to: a line for each thing to know."""
        judged = sum(verdict.promised is not None for verdict in self.verdicts)
        said = [
            f"{self.plans:,} plans, {sum(cell.calls for cell in self.cells):,} calls, "
            f"{sum(cell.seconds for cell in self.cells):,.0f} s of computing"
            f"{'' if self.complete else ' (stopped before the end)'}. Failures in %, 95 % interval, "
            "and what was promised."
        ]
        for verdict in self.violations:
            said.append(
                f"VIOLATED: {verdict.planner} on {verdict.family}, {verdict.check}: fails with "
                f"probability at least {verdict.surely:.4g}, promised at most {verdict.promised:.4g}; "
                f"cases {_some(verdict.cases)}"
            )
        for family, planner, number, words in self.errors[:_NAMED]:
            said.append(f"ERROR: {planner} on {family}, case {number}: {words}")
        if len(self.errors) > _NAMED:
            said.append(f"... and {len(self.errors) - _NAMED} more errors")
        if not self.violations:
            said.append(f"None of {judged} promises was found broken.")
        said.append(
            f"If all promises hold, a run says otherwise with probability at most {FALSE_ALARM:g}."
        )
        return said


def _verdict(cell: Cell, check: str, tail: float) -> Verdict:
    cases = tuple(cell.failed[check])
    share = cell.promise.share(check)
    assert share is not None
    promised = share * cell.delta if cell.promise.judged else None
    low, high = clopper_pearson(len(cases), cell.plans, _SHOWN_TAIL)
    surely = clopper_pearson(len(cases), cell.plans, tail)[0]
    return Verdict(
        family=cell.family,
        planner=cell.planner,
        check=check,
        plans=cell.plans,
        claims=cell.claims[check],
        failures=len(cases),
        rate=len(cases) / cell.plans,
        low=low,
        high=high,
        surely=surely,
        promised=promised,
        violated=promised is not None and surely > promised,
        cases=cases,
    )


def _shown(verdict: Verdict | None) -> str:
    """Rate, interval and promise, in percent."""
    if verdict is None:
        return "-"
    promise = "no promise" if verdict.promised is None else f"≤ {100 * verdict.promised:.3g}"
    mark = " VIOLATED" if verdict.violated else ""
    return (
        f"{100 * verdict.rate:.3g} [{100 * verdict.low:.2g}, {100 * verdict.high:.2g}] {promise}{mark}"
    )


def _some(cases: tuple[int, ...]) -> str:
    named = ", ".join(map(str, cases[:_NAMED]))
    return named + (", ..." if len(cases) > _NAMED else "")
