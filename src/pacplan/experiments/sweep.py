"""Sweeps: planners, problems, budgets and seeds, and a run for each of these with its row."""

import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan import exact
from pacplan.algorithms import Planner
from pacplan.compiled.tiered import waiting
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.experiments.records import Record
from pacplan.experiments.results import Run, complete, opened, read_results
from pacplan.models.protocol import check_model
from pacplan.registry import check_discount, planner_of, problem_maker

RUNS = "runs.jsonl"
"""The results file in the folder of a sweep."""


@dataclass(frozen=True)
class PlannerSpec:
    """A planner of a sweep.

    Attributes:
        planner: a name of `pacplan.planners`, your own module:name, or a planner.
        settings: its settings, if it is given by name.
        label: its name in tables and pictures; by default the planner's own.
        budgets: its own budgets, in place of the sweep's; None: until it stops by its own rule.
    """

    planner: str | Planner
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str | None = None
    budgets: Sequence[int | None] | None = None

    def build(self) -> Planner:
        """The planner itself."""
        if isinstance(self.planner, str):
            return planner_of(self.planner, self.settings)
        if not isinstance(self.planner, Planner):
            raise TypeError(f"a planner is given by its name or as a planner, got {self.planner!r}")
        if self.settings:
            raise ValueError("settings go with a planner's name; this planner has its own already")
        return self.planner

    @property
    def name(self) -> str:
        """Its name in tables and pictures."""
        return self.label or (self.planner if isinstance(self.planner, str) else self.planner.name)

    @property
    def key(self) -> str:
        """What identifies it, as JSON: name and settings, functions among these by their code."""
        planner = self.build()
        found = {"planner": planner.name, "settings": planner.settings}
        return json.dumps(found, sort_keys=True, default=described)


