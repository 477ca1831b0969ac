"""Running a verification: in batches, on several processes, resumable."""

import hashlib
import inspect
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from pacplan.compiled.tiered import waiting
from pacplan.core import checks
from pacplan.core.identity import source_digest
from pacplan.core.notes import lost, pass_on
from pacplan.core.version import __version__
from pacplan.engine.executors import as_computed, here_or_in_processes
from pacplan.result import Plan
from pacplan.testing.cases import Case, Family
from pacplan.testing.checks import CHECKS, Promise, attempt
from pacplan.testing.entrants import ENTRANTS, Entrant
from pacplan.testing.families import FAMILIES
from pacplan.testing.ledger import Batch, Ledger, ledger
from pacplan.testing.report import Cell, Report
from pacplan.views.bar import bar

# Plans that are sent to another process together, and lost if it is killed: most, and what part of
# those before. The first ones come one by one, so that few plans are shared out well.
_BATCH, _PART = 25, 5


@dataclass(frozen=True, eq=False)
class Task:
    """A batch to be computed."""

    family: Family
    entrant: Entrant
    number: int
    seed: int

    @property
    def key(self) -> tuple[str, str, int]:
        """The key of the batch."""
        return self.family.name, self.entrant.name, self.number

    @property
    def cases(self) -> range:
        """The numbers of its cases."""
        return _cases(self.number)


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
    checks.integer("plans", plans, least=1)
    checks.integer("seed", seed, least=0)
    checks.integer("workers", workers, least=1)
    chosen = [_family(entry) for entry in (FAMILIES if families is None else families)]
    entrants = _entrants(planner, promise)
    pairs = [(family, one) for family in chosen for one in entrants if one.suits(family)]
    if not pairs:
        raise ValueError("none of the planners can plan in any of the families")
    tasks = _tasks(pairs, plans, seed)
    interrupted = False
    with ledger(out, _configuration(seed, entrants)) as results:
        try:
            _compute(tasks, results, workers, progress)
        except KeyboardInterrupt:
            interrupted = True
        done = results.batches
    return _report(pairs, done, complete=not interrupted)


def replay(
    family: str | Family, planner: str | Entrant, number: int, seed: int = 0
) -> tuple[Case, Plan, dict[str, bool]]:
    """Plan one case of a verification again.

    Args:
        family: its family.
        planner: which planner.
        number: of the case, as a report names it.
        seed: the seed of the verification.

    Returns:
        The case, the plan, and for every check that something was claimed about, whether it fails.
    """
    one = _family(family)
    entrant = planner if isinstance(planner, Entrant) else _known(planner)
    case = one.case(_seed_of(seed, one.name, number))
    plan_seed = _seed_of(seed, one.name, number, entrant.name)
    plan, found = attempt(entrant.promise(one), case, entrant.build, plan_seed)
    return case, plan, found


def entrant_of(planner: Callable[..., Any], promise: Promise | None = None) -> Entrant:
    """A user's planner, as it is verified."""
    if not callable(planner):
        raise TypeError(f"planner must be a class or function that makes a planner, got {planner!r}")
    name = getattr(planner, "name", None) or getattr(planner, "__name__", type(planner).__name__)
    given = promise or Promise(below=1.0, above=1.0)
    return Entrant(str(name), planner, _Same(given))


@dataclass(frozen=True)
class _Same:
    """The same promise for all families."""

    promise: Promise

    def __call__(self, family: Family) -> Promise:
        return self.promise


def _family(entry: str | Family) -> Family:
    if isinstance(entry, Family):
        return entry
    if entry not in FAMILIES:
        raise ValueError(f"there is no family {entry!r}; try {', '.join(FAMILIES)}")
    return FAMILIES[entry]


def _known(name: str) -> Entrant:
    if name not in ENTRANTS:
        raise ValueError(f"there is no planner {name!r} to verify; try {', '.join(ENTRANTS)}")
    return ENTRANTS[name]


def _entrants(
    planner: Callable[..., Any] | str | Sequence[str] | None, promise: Promise | None
) -> list[Entrant]:
    if callable(planner):
        return [entrant_of(planner, promise)]
    if promise is not None:
        raise ValueError("promise is for your own planner; those of pacplan have theirs")
    if planner is None:
        return list(ENTRANTS.values())
    return [_known(name) for name in ([planner] if isinstance(planner, str) else planner)]


def _configuration(seed: int, entrants: list[Entrant]) -> dict[str, Any]:
    """What batches depend on: the code, the seed, and planners that are not part of pacplan."""
    own = {one.name: _source(one.make) for one in entrants if ENTRANTS.get(one.name) is not one}
    code = f"{__version__} {source_digest()[:12]}"
    return {"pacplan": code, "seed": seed, "batch": [_BATCH, _PART], "own planners": own}


