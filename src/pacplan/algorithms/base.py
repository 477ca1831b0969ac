"""The Planner base: one way to ask, for every planner."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import replace
from functools import cache
from inspect import Parameter, signature
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pacplan import _checks
from pacplan.models.protocol import Model
from pacplan.result import Plan
from pacplan.search.driver import Callback, Limits, Search, drive
from pacplan.search.tree import SearchTree


class Reuse(NamedTuple):
    """How a search is linked to the ones before and after it, where decisions follow one another.

    Attributes:
        tree: the tree to start from, its root the state to plan from; None: a new one.
        share: the part of delta that is left for this search. The state was reached by actions that
            what the tree holds may have chosen, and the guarantee has to cover every choice.
    """

    tree: SearchTree | None = None
    share: float = 1.0


class Query(NamedTuple):
    """What a planner is asked: a model, a state of it, and the calls it may spend.

    `reuse` is None for a search that stands alone.
    """

    model: Model
    state: Any
    actions: tuple[Hashable, ...]
    budget: int | None
    rng: np.random.Generator
    ties: np.random.Generator
    reuse: Reuse | None = None


class Planner(ABC):
    """Settings in the constructor, a problem to `plan`.

    A planner holds no state between plans: it can be used again, from several threads, and pickled.

    Args:
        chunk: episodes between two returns to Python; by default as many as take about 50 ms. No
            result depends on it.
    """

    name: ClassVar[str]
    keeps_tree: ClassVar[bool] = True
    two_player: ClassVar[bool] = False

    def __init__(self, *, chunk: int | None = None) -> None:
        self.chunk = None if chunk is None else _checks.integer("chunk", chunk, least=1)

    def plan(
        self,
        model: Model,
        state: Any = None,
        *,
        seed: int | np.random.SeedSequence | None = None,
        budget: int | None = None,
        time_limit: float | None = None,
        progress: bool = False,
        callback: Callback | None = None,
    ) -> Plan:
        """Decide what to do in a state.

        Args:
            model: the problem.
            state: where to plan from; the model's own initial state if it is left out.
            seed: the same seed gives the same plan; None draws a fresh one.
            budget: most calls to the model; an episode is cut short when they are used up.
            time_limit: most seconds. (Compilation, where it is needed, does not count.)
            progress: show the intervals of the state's actions closing in, on the error stream.
            callback: called with a `Snapshot` after 1, 2, ... episodes and then every 5 % more, and
                at the end; a true result stops the search.

        Returns:
            The plan. Ctrl-C ends the search, and what was found so far is returned.

        Raises:
            ValueError: an argument out of range, an unknown state, a problem the planner cannot
                handle; all before the first call to the model.
            TypeError: an argument of the wrong type.
            BrokenPromiseError: the model broke a promise (a reward out of range, too many
                successors). What a simulator raises itself comes through unchanged.
        """
        return self._plan(
            model,
            state,
            seed=seed,
            budget=budget,
            time_limit=time_limit,
            progress=progress,
            callback=callback,
        )

    def _plan(
        self,
        model: Model,
        state: Any,
        *,
        seed: int | np.random.SeedSequence | None,
        budget: int | None,
        time_limit: float | None,
        progress: bool = False,
        callback: Callback | None = None,
        reuse: Reuse | None = None,
    ) -> Plan:
        """Like `plan`, for a decision that may be one of several."""
        check_model(model)
        if model.two_player != self.two_player:
            name = type(self).__name__
            raise ValueError(
                f"{name} plans in two-player games, which say so by two_player=True, as envs.game_tree "
                "does; this model has one player"
                if self.two_player
                else f"{name} plans for one player, and this model is a game of two; use UGapEMCTS"
            )
        if time_limit is not None and _checks.real("time_limit", time_limit) <= 0.0:
            raise ValueError(f"time_limit must be positive, got {time_limit}")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function, got {callback!r}")
        limits = Limits(
            budget=None if budget is None else _checks.integer("budget", budget, least=1),
            time_limit=None if time_limit is None else float(time_limit),
            callback=callback,
            progress=_checks.flag("progress", progress),
            chunk=self.chunk,
        )
        rng, ties = _streams(seed)
        if state is None:
            state = model.initial_state()
        query = Query(model, state, model.actions(state), limits.budget, rng, ties, reuse)
        self._check_query(query, limits)
        session = model.open(rng)
        try:
            search = self._start(query, session)
            session.agree(query.state, query.actions)
            stopped_by, seconds = drive(search, limits)
            plan = self._finish(query, search, stopped_by, seconds)
            session.verify()
        finally:
            session.close()
        stated: tuple[str, ...] = getattr(model, "assumptions", ())
        return replace(plan, assumptions=(*plan.assumptions, *stated)) if stated else plan

    def _check_reuse(self, model: Model) -> None:
        """Raise ValueError unless the tree of one plan can start the next."""
        raise ValueError(f"{type(self).__name__} starts every plan anew; pass reuse=False")

    def _price(self, model: Model, budget: int | None, share: float) -> float:
        """By what part more evidence a plan needs if it has only a share of delta."""
        return 0.0

    @abstractmethod
    def _check_query(self, query: Query, limits: Limits) -> None:
        """Raise ValueError for what this planner cannot handle."""

    @abstractmethod
    def _start(self, query: Query, session: Any) -> Any:
        """Set up the search, without a call to the model."""

    @abstractmethod
    def _finish(self, query: Query, search: Any, stopped_by: str, seconds: float) -> Plan:
        """The answer, from where the search stands."""

    def __repr__(self) -> str:
        """The call that makes this planner, settings at their defaults left out."""
        settings = []
        for name, parameter in _parameters(type(self)).items():
            value = getattr(self, f"_{name}", getattr(self, name, None))
            if value is not parameter.default and value != parameter.default:
                settings.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(settings)})"


_model_classes: set[type] = set()


def check_model(model: Any) -> None:
    """Raise unless `model` is one. Looking at a protocol takes a while, so it is done once a class."""
    if type(model) not in _model_classes:
        if not isinstance(model, Model):
            raise TypeError(
                "model must be a pacplan model such as TabularMDP or Simulator, "
                f"got {type(model).__name__}"
            )
        _model_classes.add(type(model))


@cache
def _parameters(planner: type[Planner]) -> dict[str, Parameter]:
    return dict(signature(planner).parameters)


def _streams(
    seed: int | np.random.SeedSequence | None,
) -> tuple[np.random.Generator, np.random.Generator]:
    """Two independent generators: one for the model, one for breaking ties."""
    if isinstance(seed, np.random.SeedSequence):
        # A copy, so that planning twice with one sequence gives the same plan.
        root = np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)
    else:
        root = np.random.SeedSequence(None if seed is None else _checks.integer("seed", seed, least=0))
    first, second = root.spawn(2)
    return np.random.default_rng(first), np.random.default_rng(second)


_RENUMBERED = (
    "what was seen h steps after one root says nothing about h - 1 steps after the next; "
    "pass reuse=False"
)


def check_stationary(model: Model, why: str = _RENUMBERED) -> None:
    """Refuse a model in which what follows a state depends on the steps since the root."""
    if model.steps is not None or not getattr(model, "stationary", True):
        raise ValueError(f"the model is not stationary: {why}")


__all__ = ["Planner", "Query", "Reuse", "Search", "check_model", "check_stationary"]
