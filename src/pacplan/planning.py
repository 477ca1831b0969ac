"""One call for a decision: the planner is chosen for the model, and the plan says which and why."""

from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pacplan.algorithms import OPD, Bracket, Canopy, Planner, UGapEMCTS
from pacplan.algorithms.common.base import seed_sequence
from pacplan.algorithms.common.confidence import DefaultHorizon
from pacplan.core.words import exactly
from pacplan.engine.driver import Callback
from pacplan.engine.values import step_width
from pacplan.look import Look, look
from pacplan.models.protocol import Model, check_model, facts
from pacplan.result import Plan

# Part of a budget, or of a time limit, that a look may take, and its most seconds.
_LOOK_PART, _LOOK_SECONDS = 0.1, 2.0
# Most calls of a look.
_LOOK_CALLS = 112
# The look has a stream of its own, so that the plan is the planner's own for this seed.
_LOOK_STREAM = 0x100C
_LOOK_STEPS = 8


@dataclass(frozen=True)
class Choice:
    """A planner, and why it was chosen.

    Attributes:
        planner: the planner, ready to plan.
        why: the reason, to follow its name.
        look: what was seen of the model first; None if nothing was.
    """

    planner: Planner
    why: str
    look: Look | None

    def __str__(self) -> str:
        return f"Planned by {type(self.planner).__name__}{self.why}."

    def told(self, found: Plan) -> Plan:
        """The plan that the planner found, which now says why it was this one."""
        return replace(found, guarantee=f"{found.guarantee} ({self})")


def plan(
    model: Model,
    state: Any = None,
    *,
    epsilon: float | str,
    delta: float,
    gamma: float | None = None,
    seed: int | np.random.SeedSequence | None = None,
    budget: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    memory_limit: int | None = None,
    on_interrupt: Literal["return", "raise"] = "return",
    checkpoint: str | Path | None = None,
    every: float = 60.0,
    **settings: Any,
) -> Plan:
    """Decide what to do in a state, with a proof and few calls to the model.

    Looks at the model first, with about a hundred calls that no bound uses, and chooses: `OPD` if
    nothing is random; `Canopy` if every successor is new, as with continuous noise; else `Bracket`,
    with equal states merged if they recur; and `UGapEMCTS` for games of two players. `plan.guarantee`
    says what was seen, and which planner it was.

    Args:
        model: the problem.
        state: where to plan from; by default the model's own initial state.
        epsilon: how far from optimal the action may be, in the model's reward units; or, as in "5%", in
            per cent of the range of values: that of `value_range`, if it is given, else what the
            rewards of all steps can add up to.
        delta: probability with which the guarantee may fail.
        gamma: discount; games have none.
        seed: the same seed gives the same plan; None draws a fresh one.
        budget: most calls to the model. (Those of the look are not counted; they are at most a tenth.)
        time_limit: most seconds.
        progress: show how the search stands, on the error stream.
        callback: called with a `Snapshot` now and then; a true result stops the search.
        memory_limit: most bytes for the records of the search.
        on_interrupt: what Ctrl-C does, as for `Planner.plan`.
        checkpoint: a file that receives, now and then, what is needed to go on; `plan.planner` names
            the planner to `resume` with.
        every: seconds between two checkpoints.
        settings: further settings of the planner, such as `horizon=`, `value_range=` or
            `rewards="deterministic"`; `merge="auto"`, the default, leaves it to the look.

    Raises:
        ValueError: a setting out of range, or a problem that cannot be handled.
        TypeError: a setting of the wrong type, or one that no planner for this model has.
    """
    root = seed_sequence(seed)
    choice = choose(
        model,
        state,
        epsilon=epsilon,
        delta=delta,
        gamma=gamma,
        seed=root,
        budget=budget,
        time_limit=time_limit,
        **settings,
    )
    found = choice.planner.plan(
        model,
        state,
        seed=root,
        budget=budget,
        time_limit=time_limit,
        progress=progress,
        callback=callback,
        memory_limit=memory_limit,
        on_interrupt=on_interrupt,
        checkpoint=checkpoint,
        every=every,
    )
    return choice.told(found)


def absolute(
    epsilon: float | str, model: Model, gamma: float | None, settings: dict[str, Any]
) -> float:
    """The accuracy in the model's reward units, if it is given in per cent of the range of values.

    Raises:
        ValueError: a text that is no such number.
    """
    if not isinstance(epsilon, str):
        return epsilon
    try:
        part = float(epsilon.removesuffix("%")) / 100.0
    except ValueError:
        part = -1.0
    if not epsilon.endswith("%") or not 0.0 <= part <= 1.0:
        raise ValueError(f"epsilon must be a number, or per cent as in '5%', got {epsilon!r}")
    check_model(model)
    if settings.get("value_range") is not None:
        low, high = settings["value_range"]
        return part * float(high - low)
    width, horizon = step_width(model.reward_range, model.may_end), settings.get("horizon")
    if gamma is None or model.two_player:
        return part * width
    if horizon is not None:
        return part * width * sum(gamma**h for h in range(int(horizon)))
    if gamma == 1.0:
        raise ValueError(f"with gamma=1, epsilon={epsilon!r} needs a horizon= or a value_range=")
    return part * width / (1.0 - gamma)


