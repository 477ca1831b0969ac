"""One call for a decision, for many, or for a forecast: `Auto`, and the arguments of its methods."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import Signature, signature
from typing import Any

from pacplan.algorithms import Planner
from pacplan.algorithms.common.many import Plans
from pacplan.auto import Auto
from pacplan.models.protocol import Model, check_model
from pacplan.result import Plan


def plan(
    model: Model,
    state: Any = None,
    *,
    epsilon: float | str,
    delta: float,
    gamma: float | None = None,
    **options: Any,
) -> Plan:
    """Choose an action in a state and prove how good it is, with few calls to the model.

    `Auto` chooses the planner and documents its settings. `plan.guarantee` names the planner and says
    why it was chosen.

    Args:
        model: the problem.
        state: where to plan from; by default the model's own initial state.
        epsilon: how far from optimal the action may be, in the model's reward units; or "5%" of the
            range of values.
        delta: probability with which the guarantee may fail.
        gamma: discount; games have none.
        options: settings of `Auto`: `horizon=`, `value_range=`, `value_bounds=`, `policy=`, `value=`,
            `rewards=`, `transitions=`, `sample=` and those of the planner; and arguments of
            `Planner.plan`: `seed=`, `budget=`, `time_limit=`, `progress=`, `callback=`,
            `memory_limit=`, `on_interrupt=`, `checkpoint=`, `every=`, `workers=`, `executor=`.

    Raises:
        ValueError: a setting out of range, or a problem that cannot be handled.
        TypeError: a setting of the wrong type, or one that no planner for this model has.
    """
    arguments, settings = _split(options, Planner.plan)
    auto = Auto(epsilon=epsilon, delta=delta, gamma=gamma, **settings)
    return auto.plan(model, state, **arguments)


def plan_many(
    model: Model,
    states: Iterable[Any],
    *,
    epsilon: float | str,
    delta: float,
    gamma: float | None = None,
    **options: Any,
) -> Plans:
    """Choose an action in each of many states, with several plans in parallel.

    The plans are those of `plan`. Each state gets its own look at the model and its own planner.

    Args:
        model: the problem.
        states: where to plan from, as for `Planner.plan_many`.
        epsilon: how far from optimal the actions may be, as for `plan`.
        delta: probability with which a guarantee may fail: each one, or with `spread="union"` any.
        gamma: discount; games have none.
        options: settings of `Auto`, as for `plan`; and arguments of `Planner.plan_many`: `seeds=`,
            `workers=`, `executor=`, `spread=`, `budget=`, `time_limit=`, `memory_limit=`, `progress=`,
            `on_interrupt=`, `trees=`.

    Returns:
        The plans, an iterator. Its `outcomes()` yield the error of a plan that raises, and continue.

    Raises:
        ValueError: a setting out of range.
        TypeError: a setting of the wrong type, or one that no planner for this model has.
    """
    check_model(model)
    arguments, settings = _split(options, Planner.plan_many)
    auto = Auto(epsilon=epsilon, delta=delta, gamma=gamma, **settings)
    auto.candidates(model)  # Raises what is wrong for all.
    return auto.plan_many(model, states, **arguments)


@dataclass(frozen=True, eq=False)
class Forecast:
    """The cost of a plan, roughly extrapolated from a short one.

    Attributes:
        samples: calls to the model until the plan is certified; None if unknown.
        seconds: time until then, if calls take as long as in the trial; None if unknown.
        trial: the short plan. If it is certified, you need no other.
    """

    samples: int | None
    seconds: float | None
    trial: Plan

    def __str__(self) -> str:
        spent = f"{self.trial.samples:,} calls, {_time(self.trial.seconds)}"
        if self.trial.certified:
            return f"Certified already: {spent}."
        line = f"From a trial of {spent}:"
        if self.seconds is not None and self.samples is not None:
            line += f" about {self.samples:,} calls, {_time(self.seconds)}."
        return f"{line}\n{self.trial.diagnosis or self.trial.guarantee}"


def _time(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10.0 else f"{seconds:.2g} s"


def forecast(
    model: Model,
    state: Any = None,
    *,
    epsilon: float | str,
    delta: float,
    gamma: float | None = None,
    budget: int = 10_000,
    **options: Any,
) -> Forecast:
    """Forecast the cost of `plan` by a short plan.

    It extrapolates the gap of the trial as a power of the calls. Far beyond the trial, that is a poor
    guess, and the outlook says so, because searches often gather speed.

    Args:
        model: the problem.
        state: as for `plan`, like all that follows.
        epsilon: how far from optimal the action may be.
        delta: probability with which the guarantee may fail.
        gamma: discount; games have none.
        budget: calls of the trial.
        options: further arguments of `plan`.
    """
    trial = plan(model, state, epsilon=epsilon, delta=delta, gamma=gamma, budget=budget, **options)
    if trial.diagnosis is None:
        samples = trial.samples if trial.certified else None
    else:
        samples = trial.diagnosis.samples_needed
    seconds = None if samples is None else trial.seconds * samples / max(1, trial.samples)
    return Forecast(samples, seconds, trial)


def _split(
    options: dict[str, Any], method: Callable[..., Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a method of planners, and the rest, which are settings."""
    takes = signature(method).parameters
    arguments = {name: value for name, value in options.items() if name in takes}
    return arguments, {name: value for name, value in options.items() if name not in takes}


def _joined(function: Callable[..., Any], method: Callable[..., Any]) -> Signature:
    """The signature of a function with all its options by name, for `help` and editors."""
    own, settings, arguments = (signature(each).parameters for each in (function, Auto, method))
    listed = {**own, **settings, **arguments}
    order = [n for n in own if n != "options"]
    order += [n for n in listed if n not in (*own, "self", "settings")] + ["settings"]
    return Signature(
        [own.get(n, listed[n]) for n in order], return_annotation=signature(function).return_annotation
    )


plan.__signature__ = _joined(plan, Planner.plan)  # type: ignore[attr-defined]
plan_many.__signature__ = _joined(plan_many, Planner.plan_many)  # type: ignore[attr-defined]
