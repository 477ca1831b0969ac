"""What a verification found: failures against what was promised, and the verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scipy import special

from pacplan.testing.checks import CHECKS
from pacplan.testing.planners import PlannerEntry
from pacplan.testing.problems import Family
from pacplan.views import terminal

FALSE_ALARM = 1e-6
"""Probability with which a run flags anything at all if every promise holds."""
_SHOWN_TAIL = 0.025
_NAMED = 5


@dataclass(frozen=True)
class Outcome:
    """The result of one plan, of a case of a family by a planner."""

    family: str
    planner: str
    case: int
    calls: int = 0  # to the model
    seconds: float = 0.0  # of the plan, and of making and checking its case
    found: dict[str, bool] = field(default_factory=dict)  # whether each check failed, if it was claimed
    error: str = ""  # what was raised in place of a plan

    @property
    def key(self) -> tuple[str, str, int]:
        """Identifies the plan in its verification."""
        return self.family, self.planner, self.case


class Verdict(NamedTuple):
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
        violated: whether the promise is broken, at the corrected confidence.
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

    def __str__(self) -> str:
        """Rate, interval and promise, in percent."""
        rate, low, high = (100.0 * x for x in (self.rate, self.low, self.high))
        promise = "no promise" if self.promised is None else f"≤ {100 * self.promised:.3g}"
        return f"{rate:.3g} [{low:.2g}, {high:.2g}] {promise}{' VIOLATED' * self.violated}"


class Report(NamedTuple):
    """The result of a verification. `str()` of it is a table.

    Attributes:
        outcomes: of every family and planner, the results of their plans.
        verdicts: one for each check that was promised and claimed.
        complete: False if Ctrl-C ended the run.
    """

    outcomes: dict[tuple[str, str], list[Outcome]]
    verdicts: list[Verdict]
    complete: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing was violated and nothing raised."""
        return not self.violations and not self.errors

    @property
    def violations(self) -> list[Verdict]:
        """The promises that do not hold."""
        return [verdict for verdict in self.verdicts if verdict.violated]

    @property
    def errors(self) -> list[tuple[str, str, int, str]]:
        """Family, planner, number and words of what was raised."""
        return [(*one.key, one.error) for found in self.outcomes.values() for one in found if one.error]

    @property
    def plans(self) -> int:
        """How many plans were made."""
        return sum(map(_made, self.outcomes.values()))

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that `json.dumps` takes."""
        outcomes = [outcome for found in self.outcomes.values() for outcome in found]
        return {
            "ok": self.ok,
            "complete": self.complete,
            "plans": self.plans,
            "calls": sum(outcome.calls for outcome in outcomes),
            "seconds": sum(outcome.seconds for outcome in outcomes),
            "false_alarm": FALSE_ALARM,
            "verdicts": [verdict._asdict() for verdict in self.verdicts],
            "errors": self.errors,
        }

    def __str__(self) -> str:
        return "\n".join([terminal.text_of(self.table()), "", *self.summary()])

    def table(self) -> Any:
        """A line for each family and planner, below a head."""
        rows: list[tuple[str, ...]] = [("family", "planner", "plans", "calls each", *CHECKS)]
        told = {verdict[:3]: str(verdict) for verdict in self.verdicts}
        for pair, found in self.outcomes.items():
            plans, calls = _made(found), sum(outcome.calls for outcome in found)
            each = f"{calls / plans:,.0f}" if plans else "-"
            cells = [told.get((*pair, check), "-") for check in CHECKS]
            rows.append((*pair, f"{plans:,}", each, *cells))
        return terminal.table(rows, left=[0, 1, *range(4, len(rows[0]))])

    def summary(self) -> list[str]:
        """What the table amounts to: a line for each thing to know."""
        judged = sum(verdict.promised is not None for verdict in self.verdicts)
        costs = "{plans:,} plans, {calls:,} calls, {seconds:,.0f} s of computing"
        stopped = "" if self.complete else " (stopped before the end)"
        meaning = "Failures in %, 95 % interval, and what was promised."
        said = [f"{costs.format(**self.to_dict())}{stopped}. {meaning}"]
        for one in self.violations:
            cases = ", ".join(map(str, one.cases[:_NAMED])) + ", ..." * (one.failures > _NAMED)
            said.append(
                f"VIOLATED: {one.planner} on {one.family}, {one.check}: fails with probability at "
                f"least {one.surely:.4g}, promised at most {one.promised:.4g}; cases {cases}"
            )
        for family, planner, number, words in self.errors[:_NAMED]:
            said.append(f"ERROR: {planner} on {family}, case {number}: {words}")
        if len(self.errors) > _NAMED:
            said.append(f"... and {len(self.errors) - _NAMED} more errors")
        if not self.violations:
            said.append(f"None of {judged} promises was found broken.")
        sure = f"If all promises hold, a run says otherwise with probability at most {FALSE_ALARM:g}."
        return [*said, sure]


def _made(outcomes: Iterable[Outcome]) -> int:
    """How many of them are of plans."""
    return sum(not outcome.error for outcome in outcomes)


def report_of(
    pairs: Sequence[tuple[Family, PlannerEntry]], outcomes: Iterable[Outcome], *, complete: bool
) -> Report:
    """The report of the outcomes that there are."""
    found: dict[tuple[str, str], list[Outcome]] = {(family.name, one.name): [] for family, one in pairs}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.case):
        if outcome.key[:2] in found:  # A file may hold those of more families.
            found[outcome.key[:2]].append(outcome)
    promises = [entry.promise(family) for family, entry in pairs]
    # Each promise has an equal part of the probability of a false alarm.
    tail = FALSE_ALARM / max(sum(len(one.shares) for one in promises if one.judged), 1)
    verdicts = []
    for (family, entry), promise in zip(pairs, promises, strict=True):
        outcomes = found[family.name, entry.name]
        plans = _made(outcomes)
        for check, share in promise.shares.items():
            claims = [outcome for outcome in outcomes if check in outcome.found]
            cases = tuple(outcome.case for outcome in claims if outcome.found[check])
            if claims:
                surely = clopper_pearson(len(cases), plans, tail)[0]
                promised = share * family.delta if promise.judged else None
                broken = promised is not None and surely > promised
                interval = clopper_pearson(len(cases), plans, _SHOWN_TAIL)
                numbers: tuple[Any, ...] = (plans, len(claims), len(cases), len(cases) / plans)
                numbers += (*interval, surely, promised, broken, cases)
                verdicts.append(Verdict(family.name, entry.name, check, *numbers))
    return Report(found, verdicts, complete)


def clopper_pearson(failures: int, trials: int, tail: float) -> tuple[float, float]:
    """The Clopper-Pearson interval of a binomial probability.

    Each end is wrong with probability at most `tail`, whatever the probability is.

    Args:
        failures: how often it happened.
        trials: in how many independent trials, at least 1.
        tail: probability in (0, 1/2).
    """
    low, high = 0.0, 1.0
    if failures > 0:
        low = float(special.betaincinv(failures, trials - failures + 1, tail))
    if failures < trials:
        # P(X <= k) is the probability of at least n - k successes.
        high = 1.0 - float(special.betaincinv(trials - failures, failures + 1, tail))
    return low, high
