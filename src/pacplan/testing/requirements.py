"""What `check_planner` requires, one function for each check; each raises what is wrong."""

import json
import math
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

import numba
import numpy as np

from pacplan import envs
from pacplan.compiled.streams import streams
from pacplan.core.identity import described
from pacplan.core.keys import same
from pacplan.models import handles
from pacplan.testing.trial import RefusedError, Trial, answer_in, by_itself, expect, expect_same

# Calls before something happens: fewer than any search worth checking makes.
_SOME = 40


def _same_seed(trial: Trial) -> None:
    first = answer_in(trial.plan())
    for chunk in (None, 1, 13):
        planner = copy(trial.planner)
        planner.chunk = chunk
        wrong = (
            f"plans with the same seed differ (chunk={chunk}): keep all that a search remembers in the "
            "arrays of its tuple, draw only from rng and ties, and let `finished` change nothing"
        )
        expect_same(answer_in(trial.plan(by=planner)), first, wrong)


def _budget(trial: Trial) -> None:
    for budget in (trial.budget, 123, 6, 5, 4, 1):
        try:
            plan, calls = trial.watched(lambda call: None, budget=budget)
        except RefusedError:
            if budget == trial.budget:
                raise
            continue  # Some need more calls than that.
        said = f"with budget={budget} the model was called {calls} times, and the plan says"
        expect(
            plan.samples == calls <= budget,
            f"{said} samples={plan.samples}: count every call, and stop before the one that exceeds it",
        )
        # Where every call is an episode of its own, only those from the state planned from have one.
        missing = calls - plan.calls.sum()
        counted = missing == 0 or (missing > 0 and plan.episodes == plan.samples)
        expect(counted, f"{said} calls={plan.calls}: count every call for its action")
        expect(
            by_itself(plan) or (plan.stopped_by == "budget" and plan.samples == budget),
            f"{said} stopped_by={plan.stopped_by!r}: use the whole budget unless the planner's own "
            "rule ends the search",
        )
        offered = any(same(plan.action, action) for action in plan.actions)
        expect(offered, f"the action {plan.action!r} is not in {plan.actions}")


def _python_model(trial: Trial) -> None:
    stream, _ = streams(np.random.SeedSequence(4), 2)
    _agree(trial, lambda state, action, rng, h: trial.table.step(state, action, stream, h))


def _jitted_model(trial: Trial) -> None:
    if numba.config.DISABLE_JIT or not trial.table.same_actions:
        raise RefusedError("nothing is compiled here, or the problem lists the actions of each state")
    table: Any = trial.table.open(np.random.SeedSequence(0)).handle.table

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
    found = trial.plan(trial.simulator(step), refuse=True)
    expect_same(answer_in(found), answer_in(trial.plan()), wrong)


def _ends(trial: Trial) -> None:
    def step(state: str, action: int, rng: Any) -> Any:
        assert state != "over", "the model was called in a state that had ended the episode"
        if trial.planner.two_player or (state == "start" and action == 0):
            return "over", 1.0 - action, True
        return "late", 0.0, False

    expect(
        trial.tiny(step, "start").action == 0,
        "action 0 pays 1 and ends the episode, action 1 never pays, but the plan is 1: count the "
        "reward of a transition that ends, and nothing after it",
    )


def _state_actions(trial: Trial) -> None:
    game = trial.planner.two_player

    def actions(state: int) -> list[str]:
        return ["left", "right"] if state == 0 else ["go"]

    def step(state: int, action: str, rng: Any) -> Any:
        assert action in actions(state), f"action {action!r} is not one of state {state}"
        return 1, float(state == 1 if game else action == "right"), game and state == 1

    plan = trial.tiny(step, 0, actions)
    right = plan.actions == ("left", "right") and (game or plan.action == "right")
    wrong = "'right' pays 1 and 'left' nothing: ask each node for its number of actions"
    expect(right, f"the plan is {plan.action!r} of {plan.actions}, but {wrong}")


