"""A planner on trial: a problem that it can handle, watched and varied."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pacplan.algorithms import Planner
from pacplan.models.protocol import Model
from pacplan.models.simulator import Simulator
from pacplan.models.tabular import TabularMDP
from pacplan.result import Plan


class RefusedError(Exception):
    """The planner refuses such a problem, as it may."""


@dataclass(frozen=True)
class Trial:
    """A planner on trial, and a problem that it can handle."""

    planner: Planner
    problem: Model
    state: Any
    budget: int

    def plan(
        self, model: Any = None, *, by: Planner | None = None, refuse: bool = False, **options: Any
    ) -> Plan:
        """Plan in the problem, or in another one, which the planner may refuse."""
        options = {"state": self.state, "seed": 4, "budget": self.budget} | options
        try:
            return (by or self.planner).plan(self.problem if model is None else model, **options)
        except (TypeError, ValueError) as error:
            if not refuse:
                raise
            raise RefusedError(str(error)) from None

    @property
    def table(self) -> TabularMDP:
        """The problem, if it has tables."""
        if not isinstance(self.problem, TabularMDP):
            raise RefusedError("the problem has no tables")
        return self.problem

    def simulator(self, step: Callable[..., Any], stationary: bool = False) -> Simulator:
        """A simulator of the problem with the given step, which takes `h` unless it is stationary."""
        table = self.table
        actions: Any = table.max_actions if table.same_actions else table.actions
        names = ("successors", "reward_range", "max_actions", "may_end", "two_player")
        known: dict[str, Any] = {name: getattr(table, name) for name in names}
        return Simulator(step, actions=actions, stationary=stationary, **known)

    def watched(self, happens: Callable[[int], None], **options: Any) -> tuple[Plan, int]:
        """Plan in a simulator of the problem to which something happens at each call; and its calls."""
        calls = 0

        def step(state: Any, action: Any, rng: Any, h: int = 0) -> Any:
            nonlocal calls
            calls += 1
            happens(calls)
            return self.table.step(state, action, rng, h)

        model = self.simulator(step, stationary=self.table.steps is None)
        return self.plan(model, refuse=True, **options), calls

    def tiny(self, step: Callable[..., Any], state: Any, actions: Any = 2) -> Plan:
        """The plan in a small deterministic simulator."""
        game = self.planner.two_player
        model = Simulator(step, actions=actions, successors=1, max_actions=2, two_player=game)
        return self.plan(model, state=state, refuse=True)


def answer_in(plan: Plan) -> dict[str, Any]:
    """Everything in a plan that must not depend on how it was made."""
    record = plan.to_dict()
    # The diagnosis advises what suits the kind of model.
    for name in ("seconds", "planner", "memory", "origin", "diagnosis"):
        del record[name]
    found: dict[str, Any] = json.loads(json.dumps(record))
    return found


def by_itself(plan: Plan) -> bool:
    """Whether the planner's own rule has ended the search."""
    return plan.stopped_by in ("rule", "certified")


def expect(holds: Any, wrong: str) -> None:
    """Raise what is wrong unless something holds."""
    if not holds:
        raise AssertionError(wrong)


def expect_same(found: dict[str, Any], expected: dict[str, Any], wrong: str) -> None:
    """Expect two answers to be equal, and say in what they are not."""
    differ = [
        f"{name} {found[name]} instead of {value}"
        for name, value in expected.items()
        if json.dumps(found[name]) != json.dumps(value)  # As text, where nan equals nan.
    ]
    expect(not differ, f"{wrong} ({'; '.join(differ)})")
