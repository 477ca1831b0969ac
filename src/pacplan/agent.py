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
from pacplan.result import Plan


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
        (observation, _), over = env.reset(seed=0), False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(agent.act(env, observation))
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

    def act(self, state: Any = None, observation: Any = None) -> Any:
        """Choose an action. The next call assumes that you took it.

        Args:
            state: the current state: a state of the model, or an environment if `from_gymnasium` made
                the model. By default the model's initial state, which for those models is the current
                state of their own environment.
            observation: the last observation, which identifies the state if the model has a `key`.

        Returns:
            The action, as the model names it. `history[-1].plan` has the evidence for it.
        """
        state = self._state(state, observation)
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

    def _state(self, given: Any, observation: Any) -> Any:
        """The state of the model that is meant."""
        if given is None:
            return self.model.initial_state()
        if not (hasattr(given, "step") and hasattr(given, "reset")):
            return given
        if not hasattr(self.model, "state_of"):
            raise TypeError(
                f"act() got the environment {given!r}, but {self.model!r} is not made from one; make "
                "the model with pacplan.from_gymnasium(env), or pass a state"
            )
        return self.model.state_of(given, observation)

    def __repr__(self) -> str:
        return f"<Agent: {self.planner!r}, {len(self.history)} decisions>"
