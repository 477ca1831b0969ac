"""Auto: the planner that chooses a planner for the model, and says which and why."""

from dataclasses import dataclass, replace
from difflib import get_close_matches
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from pacplan.algorithms import OPD, Atlas, Bracket, Canopy, Planner, UGapEMCTS, ValueIteration, planners
from pacplan.algorithms.atlas.search import GrowingError
from pacplan.algorithms.common.certainty import left_to_chance
from pacplan.algorithms.common.confidence import Knowledge, in_reward_units
from pacplan.algorithms.common.horizons import check_gamma_and_horizon
from pacplan.algorithms.common.running import Task
from pacplan.core import checks
from pacplan.core.words import exactly
from pacplan.engine.driver import Limits
from pacplan.engine.interrupts import Interrupt, interrupts
from pacplan.engine.query import Query
from pacplan.engine.seeds import Seed, seed_sequence
from pacplan.engine.values import discounted_steps, step_width
from pacplan.look import MOST_CALLS, Look, look
from pacplan.models.knowledge import Bounds, Function
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
# After so many calls, or this part of a budget or time limit, Atlas may give up.
_PATIENCE, _PATIENT_PART = 10_000, 0.25
# Where so many steps count, discounted, a tree takes many calls; Atlas is tried if any state was seen
# twice.
_LONG = 9.0


P = TypeVar("P", bound=Planner)


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
    look: Look | None = None

    def __str__(self) -> str:
        return f"Planned by {type(self.planner).__name__}{self.why}."


