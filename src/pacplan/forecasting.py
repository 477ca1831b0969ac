"""What a plan would cost, from a short trial."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pacplan.models.protocol import Model
from pacplan.planning import plan
from pacplan.result import Plan


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a plan would cost, a rough guess from a short one.

    Attributes:
        calls: calls to the model until it is certified; None if that cannot be told.
        seconds: time until then, if calls take as long as in the trial; None likewise.
        trial: the short plan. If it is certified, it is the plan, and nothing is left to forecast.
    """

    calls: int | None
    seconds: float | None
    trial: Plan

    def __str__(self) -> str:
        spent = f"{self.trial.samples:,} calls, {_time(self.trial.seconds)}"
        if self.trial.certified:
            return f"Certified already: {spent}."
        lines = [f"From a trial of {spent}:"]
        if self.seconds is not None and self.calls is not None:
            lines = [f"{lines[0]} about {self.calls:,} calls, {_time(self.seconds)}."]
        told = self.trial.diagnosis
        return "\n".join([*lines, self.trial.guarantee if told is None else str(told)])


def _time(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10.0 else f"{seconds:.2g} s"


def forecast(
    model: Model,
    state: Any = None,
    *,
    epsilon: float,
    delta: float,
    gamma: float | None = None,
    seed: int | np.random.SeedSequence | None = None,
    budget: int = 10_000,
    time_limit: float | None = None,
    **settings: Any,
) -> Forecast:
    """Say what `pacplan.plan` would cost, before a long plan: plan briefly, and extrapolate the gap.

    The gap of the trial is taken to go on as a power of the calls. Where that has to be done far beyond
    the trial it is of little worth, and the outlook says so: searches often gather speed.

    Args:
        model: the problem.
        state: as for `plan`, like all that follows.
        epsilon: how far from optimal the action may be.
        delta: probability with which the guarantee may fail.
        gamma: discount; games have none.
        seed: the same seed gives the same trial.
        budget: calls of the trial.
        time_limit: most seconds of the trial.
        settings: further settings of the planner.

    Raises:
        ValueError: as `plan` does.
        TypeError: as `plan` does.
    """
    trial = plan(
        model,
        state,
        epsilon=epsilon,
        delta=delta,
        gamma=gamma,
        seed=seed,
        budget=budget,
        time_limit=time_limit,
        **settings,
    )
    if trial.diagnosis is None:
        calls = trial.samples if trial.certified else None
    else:
        calls = trial.diagnosis.calls_needed
    seconds = None if calls is None else trial.seconds * calls / max(1, trial.samples)
    return Forecast(calls, seconds, trial)