def _source(planner: Any) -> str:
    """A digest of the module of a user's planner, if it can be found."""
    try:
        text = inspect.getsource(inspect.getmodule(planner) or planner)
    except (OSError, TypeError):
        return repr(planner)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def _cases(number: int) -> range:
    """The cases of a batch."""
    first = _cases(number - 1).stop if number > 0 else 0
    return range(first, first + min(max(first // _PART, 1), _BATCH))


def _batches(plans: int) -> int:
    """How many batches have so many plans."""
    return next(number for number in count(1) if _cases(number - 1).stop >= plans)


def _tasks(pairs: list[tuple[Family, Entrant]], plans: int, seed: int) -> list[Task]:
    """Enough batches for these plans, the first ones of all pairs first."""
    total = sum(family.weight for family, _ in pairs)
    counts = [_batches(round(plans * family.weight / total)) for family, _ in pairs]
    return [
        Task(family, entrant, number, seed)
        for number in range(max(counts))
        for (family, entrant), most in zip(pairs, counts, strict=True)
        if number < most
    ]


def _compute(tasks: list[Task], results: Ledger, workers: int, progress: bool) -> None:
    """Compute the batches that are left, by the loop of `plan_many`, but as they come, as sweeps do.

    A case is made and checked beside its plan: to send models and plans would take longer.
    """
    left = [task for task in tasks if task.key not in results]
    total = sum(len(task.cases) for task in tasks)
    done = total - sum(len(task.cases) for task in left)
    with bar(total, done, "plans", show=progress) as advance:
        if workers > 1:
            # One plan of each kind here, so that the processes find all kernels.
            for task in {task.key[:2]: task for task in reversed(left)}.values():
                # What it raises is raised again, and noted, when its batch is computed.
                with suppress(Exception), waiting():
                    _plan(task, task.cases[0])
        processes = workers if left else 1
        with here_or_in_processes(processes, left, "planners and families") as executor:
            # One batch more than can be worked on is always waiting.
            for future in as_computed(executor, (compute,), iter(left), workers + 1):
                batch = _result(future)
                results.add(batch)
                advance(batch.plans)


def _result(future: Future[Batch]) -> Batch:
    try:
        return future.result()
    except Exception as error:  # What planners raise is in the batches; this is the executor's own.
        advice = (
            "What was finished is kept in the results file, if there is one: run the same again to "
            "continue"
        )
        raise lost("plans", error, advice) from error


def compute(task: Task) -> Batch:
    """Plan the cases of a batch."""
    begun = time.perf_counter()
    claims = dict.fromkeys(CHECKS, 0)
    failed: dict[str, list[int]] = {check: [] for check in CHECKS}
    errors = []
    calls = 0
    for number in task.cases:
        try:
            plan, found = _plan(task, number)
        except Exception as error:
            pass_on(error)
            errors.append((number, " ".join(f"{type(error).__name__}: {error}".split())))
            continue
        calls += plan.samples
        for check, fails in found.items():
            claims[check] += 1
            if fails:
                failed[check].append(number)
    seconds = time.perf_counter() - begun
    family, planner, number = task.key
    return Batch(family, planner, number, len(task.cases), calls, seconds, claims, failed, errors)


def _plan(task: Task, number: int) -> tuple[Plan, dict[str, bool]]:
    _, plan, found = replay(task.family, task.entrant, number, task.seed)
    return plan, found


def _seed_of(*parts: Any) -> int:
    """A seed for everything that has its own name."""
    text = "\n".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 4


def _report(pairs: list[tuple[Family, Entrant]], batches: list[Batch], *, complete: bool) -> Report:
    cells = []
    for family, entrant in pairs:
        own = [b for b in batches if b.key[:2] == (family.name, entrant.name)]
        plans = sum(batch.plans - len(batch.errors) for batch in own)
        cells.append(
            Cell(
                family=family.name,
                planner=entrant.name,
                delta=family.delta,
                promise=entrant.promise(family),
                plans=plans,
                calls=sum(batch.calls for batch in own),
                seconds=sum(batch.seconds for batch in own),
                claims={check: sum(batch.claims[check] for batch in own) for check in CHECKS},
                failed={
                    check: sorted(n for batch in own for n in batch.failed[check]) for check in CHECKS
                },
                errors=sorted(error for batch in own for error in batch.errors),
            )
        )
    return Report(tuple(cells), complete=complete)