class Auto(Planner):
    """Chooses the planner for the model. `plan.guarantee` names it and says why.

    If every probability is known, in a table or in `Outcomes`, `ValueIteration` computes the answer
    without sampling, with certain bounds. Otherwise `Auto` looks at the model with about a hundred
    calls that no bound uses. It chooses `OPD` if you declare that nothing is random, `Canopy` if every
    successor is new (as with continuous noise), `Atlas` if states recur, `UGapEMCTS` for games of two
    players, and otherwise `Bracket`. If new states keep coming, Atlas hands over to Bracket before it
    has spent any of delta.

    The look takes at most a tenth of a budget and of a time limit, and its calls are not counted.

    Args:
        epsilon: how far from optimal the action may be, in the model's reward units; or, as in "5%", in
            per cent of the range of values, which is `value_range` or follows from the rewards.
        delta: probability with which the guarantee may fail.
        gamma: discount in [0, 1]; 1 needs a horizon. Games have none.
        horizon: number of steps; later rewards do not count. By default the planner's own.
        value_range: (low, high), bounds on every discounted return from any state on, if you
            know them.
        value_bounds: (lower, upper), numbers or functions of the state and the number of steps taken,
            if you know that optimal values lie between them.
        policy: a policy that may be good, for `Bracket`: a function of the state. It only steers.
        value: guesses of optimal values, for `Bracket`: a function of the state. They only steer.
        rewards: "deterministic" if a state and action always pay the same.
        transitions: "deterministic" if a state and action always lead to the same state.
        sample: sample even if every probability is known. Any setting of sampling planners does this
            too.
        settings: further settings of the planner, such as `goal=`.
    """

    name = "auto"

    def __init__(
        self,
        *,
        epsilon: float | str,
        delta: float,
        gamma: float | None = None,
        horizon: int | None = None,
        value_range: tuple[float, float] | None = None,
        value_bounds: Bounds | None = None,
        policy: Function | None = None,
        value: Function | None = None,
        rewards: Knowledge | None = None,
        transitions: Knowledge | None = None,
        sample: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.epsilon, self.gamma = epsilon, gamma
        self.delta = checks.probability("delta", delta)
        self.sample = checks.flag("sample", sample)
        named = {
            "horizon": horizon,
            "value_range": value_range,
            "value_bounds": value_bounds,
            "policy": policy,
            "value": value,
            "rewards": rewards,
            "transitions": transitions,
        }
        self._given = {name: given for name, given in named.items() if given is not None} | settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name that were given."""
        own = {name: getattr(self, name) for name in ("epsilon", "delta", "gamma", "sample")}
        return own | self._given

    def check_query(self, query: Query, limits: Limits) -> None:
        """Raise ValueError for what the likeliest planner cannot handle."""
        self.candidates(query.model)[0].check_query(query, limits)

    def start(self, query: Query, session: Any) -> Any:
        """Never called: `run` leaves the search to the planner that it chooses."""
        raise NotImplementedError

    def run(self, task: Task) -> Plan:
        """The plan of the planner that suits the model."""
        limits = task.limits
        if task.checkpoint is not None:
            task.model.fingerprint()  # Before the look, which may leave something in what it holds.
        with interrupts(limits.raise_interrupts) as interrupt:
            choice = self._choice(task, None if limits.raise_interrupts else interrupt)
            spent, unused = (
                (0.0, 0) if choice.look is None else (choice.look.seconds, choice.look.calls)
            )
            try:
                found = choice.planner.run(_rest(task, spent))
            except GrowingError as growing:
                unused += growing.calls
                why = (
                    f", because new states kept coming when Atlas had found {growing.states:,} in "
                    f"{growing.calls:,} calls"
                )
                choice = Choice(_bracket(self.candidates(task.model)), why)
                found = choice.planner.run(_rest(task, spent + growing.seconds, growing.calls))
        assert found.origin is not None
        # The time limit is that of the look and the plan.
        return replace(
            found,
            guarantee=f"{found.guarantee} ({choice})",
            interrupted=found.interrupted or interrupt.requested,
            origin=replace(found.origin, time_limit=limits.time_limit),
            calls_made=found.calls_made + unused,
        )

    def choose(
        self,
        model: Model,
        state: Any = None,
        *,
        seed: Seed = None,
        budget: int | None = None,
        time_limit: float | None = None,
    ) -> Choice:
        """The planner that `plan` would use with these arguments, and why. It calls the model."""
        check_model(model)
        limits = Limits.checked(budget, time_limit)
        state = model.initial_state() if state is None else state
        return self._choice(Task(model, state, seed_sequence(seed), limits), None)

    def candidates(self, model: Model) -> list[Planner]:
        """The planners that it chooses among, the most likely one first.

        Raises:
            ValueError: a setting out of range.
            TypeError: a setting of the wrong type, or one that no planner for this model has.
        """
        given, gamma = self._given, self.gamma
        sampled: dict[str, Any] = {"epsilon": self._accuracy(model), "delta": self.delta}
        if model.two_player:
            if gamma is not None:
                raise ValueError("a game of two players has no discount; remove gamma=")
            _check_names(UGapEMCTS, given)
            return [UGapEMCTS(**sampled, **given)]
        if gamma is None:
            raise TypeError(
                "plan() needs gamma, the discount; for no discount pass gamma=1 and horizon="
            )
        _check_names(Bracket, given)
        certain = {"epsilon": sampled["epsilon"], "gamma": gamma}
        sampled["gamma"] = gamma
        known = model.known or isinstance(model, Outcomes)
        if known and not self.sample and _takes(ValueIteration, given):
            return [ValueIteration(**certain, **given)]
        found: list[Planner] = [Bracket(**sampled, **given)]
        if _takes(Canopy, given):
            found.append(Canopy(**sampled, **given))
        # Where nothing is random, there is no need for guidance.
        plain = _without(given, "policy", "value")
        if _nothing_random(model, given) and _takes(OPD, plain):
            merge: Any = "stationary" if model.stationary else "depth"
            found.insert(0, OPD(merge=merge, **certain, **plain))
        # Atlas needs no declarations either, and without a horizon plans for an infinite one.
        charted = _without(plain, "rewards", "transitions", *([] if "horizon" in given else ["target"]))
        if model.stationary and _takes(Atlas, charted):
            found.append(Atlas(**sampled, **charted))
        return found

    def _choice(self, task: Task, interrupt: Interrupt | None) -> Choice:
        """The planner for a task, and why; nothing is looked at if a checkpoint says which."""
        candidates = self.candidates(task.model)
        if task.saved is not None:
            written = task.saved.header["planner"]
            for planner in candidates:
                if planner.identity == written:
                    return Choice(planner, ", as chosen before")
            raise ValueError(
                f"the checkpoint belongs to another planner: it was written for {written}, but these "
                f"settings choose one such as {candidates[0]!r}"
            )
        candidates[0].check_query(task.query(), task.limits)  # Before the first call.
        choice = self._chosen(task, candidates, interrupt)
        if not isinstance(self.epsilon, str):
            return choice
        accuracy = exactly(self._accuracy(task.model))
        said = f"{choice.why}; epsilon={self.epsilon} of the range of values is {accuracy}"
        return replace(choice, why=said)

    def _chosen(self, task: Task, candidates: list[Planner], interrupt: Interrupt | None) -> Choice:
        first, model = candidates[0], task.model
        if isinstance(first, UGapEMCTS):
            return Choice(first, ", because the model is a game of two players")
        if isinstance(first, ValueIteration):
            return Choice(first, ", because every probability is known")
        seen = self._seen(task, candidates, interrupt)
        if isinstance(first, OPD):
            return Choice(first, f", because nothing is random: {self._declared()}", seen)
        if seen is None:
            return Choice(first, "")
        canopy, atlas = _of(candidates, Canopy), _of(candidates, Atlas)
        if canopy is not None and not seen.successors_recur:
            why = (
                f", because every successor may be new: of {seen.again} repeated calls, "
                f"{seen.recurred or 'none'} led to a known state"
            )
            return Choice(canopy, why, seen)
        long = self._steps() >= _LONG
        if atlas is None or not (seen.states_recur or (long and seen.states < seen.reached)):
            why = f", because {_counted(model, seen)}" if seen.reached > 0 else ""
            return Choice(first, why, seen)
        for wish, answer, setting in (
            (task.crew, "makes its calls one by one", "workers="),
            (task.checkpoint, "writes no checkpoints", "checkpoint="),
        ):
            if wish is not None:
                why = (
                    f"; states recur, but Atlas {answer}: without {setting} it may need far fewer calls"
                )
                return Choice(first, why, seen)
        limits = task.limits
        calls = min(_PATIENCE, int(_PATIENT_PART * (limits.budget or checks.LARGEST)))
        seconds = None if limits.time_limit is None else _PATIENT_PART * limits.time_limit
        why = f", because states recur: only {_counted(model, seen)}"
        return Choice(atlas.giving_up(calls, seconds), why, seen)

    def _seen(self, task: Task, candidates: list[Planner], interrupt: Interrupt | None) -> Look | None:
        """What a look shows; None if the budget is too small for one."""
        limits, model = task.limits, task.model
        if limits.budget is not None and _LOOK_PART * limits.budget < MOST_CALLS:
            return None
        return look(
            model,
            task.state,
            min(model.steps or checks.LARGEST, _bracket(candidates).horizon_for(model, limits.budget)),
            _child(task.seed, _LOOK_STREAM),
            seconds=None if limits.time_limit is None else _LOOK_PART * limits.time_limit,
            deterministic=self._given.get("transitions") == "deterministic",
            same_rewards=self._given.get("rewards") == "deterministic",
            interrupt=interrupt,
        )

    def _declared(self) -> str:
        """Who said that nothing is random."""
        if self._given.get("rewards") != "deterministic":
            return "the model's table shows it"
        one = "the model promises successors=1"
        if self._given.get("transitions") == "deterministic":
            one = 'transitions="deterministic" says so'
        return f'{one}, and rewards="deterministic" of rewards'

    def _accuracy(self, model: Model) -> float:
        """Epsilon in the model's reward units."""
        if isinstance(self.epsilon, str):
            return in_reward_units(self.epsilon, self._range(model))
        return self.epsilon

    def _range(self, model: Model) -> float:
        """By how much values can differ."""
        if "value_range" in self._given:
            low, high = checks.interval("value_range", self._given["value_range"], "return")
            return high - low
        width = step_width(model.reward_range, model.may_end)
        if self.gamma is None or model.two_player:
            return width
        return width * self._steps()

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


def _rest(task: Task, seconds: float, calls: int = 0) -> Task:
    """What is left of a task after some time and calls; after calls, with other random numbers."""
    limits, seed = task.limits, task.seed
    if limits.time_limit is not None:
        limits = replace(limits, time_limit=max(limits.time_limit - seconds, _LEAST_SECONDS))
    if limits.budget is not None:
        limits = replace(limits, budget=max(limits.budget - calls, 1))
    return replace(task, limits=limits, seed=_child(seed, _NEXT_STREAM) if calls else seed)


def _child(seed: np.random.SeedSequence, stream: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, stream))


