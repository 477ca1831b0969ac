"""What to run: planners, problems, budgets and seeds, and all runs of these."""

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pacplan.algorithms import Planner
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.models.protocol import check_model
from pacplan.registry import check_discount, planner_imports, planner_of, problem_imports, problem_maker


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

    def __post_init__(self) -> None:
        _check_label(self.label)
        if not isinstance(self.planner, str | Planner):
            raise TypeError(f"a planner is given by its name or as a planner, got {self.planner!r}")

    def build(self) -> Planner:
        """The planner itself."""
        if isinstance(self.planner, str):
            return planner_of(self.planner, self.settings)
        if self.settings:
            raise ValueError("settings go with a planner's name; this planner has its own already")
        return self.planner

    @property
    def name(self) -> str:
        """Its name in tables and pictures."""
        return self.label or (self.planner if isinstance(self.planner, str) else self.planner.name)

    def identity(self) -> dict[str, Any]:
        """Its name and settings, in types that JSON has.

        JSON has no functions. If one is among the settings, the label is a part of the identity.

        Raises:
            ValueError: it needs a label and has none.
        """
        planner = self.build()
        try:
            return {"planner": planner.name, "settings": json.loads(json.dumps(planner.settings))}
        except TypeError:
            if self.label is None:
                raise ValueError(
                    f"{planner!r} cannot be told apart from another like it: give it a label"
                ) from None
        return {"planner": planner.name, "settings": _data(planner.settings), "label": self.label}

    @property
    def key(self) -> str:
        """Its identity as a line of JSON; equal planners have equal ones."""
        return json.dumps(self.identity(), sort_keys=True)


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

    def __post_init__(self) -> None:
        _check_label(self.label)
        if not isinstance(self.problem, str) and not callable(self.problem):
            raise TypeError(
                f"a problem is given by its name or as a function of a seed, got {self.problem!r}"
            )

    def maker(self) -> Callable[[int], Any]:
        """The function that makes the model of a seed; the user's code is imported, not called."""
        if isinstance(self.problem, str):
            return problem_maker(self.problem, self.settings, seeded=True)
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
        name = f"{self.problem.__module__}:{getattr(self.problem, '__qualname__', '<object>')}"
        if "<" in name:
            raise ValueError(f"{self.problem!r} cannot be told apart from others: give it a label")
        return name


