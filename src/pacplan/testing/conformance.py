"""What is required of any planner: a list of checks, for the planners of pacplan and your own."""

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacplan import envs
from pacplan.algorithms import Planner
from pacplan.compiled.streams import streams
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.core.keys import same
from pacplan.models.protocol import Model
from pacplan.models.simulator import Simulator
from pacplan.models.tabular import TabularMDP
from pacplan.result import Plan

# Calls before something happens: fewer than any search worth checking makes.
_SOME = 40


class ConformanceError(AssertionError):
    """Checks that failed, each with what is wrong and what to do."""


class RefusedError(Exception):
    """The planner refuses such a problem, as it may."""


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


class Trial(NamedTuple):
    """A planner on trial, and a problem that it can handle."""

    planner: Planner
    problem: Any
    state: Any
    budget: int

    def plan(self, model: Any = None, *, by: Planner | None = None, **options: Any) -> Plan:
        """Plan in the problem, or in another one, which the planner may refuse."""
        options = {"state": self.state, "seed": 4, "budget": self.budget} | options
        try:
            return (by or self.planner).plan(self.problem if model is None else model, **options)
        except (TypeError, ValueError) as error:
            if model is None:
                raise
            raise RefusedError(str(error)) from None

    def simulator(self, step: Callable[..., Any], stationary: bool = False) -> Simulator:
        """A simulator of the problem with the given step, which takes `h` unless it is stationary."""
        table = self.problem
        if not isinstance(table, TabularMDP):
            raise RefusedError("the problem has no tables")
        actions: Any = table.max_actions if table.same_actions else table.actions
        names = ("successors", "reward_range", "max_actions", "may_end", "two_player")
        known: dict[str, Any] = {name: getattr(table, name) for name in names}
        return Simulator(step, actions=actions, stationary=stationary, **known)

    def watched(self, happens: Callable[[int], None], **options: Any) -> tuple[Plan, int]:
        """Plan in a simulator of the problem to which something happens at each call; and its calls."""
        calls = 0

        def step(state: Any, action: Any, rng: Any, h: int = 0) -> Any:
            nonlocal calls
            calls += 1
            happens(calls)
            return self.problem.step(state, action, rng, h)

        model = self.simulator(step, stationary=self.problem.steps is None)
        return self.plan(model, **options), calls

    def tiny(self, step: Callable[..., Any], state: Any, actions: Any = 2) -> Plan:
        """The plan in a small deterministic simulator."""
        game = self.planner.two_player
        model = Simulator(step, actions=actions, successors=1, max_actions=2, two_player=game)
        return self.plan(model, state=state)

    def answer(self, **options: Any) -> dict[str, str]:
        """A plan's parts that must not depend on how it was made, as text, where nan equals nan."""
        # The diagnosis advises what suits the kind of model.
        free = ("seconds", "planner", "memory", "origin", "diagnosis")
        plan = self.plan(**options).to_dict()
        return {name: json.dumps(value) for name, value in plan.items() if name not in free}


