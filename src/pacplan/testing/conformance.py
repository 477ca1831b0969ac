"""Requirements on any planner: a list of checks, for the planners of pacplan and your own."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pacplan import envs
from pacplan.algorithms import Planner
from pacplan.core import checks
from pacplan.models.protocol import Model
from pacplan.testing.requirements import REQUIREMENTS, RefusedError, Trial

PLANNER_CHECKS = tuple(REQUIREMENTS)
"""Names of what `check_planner` checks."""


class ConformanceError(AssertionError):
    """Checks that failed, each with what is wrong and what to do."""


class Conformance(NamedTuple):
    """How a planner has fared.

    Attributes:
        planner: what was checked.
        passed: names of the checks that it passed.
        skipped: names of those that do not apply, and why.
    """

    planner: str
    passed: list[str]
    skipped: dict[str, str]

    def __str__(self) -> str:
        lines = [f"{self.planner} passed {len(self.passed)} checks: {', '.join(self.passed)}"]
        return "\n".join([*lines, *(f"skipped {name}: {why}" for name, why in self.skipped.items())])


def check_planner(
    planner: Planner,
    problem: Model | None = None,
    state: Any = None,
    *,
    budget: int = 1000,
    only: Sequence[str] = PLANNER_CHECKS,
) -> Conformance:
    """Check what can be expected of any planner, in a few dozen small plans.

    Its plans must be a function of the seed, whatever the kind of model; keep to budget, deadline and
    memory; and survive interrupts and errors of the model. A problem that the planner refuses before it
    calls the model is skipped. `verify` checks whether bounds hold.

    Args:
        planner: with settings for small problems, but such that it needs more than 40 calls.
        problem: one that it can handle; by default a random one with 30 states, 3 actions, 2 successors
            and random rewards. Many checks need a `TabularMDP`.
        state: where to plan from; by default the problem's own initial state.
        budget: calls of most plans; the largest ones have 30 times as many.
        only: names of the checks to run, from `PLANNER_CHECKS`.

    Returns:
        What was passed and what was skipped, to be printed.

    Raises:
        ConformanceError: names every check that failed, what is wrong and what to do.
    """
    if not isinstance(planner, Planner):
        raise TypeError(f"check_planner takes a planner with its settings, got {planner!r}")
    names = [checks.choice("only", name, PLANNER_CHECKS) for name in only]
    if problem is None:
        problem = envs.garnet(states=30, actions=3, seed=2, noise="bernoulli")
    state = problem.initial_state() if state is None else state
    trial = Trial(planner, problem, state, checks.integer("budget", budget, least=200))
    trial.plan()  # Raises if the planner cannot plan in this problem at all.
    found, failed = Conformance(repr(planner), [], {}), {}
    for name in names:
        try:
            REQUIREMENTS[name](trial)
            found.passed.append(name)
        except RefusedError as refusal:
            found.skipped[name] = str(refusal)
        except Exception as error:
            failed[name] = error
    if failed:
        lines = [f"{planner!r} fails {len(failed)} of {len(names)} checks"]
        for name, failure in failed.items():
            kind = "" if type(failure) is AssertionError else f"{type(failure).__name__}: "
            lines.append(f"{name}: {kind}{failure}")
        raise ConformanceError("\n- ".join(lines)) from next(iter(failed.values()))
    return found
