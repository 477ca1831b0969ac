"""Problems to verify on: a small case, how to plan it and its exact answer, and families of them."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan import exact
from pacplan.engine.values import step_width
from pacplan.models.protocol import Model
from pacplan.models.tabular import TabularMDP


@dataclass(frozen=True, eq=False)
class Case:
    """One small problem with its exact answer.

    Attributes:
        model: the problem.
        state: where to plan from.
        values: exact values of the actions of the state, over `horizon` steps.
        epsilon: accuracy to ask for.
        delta: probability with which the guarantee may fail.
        gamma: discount.
        horizon: number of steps; None: infinitely many.
        settings: what else the planner is told, such as `rewards="known"`.
        budget: maximum number of calls to the model.
        watched: whether an adversary, who knows the exact answer, stops the search as soon as a promise
            does not hold.
        endless: exact values over an infinite horizon, if there are any beside `values`.
        table: the problem as a table.
    """

    model: Any
    state: Any
    values: NDArray[np.float64]
    epsilon: float
    delta: float
    gamma: float
    horizon: int | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None
    watched: bool = False
    endless: NDArray[np.float64] | None = None
    table: TabularMDP | None = None

    @property
    def tail(self) -> float:
        """How much actions can differ after the horizon, for gamma < 1."""
        if self.horizon is None:
            return 0.0
        width = step_width(self.model.reward_range, self.model.may_end)
        return width * self.gamma**self.horizon / (1.0 - self.gamma)


def tabular_case(
    table: TabularMDP,
    delta: float,
    epsilon: float,
    horizon: int | None = 1,
    *,
    gamma: float = 1.0,
    model: Any = None,
    budget: int | None = 1500,
    **others: Any,
) -> Case:
    """A case in state 0 of a table, its answer by dynamic programming.

    Other arguments are attributes of `Case`; `model` is by default the table itself.
    """
    offered = list(table.actions(0))
    values = endless = None
    if gamma < 1.0 and table.steps is None:
        endless = exact.discounted(table, gamma=gamma)[0, offered]
    if horizon is None:
        values, endless = endless, None
    else:
        values = exact.finite_horizon(table, gamma=gamma, horizon=horizon)[0, 0, offered]
    assert values is not None, "infinitely many steps need gamma < 1"
    others |= {"budget": budget, "endless": endless, "table": table}
    seen = table if model is None else model
    return Case(seen, 0, values, epsilon, delta, gamma, horizon, **others)


def choose(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    """One of them, at random."""
    return options[int(rng.integers(len(options)))]


class Hidden(Model):
    """A table that nobody sees, nor knows more of than how many successors or states there are."""

    compiled = True

    def __init__(
        self, table: TabularMDP, successors: int | None = None, states: int | None = None
    ) -> None:
        names = ("max_actions", "same_actions", "reward_range", "may_end", "steps", "stationary")
        for name in (*names, "two_player", "initial_state", "actions", "open", "fingerprint"):
            setattr(self, name, getattr(table, name))
        self.successors, self.states = successors, states


@dataclass(frozen=True, eq=False)
class Family:
    """Cases of one kind, each drawn from a generator.

    Attributes:
        name: what to call it.
        about: what is hard about it, in a few words.
        delta: the same for all its cases, so that failures can be counted together.
        draw: makes a case.
        traits: words for what some planners cannot do: "one step"; "changing", if the law of a state
            and action depends on the step; "told", if all rewards and transitions are told to the
            planner; "untold", if nobody says how many successors there are; "endless", if the horizon
            is infinite; "game", if two players move in turn.
        weight: how many plans it gets, relative to others.
    """

    name: str
    about: str
    delta: float
    draw: Callable[[np.random.Generator, float], Case]
    traits: Set[str] = frozenset()
    weight: float = 1.0

    def case(self, seed: int) -> Case:
        """The case of a seed."""
        return self.draw(np.random.default_rng(seed), self.delta)

    @cached_property
    def settings(self) -> frozenset[str]:
        """Names of what all its cases tell the planner."""
        return frozenset(self.case(0).settings)
