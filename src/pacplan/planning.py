"""One call for a decision: the planner is chosen for the model, and the plan says which and why."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pacplan.algorithms import (
    OPD,
    Bracket,
    Canopy,
    Planner,
    UGapEMCTS,
    ValueIteration,
    planners,
)
from pacplan.algorithms.common.base import crew_of
from pacplan.algorithms.common.certainty import left_to_chance
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.many import Plans, Seeds, plan_all, shared_delta
from pacplan.compiled.streams import streams
from pacplan.core import checks
from pacplan.core.words import at_least, exactly
from pacplan.engine.checkpoint import Checkpoint, check_place
from pacplan.engine.driver import Callback, Limits
from pacplan.engine.executors import Workers
from pacplan.engine.interrupts import Presses, interrupts
from pacplan.engine.query import Query
from pacplan.engine.seeds import seed_sequence
from pacplan.engine.values import step_width
from pacplan.look import MOST_CALLS, Look, look
from pacplan.models.outcomes import Outcomes
from pacplan.models.protocol import Model, check_model
from pacplan.result import Plan

# Part of a budget, or of a time limit, that a look may take.
_LOOK_PART = 0.1
# The look has a stream of its own, so that the plan is the planner's own for this seed.
_LOOK_STREAM = 0x100C
# What is left of a time limit of which a look has taken more than its part.
_LEAST_SECONDS = 1e-3


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
    workers: int | None = None,
    executor: Any = None,
    **settings: Any,
) -> Plan:
    """Decide what to do in a state, with a proof and few calls to the model.

    Where every probability is known, in a table or in `Outcomes`, it samples nothing: `ValueIteration`
    computes the answer, with certain bounds. Otherwise it looks at the model first, with about a
    hundred calls that no bound uses, and chooses: `OPD` if you declare that nothing is random; `Canopy`
    if every successor is new, as with continuous noise; else `Bracket`, with equal states merged if
    they recur; and `UGapEMCTS` for games of two players. `plan.guarantee` says which it was, and why.

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
        time_limit: most seconds, of which the look takes at most a tenth; but the first episode is
            always played, whatever it takes. (To load the compiled search, once in a process, does not
            count.)
        progress: show how the search stands, on the error stream.
        callback: called with a `Snapshot` now and then; a true result stops the search.
        memory_limit: most bytes for the records of the search.
        on_interrupt: what Ctrl-C does, as for `Planner.plan`.
        checkpoint: a file that receives, now and then, what is needed to go on; `plan.planner` names
            the planner to `resume` with.
        every: seconds between two checkpoints.
        workers: how many calls to a slow Python simulator are made at a time, as for `Planner.plan`.
            (The look makes its calls one by one.)
        executor: who makes them, if not processes of our own.
        settings: further settings of the planner, such as `horizon=`, `value_range=` or
            `rewards="deterministic"`; `merge="auto"`, the default, leaves it to the look.
            `sample=True` plans by sampling where every probability is known; so does any setting that
            only planners that sample have.

    Raises:
        ValueError: a setting out of range, or a problem that cannot be handled.
        TypeError: a setting of the wrong type, or one that no planner for this model has.
    """
    return decided(
        model,
        state,
        dict(epsilon=epsilon, delta=delta, gamma=gamma, **settings),
        seed=seed,
        budget=budget,
        time_limit=time_limit,
        progress=progress,
        callback=callback,
        memory_limit=memory_limit,
        on_interrupt=on_interrupt,
        checkpoint=checkpoint,
        every=every,
        workers=workers,
        executor=executor,
    )[1]


def plan_many(
    model: Model,
    states: Iterable[Any],
    *,
    epsilon: float | str,
    delta: float,
    gamma: float | None = None,
    seeds: Seeds = None,
    workers: int | None = None,
    executor: Any = None,
    spread: Literal["none", "union"] = "none",
    budget: int | None = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    progress: bool = False,
    on_interrupt: Literal["return", "raise"] = "return",
    trees: bool = True,
    **settings: Any,
) -> Plans:
    """Decide what to do in each of many states: the plans that `plan` finds, several at a time.

    It looks at the model from every state, and chooses a planner for each.

    Args:
        model: the problem.
        states: where to plan from, as for `Planner.plan_many`.
        epsilon: how far from optimal the actions may be, as for `plan`.
        delta: probability with which a guarantee may fail: each one, or with `spread="union"` any.
        gamma: discount; games have none.
        seeds: as for `Planner.plan_many`, like all that follows.
        workers: how many plans are made at a time.
        executor: what computes, if not threads or processes of our own.
        spread: "none" or "union".
        budget: most calls to the model for each plan.
        time_limit: most seconds for each plan.
        memory_limit: most bytes for the records of each search.
        progress: show a bar on the error stream.
        on_interrupt: what Ctrl-C does.
        trees: whether plans keep their search trees and policies.
        settings: further settings of the planners, as for `plan`.

    Returns:
        The plans, an iterator. Its `outcomes()` go on over a state whose plan raises.

    Raises:
        ValueError: a setting out of range.
        TypeError: a setting of the wrong type, or one that no planner for this model has.
    """
    check_model(model)
    Limits.checked(budget, time_limit, None, None, memory_limit)
    part = shared_delta(checks.probability("delta", delta), states, spread)
    given = {"delta": part, "gamma": gamma, **settings}
    _possible(model, absolute(epsilon, model, gamma, given), given)  # Raises what is wrong for all.
    return plan_all(
        partial(
            plan,
            model,
            epsilon=epsilon,
            delta=part,
            gamma=gamma,
            budget=budget,
            time_limit=time_limit,
            memory_limit=memory_limit,
            **settings,
        ),
        states,
        seeds,
        Workers(workers, executor),
        compiled=model.compiled,
        progress=progress,
        on_interrupt=on_interrupt,
        trees=trees,
    )


def decided(
    model: Model,
    state: Any,
    settings: dict[str, Any],
    *,
    seed: int | np.random.SeedSequence | None = None,
    budget: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    memory_limit: int | None = None,
    on_interrupt: Literal["return", "raise"] = "return",
    checkpoint: str | Path | None = None,
    every: float = 60.0,
    progress: bool = False,
    workers: int | None = None,
    executor: Any = None,
) -> tuple[Choice, Plan]:
    """As `plan`, which has the arguments; the settings have the accuracy and the discount as well."""
    check_model(model)
    limits = Limits.checked(budget, time_limit, None, callback, memory_limit, on_interrupt)
    if checkpoint is not None:
        check_place(Path(checkpoint))
        checks.positive("every", every)
        model.fingerprint()  # Before it is looked at, which may leave something in what it holds.
    crew_of(model, workers, executor, checkpoint)
    root = seed_sequence(seed)
    if state is None:
        state = model.initial_state()
    with interrupts(limits.raise_interrupts) as presses:
        choice = _choose(
            model, state, settings, root, limits, None if limits.raise_interrupts else presses
        )
        if time_limit is not None and choice.look is not None:
            time_limit = max(time_limit - choice.look.seconds, _LEAST_SECONDS)
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
            workers=workers,
            executor=executor,
        )
    assert found.origin is not None
    origin = replace(found.origin, time_limit=limits.time_limit)  # That of the look and the plan.
    interrupted = found.interrupted or presses.any
    return choice, choice.told(replace(found, interrupted=interrupted, origin=origin))


def decided_before(saved: Checkpoint, model: Model, settings: dict[str, Any]) -> Choice:
    """The choice for which a checkpoint was written, without another look, which might differ.

    Raises:
        ValueError: with these settings no planner is chosen that could have written it.
    """
    given = dict(settings)
    epsilon = absolute(given.pop("epsilon"), model, given.get("gamma"), given)
    possible = _possible(model, epsilon, given)
    for planner in possible:
        if planner.identity == saved.header["planner"]:
            return Choice(planner, ", as chosen before", None)
    raise ValueError(
        f"the checkpoint is from another planner: it was written for {saved.header['planner']}, and "
        f"with these settings it would be one such as {possible[0]!r}"
    )


def absolute(
    epsilon: float | str, model: Model, gamma: float | None, settings: dict[str, Any]
) -> float:
    """The accuracy in the model's reward units, if it is given in per cent of the range of values.

    It has four digits, rounded down, so that it can be written, and is no more than was asked for.

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
    # Twelve digits first: what sums of doubles are off by is not rounded down.
    return float(at_least(float(f"{part * _range(model, gamma, settings):.12g}")))


