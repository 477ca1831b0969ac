"""Receding-horizon control: plan, act, observe, plan again."""

import copy
import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from pacplan.algorithms.anytime.anytime import Anytime
from pacplan.algorithms.common.base import Planner
from pacplan.core import checks
from pacplan.engine.driver import Limits
from pacplan.engine.query import Kept, Query, seed_sequence
from pacplan.models.protocol import Model, check_model
from pacplan.playing import Episode, Played
from pacplan.result import Plan
from pacplan.views.progress import bar


class Decision(NamedTuple):
    """One decision of an agent: where it was made, what was chosen, and why.

    `plan` has no tree. `delta` is the probability with which its guarantee may fail; None for planners
    without one. `reused_samples` is the number of earlier calls to the model that it went on from.
    """

    state: Any
    action: Any
    plan: Plan
    delta: float | None
    reused_samples: int


class Agent:
    """A planner in a loop: `act` plans from the current state and returns an action.

        agent = pacplan.Agent(planner, pacplan.from_gymnasium(env))
        env.reset(seed=0)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(agent.act(env))
            over = terminated or truncated

    **Guarantees over an episode.** Each decision is its own problem: H steps from its state. With
    `spread="union"`, the guarantees of *all* plans of the episode hold together with probability at
    least 1 - delta: every certified action is epsilon-optimal in its own problem, and every other one
    `plan.gap`-optimal. With `spread="none"`, each guarantee holds with probability at least 1 - delta,
    and over an episode the probabilities of failure add up. The collected reward is not certified. But
    if the world behaves as the model says, and all actions are eta-optimal over an infinite horizon,
    the agent loses at most eta / (1 - gamma) of the expected return. Here eta is epsilon plus
    w gamma^H / (1 - gamma), which the horizon cuts off, w being the width of the range of rewards.

    **Keeping what was learnt.** `Anytime` keeps its chart of the states from one decision to the next.
    Planners with a guarantee do not: the same samples chose the action that led there.

    Args:
        planner: the planner; None: `Anytime`, which needs `gamma`.
        model: the problem.
        budget: maximum number of calls to the model per decision.
        time_limit: maximum time per decision, in seconds.
        gamma: discount, if there is no planner.
        reuse: whether a search goes on from the last one; by default if the planner can do that.
        spread: "none": every plan has the planner's delta; "union": all plans of an episode share it.
            The m-th plan gets 6 / (pi m)^2 of it.
        seed: for all plans; None draws a fresh one. The world must have a different one.
        workers: number of parallel calls to a slow Python simulator, as for `Planner.plan`.
        executor: your own executor for these calls, as for `Planner.plan`. Its processes serve all
            decisions.

    Attributes:
        history: the decisions since the last `reset`, a list of `Decision`.

    Raises:
        ValueError: something that this planner or model cannot do.
        TypeError: an argument of the wrong type.
    """

    def __init__(
        self,
        planner: Planner | None,
        model: Model,
        budget: int | None = None,
        time_limit: float | None = None,
        *,
        gamma: float | None = None,
        reuse: bool | None = None,
        spread: Literal["none", "union"] = "none",
        seed: int | np.random.SeedSequence | None = None,
        workers: int | None = None,
        executor: Any = None,
    ) -> None:
        if planner is None:
            if gamma is None:
                raise TypeError("an agent without a planner needs gamma, the discount: pass gamma=")
            planner = Anytime(gamma=gamma)
        elif gamma is not None:
            raise TypeError(f"gamma= is a setting of the planner, here {planner!r}; remove gamma=")
        if not isinstance(planner, Planner):
            raise TypeError(f"planner must be a planner such as MDPGapE(...), got {planner!r}")
        check_model(model)
        self._crew = planner.crew(model, workers, executor)
        self.planner, self.model = planner, model
        self.budget, self.time_limit = budget, time_limit
        can = planner.goes_on and self._crew is None
        self.reuse = can if reuse is None else checks.flag("reuse", reuse)
        self.spread = checks.choice("spread", spread, ("none", "union"))
        if self.reuse and not can:
            raise ValueError(
                f"reuse=True is for Anytime without workers=; {type(planner).__name__} starts every "
                "plan anew. Remove reuse="
            )
        if self.spread == "union" and getattr(planner, "delta", None) is None:
            raise ValueError(f"spread='union' shares delta among decisions, but {planner!r} has none")
        # A copy, so that two agents with one sequence decide alike; children that were spawned stay so.
        given = copy.deepcopy(seed) if isinstance(seed, np.random.SeedSequence) else seed
        self._seeds = seed_sequence(given)
        self._kept = Kept() if self.reuse else None
        self.reset()

    def reset(self) -> None:
        """Begin a new episode: forget the history. The seeds go on, and so does what was learnt."""
        self.history: list[Decision] = []

    def act(self, state: Any = None) -> Any:
        """Choose an action. The next call assumes that you took it.

        Args:
            state: the current state: a state of the model, or an environment if `from_gymnasium` made
                the model. By default the model's initial state, which for those models is the current
                state of their own environment.

        Returns:
            The action, as the model names it. `history[-1].plan` has the evidence for it.
        """
        state = self._state(state)
        planner, delta = self.planner, getattr(self.planner, "delta", None)
        if delta is not None and self.spread == "union":
            # These parts of all plans that an episode can have sum to one.
            delta *= 6.0 / (math.pi * (len(self.history) + 1)) ** 2
            planner = planner.with_delta(delta)
        limits = Limits(self.budget, self.time_limit)
        (seed,) = self._seeds.spawn(1)
        kept = self._kept
        before = 0 if kept is None or kept.search is None else kept.search.charted
        try:
            plan = planner.run(Query(self.model, state, seed, limits, crew=self._crew, kept=kept))
        except BaseException:
            if kept is not None:
                kept.forget()
            raise
        reused = before if kept is not None and kept.search.charted > plan.samples else 0
        bare = replace(plan, tree=None, policy=None)
        self.history.append(Decision(state, plan.action, bare, delta, reused))
        return plan.action

    def play(
        self,
        start: Any = None,
        episodes: int = 1,
        *,
        steps: int = 1000,
        seed: int | None = None,
        workers: int | None = None,
        progress: bool = False,
    ) -> Played:
        """Play whole episodes, and record them.

        Args:
            start: an environment of Gymnasium, whose model is the agent's; or a state, to play in the
                model itself from there; by default the model's initial state.
            episodes: how many.
            steps: maximum number of steps of an episode.
            seed: of the world: the k-th episode resets the environment with seed + k, or draws from
                the model with a generator of these two. None draws a fresh one.
            workers: play all episodes of a model side by side, with so many parallel plans
                (`plan_many`). Nothing is kept from step to step then.
            progress: show a bar on the error stream.

        Returns:
            The episodes. Ctrl-C ends the playing, and you get those that were played to their end.

        Raises:
            ValueError: an argument out of range.
            TypeError: an argument of the wrong type.
        """
        number = checks.integer("episodes", episodes, least=1)
        most = checks.integer("steps", steps, least=1)
        first = int(seed_sequence(seed).generate_state(1)[0]) if seed is None else seed
        worlds = [_World(self.model, start, first, k) for k in range(number)]
        if workers is not None:
            if worlds[0].env is not None:
                raise ValueError("workers= plays in the model; remove the environment, or workers=")
            return self._side_by_side(worlds, most, workers, progress)
        played: list[Episode] = []
        with bar(number, 0, "episodes", show=checks.flag("progress", progress)) as done:
            for world in worlds:
                self.reset()
                world.begin()
                while not world.over and len(world.rewards) < most:
                    world.take(self.act(world.state))
                    if self.history[-1].plan.interrupted:
                        return Played(tuple(played))
                played.append(world.episode(self.history))
                done(1)
        return Played(tuple(played))

    def _side_by_side(self, worlds: "list[_World]", most: int, workers: int, progress: bool) -> Played:
        """Episodes of the model, a step of all of them at a time."""
        delta = getattr(self.planner, "delta", None)
        histories: list[list[Decision]] = [[] for _ in worlds]
        for world in worlds:
            world.begin()
        with bar(len(worlds), 0, "episodes", show=checks.flag("progress", progress)) as done:
            for _ in range(most):
                live = [k for k, world in enumerate(worlds) if not world.over]
                if not live:
                    break
                plans = self.planner.plan_many(
                    self.model,
                    [worlds[k].state for k in live],
                    seeds=self._seeds.spawn(1)[0],
                    workers=workers,
                    budget=self.budget,
                    time_limit=self.time_limit,
                    trees=False,
                )
                for k, plan in zip(live, plans, strict=False):
                    histories[k].append(Decision(worlds[k].state, plan.action, plan, delta, 0))
                    worlds[k].take(plan.action)
                    done(worlds[k].over)
                if plans.interrupted:
                    worlds = [world for world in worlds if world.over]
                    break
        pairs = zip(worlds, histories, strict=False)
        return Played(tuple(world.episode(history) for world, history in pairs))

    def _state(self, given: Any) -> Any:
        """The state of the model that is meant."""
        if given is None:
            return self.model.initial_state()
        if not _is_environment(given):
            return given
        if not hasattr(self.model, "state_of"):
            raise TypeError(
                f"act() got the environment {given!r}, but {self.model!r} is not made from one; make "
                "the model with pacplan.from_gymnasium(env), or pass a state"
            )
        return self.model.state_of(given)

    def __repr__(self) -> str:
        return f"<Agent: {self.planner!r}, {len(self.history)} decisions>"


