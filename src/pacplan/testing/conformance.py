"""What can be expected of any planner: a list of checks, for the planners of pacplan and your own."""

import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numba
import numpy as np

from pacplan import envs, exact
from pacplan.algorithms import Planner
from pacplan.compiled.streams import streams
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.core.keys import same
from pacplan.core.notes import pass_on
from pacplan.models import handles
from pacplan.models.protocol import Model
from pacplan.models.simulator import Simulator
from pacplan.models.tabular import TabularMDP
from pacplan.result import Plan
from pacplan.testing.intervals import clopper_pearson

# Calls before something happens: fewer than any search worth checking makes.
_SOME = 40
# Plans whose bounds are checked against exact values, and how surely an honest planner passes.
_PLANS = 40
_FALSE_ALARM = 1e-6
_ROUNDING = 1e-9


class ConformanceError(AssertionError):
    """Checks that failed, each with what is wrong and what to do."""


class _RefusedError(Exception):
    """The planner refuses such a problem, as it may."""


@dataclass(frozen=True)
class Conformance:
    """How a planner has fared.

    Attributes:
        planner: what was checked.
        passed: names of the checks that it passed.
        skipped: names of those that do not apply, and why.
    """

    planner: str
    passed: tuple[str, ...]
    skipped: dict[str, str]

    def __str__(self) -> str:
        lines = [f"{self.planner} passed {len(self.passed)} checks: {', '.join(self.passed)}"]
        return "\n".join([*lines, *(f"skipped {name}: {why}" for name, why in self.skipped.items())])


@dataclass(frozen=True)
class _Trial:
    """A planner, and a problem that it can handle."""

    planner: Planner
    problem: Model
    state: Any
    budget: int
    random: bool

    def plan(self, model: Any = None, **options: Any) -> Plan:
        """Plan in the problem, or in another one."""
        settings = {"seed": 4, "budget": self.budget} | options
        model = self.problem if model is None else model
        return self.planner.plan(model, settings.pop("state", self.state), **settings)

    def answer(self, model: Any = None, **options: Any) -> str:
        """Everything in a plan that must not depend on how it was made."""
        return _answer(self.plan(model, **options))

    @cached_property
    def table(self) -> TabularMDP:
        """The problem, if it has tables."""
        if not isinstance(self.problem, TabularMDP):
            raise _RefusedError("the problem has no tables")
        return self.problem

    def simulator(self, step: Callable[..., Any], stationary: bool = False) -> Simulator:
        """A simulator of the problem with the given step, which takes `h` unless it is stationary."""
        table = self.table
        actions: Any = table.max_actions if table.same_actions else table.actions
        return Simulator(
            step,
            actions=actions,
            successors=table.successors,
            reward_range=table.reward_range,
            max_actions=table.max_actions,
            may_end=table.may_end,
            two_player=table.two_player,
            stationary=stationary,
        )

    def watched(self, happens: Callable[[int], None]) -> tuple[Simulator, list[int]]:
        """A simulator of the problem to which something happens at each call, and its counter."""
        calls = [0]

        def step(state: Any, action: Any, rng: Any, h: int = 0) -> Any:
            calls[0] += 1
            happens(calls[0])
            return self.table.step(state, action, rng, h)

        return self.simulator(step, stationary=self.table.steps is None), calls

    def in_simulator(self, model: Simulator, calls: list[int], **options: Any) -> Plan:
        """Plan in a watched simulator, which the planner may refuse before it calls it."""
        try:
            return self.plan(model, **options)
        except (TypeError, ValueError) as error:
            if calls[0]:
                raise
            raise _RefusedError(str(error)) from None


def _answer(plan: Plan) -> str:
    record = plan.to_dict()
    for name in ("seconds", "planner", "memory", "origin"):
        del record[name]
    return json.dumps(record)


def _nothing(call: int) -> None:
    """What happens to a simulator that is only counted."""


def _by_itself(plan: Plan) -> bool:
    return plan.stopped_by in ("rule", "certified")


def _expect(holds: bool, wrong: str) -> None:
    if not holds:
        raise AssertionError(wrong)


def _expect_same(found: str, expected: str, wrong: str) -> None:
    """Expect two answers to be equal, and say in what they are not."""
    if found == expected:
        return
    left, right = json.loads(found), json.loads(expected)
    differ = [
        f"{name} {left[name]} instead of {right[name]}" for name in right if left[name] != right[name]
    ]
    raise AssertionError(f"{wrong} ({'; '.join(differ)})")