def _range(model: Model, gamma: float | None, settings: dict[str, Any]) -> float:
    """By how much values can differ."""
    if settings.get("value_range") is not None:
        low, high = checks.interval("value_range", settings["value_range"], "return")
        return high - low
    width = step_width(model.reward_range, model.may_end)
    if gamma is None or model.two_player:
        return width
    discount, horizon = check_gamma_and_horizon(gamma, settings.get("horizon"))
    if discount == 1.0:
        assert horizon is not None
        return width * horizon
    left = 0.0 if horizon is None else discount**horizon
    return width * (1.0 - left) / (1.0 - discount)


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
    limits = Limits.checked(budget, time_limit, None)
    if state is None:
        state = model.initial_state()
    given = dict(epsilon=epsilon, delta=delta, gamma=gamma, **settings)
    return _choose(model, state, given, seed_sequence(seed), limits, None)


def _choose(
    model: Model,
    state: Any,
    settings: dict[str, Any],
    seed: np.random.SeedSequence,
    limits: Limits,
    presses: Presses | None,
) -> Choice:
    given = dict(settings)
    asked = given.pop("epsilon")
    epsilon = absolute(asked, model, given.get("gamma"), given)
    possible = _possible(model, epsilon, given)
    # What is wrong is said before the first call.
    rng, ties = streams(seed_sequence(0), 2)
    query = Query(model, state, model.actions(state), limits.budget, rng, ties)
    possible[0].check_query(query, limits)
    seen = None
    if not model.two_player and not possible[0].reads:
        seen = _seen(query, possible, given, seed, limits, presses)
    choice = _chosen(model, possible, given, seen)
    if not isinstance(asked, str):
        return choice
    said = f"{choice.why}; epsilon={asked} of the range of values is {exactly(epsilon)}"
    return replace(choice, why=said)


