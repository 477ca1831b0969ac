"""`plan` and `plan_many`, and Auto: the planner that chooses a planner, and says which and why."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from typing import Any, cast

import numpy as np

from pacplan.algorithms import (
    OPD,
    Anytime,
    Atlas,
    Bracket,
    Canopy,
    Planner,
    UGapEMCTS,
    ValueIteration,
    planners,
)
from pacplan.algorithms.atlas.search import GrowingError
from pacplan.algorithms.common.certainty import left_to_chance
from pacplan.algorithms.common.confidence import in_reward_units
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.many import Plans
from pacplan.core import checks
from pacplan.core.words import exactly
from pacplan.engine.query import Query
from pacplan.engine.values import discounted_steps, step_width
from pacplan.look import MOST_CALLS, Look, look
from pacplan.models.outcomes import Outcomes
from pacplan.models.protocol import Model, check_model
from pacplan.result import Plan

# Part of a budget, or of a time limit, that a look may take.
_LOOK_PART = 0.1
# The look has a stream of its own, so that the plan is the planner's own for this seed; and so has
# Bracket after Atlas has given up, because that depended on the draws.
_LOOK_STREAM, _NEXT_STREAM = 0x100C, 0xA71A
# What is left of a time limit of which a look has taken more than its part.
_LEAST_SECONDS = 1e-3
# After so many calls, or this part of those that there is a budget or time for, Atlas may give up.
_PATIENCE, _PATIENT_PART = 10_000, 0.25
# Where so many steps count, discounted, a tree takes many calls; Atlas is tried if any state was seen
# twice.
_LONG = 9.0


def plan(
    model: Model,
    state: Any = None,
    *,
    epsilon: float | str | None = None,
    delta: float | None = None,
    gamma: float | None = None,
    **options: Any,
) -> Plan:
    """Choose an action in a state and prove how good it is, with few calls to the model.

    Without `epsilon` nothing is proven: `Anytime` finds the best move that `budget=` or `time_limit=`
    allow. `Auto` chooses the planner and documents its settings. `plan.guarantee` names the planner
    and says why it was chosen.

    Args:
        model: the problem.
        state: where to plan from; by default the model's own initial state.
        epsilon: how far from optimal the action may be, in the model's reward units; or "5%" of the
            range of values. None: no accuracy is asked for.
        delta: probability with which the guarantee may fail, if there is an epsilon.
        gamma: discount; games have none.
        options: settings of `Auto`: `horizon=`, `value_range=`, `value_bounds=`, `policy=`, `value=`,
            `rewards=`, `transitions=`, `sample=` and those of the planner; and arguments of
            `Planner.plan`: `seed=`, `budget=`, `time_limit=`, `progress=`, `callback=`,
            `memory_limit=`, `checkpoint=`, `every=`, `workers=`, `executor=`.

    Raises:
        ValueError: a setting out of range, or a problem that cannot be handled.
        TypeError: a setting of the wrong type, or one that no planner for this model has.
    """
    arguments = _taken(Planner.plan, options)
    auto = Auto(epsilon=epsilon, delta=delta, gamma=gamma, **options)
    return auto.plan(model, state, **arguments)


def plan_many(
    model: Model,
    states: Iterable[Any],
    *,
    epsilon: float | str | None = None,
    delta: float | None = None,
    gamma: float | None = None,
    **options: Any,
) -> Plans:
    """Choose an action in each of many states, with several plans in parallel.

    Each state gets its own look at the model and its own planner.

    Args:
        model: the problem.
        states: where to plan from, as for `Planner.plan_many`.
        epsilon: as for `plan`, like `gamma`.
        delta: probability with which a guarantee may fail: each one, or with `spread="union"` any.
        gamma: discount; games have none.
        options: settings of `Auto`, as for `plan`, and arguments of `Planner.plan_many`.

    Returns:
        The plans, an iterator. Its `outcomes()` yield the error of a plan that raises, and continue.
    """
    arguments = _taken(Planner.plan_many, options)
    auto = Auto(epsilon=epsilon, delta=delta, gamma=gamma, **options)
    check_model(model)
    auto.candidates(model)  # Raises what is wrong for all.
    return auto.plan_many(model, states, **arguments)


def _taken(method: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a method, taken out of the options."""
    return {name: options.pop(name) for name in signature(method).parameters.keys() & options.keys()}