def _same_seed(trial: _Trial) -> None:
    first = trial.answer()
    for chunk in (None, 1, 13):
        planner = copy(trial.planner)
        planner.chunk = chunk
        again = _answer(planner.plan(trial.problem, trial.state, seed=4, budget=trial.budget))
        _expect_same(
            again,
            first,
            f"plans with the same seed differ (chunk={chunk}): keep all that a search remembers in the "
            "arrays of its tuple, draw only from rng and ties, and let `finished` change nothing",
        )


def _other_seeds(trial: _Trial) -> None:
    if not trial.random:
        raise _RefusedError("plans do not depend on the seed")
    _expect(
        len({trial.answer(seed=seed) for seed in range(5)}) > 1,
        "five seeds give the same plan: draw from rng and ties (or say random=False)",
    )


def _budget(trial: _Trial) -> None:
    refused = ""
    for budget in (1, 4, 5, 6, 123, trial.budget):
        model, calls = trial.watched(_nothing)
        try:
            plan = trial.in_simulator(model, calls, budget=budget)
        except _RefusedError as refusal:
            refused = str(refusal)
            continue
        refused = ""
        said = f"with budget={budget} the model was called {calls[0]} times, and the plan says "
        _expect(calls[0] <= budget, f"{said}{plan.samples}: stop before the call that exceeds it")
        _expect(plan.samples == calls[0], f"{said}samples={plan.samples}: count every call")
        # Where every call is an episode of its own, only those from the state planned from have one.
        missing = calls[0] - plan.calls.sum()
        _expect(
            missing == 0 or (missing > 0 and plan.episodes == plan.samples),
            f"{said}calls={plan.calls}: count every call for its action",
        )
        _expect(
            _by_itself(plan) or (plan.stopped_by == "budget" and plan.samples == budget),
            f"{said}stopped_by={plan.stopped_by!r}: use the whole budget unless the planner's own rule "
            "ends the search",
        )
        _expect(
            any(same(plan.action, action) for action in plan.actions),
            f"the action {plan.action!r} is not in {plan.actions}",
        )
    if refused:
        raise _RefusedError(refused)


def _python_model(trial: _Trial) -> None:
    stream, _ = streams(np.random.SeedSequence(4), 2)
    model = trial.simulator(lambda state, action, rng, h: trial.table.step(state, action, stream, h))
    _agree(trial, model, "a Python simulator")


def _jitted_model(trial: _Trial) -> None:
    if numba.config.DISABLE_JIT:
        raise _RefusedError("nothing is compiled here")
    if not trial.table.same_actions:
        raise _RefusedError("the problem lists the actions of each state; a jitted model numbers them")
    table: Any = trial.table.open(np.random.SeedSequence(0)).handle.table

    @numba.njit  # type: ignore[untyped-decorator]
    def step(state: int, action: int, rng: Any, h: int) -> Any:
        successor, reward, flag = handles.draw_from_table(table, state, action, h, rng)
        return successor, reward, flag == handles.ENDED

    _agree(trial, trial.simulator(step), "a jitted simulator")


def _agree(trial: _Trial, model: Simulator, what: str) -> None:
    if trial.planner.kind_matters:
        raise _RefusedError("plans depend on the kind of model")
    expected = trial.answer()
    try:
        found = trial.answer(model)
    except (TypeError, ValueError) as error:
        raise _RefusedError(str(error)) from None
    _expect_same(
        found,
        expected,
        f"{what} that draws what the tables draw leads to a different plan: call the model through "
        "call_model, and do not ask what kind it is",
    )


def _ends(trial: _Trial) -> None:
    def step(state: str, action: int, rng: Any) -> Any:
        assert state != "over", "the model was called in a state that had ended the episode"
        if trial.planner.two_player or (state == "start" and action == 0):
            return "over", 1.0 - action, True
        return "late", 0.0, False

    model = Simulator(step, actions=2, successors=1, two_player=trial.planner.two_player)
    plan = _given(trial, model, "start")
    _expect(
        plan.action == 0,
        f"action 0 pays 1 and ends the episode, action 1 never pays; the plan is {plan.action}: count "
        "the reward of a transition that ends, and nothing after it",
    )


