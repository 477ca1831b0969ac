"""A verification: many small plans on several processes, each checked, with the rows of a sweep."""

import hashlib
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pacplan.compiled.tiered import waiting
from pacplan.core import checks
from pacplan.experiments.results import Run, complete, opened
from pacplan.experiments.sweep import seed_of
from pacplan.result import Plan
from pacplan.testing.checks import Promise, attempt
from pacplan.testing.families import FAMILIES
from pacplan.testing.planners import PLANNERS, PlannerEntry
from pacplan.testing.problems import Case, Family
from pacplan.testing.report import Outcome, Report, report_of


def verify(
    planner: Callable[..., Any] | str | Sequence[str] | None = None,
    *,
    promise: Promise | None = None,
    families: Sequence[str | Family] | None = None,
    plans: int = 100_000,
    seed: int = 0,
    workers: int = 1,
    out: str | Path | None = None,
    progress: bool = False,
) -> Report:
    """Check what planners promise against exact answers, in many small plans made to catch errors.

    Args:
        planner: your own: its class, or a function that returns it. It is called with those of
            `epsilon`, `delta`, `gamma` and `horizon` that it takes, and is given the families whose
            further settings it takes. Or names of planners of pacplan; by default all that promise
            something.
        promise: what your planner promises; by default that its action is as good as it claims and,
            if its plans have bounds, that these hold for all actions, each with probability at least
            1 - delta.
        families: names, or your own families; by default all.
        plans: how many, shared among families and planners.
        seed: the same seed gives the same cases and plans.
        workers: processes to start; 1 starts none and computes in this one.
        out: a file that keeps results as they come. The same call continues where it stopped, and with
            more plans adds to them.
        progress: show a bar on the error stream.

    Returns:
        The report. Ctrl-C ends the run, and the report then covers what was finished.

    Raises:
        ValueError: an argument out of range, or a file with results of something else.
        RuntimeError: a process was lost; what was finished is in the file.
        TypeError: an argument of the wrong type.
    """
    for name, number, least in (("plans", plans, 1), ("seed", seed, 0), ("workers", workers, 1)):
        checks.integer(name, number, least=least)
    chosen = [_named("family", one, FAMILIES) for one in (FAMILIES if families is None else families)]
    if callable(planner):
        entries = [entry_of(planner, promise)]
    elif promise is not None:
        raise ValueError("promise= needs your own planner; those of pacplan have theirs")
    else:
        names = PLANNERS if planner is None else [planner] if isinstance(planner, str) else planner
        entries = [_named("planner", name, PLANNERS) for name in names]
    pairs = [(family, one) for family in chosen for one in entries if one.suits(family)]
    if not pairs:
        raise ValueError("none of the planners can plan in any of the families")
    runs = _runs(pairs, plans, seed)
    # Rows depend on planners that are not part of pacplan, too.
    own = {one.name: _source(one.make) for one in entries if PLANNERS.get(one.name) is not one}
    stopped = False
    with opened(out, Outcome, {"seed": seed, "own planners": own}) as results:
        try:
            left = [one for one in runs if one.key not in results.rows] if workers > 1 else []
            # One plan of each kind here, so that the processes find all kernels.
            for one in {one.key[:2]: one for one in reversed(left)}.values():
                with waiting():
                    one.made()
            complete(runs, results, workers=workers, size=20, unit="plans", progress=progress)
        except KeyboardInterrupt:
            stopped = True
    return report_of(pairs, results.rows.values(), complete=not stopped)


def replay(
    family: str | Family, planner: str | PlannerEntry, number: int, seed: int = 0
) -> tuple[Case, Plan, dict[str, bool]]:
    """Plan one case of a verification again.

    Its number is that in a report, and the seed that of the verification.

    Returns:
        The case, the plan, and for every check that something was claimed about, whether it fails.
    """
    one: Family = _named("family", family, FAMILIES)
    entry: PlannerEntry = _named("planner", planner, PLANNERS)
    case = one.case(seed_of(seed, one.name, number))
    plan_seed = seed_of(seed, one.name, number, entry.name)
    plan, found = attempt(entry.promise(one), case, entry.build, plan_seed)
    return case, plan, found


def entry_of(planner: Callable[..., Any], promise: Promise | None = None) -> PlannerEntry:
    """A user's planner, as it is verified."""
    name = getattr(planner, "name", None) or getattr(planner, "__name__", type(planner).__name__)
    return PlannerEntry(str(name), planner, promise or Promise(below=1.0, above=1.0))


def _named(what: str, given: Any, known: Mapping[str, Any]) -> Any:
    """A family or planner by its name, or as it is."""
    if not isinstance(given, str):
        return given
    if given not in known:
        raise ValueError(f"unknown {what} {given!r}; choose one of {', '.join(known)}")
    return known[given]


def _source(planner: Any) -> str:
    """A digest of the module of a user's planner, if it can be found."""
    try:
        text = inspect.getsource(inspect.getmodule(planner) or planner)
    except (OSError, TypeError):
        return repr(planner)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _runs(pairs: Sequence[tuple[Family, PlannerEntry]], plans: int, seed: int) -> list[Run]:
    """About as many plans as were asked for, the first ones of all pairs first."""
    total = sum(family.weight for family, _ in pairs)
    counts = [max(1, round(plans * family.weight / total)) for family, _ in pairs]
    return [
        Run(Outcome(family.name, one.name, case), _outcome, (family, one, case, seed))
        for case in range(max(counts))
        for (family, one), most in zip(pairs, counts, strict=True)
        if case < most
    ]


def _outcome(family: Family, planner: PlannerEntry, case: int, seed: int) -> dict[str, Any]:
    """Make a plan and check it. Its case is made here, too: to send models would take longer."""
    begun = time.perf_counter()
    _, plan, found = replay(family, planner, case, seed)
    return {"calls": plan.samples, "seconds": time.perf_counter() - begun, "found": found}
