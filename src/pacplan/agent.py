"""Receding-horizon control: plan, act, observe, plan again."""

import copy
import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.running import Task
from pacplan.core import checks
from pacplan.core.keys import place
from pacplan.engine.driver import Limits
from pacplan.engine.query import seed_sequence
from pacplan.engine.search_tree import SearchTree
from pacplan.models.protocol import Model, check_model
from pacplan.result import Plan


class Decision(NamedTuple):
    """One decision of an agent: where it was made, what was chosen, and why.

    `plan` has no tree. `delta` is the probability with which its guarantee may fail; None for planners
    without one. `reused_samples` is the number of earlier calls to the model that it began with.
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

    **Reuse.** With `reuse=True`, the next search of UCT starts from the part of the tree below the new
    state. Planners with a guarantee refuse, because the same samples chose the action that led there.
    Models that are not stationary refuse as well.

    Args:
        planner: the planner.
        model: the problem.
        budget: maximum number of calls to the model per decision.
        time_limit: maximum time per decision, in seconds.
        reuse: whether to start from the tree of the last decision.
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
        planner: Planner,
        model: Model,
        budget: int | None = None,
        time_limit: float | None = None,
        *,
        reuse: bool = False,
        spread: Literal["none", "union"] = "none",
        seed: int | np.random.SeedSequence | None = None,
        workers: int | None = None,
        executor: Any = None,
    ) -> None:
        if not isinstance(planner, Planner):
            raise TypeError(f"planner must be a planner such as MDPGapE(...), got {planner!r}")
        check_model(model)
        self._crew = planner.crew(model, workers, executor)
        self.planner, self.model = planner, model
        self.budget, self.time_limit = budget, time_limit
        self.reuse = checks.flag("reuse", reuse)
        self.spread = checks.choice("spread", spread, ("none", "union"))
        if self.reuse and not planner.reuses_trees:
            raise ValueError(f"{type(planner).__name__} starts every plan anew; pass reuse=False")
        if self.reuse and not model.stationary:
            raise ValueError(
                "the model is not stationary: what was seen h steps after one root says nothing about "
                "h - 1 steps after the next; pass reuse=False"
            )
        if self.spread == "union" and getattr(planner, "delta", None) is None:
            raise ValueError(f"spread='union' shares delta among decisions, but {planner!r} has none")
        # A copy, so that two agents with one sequence decide alike; children that were spawned stay so.
        given = copy.deepcopy(seed) if isinstance(seed, np.random.SeedSequence) else seed
        self._seeds = seed_sequence(given)
        self.reset()

    def reset(self) -> None:
        """Begin a new episode: forget the tree and the history. The seeds go on."""
        self.history: list[Decision] = []
        self._tree: SearchTree | None = None

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
        kept = self._kept(state)
        planner, delta = self.planner, getattr(self.planner, "delta", None)
        if delta is not None and self.spread == "union":
            # These parts of all plans that an episode can have sum to one.
            delta *= 6.0 / (math.pi * (len(self.history) + 1)) ** 2
            planner = planner.with_delta(delta)
        limits = Limits(self.budget, self.time_limit)
        (seed,) = self._seeds.spawn(1)
        plan = planner.run(Task(self.model, state, seed, limits, crew=self._crew, tree=kept))
        reused = 0 if kept is None else int(kept.pairs["n"].sum())
        bare = replace(plan, tree=None, policy=None)
        self.history.append(Decision(state, plan.action, bare, delta, reused))
        # Not before the plan has succeeded: if it raises, nothing changes.
        self._tree = plan.tree if self.reuse else None
        return plan.action

    def _state(self, given: Any) -> Any:
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
        return self.model.state_of(given)

    def _kept(self, state: Any) -> SearchTree | None:
        """The tree below the state reached, if the last search saw it."""
        if self._tree is None:
            return None
        last = self.history[-1].plan
        node = self._tree.successor(place(last.action, last.actions), state)
        if node is None or 0 in (self._tree.nodes[node]["tried"], self._tree.nodes[node]["count"]):
            return None  # Nothing was counted there: the last search was cut off on its way.
        return self._tree.below(node)

    def __repr__(self) -> str:
        return f"<Agent: {self.planner!r}, {len(self.history)} decisions>"