def choose(
    model: Model,
    state: Any = None,
    *,
    epsilon: float | str,
    delta: float,
    gamma: float | None = None,
    seed: int | np.random.SeedSequence | None = None,
    budget: int | None = None,
    time_limit: float | None = None,
    **settings: Any,
) -> Choice:
    """The planner that `plan` would use, and why. It calls the model, to look at it.

    Args:
        model: the problem.
        state: as for `plan`, like all that follows.
        epsilon: how far from optimal the action may be.
        delta: probability with which the guarantee may fail.
        gamma: discount; games have none.
        seed: of the look.
        budget: most calls of the plan.
        time_limit: most seconds of the plan.
        settings: of the planner.
    """
    check_model(model)
    accuracy = absolute(epsilon, model, gamma, settings)
    choice = _chosen(model, state, accuracy, delta, gamma, seed, budget, time_limit, settings)
    if not isinstance(epsilon, str):
        return choice
    said = f"{choice.why}; epsilon={epsilon} of the range of values is {exactly(accuracy)}"
    return replace(choice, why=said)


def _chosen(
    model: Model,
    state: Any,
    epsilon: float,
    delta: float,
    gamma: float | None,
    seed: int | np.random.SeedSequence | None,
    budget: int | None,
    time_limit: float | None,
    settings: dict[str, Any],
) -> Choice:
    if model.two_player:
        if gamma is not None:
            raise ValueError("a game of two players has no discount: leave gamma out")
        game = UGapEMCTS(epsilon=epsilon, delta=delta, **settings)
        return Choice(game, ", which is for games of two players", None)
    if gamma is None:
        raise TypeError("plan() needs gamma, the discount: pass gamma=1 and a horizon= for none")
    merge = settings.pop("merge", "auto")
    if merge != "auto":
        settings["merge"] = merge
    # What is wrong with a setting is said before the first call.
    proven = Bracket(epsilon=epsilon, delta=delta, gamma=gamma, **settings)
    if state is None:
        state = model.initial_state()
    seen = _seen(model, state, proven, seed_sequence(seed), budget, time_limit)
    if _nothing_is_random(model, settings, seen) and _takes(OPD, settings):
        certain = {"merge": "stationary" if facts(model).stationary else "depth"} | settings
        planner = OPD(epsilon=epsilon, gamma=gamma, **certain)
        return Choice(planner, f", since nothing is random: {_declared(model, settings)}", seen)
    if seen is not None and not seen.successors_recur and _takes(Canopy, settings):
        why = (
            f": of {seen.again} calls of the same pairs {seen.recurred or 'none'} led where another "
            "had, so every successor may be new"
        )
        return Choice(Canopy(epsilon=epsilon, delta=delta, gamma=gamma, **settings), why, seen)
    merge, why = _merging(model, settings, seen)
    settings["merge"] = merge
    return Choice(Bracket(epsilon=epsilon, delta=delta, gamma=gamma, **settings), why, seen)


def _seen(
    model: Model,
    state: Any,
    planner: DefaultHorizon,
    seed: np.random.SeedSequence,
    budget: int | None,
    time_limit: float | None,
) -> Look | None:
    """What a look shows; None if the budget is too small for one."""
    if budget is not None and _LOOK_PART * budget < _LOOK_CALLS:
        return None
    horizon = _LOOK_STEPS
    if planner.horizon is not None or budget is not None:
        horizon = min(horizon, planner.horizon_for(model, budget))
    if model.steps is not None:
        horizon = min(horizon, model.steps)
    seconds = _LOOK_SECONDS if time_limit is None else min(_LOOK_SECONDS, _LOOK_PART * time_limit)
    own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, _LOOK_STREAM))
    return look(model, state, horizon, own, seconds)


def _takes(planner: type[Planner], settings: dict[str, Any]) -> bool:
    """Whether a planner has all these settings."""
    return set(settings) <= set(signature(planner).parameters)


def _nothing_is_random(model: Model, settings: dict[str, Any], seen: Look | None) -> bool:
    """Whether it was declared that every pair has one successor, and rewards were not seen to vary."""
    one = model.successors == 1 or settings.get("transitions") == "deterministic"
    told = settings.get("rewards", "unknown")
    if not one or model.random_rewards or told == "known" or settings.get("transitions") == "known":
        return False
    return told == "deterministic" or (seen is not None and seen.again > 0 and seen.varied == 0)


def _declared(model: Model, settings: dict[str, Any]) -> str:
    if settings.get("transitions") == "deterministic":
        return 'transitions="deterministic" says so'
    return "the model promises successors=1, and no reward was seen to vary"


def _merging(model: Model, settings: dict[str, Any], seen: Look | None) -> tuple[str, str]:
    """What Bracket's nodes should stand for, and why."""
    if "merge" in settings:
        return settings["merge"], ""
    if seen is None:
        return "depth", ", with equal states of the same step merged"
    hint = ""
    if seen.again > 0 and seen.varied == 0:
        hint = ' (nothing random was seen; if nothing is, say transitions="deterministic")'
    counted = f"{seen.states} of {seen.reached} states that were reached were different{hint}"
    if seen.states_recur and facts(model).stationary:
        return "stationary", f", with equal states merged, since only {counted}"
    if seen.some_states_recur:
        return "depth", f", with equal states of the same step merged, since {counted}"
    return "tree", f", without merging states, since {counted}"
