"""What a verification found: failures against what was promised, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scipy import special

from pacplan.testing.checks import CHECKS, Promise
from pacplan.testing.planners import PlannerEntry
from pacplan.testing.problems import Family
from pacplan.views import terminal

FALSE_ALARM = 1e-6
"""Probability with which a run flags anything at all if every promise holds."""
_SHOWN_TAIL = 0.025
_NAMED = 5


@dataclass(frozen=True)
class Outcome:
    """The result of one plan.

    Attributes:
        family: name of the family.
        planner: name of the planner.
        case: number of the case.
        calls: calls to the model.
        seconds: time of the plan, and of making and checking its case.
        found: for every check that something was claimed about, whether it fails.
        error: what was raised in place of a plan; "" if nothing was.
    """

    family: str
    planner: str
    case: int
    calls: int
    seconds: float
    found: dict[str, bool]
    error: str

    @property
    def key(self) -> tuple[str, str, int]:
        """Identifies the plan in its verification."""
        return self.family, self.planner, self.case

    @property
    def kind(self) -> tuple[str, str]:
        """What its time depends on."""
        return self.family, self.planner


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
        # Each promise has an equal part of the probability of a false alarm.
        judged = sum(cell.promise.judged for cell, _ in promised)
        tail = FALSE_ALARM / max(judged, 1)
        return tuple(_verdict(cell, check, tail) for cell, check in promised if cell.claims[check] > 0)

    @property
    def violations(self) -> tuple[Verdict, ...]:
        """The promises that do not hold."""
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
        return "\n".join([terminal.text_of(self.table()), "", *self.summary()])

    def table(self) -> Any:
        """A line for each family and planner, below a head."""
        rows: list[tuple[str, ...]] = [("family", "planner", "plans", "calls each", *CHECKS)]
        found = {(v.family, v.planner, v.check): v for v in self.verdicts}
        for cell in self.cells:
            cells = [_shown(found.get((cell.family, cell.planner, check))) for check in CHECKS]
            each = f"{cell.calls / cell.plans:,.0f}" if cell.plans else "-"
            rows.append((cell.family, cell.planner, f"{cell.plans:,}", each, *cells))
        numbers = (2, 3)
        left = [place for place in range(len(rows[0])) if place not in numbers]
        return terminal.table(rows, left)

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


def report_of(
    pairs: Sequence[tuple[Family, PlannerEntry]], outcomes: Sequence[Outcome], *, complete: bool
) -> Report:
    """The report of the outcomes that there are."""
    groups: dict[tuple[str, str], list[Outcome]] = {
        (family.name, entry.name): [] for family, entry in pairs
    }
    for outcome in sorted(outcomes, key=lambda outcome: outcome.case):
        groups.get(outcome.kind, []).append(outcome)
    cells = []
    for (family, entry), group in zip(pairs, groups.values(), strict=True):
        found = {check: [o for o in group if check in o.found] for check in CHECKS}
        cells.append(
            Cell(
                family=family.name,
                planner=entry.name,
                delta=family.delta,
                promise=entry.promise(family),
                plans=sum(not o.error for o in group),
                calls=sum(o.calls for o in group),
                seconds=sum(o.seconds for o in group),
                claims={check: len(claimed) for check, claimed in found.items()},
                failed={
                    check: [o.case for o in claimed if o.found[check]]
                    for check, claimed in found.items()
                },
                errors=[(o.case, o.error) for o in group if o.error],
            )
        )
    return Report(tuple(cells), complete=complete)


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


def clopper_pearson(failures: int, trials: int, tail: float) -> tuple[float, float]:
    """The Clopper-Pearson interval of a binomial probability.

    Each end is wrong with probability at most `tail`, whatever the probability is.

    Args:
        failures: how often it happened.
        trials: in how many independent trials, at least 1.
        tail: probability in (0, 1/2).

    Returns:
        Lower and upper end.
    """
    if not 0 <= failures <= trials or trials < 1:
        raise ValueError(f"there cannot be {failures} failures in {trials} trials")
    low, high = 0.0, 1.0
    if failures > 0:
        low = float(special.betaincinv(failures, trials - failures + 1, tail))
    if failures < trials:
        # P(X <= k) is the probability of at least n - k successes.
        high = 1.0 - float(special.betaincinv(trials - failures, failures + 1, tail))
    return low, high


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