def _is_environment(given: Any) -> bool:
    return hasattr(given, "step") and hasattr(given, "reset")


class _World:
    """Where an episode is played: an environment, or the model itself with a generator of its own."""

    def __init__(self, model: Model, start: Any, seed: int, number: int) -> None:
        self.model, self.env = model, start if _is_environment(start) else None
        self.over, self.rewards = False, list[float]()
        self._seed, self._rng = seed + number, np.random.default_rng([seed, number])
        self.state = start

    def begin(self) -> None:
        """Go to where the episode begins."""
        if self.env is not None:
            self.env.reset(seed=self._seed)
        elif not callable(getattr(self.model, "step", None)):
            raise ValueError(f"{self.model!r} cannot be played in; pass an environment: play(env)")
        elif self.state is None:
            self.state = self.model.initial_state()

    def take(self, action: Any) -> None:
        """Take an action."""
        if self.env is not None:
            _, reward, terminated, truncated, _ = self.env.step(action)
            self.terminated, self.over = bool(terminated), bool(terminated or truncated)
        else:
            h = () if self.model.stationary else (len(self.rewards),)
            step: Any = self.model.step  # type: ignore[attr-defined]
            self.state, reward, terminated = step(self.state, action, self._rng, *h)
            self.terminated = self.over = bool(terminated)
        self.rewards.append(float(reward))

    def episode(self, history: list[Decision]) -> Episode:
        """What was played."""
        return Episode(tuple(history), np.array(self.rewards), self.terminated)
