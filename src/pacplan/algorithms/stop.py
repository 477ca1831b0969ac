"""StOP (Szörényi, Kedenburg, Munos 2014): stochastic optimistic planning over policies."""

import math
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.confidence import declared, tail
from pacplan.algorithms.common.horizons import most_actions, most_successors
from pacplan.algorithms.common.plans import best_estimate, nearly_optimal
from pacplan.algorithms.common.recursion import (
    PAUSE,
    Node,
    Pair,
    Recursion,
    RecursivePlanner,
    RecursiveSearch,
)
from pacplan.core import checks
from pacplan.core.words import complement
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.query import Query
from pacplan.engine.search import losses
from pacplan.engine.values import step_range, step_width, value_range
from pacplan.models.protocol import Model, Session

# More draws than this are never made.
_MOST_DRAWS = 2**62
# Policies made between two looks at the clock.
_AT_ONCE = 1000


class _Choice(NamedTuple):
    """A policy, as far as it is fixed: an action, and the same for outcomes by their numbers."""

    action: int
    after: dict[int, "_Choice"]


class _Policy(NamedTuple):
    """A policy of the first `depth` steps with bounds on its value."""

    choice: _Choice
    depth: int
    lower: float
    upper: float


class StOP(RecursivePlanner):
    """Optimistic planning over partial policies, for the infinite-horizon discounted problem.

    A policy of the first d steps is evaluated by

        m_d = ceil( log(1/delta_d) / 2 ((1 - gamma^d) / gamma^d)^2 )

    trajectories, which (Hoeffding's inequality) give its value to within gamma^d / (1 - gamma), with
    as much again above for the tail that was not seen. In each round, of the policies with the largest
    upper bound, one for every first action, the best and the second best are compared; the search stops
    when lower(best) + epsilon >= upper(second), and otherwise refines the shallower of the two: every
    assignment of actions to the states newly reached is a policy of depth d + 1.

    The shares are delta_d = delta / (2 d* N_d), where d* = ceil( log(6 / (epsilon (1-gamma))) /
    log(1/gamma) ) is the largest depth that can occur, N_d = K^(1 + B + ... + B^(d-1)) the number of
    policies of depth d, and the 2 (which the paper leaves out) is for the two sides. Policies share
    draws: the i-th visit of any policy to a history and action sees the i-th draw of a common stack.

    The certificate is valid whenever the search ends. The number of policies grows doubly exponentially
    in the depth: on all but tiny problems it runs out of memory.

    Args:
        epsilon: how far from optimal the action may be, in the model's reward units.
        delta: probability with which the guarantee may fail.
        gamma: discount in (0, 1).
        max_policies: most policies to hold.
    """

    name = "stop"

    def __init__(
        self, *, epsilon: float, delta: float, gamma: float, max_policies: int = 100_000
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, gamma=gamma)
        self.max_policies = checks.integer("max_policies", max_policies, least=1)

    def depth(self, model: Model) -> int:
        """d*, the largest depth that can occur."""
        width = step_width(model.reward_range, model.may_end)
        span = math.log(6.0) + math.log(width) - math.log(self.epsilon) - math.log1p(-self.gamma)
        return max(1, math.ceil(span / -math.log(self.gamma) - 1e-9))

    def trajectories(self, model: Model, depth: int) -> int:
        """m_d, the number of trajectories that evaluate a policy of this depth; at most 2^62."""
        successors, count = most_successors(self, model), most_actions(self, model)
        if depth * math.log(successors) > 700.0:
            return _MOST_DRAWS
        states = float(depth if successors == 1 else (successors**depth - 1) // (successors - 1))
        share = math.log(2.0 * self.depth(model)) - math.log(self.delta) + states * math.log(count)
        ends = value_range(model.reward_range, model.may_end, self.gamma, depth)[-1]
        error = tail(model, self.gamma, depth)
        spread = float(ends["node_upper"] - ends["node_lower"]) / error if error > 0.0 else math.inf
        return math.ceil(min(0.5 * share * spread * spread, _MOST_DRAWS))

    def check_query(self, query: Query, limits: Limits) -> None:
        super().check_query(query, limits)
        self.trajectories(query.model, 1)

    def start(self, query: Query, session: Session) -> "_PolicySearch":
        return _PolicySearch(self, query, session)

    def guarantee(self, model: Model, search: Any, snapshot: Snapshot) -> str:
        chance = complement(self.delta)
        found = nearly_optimal(snapshot, None)
        return f"{found}, with probability at least {chance}.{search.shortage}"

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        return (*declared(self, model), f"no state has more than {model.max_actions} actions")

    def value_estimate(self, search: Any, snapshot: Snapshot) -> float:
        return 0.5 * float(snapshot.lower.max() + snapshot.upper.max())


class _PolicySearch(RecursiveSearch):
    """The policies by first action, and the draws that they share; an episode is one call."""

    def __init__(self, planner: StOP, query: Query, session: Session) -> None:
        super().__init__(planner, query, session)
        self.target = planner.epsilon
        self._planner, self._model = planner, query.model
        # What can follow a trajectory, before discounting: nothing, if its episode has ended.
        low, high = step_range(query.model.reward_range, query.model.may_end)
        self._least, self._most = low / (1.0 - planner.gamma), high / (1.0 - planner.gamma)
        self._lower = np.full(len(query.actions), self._least)
        self._upper = np.full(len(query.actions), self._most)
        self._evaluated = np.zeros(len(query.actions), np.bool_)  # by at least one policy
        # For every first action a heap of policies, the largest upper bound first.
        self._policies: list[list[tuple[float, int, _Policy]]] = [[] for _ in query.actions]
        self._ages = count()
        self.root = Node(self.root_state, 0, len(query.actions))

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands; the action with the smallest bound on its loss is recommended."""
        lower, upper = self._lower.copy(), self._upper.copy()
        return self.standing(best_estimate(-losses(lower, upper), self.order), seconds, lower, upper)

    @property
    def values(self) -> NDArray[np.float64]:
        """Middles of the bounds of actions that some policy of theirs was evaluated of; else NaN."""
        return np.where(self._evaluated, 0.5 * (self._lower + self._upper), np.nan)

    def recurse(self) -> Recursion:
        """StOP itself."""
        if len(self.actions) == 1:
            return
        for action in self.order:
            start = _Policy(_Choice(int(action), {}), 0, self._lower[action], self._upper[action])
            yield self._refine(start)
        while True:
            tops = [heap[0][2] for heap in self._policies]
            ranking = sorted(self.order, key=lambda action: -tops[action].upper)
            best, second = tops[ranking[0]], tops[ranking[1]]
            self._upper[:] = [policy.upper for policy in tops]
            if self._lower[best.choice.action] + self._planner.epsilon >= second.upper:
                return
            shallower = best if best.depth <= second.depth else second
            heappop(self._policies[shallower.choice.action])
            yield self._refine(shallower)

    def _refine(self, policy: _Policy) -> Recursion:
        """Replace a policy by its children, one step deeper."""
        planner, root, depth = self._planner, self.root, policy.depth + 1
        draws = planner.trajectories(self._model, depth)
        self._check_number(draws, policy)
        yield self._draw(root, draws, depth, policy.choice)
        self._check_number(draws, policy)
        self.horizon = max(self.horizon, depth)
        error = tail(self._model, planner.gamma, depth)
        discount = planner.gamma**depth
        first = policy.choice.action
        children = self._children(root, draws, depth, policy.choice)
        for i, (total, choice) in enumerate(children):
            if i % _AT_ONCE == 0:
                yield PAUSE
            lower = max(policy.lower, total / draws - error + discount * self._least)
            upper = min(policy.upper, total / draws + error + discount * self._most)
            child = _Policy(choice, depth, lower, upper)
            heappush(self._policies[first], (-upper, next(self._ages), child))
            self._lower[first] = max(self._lower[first], lower)
        self._evaluated[first] = True

    def _draw(self, node: Node, draws: int, steps: int, choice: _Choice | None) -> Recursion:
        """Draw all that the policies below a node need for these visits and steps."""
        for pair in _options(node, choice):
            yield self.draw([pair], draws)
            if steps > 1:
                for _, child, visits, then in _after(pair, draws, choice):
                    yield self._draw(child, visits, steps - 1, then)

    def _number(self, node: Node, draws: int, steps: int, choice: _Choice | None) -> int:
        """How many policies there are below a node, as far as its draws are known."""
        if steps == 1:
            return len(_options(node, choice))
        return sum(
            math.prod(
                self._number(child, visits, steps - 1, then)
                for _, child, visits, then in _after(pair, draws, choice)
            )
            for pair in _options(node, choice)
        )

    def _check_number(self, draws: int, policy: _Policy) -> None:
        """Raise if a policy has too many children to hold."""
        depth = policy.depth + 1
        needed = self._number(self.root, draws, depth, policy.choice)
        held = sum(map(len, self._policies))
        if needed + held > self._planner.max_policies:
            raise MemoryError(
                f"the next refinement, to policies of {depth} steps, has {needed:,} policies; with the "
                f"{held:,} held now that is more than max_policies={self._planner.max_policies:,}: "
                "raise epsilon or max_policies, or use another planner"
            )

    def _children(
        self, node: Node, draws: int, steps: int, choice: _Choice | None
    ) -> Iterator[tuple[float, _Choice]]:
        """All policies below a node that go on from `choice`, with what they earn in all visits."""
        gamma = self._planner.gamma
        for pair in _options(node, choice):
            earned = float(pair.earned[draws])
            if steps == 1:
                yield earned, _Choice(pair.action, {})
                continue
            seen = _after(pair, draws, choice)
            below = [
                list(self._children(child, visits, steps - 1, then)) for _, child, visits, then in seen
            ]
            for combination in product(*below):
                total = earned + gamma * sum(part for part, _ in combination)
                follow = {outcome[0]: part[1] for outcome, part in zip(seen, combination, strict=True)}
                yield total, _Choice(pair.action, follow)


def _options(node: Node, choice: _Choice | None) -> list[Pair]:
    """The actions that a policy may take: the one fixed, or any."""
    return node.pairs if choice is None else [node.pairs[choice.action]]


def _after(
    pair: Pair, draws: int, choice: _Choice | None
) -> list[tuple[int, Node, int, _Choice | None]]:
    """The outcomes of a pair: number, node, how often, and what the policy has fixed after it."""
    fixed = {} if choice is None else choice.after
    return [(i, node, visits, fixed.get(i)) for i, node, visits in pair.visits(draws)]