@dataclass(frozen=True)
class ProblemSpec:
    """A problem of a sweep, drawn anew for every seed if it takes one.

    Attributes:
        problem: a name of `pacplan.envs`, module:name, or a function from a seed to a model.
        settings: its arguments, if it is given by name.
        label: its name in tables and pictures; by default the call that makes it.
    """

    problem: str | Callable[[int], Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str | None = None

    def maker(self) -> Callable[[int], Any]:
        """The function that makes the model of a seed; the user's code is imported, not called."""
        if isinstance(self.problem, str):
            return problem_maker(self.problem, self.settings, seeded=True)
        if not callable(self.problem):
            raise TypeError(
                f"a problem is given by its name or as a function of a seed, got {self.problem!r}"
            )
        if self.settings:
            raise ValueError("settings go with a problem's name; this one is a function of the seed")
        return self.problem

    def build(self, seed: int) -> Any:
        """The model of a seed."""
        model = self.maker()(seed)
        check_model(model)
        return model

    @property
    def name(self) -> str:
        """Its name in tables and pictures."""
        if self.label is not None:
            return self.label
        if isinstance(self.problem, str):
            settings = ", ".join(f"{key}={value!r}" for key, value in sorted(self.settings.items()))
            return f"{self.problem}({settings})" if settings else self.problem
        return f"{self.problem.__module__}:{getattr(self.problem, '__qualname__', '<object>')}"


@dataclass(frozen=True)
class Sweep:
    """Every planner on every problem with every budget and seed.

    Attributes:
        planners: what to run.
        problems: what to run it on.
        budgets: calls to the model for each plan; None: until the planner stops by its own rule.
        seeds: of the problems; a number n stands for 0, 1, ..., n - 1.
        seed: of the plans. The seed of each plan depends only on this one and on what the run is: not
            on its place in the sweep, nor on where it is computed.
    """

    planners: Sequence[PlannerSpec]
    problems: Sequence[ProblemSpec]
    budgets: Sequence[int | None] = (None,)
    seeds: int | Sequence[int] = 1
    seed: int = 0

    def __post_init__(self) -> None:
        checks.integer("seed", self.seed, least=0)
        if isinstance(self.seeds, int):
            checks.integer("seeds", self.seeds, least=1)
        lists: list[tuple[str, Any]] = [("planners", self.planners), ("problems", self.problems)]
        lists += [("seeds", self.problem_seeds), ("budgets", self.budgets)]
        lists += [("budgets", self._budgets(spec)) for spec in self.planners]
        for what, given in lists:
            if isinstance(given, str) or not isinstance(given, Sequence):
                raise TypeError(f"{what} must be a list, got {given!r}")
            if not given:
                raise ValueError(f"a sweep needs {what}, and got none")
            for number in given if what in ("seeds", "budgets") else ():
                if number is not None:
                    checks.integer(what, number, least=int(what == "budgets"))

    @property
    def problem_seeds(self) -> Sequence[int]:
        """The seeds of the problems, one by one."""
        return range(self.seeds) if isinstance(self.seeds, int) else self.seeds

    def _budgets(self, planner: PlannerSpec) -> Sequence[int | None]:
        return self.budgets if planner.budgets is None else planner.budgets

    def runs(self) -> list[Run]:
        """All runs, those on one problem and seed next to each other.

        What is wrong raises here. The user's modules are imported, and nothing of them is called.
        """
        keys = [spec.key for spec in self.planners]
        for problem, spec in product(self.problems, self.planners):
            problem.maker()
            if isinstance(spec.planner, str) and isinstance(problem.problem, str):
                check_discount(problem.problem, spec.planner, spec.settings)
        found = []
        for problem, number in product(self.problems, self.problem_seeds):
            for spec, key in zip(self.planners, keys, strict=True):
                # Of the call in words, if it says all, so that published results can be repeated.
                words = key if "<" in repr(spec.build()) else repr(spec.build())
                for budget in self._budgets(spec):
                    seed = seed_of(self.seed, problem.name, number, words, budget)
                    row = Record(spec.name, key, problem.name, number, budget, seed)
                    found.append(Run(row, _result, (spec, problem, number, seed, budget)))
        if len({run.key for run in found}) < len(found):
            raise ValueError(
                "some runs are the same: a planner, problem, budget or seed is given twice"
            )
        return found

    def describe(self) -> dict[str, Any]:
        """Everything that the results depend on, in types that JSON has."""
        return {
            "seed": self.seed,
            "seeds": list(self.problem_seeds),
            "problems": [
                (one.name, described((one.problem, sorted(one.settings.items()))))
                for one in self.problems
            ],
            "planners": [(one.name, one.key, list(self._budgets(one))) for one in self.planners],
        }


def seed_of(*parts: Any) -> int:
    """A seed for everything that has its own name."""
    text = "\n".join(map(str, parts))
    # Sixty bits: among a million runs, two share a seed with probability below 1e-6.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 4


def read_sweep(path: str | Path) -> Sweep:
    """A sweep from a TOML file. It is code, like a script: run only what you trust.

    Its keys are those of `Sweep`. Each [[planners]] and [[problems]] has a name and settings, and may
    have a label; a planner may have budgets. The file says which modules are imported (module:name) and
    called, but not here.

    Raises:
        ValueError: the file cannot be read as a sweep; the message says why.
    """
    try:
        content = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    allowed = [entry.name for entry in fields(Sweep)]
    for key in content:
        if key not in allowed:
            raise ValueError(f"{path}: there is no {key!r} in a sweep; it has {', '.join(allowed)}")
    kinds: dict[str, tuple[Callable[..., Any], set[str]]] = {
        "planners": (PlannerSpec, {"label", "budgets"}),
        "problems": (ProblemSpec, {"label"}),
    }
    for what, (kind, own) in kinds.items():
        entries, specs = content.get(what, []), []
        for entry in entries if isinstance(entries, list) else [entries]:
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise ValueError(f'{path}: write each of the {what} as [[{what}]], with a name = "..."')
            named = {key: value for key, value in entry.items() if key in own}
            rest = {key: value for key, value in entry.items() if key not in {"name", *own}}
            specs.append(kind(entry["name"], rest, **named))
        content[what] = specs
    return Sweep(**content)


def run(
    sweep: Sweep,
    folder: str | Path | None = None,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
) -> list[Record]:
    """Run a sweep, or the rest of it.

    Args:
        sweep: what to run.
        folder: where rows are written as runs end. The same sweep with the same folder continues where
            it stopped, even if it was killed. None: nothing is written.
        workers: processes to start, by default one per core; 1 starts none and computes in this
            process. With an executor: how many runs it makes at a time.
        executor: what computes, for instance a Dask client's `get_executor()`.
        progress: show a bar with rate and time left, on the error stream.

    Returns:
        A row for every run, in the order of `sweep.runs()`. A run that raised has a row with its
        error.

    Raises:
        ValueError: a planner or problem is wrong, which is found before any of the user's code is
            called; or the folder holds another sweep.
        RuntimeError: the executor lost runs; the rows of the others are in the folder.
        OSError: a row cannot be written, for instance to a full disk; those before are in the folder.
        KeyboardInterrupt: Ctrl-C; the rows that were finished are in the folder.
    """
    workers = checks.integer("workers", (os.cpu_count() or 1) if workers is None else workers, least=1)
    runs, first = sweep.runs(), sweep.problem_seeds[0]
    for problem in sweep.problems:
        try:
            problem.build(first)  # What is wrong with it would be wrong with all of its runs.
        except Exception as error:
            if not str(problem.problem).startswith("gym:"):  # It is the user's code.
                error.add_note(f"raised when the problem {problem.name} was made with seed {first}")
            raise
    path = None if folder is None else Path(folder) / RUNS
    with opened(path, Record, sweep.describe()) as results:
        complete(runs, results, workers=workers, executor=executor, progress=progress)
    return [results.rows[one.key] for one in runs]


def read(path: str | Path) -> list[Record]:
    """The rows of a sweep's results file, or of the file in its folder.

    Raises:
        ValueError: the file is of a different kind, or damaged.
        OSError: the file cannot be read.
    """
    return read_results(Path(path) / RUNS if Path(path).is_dir() else path, Record)


# The problem and seed of the last run here, and their model: most runs have those of the one before.
_last: tuple[ProblemSpec | None, int, Any] = None, 0, None


def _result(
    spec: PlannerSpec, problem: ProblemSpec, number: int, seed: int, budget: int | None
) -> dict[str, Any]:
    """What a run fills into its row."""
    global _last
    known, last, model = _last
    if known != problem or last != number:
        model = problem.build(number)
        _last = problem, number, model
    planner = spec.build()
    with waiting():  # The time of a run is a result.
        plan = planner.plan(model, seed=seed, budget=budget)
    if plan.interrupted:
        raise KeyboardInterrupt
    regret = None
    gamma = getattr(planner, "gamma", None)
    if gamma is not None and model.known:
        endless = gamma < 1.0 and model.steps is None
        values = _values(model, gamma, None if endless else plan.horizon)
        regret = float(values.max() - values[plan.action])
    names = ("horizon", "samples", "episodes", "gap", "certified", "stopped_by", "seconds")
    found = {name: getattr(plan, name) for name in names}
    return found | {"action": str(plan.action), "regret": regret}


@lru_cache(maxsize=8)
def _values(model: Any, gamma: float, steps: int | None) -> NDArray[np.float64]:
    """The values behind `Record.regret`, of the actions of the model's initial state."""
    if steps is None:
        values = exact.discounted(model, gamma=gamma)
    else:
        values = exact.finite_horizon(model, gamma=gamma, horizon=steps)[0]
    found: NDArray[np.float64] = values[model.initial_state()]
    return found