class Auto(Planner):
    """Chooses the planner for the model. `plan.guarantee` names it and says why.

    If every probability is known, in a table or in `Outcomes`, `ValueIteration` computes the answer
    without sampling, with certain bounds. Without `epsilon`, `Anytime` finds a good move within the
    budget or time limit. Otherwise `Auto` looks at the model with about a hundred
    calls that no bound uses. It chooses `OPD` if you declare that nothing is random, `Canopy` if every
    successor is new (as with continuous noise), `Atlas` if states recur, `UGapEMCTS` for games of two
    players, and otherwise `Bracket`. If new states keep coming, Atlas hands over to Bracket before it
    has spent any of delta.

    The look takes at most a tenth of a budget and of a time limit, and its calls are not counted.

    Args:
        epsilon: how far from optimal the action may be, in the model's reward units; or, as in "5%", in
            per cent of the range of values, which is `value_range` or follows from the rewards. None:
            no guarantee is asked for.
        delta: probability with which the guarantee may fail; None without epsilon.
        gamma: discount in [0, 1]; 1 needs a horizon. Games have none.
        sample: sample even if every probability is known. Any setting of sampling planners does this
            too.
        settings: settings of the planner: `horizon=`, the number of steps, after which rewards do not
            count; `value_range=(low, high)`, bounds on every discounted return from any state on;
            `value_bounds=(lower, upper)`, numbers or functions of the state and the number of steps
            taken, between which optimal values lie; `rewards="deterministic"` if a state and action
            always pay the same; `transitions="deterministic"` if they always lead to the same state;
            `policy=` and `value=`, functions of the state, guesses that only steer `Bracket`; and
            others, such as `goal=`.
    """

    name = "auto"

    def __init__(
        self,
        *,
        epsilon: float | str | None = None,
        delta: float | None = None,
        gamma: float | None = None,
        sample: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.epsilon, self.gamma = epsilon, gamma
        if (epsilon is None) != (delta is None):
            raise TypeError(
                "a guarantee needs both epsilon= and delta=; for the best move in little time pass "
                "neither, but budget= or time_limit="
            )
        self.delta = None if delta is None else checks.probability("delta", delta)
        self.sample = checks.flag("sample", sample)
        self._given = {name: given for name, given in settings.items() if given is not None}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name that were given."""
        return super().get_params() | self._given

    def run(self, task: Query) -> Plan:
        """The plan of the planner that suits the model."""
        if task.checkpoints is not None:
            task.model.fingerprint()  # Before the look, which may leave something in what it holds.
        planner, why, seen = self._choice(task)
        unused, began = seen.calls, time.perf_counter() - seen.seconds
        try:
            found = planner.run(_rest(task, seen.seconds))
        except GrowingError as growing:
            unused += growing.calls
            planner = self._made(Bracket, task.model)
            why = (
                f", because new states kept coming when Atlas had found {growing.states:,} in "
                f"{growing.calls:,} calls"
            )
            found = planner.run(_rest(task, time.perf_counter() - began, growing.calls))
        assert found.origin is not None
        # The time limit is that of the look and the plan.
        return replace(
            found,
            guarantee=f"{found.guarantee} (Planned by {type(planner).__name__}{why}.)",
            origin=replace(found.origin, time_limit=task.limits.time_limit),
            calls_made=found.calls_made + unused,
        )

    def candidates(self, model: Model) -> dict[type[Planner], Planner]:
        """The planners that it chooses among by their class, the most likely one first.

        Raises:
            ValueError: a setting out of range.
            TypeError: a setting of the wrong type, or one that no planner for this model has.
        """
        given = self._given.keys()
        if model.two_player:
            if self.epsilon is None:
                raise TypeError("a game of two players needs epsilon= and delta=")
            if self.gamma is not None:
                raise ValueError("a game of two players has no discount; remove gamma=")
            _check_names(UGapEMCTS, given)
            return {UGapEMCTS: self._made(UGapEMCTS, model)}
        if self.gamma is None:
            raise TypeError(
                "plan() needs gamma, the discount; for no discount pass gamma=1 and horizon="
            )
        _check_names(Bracket if self.epsilon is not None else Anytime, given)
        known = model.known or isinstance(model, Outcomes)
        if known and not self.sample and _takes(ValueIteration, given):
            return {ValueIteration: self._made(ValueIteration, model)}
        if self.epsilon is None:
            return {Anytime: self._made(Anytime, model)}
        found: dict[type[Planner], Planner] = {}
        # Where nothing is random, there is no need for guidance.
        declared = [self._given.get(name, "unknown") for name in ("transitions", "rewards")]
        if not left_to_chance(model, *declared) and _takes(OPD, given - {"policy", "value"}):
            merge = "stationary" if model.stationary else "depth"
            found[OPD] = self._made(OPD, model, "policy", "value", merge=merge)
        found[Bracket] = self._made(Bracket, model)
        if _takes(Canopy, given):
            found[Canopy] = self._made(Canopy, model)
        # Atlas needs no declarations either, and without a horizon plans for an infinite one.
        spared = ["policy", "value", "rewards", "transitions"]
        spared += [] if "horizon" in given else ["target"]
        if model.stationary and _takes(Atlas, given - set(spared)):
            found[Atlas] = self._made(Atlas, model, *spared)
        return found

    def _made(self, planner: type[Planner], model: Model, *spared: str, **more: Any) -> Planner:
        """A planner with all settings except those it is spared."""
        own: Any = {"delta": self.delta, "gamma": self.gamma}
        if self.epsilon is not None:
            own["epsilon"] = self._accuracy(model)
        own = {name: value for name, value in own.items() if name in signature(planner).parameters}
        return planner(
            **own, **more, **{name: v for name, v in self._given.items() if name not in spared}
        )

    def _choice(self, task: Query) -> tuple[Planner, str, Look]:
        """The planner for a task, why, and the look that this rests on; a checkpoint says which."""
        candidates = self.candidates(task.model)
        first = next(iter(candidates.values()))
        if task.checkpoints is not None and task.checkpoints.saved is not None:
            written = task.checkpoints.header["planner"]
            for planner in candidates.values():
                if planner.identity == written:
                    return planner, ", as chosen before", Look()
            raise ValueError(
                f"the checkpoint belongs to another planner: it was written for {written}, but these "
                f"settings choose one such as {first!r}"
            )
        _ = task.actions  # Raises if the model does not know the state.
        first.check_query(task, task.limits)  # Before the first call.
        planner, why, seen = self._chosen(task, first, candidates)
        if isinstance(self.epsilon, str):
            accuracy = exactly(self._accuracy(task.model))
            why += f"; epsilon={self.epsilon} of the range of values is {accuracy}"
        return planner, why, seen

    def _chosen(
        self, task: Query, first: Planner, candidates: dict[type[Planner], Planner]
    ) -> tuple[Planner, str, Look]:
        model, limits = task.model, task.limits
        if isinstance(first, UGapEMCTS):
            return first, ", because the model is a game of two players", Look()
        if isinstance(first, ValueIteration):
            return first, ", because every probability is known", Look()
        if isinstance(first, Anytime):
            return first, ", because no epsilon was given", Look()
        seen = self._look(task, cast(Bracket, candidates[Bracket]))
        if isinstance(first, OPD):
            said = "you declared" if "rewards" in self._given else "the model's table shows"
            return first, f", because nothing is random, as {said}", seen
        if seen.calls == 0:  # The budget is too small for a look.
            return first, "", seen
        if Canopy in candidates and not seen.successors_recur:
            why = (
                f", because every successor may be new: of {seen.again} repeated calls, "
                f"{seen.recurred or 'none'} led to a known state"
            )
            return candidates[Canopy], why, seen
        long = self._steps() >= _LONG
        if Atlas not in candidates or not (seen.states_recur or (long and seen.states < seen.reached)):
            return first, f", because {_counted(model, seen)}" if seen.reached else "", seen
        if task.crew is not None or task.checkpoints is not None:
            setting = "checkpoint=" if task.crew is None else "workers="
            why = f"; states recur, but Atlas takes no {setting}: without, it may need far fewer calls"
            return first, why, seen
        calls = min(_PATIENCE, int(_PATIENT_PART * (limits.budget or checks.LARGEST)))
        if limits.time_limit is not None and seen.seconds > 0.0:
            there_is_time_for = limits.time_limit * seen.calls / seen.seconds
            calls = min(calls, int(_PATIENT_PART * there_is_time_for))
        atlas = cast(Atlas, candidates[Atlas]).giving_up(calls)
        return atlas, f", because states recur: only {_counted(model, seen)}", seen

    def _look(self, task: Query, bracket: Bracket) -> Look:
        """A look at the model, or none, if there is no budget for it."""
        model, limits = task.model, task.limits
        if limits.budget is not None and _LOOK_PART * limits.budget < MOST_CALLS:
            return Look()
        return look(
            model,
            task.state,
            min(model.steps or checks.LARGEST, bracket.horizon_for(model, limits.budget)),
            _child(task.seed, _LOOK_STREAM),
            seconds=math.inf if limits.time_limit is None else _LOOK_PART * limits.time_limit,
            deterministic=self._given.get("transitions") == "deterministic",
            same_rewards=self._given.get("rewards") == "deterministic",
        )

    def _accuracy(self, model: Model) -> float:
        """Epsilon in the model's reward units."""
        assert self.epsilon is not None
        if not isinstance(self.epsilon, str):
            return self.epsilon
        if "value_range" in self._given:
            low, high = checks.interval("value_range", self._given["value_range"], "return")
            return in_reward_units(self.epsilon, high - low)
        steps = 1.0 if model.two_player else self._steps()
        return in_reward_units(self.epsilon, step_width(model.reward_range, model.may_end) * steps)

    def _steps(self) -> float:
        """How many steps count."""
        return discounted_steps(*check_gamma_and_horizon(self.gamma, self._given.get("horizon")))


def _counted(model: Model, seen: Look) -> str:
    """How many states a look has reached, and whether anything random was seen."""
    counted = f"{seen.states} of the {seen.reached} visited states were distinct"
    if seen.states == seen.reached:
        counted = "no state was visited twice"
    if seen.again > 0 and seen.varied == 0 and not model.known:
        counted += (
            ' (nothing random was seen; if nothing is, say transitions="deterministic" and '
            'rewards="deterministic")'
        )
    return counted


def _rest(task: Query, seconds: float, calls: int = 0) -> Query:
    """What is left of a task after some time and calls; after calls, with other random numbers."""
    limits, seed = task.limits, task.seed
    if limits.time_limit is not None:
        limits = replace(limits, time_limit=max(limits.time_limit - seconds, _LEAST_SECONDS))
    if limits.budget is not None:
        limits = replace(limits, budget=max(limits.budget - calls, 1))
    return replace(task, limits=limits, seed=_child(seed, _NEXT_STREAM) if calls else seed)


def _child(seed: np.random.SeedSequence, stream: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, stream))


def _takes(planner: type[Planner], names: Iterable[str]) -> bool:
    """Whether a planner has all these settings."""
    return set(names) <= signature(planner).parameters.keys()


def _check_names(planner: type[Planner], given: Iterable[str]) -> None:
    """Raise TypeError for a setting that the planner does not have."""
    takes = signature(planner).parameters
    for name in set(given) - takes.keys():
        others = [other for other, cls in planners.items() if _takes(cls, [name])]
        near = get_close_matches(name, {*signature(Planner.plan).parameters, *takes}, 1)
        hint = f" (did you mean {near[0]}=?)" if near else ""
        hint = f" ({', '.join(others)} would take it)" if others else hint
        known = ", ".join(f"{taken}=" for taken in takes)
        raise TypeError(f"plan takes no {name}= for this model{hint}; it takes {known}")