def check_planner(
    planner: Planner,
    problem: Model | None = None,
    state: Any = None,
    *,
    budget: int = 1000,
    only: Sequence[str] | None = None,
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
        only: names of the checks to run, from `PLANNER_CHECKS`; by default all.

    Returns:
        What was passed and what was skipped, to be printed.

    Raises:
        ConformanceError: names every check that failed, what is wrong and what to do.
    """
    if not isinstance(planner, Planner):
        raise TypeError(f"check_planner takes a planner with its settings, got {planner!r}")
    names = PLANNER_CHECKS if only is None else [checks.choice("only", n, PLANNER_CHECKS) for n in only]
    if problem is None:
        problem = envs.garnet(states=30, actions=3, seed=2, noise="bernoulli")
    state = problem.initial_state() if state is None else state
    trial = Trial(planner, problem, state, checks.integer("budget", budget, least=200))
    trial.plan()  # Raises if the planner cannot plan in this problem at all.
    found, failed = Conformance(repr(planner), [], {}), {}
    for name in names:
        try:
            _REQUIREMENTS[name](trial)
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


def _by_itself(plan: Plan) -> bool:
    """Whether the planner's own rule has ended the search."""
    return plan.stopped_by in ("rule", "certified")


def _expect(holds: Any, wrong: str) -> None:
    if not holds:
        raise AssertionError(wrong)


def _expect_same(found: dict[str, str], expected: dict[str, str], wrong: str) -> None:
    """Expect two answers to be equal, and say in what they are not."""
    differ = [
        f"{n} {found[n]} instead of {value}" for n, value in expected.items() if found[n] != value
    ]
    _expect(not differ, f"{wrong} ({'; '.join(differ)})")


def _same_seed(trial: Trial) -> None:
    first = trial.answer()
    for chunk in (None, 1, 13):
        planner = copy(trial.planner)
        planner.chunk = chunk
        wrong = (
            f"plans with the same seed differ (chunk={chunk}): keep all that a search remembers in the "
            "arrays of its tuple, draw only from rng and ties, and let `finished` change nothing"
        )
        _expect_same(trial.answer(by=planner), first, wrong)


def _budget(trial: Trial) -> None:
    for budget in (trial.budget, 123, 6, 5, 4, 1):
        try:
            plan, calls = trial.watched(lambda call: None, budget=budget)
        except RefusedError:
            if budget == trial.budget:
                raise
            continue  # Some need more calls than that.
        said = f"with budget={budget} the model was called {calls} times, and the plan says"
        _expect(
            plan.samples == calls <= budget,
            f"{said} samples={plan.samples}: count every call, and stop before the one that exceeds it",
        )
        # Where every call is an episode of its own, only those from the state planned from have one.
        missing = calls - plan.calls.sum()
        counted = missing == 0 or (missing > 0 and plan.episodes == plan.samples)
        _expect(counted, f"{said} calls={plan.calls}: count every call for its action")
        _expect(
            _by_itself(plan) or (plan.stopped_by == "budget" and plan.samples == budget),
            f"{said} stopped_by={plan.stopped_by!r}: use the whole budget unless the planner's own "
            "rule ends the search",
        )
        offered = any(same(plan.action, action) for action in plan.actions)
        _expect(offered, f"the action {plan.action!r} is not in {plan.actions}")


def _python_model(trial: Trial) -> None:
    stream, _ = streams(np.random.SeedSequence(4), 2)
    model = trial.simulator(lambda state, action, rng, h: trial.problem.step(state, action, stream, h))
    if trial.planner.kind_matters:
        raise RefusedError("plans depend on the kind of model")
    wrong = (
        "a simulator that draws what the tables draw leads to a different plan: call the model through "
        "call_model, and do not ask what kind it is"
    )
    _expect_same(trial.answer(model=model), trial.answer(), wrong)


def _ends(trial: Trial) -> None:
    def step(state: str, action: int, rng: Any) -> Any:
        _expect(state != "over", "the model was called in a state that had ended the episode")
        if trial.planner.two_player or (state == "start" and action == 0):
            return "over", 1.0 - action, True
        return "late", 0.0, False

    _expect(
        trial.tiny(step, "start").action == 0,
        "action 0 pays 1 and ends the episode, action 1 never pays, but the plan is 1: count the "
        "reward of a transition that ends, and nothing after it",
    )


def _state_actions(trial: Trial) -> None:
    game = trial.planner.two_player

    def actions(state: int) -> list[str]:
        return ["left", "right"] if state == 0 else ["go"]

    def step(state: int, action: str, rng: Any) -> Any:
        _expect(action in actions(state), f"action {action!r} is not one of state {state}")
        return 1, float(state == 1 if game else action == "right"), game and state == 1

    plan = trial.tiny(step, 0, actions)
    right = plan.actions == ("left", "right") and (game or plan.action == "right")
    wrong = "'right' pays 1 and 'left' nothing: ask each node for its number of actions"
    _expect(right, f"the plan is {plan.action!r} of {plan.actions}, but {wrong}")


def _deadline(trial: Trial) -> None:
    # However busy the machine is, no more calls than these fit in.
    limit, pause = 0.05, 0.002
    plan, calls = trial.watched(lambda call: time.sleep(pause), time_limit=limit, budget=10**6)
    _expect(
        _by_itself(plan)
        or (plan.stopped_by == "deadline" and plan.samples == calls <= 1 + limit / pause),
        f"{calls} calls of {pause} s in time_limit={limit}, and the plan says samples={plan.samples}, "
        f"stopped_by={plan.stopped_by!r}: begin no call after `halted`, and count those of an episode "
        "that is cut off",
    )


def _interrupted_by(error: BaseException) -> Callable[[int], None]:
    """What happens to a model that raises after some calls."""

    def happens(call: int) -> None:
        if call == _SOME:
            raise error

    return happens


def _interrupt(trial: Trial) -> None:
    plan, _ = trial.watched(_interrupted_by(KeyboardInterrupt()))
    _expect(
        plan.interrupted and plan.samples == _SOME - 1,
        f"interrupted in call {_SOME}, the plan says stopped_by={plan.stopped_by!r}, "
        f"samples={plan.samples}: pass on the status that call_model returns, and count the calls of "
        "the episode that it cuts off",
    )


def _model_raises(trial: Trial) -> None:
    mine, found = LookupError("raised by the model"), None
    try:
        trial.watched(_interrupted_by(mine))
    except LookupError as error:
        found = error
    _expect(found is mine, f"{mine!r}, raised by the model, must come through unchanged")


def _settings(trial: Trial) -> None:
    kind, before = type(trial.planner), described(vars(trial.planner))
    answer = trial.answer()
    wrong = "planning has changed the planner: keep what belongs to one plan in its search"
    _expect(described(vars(trial.planner)) == before, wrong)
    written = f"{trial.planner!r}"
    for again, what in (
        (pickle.loads(pickle.dumps(trial.planner)), "a planner that was pickled"),
        (eval(written, {kind.__name__: kind}), written),
    ):
        wrong = f"{what} is a different planner: keep each setting as an attribute of its name"
        _expect(repr(again) == written, wrong)
        _expect_same(trial.answer(by=again), answer, wrong)


def _memory(trial: Trial) -> None:
    model = trial.problem
    if not model.two_player:  # Histories that outgrow the initial room of a search.
        noise: Any = "bernoulli" if model.random_rewards else "none"
        branches = 1 if model.successors == 1 else 10
        model = envs.garnet(states=2000, actions=3, successors=branches, seed=2, noise=noise)
    free = trial.plan(model, budget=30 * trial.budget)
    limit = trial.plan(model, callback=lambda snapshot: True).memory + 1000
    if free.memory <= limit:
        raise RefusedError("the search fits in its initial room")
    found = trial.plan(model, budget=30 * trial.budget, memory_limit=limit)
    _expect(
        # Room grows by half if there is memory; without it what is needed may be less than the limit.
        found.memory <= limit
        and (_by_itself(found) or (found.stopped_by == "memory" and found.samples < free.samples)),
        f"with memory_limit={limit} the plan says stopped_by={found.stopped_by!r} and "
        f"memory={found.memory}: take room for your own tables from `search.memory`",
    )


_SCRIPT = """
import json, pickle, sys
print(json.dumps(pickle.load(sys.stdin.buffer).answer(budget=300)))
"""


def _interpreted(trial: Trial) -> None:
    if type(trial.planner).__module__ == "__main__":
        raise RefusedError("the planner is defined in the main script, which cannot be imported")
    paths = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths},
        input=pickle.dumps(trial),
        capture_output=True,
    )
    without = "without compilation (NUMBA_DISABLE_JIT=1)"
    _expect(done.returncode == 0, f"{without} it fails:\n{done.stderr.decode()}")
    found = json.loads(done.stdout.decode().strip().rpartition("\n")[2])
    wrong = f"{without} the plan differs: a kernel reads past an array, or integers overflow"
    _expect_same(found, trial.answer(budget=300), wrong)


_REQUIREMENTS: dict[str, Callable[[Trial], None]] = {
    check.__name__.strip("_").replace("_", " "): check
    for check in (
        *(_same_seed, _budget, _python_model, _ends, _state_actions, _deadline),
        *(_interrupt, _model_raises, _settings, _memory, _interpreted),
    )
}
PLANNER_CHECKS = tuple(_REQUIREMENTS)
"""Names of what `check_planner` checks."""