def _state_actions(trial: _Trial) -> None:
    game = trial.planner.two_player

    def actions(state: int) -> list[str]:
        return ["left", "right"] if state == 0 else ["go"]

    def step(state: int, action: str, rng: Any) -> Any:
        assert action in actions(state), f"action {action!r} is not one of state {state}"
        return 1, float(state == 1 if game else action == "right"), game and state == 1

    model = Simulator(step, actions=actions, successors=1, max_actions=2, two_player=game)
    plan = _given(trial, model, 0)
    _expect(
        plan.actions == ("left", "right") and (game or plan.action == "right"),
        f"'right' pays 1 and 'left' nothing; the plan is {plan.action!r} of {plan.actions}: ask each "
        "node for its number of actions",
    )


def _given(trial: _Trial, model: Simulator, state: Any) -> Plan:
    try:
        return trial.plan(model, state=state)
    except (TypeError, ValueError) as error:
        raise _RefusedError(str(error)) from None


def _deadline(trial: _Trial) -> None:
    # However busy the machine is, no more calls than these fit in.
    limit, pause = 0.05, 0.002
    model, calls = trial.watched(lambda call: time.sleep(pause))
    plan = trial.in_simulator(model, calls, time_limit=limit, budget=10**6)
    _expect(
        plan.stopped_by == "deadline" or _by_itself(plan),
        f"time_limit={limit} was up, and the plan says stopped_by={plan.stopped_by!r}",
    )
    _expect(
        plan.samples == calls[0] <= 1 + limit / pause or _by_itself(plan),
        f"{calls[0]} calls of {pause} s in time_limit={limit}, and samples={plan.samples}: begin no "
        "call after `halted`, and count those of an episode that is cut off",
    )


def _callback(trial: _Trial) -> None:
    seen: list[Any] = []

    def stop(snapshot: Any) -> bool:
        seen.append(snapshot)
        return bool(snapshot.samples >= _SOME)

    plan = trial.plan(callback=stop)
    _expect(
        plan.stopped_by == "callback" or _by_itself(plan),
        f"the callback said stop, and the plan says stopped_by={plan.stopped_by!r}",
    )
    _expect(
        [s.samples for s in seen] == sorted(s.samples for s in seen)
        and (plan.samples, plan.action) == (seen[-1].samples, seen[-1].action),
        f"the last snapshot has {seen[-1].samples} samples and action {seen[-1].action!r}, the plan "
        f"{plan.samples} and {plan.action!r}: let both read the same arrays",
    )


def _interrupt(trial: _Trial) -> None:
    def press(call: int) -> None:
        if call == _SOME:
            raise KeyboardInterrupt

    model, calls = trial.watched(press)
    plan = trial.in_simulator(model, calls)
    _expect(
        plan.stopped_by == "interrupt" and plan.interrupted and plan.samples == _SOME - 1,
        f"interrupted in call {_SOME}, the plan says stopped_by={plan.stopped_by!r}, "
        f"interrupted={plan.interrupted}, samples={plan.samples}: pass on the status that call_model "
        "returns, and count the calls of the episode that it cuts off",
    )
    model, _ = trial.watched(press)
    try:
        trial.plan(model, on_interrupt="raise")
    except KeyboardInterrupt:
        return
    raise AssertionError('on_interrupt="raise" did not raise KeyboardInterrupt')


def _model_raises(trial: _Trial) -> None:
    mine = LookupError("raised by the model")

    def fail(call: int) -> None:
        if call == _SOME:
            raise mine

    model, calls = trial.watched(fail)
    try:
        trial.in_simulator(model, calls)
    except LookupError as error:
        _expect(error is mine, f"the model raised {mine!r}, and {error!r} came through")
    else:
        raise AssertionError("what the model raises must come through unchanged")
    _expect_same(
        trial.answer(),
        trial.answer(),
        "after a model that raised, plans with the same seed differ: keep nothing in the planner",
    )


def _bad_reward(trial: _Trial) -> None:
    model = Simulator(
        lambda state, action, rng: (state, math.nan, False),
        actions=2,
        successors=1,
        two_player=trial.planner.two_player,
    )
    try:
        plan = _given(trial, model, 0)
    except _RefusedError as refusal:
        if "reward_range" in str(refusal):
            return
        raise
    raise AssertionError(f"a model pays nan, and there is a plan, {plan.action!r}: use call_model")


