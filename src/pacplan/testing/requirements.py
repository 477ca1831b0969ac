"""What `check_planner` requires, one function for each check; each raises what is wrong."""

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from pacplan import envs
from pacplan.algorithms import Planner
from pacplan.compiled.streams import streams
from pacplan.core.identity import described
from pacplan.core.keys import same
from pacplan.models import handles
from pacplan.models.simulator import Simulator
from pacplan.models.tabular import TabularMDP
from pacplan.result import Plan

# Calls before something happens: fewer than any search worth checking makes.
_SOME = 40


class RefusedError(Exception):
    """The planner refuses such a problem, as it may."""


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


def _answer_in(plan: Plan) -> dict[str, str]:
    """Everything in a plan that must not depend on how it was made, as text, where nan equals nan."""
    # The diagnosis advises what suits the kind of model.
    free = ("seconds", "planner", "memory", "origin", "diagnosis")
    return {name: json.dumps(value) for name, value in plan.to_dict().items() if name not in free}


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
    first = _answer_in(trial.plan())
    for chunk in (None, 1, 13):
        planner = copy(trial.planner)
        planner.chunk = chunk
        wrong = (
            f"plans with the same seed differ (chunk={chunk}): keep all that a search remembers in the "
            "arrays of its tuple, draw only from rng and ties, and let `finished` change nothing"
        )
        _expect_same(_answer_in(trial.plan(by=planner)), first, wrong)


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
    _agree(trial, lambda state, action, rng, h: trial.problem.step(state, action, stream, h))


def _jitted_model(trial: Trial) -> None:
    trial.simulator(print)  # Refused, if the problem has no tables.
    if numba.config.DISABLE_JIT or not trial.problem.same_actions:
        raise RefusedError("nothing is compiled here, or the problem lists the actions of each state")
    table: Any = trial.problem.open(np.random.SeedSequence(0)).handle.table

    @numba.njit  # type: ignore[untyped-decorator]
    def step(state: int, action: int, rng: Any, h: int) -> Any:
        successor, reward, flag = handles.draw_from_table(table, state, action, h, rng)
        return successor, reward, flag == handles.ENDED

    _agree(trial, step)


def _agree(trial: Trial, step: Callable[..., Any]) -> None:
    if trial.planner.kind_matters:
        raise RefusedError("plans depend on the kind of model")
    wrong = (
        "a simulator that draws what the tables draw leads to a different plan: call the model through "
        "call_model, and do not ask what kind it is"
    )
    found = trial.plan(trial.simulator(step))
    _expect_same(_answer_in(found), _answer_in(trial.plan()), wrong)


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


def _callback(trial: Trial) -> None:
    seen: list[Any] = []

    def stop(snapshot: Any) -> bool:
        seen.append((snapshot.samples, snapshot.action))
        return bool(snapshot.samples >= _SOME)

    plan = trial.plan(callback=stop)
    _expect(
        (plan.stopped_by == "callback" or _by_itself(plan)) and (plan.samples, plan.action) == seen[-1],
        f"the callback stopped at {seen[-1][0]} samples and action {seen[-1][1]!r}, and the plan says "
        f"stopped_by={plan.stopped_by!r}, {plan.samples} and {plan.action!r}: let both read the same "
        "arrays",
    )


def _interrupt(trial: Trial) -> None:
    plan, _ = trial.watched(_raises(KeyboardInterrupt()))
    _expect(
        plan.interrupted and plan.samples == _SOME - 1,
        f"interrupted in call {_SOME}, the plan says stopped_by={plan.stopped_by!r}, "
        f"samples={plan.samples}: pass on the status that call_model returns, and count the calls of "
        "the episode that it cuts off",
    )


def _model_raises(trial: Trial) -> None:
    mine, found = LookupError("raised by the model"), None
    try:
        trial.watched(_raises(mine))
    except LookupError as error:
        found = error
    _expect(found is mine, "what the model raises must come through unchanged")


def _raises(error: BaseException) -> Callable[[int], None]:
    """What happens to a model that raises after some calls."""

    def happens(call: int) -> None:
        if call == _SOME:
            raise error

    return happens


def _settings(trial: Trial) -> None:
    kind, before = type(trial.planner), described(vars(trial.planner))
    plan = trial.plan()
    wrong = "planning has changed the planner: keep what belongs to one plan in its search"
    _expect(described(vars(trial.planner)) == before, wrong)
    written = f"{trial.planner!r}"
    for again, what in (
        (pickle.loads(pickle.dumps(trial.planner)), "a planner that was pickled"),
        (eval(written, {kind.__name__: kind}), written),
    ):
        wrong = f"{what} is a different planner: keep each setting as an attribute of its name"
        _expect(repr(again) == written, wrong)
        _expect_same(_answer_in(trial.plan(by=again)), _answer_in(plan), wrong)


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
import pickle, sys
from pacplan.testing.requirements import answer_of
print(answer_of(pickle.load(sys.stdin.buffer)))
"""


def answer_of(trial: Trial) -> str:
    """The answer of a trial, for another process."""
    return json.dumps(_answer_in(trial.plan(budget=300)))


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
    _expect_same(found, json.loads(answer_of(trial)), wrong)


REQUIREMENTS: dict[str, Callable[[Trial], None]] = {
    check.__name__.strip("_").replace("_", " "): check
    for check in (
        *(_same_seed, _budget, _python_model, _jitted_model, _ends, _state_actions, _deadline),
        *(_callback, _interrupt, _model_raises, _settings, _memory, _interpreted),
    )
}
"""The checks by name."""