def _possible(model: Model, epsilon: float, given: dict[str, Any]) -> list[Planner]:
    """The planners that may be chosen; the first is the most likely one."""
    own = ("delta", "gamma", "merge", "sample")
    settings = {name: value for name, value in given.items() if name not in own}
    delta, gamma, merge = given["delta"], given["gamma"], given.get("merge", "auto")
    if model.two_player:
        if gamma is not None:
            raise ValueError("a game of two players has no discount: leave gamma out")
        if "merge" in given:
            settings["merge"] = merge
        _check_names(UGapEMCTS, settings)
        return [UGapEMCTS(epsilon=epsilon, delta=delta, **settings)]
    if gamma is None:
        raise TypeError("plan() needs gamma, the discount: pass gamma=1 and horizon= for none")
    _check_names(Bracket, settings)
    sample = checks.flag("sample", given.get("sample", False)) or "merge" in given
    known = model.known or isinstance(model, Outcomes)
    if known and not sample and _takes(ValueIteration, settings):
        return [ValueIteration(epsilon=epsilon, gamma=gamma, **settings)]
    merges: tuple[Any, ...] = (merge,)
    if merge == "auto":
        merges = ("stationary", "depth", "tree") if model.stationary else ("depth", "tree")
    found: list[Planner] = [
        Bracket(epsilon=epsilon, delta=delta, gamma=gamma, merge=nodes, **settings) for nodes in merges
    ]
    if merge == "auto" and _takes(Canopy, settings):
        found.append(Canopy(epsilon=epsilon, delta=delta, gamma=gamma, **settings))
    # Where nothing is random, there is no need for guidance.
    certain = {name: value for name, value in settings.items() if name not in ("policy", "value")}
    if _is_certain(model, settings) and _takes(OPD, certain):
        found.insert(0, OPD(epsilon=epsilon, gamma=gamma, merge=merges[0], **certain))
    return found