def _pickle(trial: _Trial) -> None:
    again = pickle.loads(pickle.dumps(trial.planner))
    plan = again.plan(trial.problem, trial.state, seed=4, budget=trial.budget)
    _expect(
        repr(again) == repr(trial.planner) and _answer(plan) == trial.answer(),
        "a planner that was pickled and read back differs: keep all settings as attributes",
    )
    _expect_same(_answer(pickle.loads(pickle.dumps(plan))), _answer(plan), "a pickled plan differs")


def _repr(trial: _Trial) -> None:
    kind = type(trial.planner)
    again = eval(repr(trial.planner), {kind.__name__: kind})
    plan = again.plan(trial.problem, trial.state, seed=4, budget=trial.budget)
    _expect(
        repr(again) == repr(trial.planner) and _answer(plan) == trial.answer(),
        f"{trial.planner!r} makes a different planner: keep each setting as an attribute of its name",
    )


def _settings(trial: _Trial) -> None:
    before = {name: described(value) for name, value in vars(trial.planner).items()}
    trial.plan()
    after = {name: described(value) for name, value in vars(trial.planner).items()}
    _expect(
        before == after,
        f"planning has changed {[name for name in after if after[name] != before.get(name)]} of the "
        "planner: keep what belongs to one plan in its search",
    )


def _memory(trial: _Trial) -> None:
    # Histories that outgrow the initial room of a search.
    game, branches = trial.problem.two_player, 1 if trial.problem.successors == 1 else 10
    noise: Any = "bernoulli" if trial.problem.random_rewards else "none"
    large = envs.garnet(states=2000, actions=3, successors=branches, seed=2, noise=noise)
    model: Any = trial.problem if game else large

    def plan(**options: Any) -> Plan:
        try:
            return trial.plan(model, budget=30 * trial.budget, **options)
        except (TypeError, ValueError) as error:
            raise _RefusedError(str(error)) from None

    free = plan()
    limit = plan(callback=lambda snapshot: True).memory + 1000
    if free.memory <= limit:
        raise _RefusedError("the search fits in its initial room")
    found = plan(memory_limit=limit)
    _expect(
        # Room grows by half if there is memory; without it what is needed may be less than the limit.
        found.memory <= limit
        and (_by_itself(found) or (found.stopped_by == "memory" and found.samples < free.samples)),
        f"with memory_limit={limit} the plan says stopped_by={found.stopped_by!r} and "
        f"memory={found.memory}: take room for your own tables from `search.room`",
    )


def _bounds(trial: _Trial) -> None:
    plan = trial.plan()
    if plan.lower is None or plan.upper is None:
        _expect(
            plan.lower is None and plan.upper is None and plan.gap is None and not plan.certified,
            "a plan without bounds has neither a gap nor a certificate",
        )
        return
    delta = getattr(trial.planner, "delta", 0.0)
    missed = sum(not _holds(trial, trial.plan(seed=seed)) for seed in range(_PLANS))
    _expect(
        clopper_pearson(missed, _PLANS, _FALSE_ALARM)[0] <= delta,
        f"the bounds of {missed} in {_PLANS} plans do not hold, with delta={delta}; `pacplan verify "
        "--planner module:name` says more",
    )


def _holds(trial: _Trial, plan: Plan) -> bool:
    """Whether bounds hold: lower ones for all actions, and the upper one of the best action."""
    assert plan.lower is not None and plan.upper is not None
    if plan.lower.max() > plan.upper.max() + _ROUNDING:
        return False
    if not isinstance(trial.problem, TabularMDP) or trial.problem.two_player:
        return True
    gamma = getattr(trial.planner, "gamma", 1.0)
    steps, truths = plan.horizon, []
    if steps is not None:
        truths.append(exact.finite_horizon(trial.problem, gamma=gamma, horizon=steps)[0][trial.state])
    if gamma < 1.0 and trial.problem.steps is None:
        truths.append(exact.discounted(trial.problem, gamma=gamma)[trial.state])
    for truth in truths:  # Over the same steps, or an infinite horizon: the planner may mean either.
        values = truth[np.isfinite(truth)]
        slack = _ROUNDING * (1.0 + np.abs(values).max())
        best = values.argmax()
        if (plan.lower <= values + slack).all() and plan.upper[best] >= values[best] - slack:
            return True
    return False