def _bad_reward(trial: Trial) -> None:
    try:
        trial.tiny(lambda state, action, rng: (state, math.nan, False), 0)
    except RefusedError as refusal:
        if "reward_range" in str(refusal):
            return
        raise
    raise AssertionError("a model pays nan, and there is a plan: use call_model")


def _deadline(trial: Trial) -> None:
    # However busy the machine is, no more calls than these fit in.
    limit, pause = 0.05, 0.002
    plan, calls = trial.watched(lambda call: time.sleep(pause), time_limit=limit, budget=10**6)
    expect(
        by_itself(plan)
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
    expect(
        (plan.stopped_by == "callback" or by_itself(plan)) and (plan.samples, plan.action) == seen[-1],
        f"the callback stopped at {seen[-1][0]} samples and action {seen[-1][1]!r}, and the plan says "
        f"stopped_by={plan.stopped_by!r}, {plan.samples} and {plan.action!r}: let both read the same "
        "arrays",
    )


def _interrupt(trial: Trial) -> None:
    plan, _ = trial.watched(_raises(KeyboardInterrupt()))
    expect(
        plan.interrupted and plan.samples == _SOME - 1,
        f"interrupted in call {_SOME}, the plan says stopped_by={plan.stopped_by!r}, "
        f"samples={plan.samples}: pass on the status that call_model returns, and count the calls of "
        "the episode that it cuts off",
    )
    with suppress(KeyboardInterrupt):
        trial.watched(_raises(KeyboardInterrupt()), on_interrupt="raise")
        raise AssertionError('on_interrupt="raise" must raise KeyboardInterrupt')


def _model_raises(trial: Trial) -> None:
    mine, wrong = (
        LookupError("raised by the model"),
        "what the model raises must come through unchanged",
    )
    try:
        trial.watched(_raises(mine))
    except LookupError as found:
        expect(found is mine, wrong)
    else:
        raise AssertionError(wrong)


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
    expect(described(vars(trial.planner)) == before, wrong)
    written = f"{trial.planner!r}"
    for again, what in (
        (pickle.loads(pickle.dumps(trial.planner)), "a planner that was pickled"),
        (eval(written, {kind.__name__: kind}), written),
    ):
        wrong = f"{what} is a different planner: keep each setting as an attribute of its name"
        expect(repr(again) == written, wrong)
        expect_same(answer_in(trial.plan(by=again)), answer_in(plan), wrong)


def _memory(trial: Trial) -> None:
    model: Any = trial.problem
    if not model.two_player:  # Histories that outgrow the initial room of a search.
        noise: Any = "bernoulli" if model.random_rewards else "none"
        branches = 1 if model.successors == 1 else 10
        model = envs.garnet(states=2000, actions=3, successors=branches, seed=2, noise=noise)
    options: dict[str, Any] = {"refuse": True, "budget": 30 * trial.budget}
    free = trial.plan(model, **options)
    limit = trial.plan(model, callback=lambda snapshot: True, **options).memory + 1000
    if free.memory <= limit:
        raise RefusedError("the search fits in its initial room")
    found = trial.plan(model, memory_limit=limit, **options)
    expect(
        # Room grows by half if there is memory; without it what is needed may be less than the limit.
        found.memory <= limit
        and (by_itself(found) or (found.stopped_by == "memory" and found.samples < free.samples)),
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
    return json.dumps(answer_in(trial.plan(budget=300)))


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
    expect(done.returncode == 0, f"{without} it fails:\n{done.stderr.decode()}")
    found = json.loads(done.stdout.decode().strip().rpartition("\n")[2])
    wrong = f"{without} the plan differs: a kernel reads past an array, or integers overflow"
    expect_same(found, json.loads(answer_of(trial)), wrong)


REQUIREMENTS: dict[str, Callable[[Trial], None]] = {
    check.__name__.strip("_").replace("_", " "): check
    for check in (
        *(_same_seed, _budget, _python_model, _jitted_model, _ends, _state_actions, _deadline),
        *(_callback, _interrupt, _model_raises, _bad_reward, _settings, _memory, _interpreted),
    )
}
"""The checks by name."""
