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

    @property
    def shares(self) -> dict[str, float]:
        """The part of delta for each check about which something is promised."""
        given = {check: getattr(self, check) for check in CHECKS}
        return {check: share for check, share in given.items() if share is not None}


def examine(promise: Promise, case: Case, claim: Plan | Snapshot) -> dict[str, bool]:
    """Check a plan, or a search as it stands, against the truth.

    Returns:
        For every check about which something was claimed, whether it fails.
    """
    values = case.endless if promise.endless else case.values
    assert values is not None, "the case has no answer for an infinite horizon"
    slack, found = _rounding(values), {}
    # Whether the planner ended the search by its own rule, and so claims epsilon.
    finished = isinstance(claim, Plan) and claim.stopped_by in ("certified", "rule")
    if promise.wrong is not None and (claim.gap is not None or finished):
        found["wrong"] = _is_wrong(promise, case, claim, finished)
    if promise.below is not None and claim.lower is not None:
        found["below"] = bool((claim.lower > values + slack).any())
    if promise.above is not None and claim.upper is not None:
        missed = claim.upper < values - slack
        # The promise is about any optimal action chosen beforehand, such as the first.
        found["above"] = bool(missed[values.argmax()] if promise.upper == "best" else missed.any())
    if promise.value is not None and isinstance(claim, Plan) and finished:
        best = float(values.max())
        if promise.temperature is not None:
            best = _softened(case, promise.temperature)
        found["value"] = not abs(claim.value - best) <= case.epsilon + slack
    return found


def _is_wrong(promise: Promise, case: Case, claim: Plan | Snapshot, finished: bool) -> bool:
    """Whether the action loses more than was claimed, over the horizon or without one."""
    gap = np.inf if claim.gap is None else max(claim.gap, 0.0)
    reached = finished and case.settings.get("goal", "action") == "action"
    infinite = promise.endless or case.settings.get("target") == "infinite"
    losses = []
    if not promise.endless:
        losses.append((case.values, min(gap, case.epsilon) if reached and not infinite else gap))
    if case.endless is not None:
        ever = gap if promise.endless else gap + case.tail
        losses.append((case.endless, min(ever, case.epsilon) if reached and infinite else ever))
    index = place(claim.action, claim.actions)
    return any(values.max() - values[index] > allowed + _rounding(values) for values, allowed in losses)


def _softened(case: Case, temperature: float) -> float:
    """The value of the state, with a bonus for entropy."""
    assert case.table is not None, "the case has no table"
    soft = exact.entropy_regularised(case.table, gamma=case.gamma, temperature=temperature)
    return float(temperature * np.logaddexp.reduce(soft[case.state] / temperature))


def _rounding(values: NDArray[np.float64]) -> float:
    return _ROUNDING * (1.0 + float(np.abs(values).max()))


def attempt(
    promise: Promise, case: Case, make: Callable[[Case], Any], seed: int
) -> tuple[Plan, dict[str, bool]]:
    """Plan a case, and examine the plan and, if it was watched, the search.

    Returns:
        The plan, and for every check that something was claimed about, whether it ever failed.

    Raises:
        KeyboardInterrupt: Ctrl-C ended the search.
    """
    seen: dict[str, bool] = {}

    def fails(claim: Plan | Snapshot) -> bool:
        now = examine(promise, case, claim)
        for check, failed in now.items():
            seen[check] = seen.get(check, False) or failed
        return any(now.values())

    options = {"callback": fails} if case.watched else {}
    plan = make(case).plan(case.model, case.state, seed=seed, budget=case.budget, **options)
    if plan.stopped_by == "interrupt":
        raise KeyboardInterrupt
    fails(plan)
    return plan, seen