_SCRIPT = """
import pickle, sys
paths, trial = pickle.load(open(sys.argv[1], "rb"))
sys.path[:] = paths
from pacplan.testing.conformance import answer_of
print(answer_of(trial))
"""


def answer_of(trial: bytes) -> str:
    """The answer of a trial that was pickled, for another process."""
    planner, problem, state = pickle.loads(trial)
    return _answer(planner.plan(problem, state, seed=4, budget=300))


def _interpreted(trial: _Trial) -> None:
    if type(trial.planner).__module__ == "__main__":
        raise _RefusedError(
            "the planner is defined in the main script, which another process cannot import"
        )
    pickled = pickle.dumps((trial.planner, trial.problem, trial.state))
    paths = [str(Path(path).absolute()) for path in sys.path]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trial"
        file.write_bytes(pickle.dumps((paths, pickled)))
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, str(file)],
            env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            text=True,
        )
    _expect(done.returncode == 0, f"without compilation (NUMBA_DISABLE_JIT=1) it fails:\n{done.stderr}")
    _expect_same(
        done.stdout.strip().rpartition("\n")[2],
        answer_of(pickled),
        "without compilation (NUMBA_DISABLE_JIT=1) the plan differs: a kernel reads past an array, "
        "or integers overflow",
    )


_CHECKS: dict[str, Callable[[_Trial], None]] = {
    "same seed": _same_seed,
    "other seeds": _other_seeds,
    "budget": _budget,
    "python model": _python_model,
    "jitted model": _jitted_model,
    "ends": _ends,
    "state actions": _state_actions,
    "deadline": _deadline,
    "callback": _callback,
    "interrupt": _interrupt,
    "model raises": _model_raises,
    "bad reward": _bad_reward,
    "pickle": _pickle,
    "repr": _repr,
    "settings": _settings,
    "memory": _memory,
    "bounds": _bounds,
    "interpreted": _interpreted,
}

PLANNER_CHECKS = tuple(_CHECKS)
"""Names of what `check_planner` checks."""


def check_planner(
    planner: Planner,
    problem: Model | None = None,
    state: Any = None,
    *,
    budget: int = 1000,
    random: bool = True,
    only: Sequence[str] = PLANNER_CHECKS,
) -> Conformance:
    """Check what can be expected of any planner, in a few dozen small plans.

    Its plans must be a function of the seed, whatever the kind of model; keep to budget, deadline and
    memory; survive interrupts and errors of the model; and have bounds that hold. A problem that the
    planner refuses before it calls the model is skipped.

    Args:
        planner: with settings for small problems, but such that it needs more than 40 calls.
        problem: one that it can handle; by default a random one with 30 states, 3 actions, 2 successors
            and random rewards. Many checks need a `TabularMDP`.
        state: where to plan from; by default the problem's own initial state.
        budget: calls of most plans; the largest ones have 30 times as many.
        random: whether plans depend on the seed.
        only: names of the checks to run, from `PLANNER_CHECKS`.

    Returns:
        What was passed and what was skipped, to be printed.

    Raises:
        ConformanceError: names every check that failed, what is wrong and what to do.
    """
    if not isinstance(planner, Planner):
        raise TypeError(f"check_planner takes a planner with its settings, got {planner!r}")
    for name in only:
        checks.choice("only", name, PLANNER_CHECKS)
    if problem is None:
        problem = envs.garnet(states=30, actions=3, seed=2, noise="bernoulli")
    state = problem.initial_state() if state is None else state
    trial = _Trial(planner, problem, state, checks.integer("budget", budget, least=200), random)
    trial.plan()  # Raises if the planner cannot plan in this problem at all.
    passed, skipped, failed = [], {}, {}
    for name in only:
        try:
            _CHECKS[name](trial)
            passed.append(name)
        except _RefusedError as refusal:
            skipped[name] = str(refusal)
        except Exception as error:
            pass_on(error)
            failed[name] = error
    if failed:
        lines = [f"{planner!r} fails {len(failed)} of {len(only)} checks"]
        for name, failure in failed.items():
            kind = "" if type(failure) is AssertionError else f"{type(failure).__name__}: "
            lines.append(f"{name}: {kind}{failure}")
        raise ConformanceError("\n- ".join(lines)) from next(iter(failed.values()))
    return Conformance(repr(planner), tuple(passed), skipped)