@dataclass(frozen=True)
class Run:
    """One plan of a sweep.

    Attributes:
        planner: the planner.
        settings: its identity as JSON.
        problem: the problem.
        problem_seed: seed of the problem.
        budget: maximum number of calls to the model, or None.
        seed: seed of the plan.
    """

    planner: PlannerSpec
    settings: str
    problem: ProblemSpec
    problem_seed: int
    budget: int | None
    seed: int

    @property
    def key(self) -> tuple[str, str, int, int | None]:
        """Identifies it in its sweep, as `Record.key` does."""
        return self.settings, self.problem.name, self.problem_seed, self.budget

    @property
    def kind(self) -> tuple[str, int | None]:
        """What the time of the run depends on."""
        return self.settings, self.budget


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
        if isinstance(self.seeds, int):
            checks.integer("seeds", self.seeds, least=1)
        _check_list("planners", self.planners)
        _check_list("problems", self.problems)
        checks.integer("seed", self.seed, least=0)
        for number in _check_list("seeds", self.problem_seeds):
            checks.integer("seeds", number, least=0)
        for budgets in [self.budgets, *map(self._budgets, self.planners)]:
            for budget in _check_list("budgets", budgets):
                if budget is not None:
                    checks.integer("budgets", budget, least=1)

    def check(self) -> None:
        """Raise what is wrong with planners and problems, before any of the user's code is called.

        What can be checked without the user's modules is checked before one of them is imported.
        """
        foreign: list[Callable[[], Any]] = []
        for planner in self.planners:
            name = planner.planner
            imports = isinstance(name, str) and planner_imports(name, planner.settings)
            foreign.append(planner.build) if imports else planner.build()
        for problem in self.problems:
            imports = isinstance(problem.problem, str) and problem_imports(problem.problem)
            foreign.append(problem.maker) if imports else problem.maker()
        for check in foreign:
            check()
        for planner in self.planners:
            for problem in self.problems:
                if isinstance(planner.planner, str) and isinstance(problem.problem, str):
                    check_discount(problem.problem, planner.planner, planner.settings)
        self.runs()

    @property
    def problem_seeds(self) -> Sequence[int]:
        """The seeds of the problems, one by one."""
        return range(self.seeds) if isinstance(self.seeds, int) else self.seeds

    def _budgets(self, planner: PlannerSpec) -> Sequence[int | None]:
        return self.budgets if planner.budgets is None else planner.budgets

    def runs(self) -> list[Run]:
        """All runs, those on one problem and seed next to each other.

        Raises:
            ValueError: two of them are the same.
        """
        entries = [
            # Seeds are derived from the call in words, so that published results can be repeated.
            (spec, spec.key, spec.identity().get("label", repr(spec.build())), self._budgets(spec))
            for spec in self.planners
        ]
        found = [
            Run(spec, settings, problem, number, budget, self._seed(call, problem, number, budget))
            for problem in self.problems
            for number in self.problem_seeds
            for spec, settings, call, budgets in entries
            for budget in budgets
        ]
        if len({run.key for run in found}) < len(found):
            raise ValueError(
                "some runs are the same: a planner, problem, budget or seed is given twice"
            )
        return found

    def _seed(self, call: str, problem: ProblemSpec, number: int, budget: int | None) -> int:
        return seed_of(self.seed, problem.name, number, call, budget)

    def describe(self) -> dict[str, Any]:
        """Everything that the results depend on, in types that JSON has."""
        return {
            "seed": self.seed,
            "problems": [
                {
                    "label": spec.name,
                    "problem": spec.problem if isinstance(spec.problem, str) else spec.name,
                    "settings": _data(spec.settings),
                }
                for spec in self.problems
            ],
            "seeds": list(self.problem_seeds),
            "planners": [
                spec.identity() | {"label": spec.name, "budgets": list(self._budgets(spec))}
                for spec in self.planners
            ],
        }


def seed_of(*parts: Any) -> int:
    """A seed for everything that has its own name."""
    text = "\n".join(map(str, parts))
    # Sixty bits: among a million runs, two share a seed with probability below 1e-6.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 4


def _data(settings: Mapping[str, Any]) -> Any:
    """Settings in types that JSON has; the rest in words that are always the same."""
    return json.loads(json.dumps(settings, default=described))


def _check_label(label: Any) -> None:
    """Raise unless a label fits in a cell of a table."""
    if label is not None and (not isinstance(label, str) or not label or not label.isprintable()):
        raise ValueError(f"a label must be some printable text on one line, got {label!r}")


def _check_list(what: str, given: Any) -> Sequence[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise TypeError(f"{what} must be a list, got {given!r}")
    if not given:
        raise ValueError(f"a sweep needs {what}, and got none")
    return given


def read(path: str | Path) -> Sweep:
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
    planners = list(_entries(path, content, "planners", PlannerSpec, ("label", "budgets")))
    problems = list(_entries(path, content, "problems", ProblemSpec, ("label",)))
    return Sweep(**(content | {"planners": planners, "problems": problems}))


def _entries(
    path: str | Path,
    content: Mapping[str, Any],
    what: str,
    spec: Callable[..., Any],
    own: Sequence[str],
) -> Iterator[Any]:
    """Each [[what]] of the file."""
    entries = content.get(what, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{path}: write each of the {what} as a table, headed [[{what}]]")
    for entry in entries:
        settings = dict(entry)
        name = settings.pop("name", None)
        if not isinstance(name, str):
            raise ValueError(f'{path}: each of the {what} needs a name, such as name = "..."')
        given = {key: settings.pop(key) for key in own if key in settings}
        yield spec(name, settings, **given)
