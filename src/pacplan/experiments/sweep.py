"""What to run: planners, problems, budgets and seeds, and all runs of these."""

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from pacplan.algorithms import Planner
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.experiments.records import Record
from pacplan.models.protocol import check_model
from pacplan.registry import check_discount, planner_of, problem_maker


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
        """What identifies it, as JSON: name, settings and, if one is a function, the label."""
        planner = self.build()
        found = {"planner": planner.name, "settings": _data(planner.settings)}
        try:
            json.dumps(planner.settings)
        except TypeError:
            if self.label is None:
                raise ValueError(
                    f"{planner!r} cannot be told apart from another like it: give it a label"
                ) from None
            found["label"] = self.label
        return json.dumps(found, sort_keys=True)


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
        name = f"{self.problem.__module__}:{getattr(self.problem, '__qualname__', '<object>')}"
        if "<" in name:
            raise ValueError(f"{self.problem!r} cannot be told apart from others: give it a label")
        return name


class Run(NamedTuple):
    """One plan of a sweep: what makes it, and its row, which has no result yet."""

    planner: PlannerSpec
    problem: ProblemSpec
    row: Record

    @property
    def key(self) -> tuple[str, str, int, int | None]:
        """That of its row."""
        return self.row.key


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
        checks.integer("seed", self.seed, least=0)
        for what in ("planners", "problems", "problem_seeds", "budgets"):
            _check_list(what.removeprefix("problem_"), getattr(self, what))
        for number in self.problem_seeds:
            checks.integer("seeds", number, least=0)
        for spec in self.planners:
            for budget in _check_list("budgets", self._budgets(spec)):
                if budget is not None:
                    checks.integer("budgets", budget, least=1)

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
        # Seeds are derived from the call in words, so that published results can be repeated.
        words = [repr(spec.build()) for spec in self.planners]
        calls = [json.loads(key).get("label", call) for key, call in zip(keys, words, strict=True)]
        for problem, spec in product(self.problems, self.planners):
            problem.maker()
            if isinstance(spec.planner, str) and isinstance(problem.problem, str):
                check_discount(problem.problem, spec.planner, spec.settings)
        found = []
        for problem, number in product(self.problems, self.problem_seeds):
            for spec, call, key in zip(self.planners, calls, keys, strict=True):
                for budget in self._budgets(spec):
                    seed = seed_of(self.seed, problem.name, number, call, budget)
                    row = Record(spec.name, key, problem.name, number, budget, seed)
                    found.append(Run(spec, problem, row))
        if len({run.key for run in found}) < len(found):
            raise ValueError(
                "some runs are the same: a planner, problem, budget or seed is given twice"
            )
        return found

    def describe(self) -> dict[str, Any]:
        """Everything that the results depend on, in types that JSON has."""
        problems = [
            (spec.name, isinstance(spec.problem, str) and spec.problem, _data(spec.settings))
            for spec in self.problems
        ]
        planners = [(spec.name, spec.key, list(self._budgets(spec))) for spec in self.planners]
        seeds = {"seed": self.seed, "seeds": list(self.problem_seeds)}
        return seeds | {"problems": problems, "planners": planners}


def seed_of(*parts: Any) -> int:
    """A seed for everything that has its own name."""
    text = "\n".join(map(str, parts))
    # Sixty bits: among a million runs, two share a seed with probability below 1e-6.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 4


def _data(settings: Mapping[str, Any]) -> Any:
    """Settings in types that JSON has; the rest in words that are always the same."""
    return json.loads(json.dumps(settings, default=described))


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
    kinds: dict[str, Callable[..., Any]] = {"planners": PlannerSpec, "problems": ProblemSpec}
    for what, kind in kinds.items():
        entries = content.get(what, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError(f"{path}: write each of the {what} as a table, headed [[{what}]]")
        if not all(isinstance(entry.get("name"), str) for entry in entries):
            raise ValueError(f'{path}: each of the {what} needs a name, such as name = "..."')
        own = ("label", "budgets") if what == "planners" else ("label",)
        content[what] = [
            kind(
                entry["name"],
                {key: value for key, value in entry.items() if key not in ("name", *own)},
                **{key: entry[key] for key in own if key in entry},
            )
            for entry in entries
        ]
    return Sweep(**content)
