"""What a planner claims about a case, checked against the exact answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacplan import exact
from pacplan.core.keys import place
from pacplan.engine.driver import Snapshot
from pacplan.result import Plan
from pacplan.testing.problems import Case

CHECKS = ("wrong", "below", "above", "value")
"""wrong: the action loses more than was claimed; below: a lower bound exceeds the value of its action;
above: an upper bound lies below it; value: the state's value is further off than was claimed."""

# Rounding of sums of a few rewards, relative to the values.
_ROUNDING = 1e-9
# The hopeful adversary stops at the first gap smaller than this part of the first one.
_HOPE = 0.6


@dataclass(frozen=True)
class Promise:
    """The probability with which each check may fail, as a part of delta; None: nothing is promised.

    Attributes:
        wrong: for the loss of the action returned.
        below: for the lower bounds of all actions.
        above: for the upper bounds.
        value: for the estimate of the state's value.
        upper: whether upper bounds are promised for "all" actions, or for the "best" one only.
        endless: whether bounds and values are those of the infinite-horizon problem.
        temperature: of the entropy bonus in the value promised; None: there is no such bonus.
        judged: False: failures are counted and shown, and nothing is promised.
    """

    wrong: float | None = 1.0
    below: float | None = None
    above: float | None = None
    value: float | None = None
    upper: Literal["all", "best"] = "all"
    endless: bool = False
    temperature: float | None = None
    judged: bool = True

    def share(self, check: str) -> Any:
        """The part of delta for a check."""
        return getattr(self, check)

    @property
    def checks(self) -> list[str]:
        """The checks about which something is promised."""
        return [check for check in CHECKS if self.share(check) is not None]


def examine(promise: Promise, case: Case, claim: Plan | Snapshot) -> dict[str, bool]:
    """Check a plan, or a search as it stands, against the truth.

    Returns:
        For every check about which something was claimed, whether it fails.
    """
    values = _values(promise, case)
    slack = _rounding(values)
    found = {}
    if promise.wrong is not None and (claim.gap is not None or _finished(claim)):
        found["wrong"] = _is_wrong(promise, case, claim)
    if promise.below is not None and claim.lower is not None:
        found["below"] = bool((claim.lower > values + slack).any())
    if promise.above is not None and claim.upper is not None:
        missed = claim.upper < values - slack
        # The promise is about any optimal action chosen beforehand, such as the first.
        best = int(values.argmax())
        found["above"] = bool(missed[best] if promise.upper == "best" else missed.any())
    if promise.value is not None and isinstance(claim, Plan) and _finished(claim):
        off = abs(claim.value - _optimal_value(promise, case, values))
        found["value"] = not off <= case.epsilon + slack
    return found


def _values(promise: Promise, case: Case) -> NDArray[np.float64]:
    if not promise.endless:
        return case.values
    assert case.endless is not None, "the case has no answer for an infinite horizon"
    return case.endless


def _optimal_value(promise: Promise, case: Case, values: NDArray[np.float64]) -> float:
    if promise.temperature is None:
        return float(values.max())
    assert case.table is not None, "the case has no table"
    soft = exact.entropy_regularised(case.table, gamma=case.gamma, temperature=promise.temperature)
    rows = soft[case.state] / promise.temperature
    return float(promise.temperature * np.logaddexp.reduce(rows))


def _finished(claim: Plan | Snapshot) -> bool:
    """Whether the planner ended the search by its own rule, and so claims epsilon."""
    return isinstance(claim, Plan) and claim.stopped_by in ("certified", "rule")


def _is_wrong(promise: Promise, case: Case, claim: Plan | Snapshot) -> bool:
    """Whether the action loses more than was claimed, over the horizon or without one."""
    index = place(claim.action, claim.actions)
    reached = _finished(claim) and case.settings.get("goal", "action") == "action"
    gap = np.inf if claim.gap is None else max(claim.gap, 0.0)
    if promise.endless:
        return _loses(_values(promise, case), index, min(gap, case.epsilon) if reached else gap)
    infinite = case.settings.get("target") == "infinite"
    wrong = _loses(case.values, index, min(gap, case.epsilon) if reached and not infinite else gap)
    if case.endless is not None:
        ever = gap + case.tail
        wrong |= _loses(case.endless, index, min(ever, case.epsilon) if reached and infinite else ever)
    return wrong


def _loses(values: NDArray[np.float64], index: int, allowed: float) -> bool:
    return bool(values.max() - values[index] > allowed + _rounding(values))


def _rounding(values: NDArray[np.float64]) -> float:
    return _ROUNDING * (1.0 + float(np.abs(values).max()))


class Watcher:
    """A callback that stops a search at the worst moment its adversary can find.

    Attributes:
        seen: for every check that something was claimed about, whether it ever failed.
    """

    def __init__(self, promise: Promise, case: Case) -> None:
        self.seen: dict[str, bool] = {}
        self._promise, self._case = promise, case
        self._first: float | None = None

    def look(self, claim: Plan | Snapshot) -> bool:
        """Examine a claim, and say whether anything fails."""
        now = examine(self._promise, self._case, claim)
        for check, fails in now.items():
            self.seen[check] = self.seen.get(check, False) or fails
        return any(now.values())

    def __call__(self, snapshot: Snapshot) -> bool:
        """Whether to stop now."""
        fails = self.look(snapshot)
        if self._case.adversary == "truth":
            return fails
        if snapshot.gap is None:
            return False
        if self._first is None:
            self._first = snapshot.gap
        return snapshot.gap < _HOPE * self._first


def attempt(
    promise: Promise, case: Case, make: Callable[[Case], Any], seed: int
) -> tuple[Plan, dict[str, bool]]:
    """Plan a case, and examine the plan and, if it was watched, the search.

    Returns:
        The plan, and for every check that something was claimed about, whether it ever failed.

    Raises:
        KeyboardInterrupt: Ctrl-C ended the search.
    """
    watcher = Watcher(promise, case)
    options = {} if case.adversary == "nobody" else {"callback": watcher}
    plan = make(case).plan(case.model, case.state, seed=seed, budget=case.budget, **options)
    if plan.stopped_by == "interrupt":
        raise KeyboardInterrupt
    watcher.look(plan)
    return plan, watcher.seen