def _of(candidates: list[Planner], kind: type[P]) -> P | None:
    """The first planner of a kind."""
    return next((planner for planner in candidates if isinstance(planner, kind)), None)


def _bracket(candidates: list[Planner]) -> Bracket:
    found = _of(candidates, Bracket)
    assert found is not None
    return found


def _without(settings: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


def _takes(planner: type[Planner], settings: dict[str, Any]) -> bool:
    """Whether a planner has all these settings."""
    return set(settings) <= set(signature(planner).parameters)


def _check_names(planner: type[Planner], settings: dict[str, Any]) -> None:
    """Raise TypeError for a setting that the planner does not have."""
    takes = set(signature(planner).parameters)
    for name in settings.keys() - takes:
        others = [other for other, cls in planners.items() if name in signature(cls).parameters]
        own = set(signature(Planner.plan).parameters) - {"self", "model", "state"}
        near = get_close_matches(name, sorted(own | takes), 1)
        hint = f" (did you mean {near[0]}=?)" if near else ""
        if others:
            hint = f" ({', '.join(others)} would take it)"
        known = ", ".join(f"{taken}=" for taken in signature(planner).parameters)
        raise TypeError(f"plan takes no {name}= for this model{hint}; it takes {known}")


def _nothing_random(model: Model, settings: dict[str, Any]) -> bool:
    """Whether the model's table or what was declared leaves nothing to chance."""
    declared = [settings.get(name, "unknown") for name in ("transitions", "rewards")]
    return "known" not in declared and not left_to_chance(model, *declared)