def _check_names(planner: type[Planner], settings: dict[str, Any]) -> None:
    """Raise TypeError for a setting that the planner does not have."""
    for name in settings:
        if _takes(planner, {name: None}):
            continue
        others = [other for other, cls in planners.items() if _takes(cls, {name: None})]
        own = set(signature(plan).parameters) - {"model", "state", "settings"}
        near = get_close_matches(name, sorted(own | set(signature(planner).parameters)), 1)
        hint = f" (did you mean {near[0]}=?)" if near else ""
        if others:
            hint = f" ({', '.join(others)} would take it)"
        known = ", ".join(f"{taken}=" for taken in signature(planner).parameters)
        raise TypeError(f"plan takes no {name}= for this model{hint}; it takes {known}")


def _takes(planner: type[Planner], settings: dict[str, Any]) -> bool:
    """Whether a planner has all these settings."""
    return set(settings) <= set(signature(planner).parameters)


def _seen(
    query: Query,
    possible: list[Planner],
    settings: dict[str, Any],
    seed: np.random.SeedSequence,
    limits: Limits,
    presses: Presses | None,
) -> Look | None:
    """What a look shows; None if the budget is too small for one."""
    budget, model = limits.budget, query.model
    if budget is not None and _LOOK_PART * budget < MOST_CALLS:
        return None
    (bracket, *_) = (planner for planner in possible if isinstance(planner, Bracket))
    return look(
        model,
        query.state,
        min(model.steps or checks.LARGEST, bracket.horizon_for(model, budget)),
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, _LOOK_STREAM)),
        seconds=None if limits.time_limit is None else _LOOK_PART * limits.time_limit,
        deterministic=settings.get("transitions") == "deterministic",
        same_rewards=settings.get("rewards") == "deterministic",
        presses=presses,
    )


def _chosen(
    model: Model, possible: list[Planner], settings: dict[str, Any], seen: Look | None
) -> Choice:
    """Which of the planners it is, after what was seen."""

    def of(kind: type[Planner], merge: str | None = None) -> Planner | None:
        fitting = (p for p in possible if type(p) is kind)
        return next((p for p in fitting if merge is None or getattr(p, "merge", "") == merge), None)

    game, certain, canopy = of(UGapEMCTS), of(OPD), of(Canopy)
    exact = of(ValueIteration)
    if exact is not None:
        return Choice(exact, ", since every probability is known", None)
    if game is not None:
        return Choice(game, ", which is for games of two players", None)
    if certain is not None:
        return Choice(certain, f", since nothing is random: {_declared(settings)}", seen)
    if canopy is not None and seen is not None and not seen.successors_recur:
        why = (
            f": of {seen.again} calls of the same pairs {seen.recurred or 'none'} led where another "
            "had, so every successor may be new"
        )
        return Choice(canopy, why, seen)
    merge, why = _merging(model, settings, seen)
    bracket = of(Bracket, merge)
    assert bracket is not None
    return Choice(bracket, why, seen)


def _is_certain(model: Model, settings: dict[str, Any]) -> bool:
    """Whether the model's table or what was declared leaves nothing to chance."""
    declared = [settings.get(name, "unknown") for name in ("transitions", "rewards")]
    return "known" not in declared and not left_to_chance(model, *declared)


def _declared(settings: dict[str, Any]) -> str:
    """Who said that nothing is random."""
    if settings.get("rewards") != "deterministic":
        return "the model's table shows it"
    one = "the model promises successors=1"
    if settings.get("transitions") == "deterministic":
        one = 'transitions="deterministic" says so'
    return f'{one}, and rewards="deterministic" of rewards'


def _merging(model: Model, settings: dict[str, Any], seen: Look | None) -> tuple[str, str]:
    """What Bracket's nodes should stand for, and why."""
    given = settings.get("merge", "auto")
    if given != "auto":
        return given, ""
    if seen is None or seen.reached == 0:
        return "depth", ", with equal states of the same step merged"
    hint = ""
    if seen.again > 0 and seen.varied == 0 and not model.known:
        hint = (
            ' (nothing random was seen; if nothing is, say transitions="deterministic" and '
            'rewards="deterministic")'
        )
    counted = f"{seen.states} of {seen.reached} states that were reached were different{hint}"
    if seen.states == seen.reached:
        counted = f"no state was reached twice{hint}"
    if seen.states_recur and model.stationary:
        return "stationary", f", with equal states merged, since only {counted}"
    if seen.some_states_recur:
        return "depth", f", with equal states of the same step merged, since {counted}"
    return "tree", f", without merging states, since {counted}"
