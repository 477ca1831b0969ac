"""StOP (Szörényi, Kedenburg, Munos 2014): stochastic optimistic planning over policies."""

import math
import time
from collections.abc import Generator, Iterator
from functools import cached_property
from heapq import heappop, heappush
from itertools import count, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.confidence import size_assumptions, tail
from pacplan.algorithms.common.horizons import check_endless, check_gamma_below_one, most_actions
from pacplan.algorithms.common.plans import best_estimate, bounded_plan
from pacplan.algorithms.common.stepwise import StepSearch
from pacplan.core import checks
from pacplan.core.words import at_most, complement
from pacplan.engine import steps
from pacplan.engine.calls import ABORTED, BROKEN, CHUNK_DONE, FULL, RULE, count_actions, draw_counted
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.memory import OutOfTimeError
from pacplan.engine.promises import TOO_MANY_SUCCESSORS
from pacplan.engine.query import Query
from pacplan.engine.values import step_range, step_width, value_range
from pacplan.models.protocol import Model, Session
from pacplan.result import Plan

# Draws that are requested at once.
_BLOCK = 4096
# More draws than this are never made.
_MOST_DRAWS = 2**62
# Policies made, and seconds of work without a call, before checking the clock. No result depends on
# them.
_GLANCE_POLICIES = 256
_GLANCE_SECONDS = 0.05
# No state has this number.
_END = np.iinfo(np.int64).min

REQUEST = np.dtype(
    [
        ("state", np.int64),
        ("action", np.int64),
        ("h", np.int64),
        ("first", np.int64),  # root action that they are counted for
        ("wanted", np.int64),
        ("done", np.int64),
    ]
)


class Draws(NamedTuple):
    """Draws of one state and action: the request, and the result."""

    request: Any  # one record of REQUEST
    problem: Any  # one record of PROBLEM
    successors: NDArray[np.int64]  # _END: the episode ended
    rewards: NDArray[np.float64]  # in the user's units
    actions: NDArray[np.int64]  # how many the successor offers
    calls: NDArray[np.int64]
    report: Any  # one record of REPORT


@steps.compute.register(Draws)
def _compute(search: Draws, model: Any, ties: Any) -> int:
    request = search.request[0]
    return steps.CALL if request.done < request.wanted else RULE


@steps.call.register(Draws)
def _draw(search: Draws, model: Any, most: int, rng: Any) -> int:
    request, problem = search.request[0], search.problem[0]
    successor, reward, ended, status = draw_counted(
        search, model, request.state, request.action, request.h, request.first, rng
    )
    if status != CHUNK_DONE:
        return status
    search.successors[request.done] = _END
    if not ended:
        actions, status = count_actions(search, model, successor, request.h + 1)
        search.successors[request.done] = successor
        search.actions[request.done] = actions
    search.rewards[request.done] = problem.lowest + problem.width * reward
    request.done += 1
    return status


class _Node:
    """A state reached by one history, and what was drawn of its actions."""

    def __init__(self, state: int, h: int, actions: int) -> None:
        self.state = state
        self.h = h
        self._actions = actions

    @cached_property
    def pairs(self) -> list["_Pair"]:
        """One for each action. Most states are never acted in."""
        return [_Pair(self, action) for action in range(self._actions)]


class _Pair:
    """A stack of draws of one action: the i-th visit of any policy sees the i-th draw.

    Attributes:
        node: the state.
        action: the action.
        children: the outcomes seen, in order of discovery; None for the end.
        earned: sums of the first 0, 1, 2, ... rewards, and room for more.
    """

    def __init__(self, node: _Node, action: int) -> None:
        self.node = node
        self.action = action
        self.children: list[_Node | None] = []
        self.earned = np.zeros(1)
        self._numbers: dict[int, int] = {}
        self._outcomes = np.zeros(0, np.int32)
        self._count = 0
        self._seen: tuple[int, list[tuple[int, _Node, int]]] = (0, [])

    def __len__(self) -> int:
        return self._count

    def visits(self, draws: int) -> list[tuple[int, _Node, int]]:
        """Outcomes among the first draws: number, node, how often. The end is left out.

        Draws never change, so the last answer is kept.
        """
        draws = min(draws, self._count)
        if self._seen[0] != draws:
            counts = np.bincount(self._outcomes[:draws], minlength=len(self.children)).tolist()
            seen = enumerate(zip(self.children, counts, strict=True))
            self._seen = draws, [(i, node, n) for i, (node, n) in seen if node is not None and n > 0]
        return self._seen[1]

    def append(
        self, states: NDArray[np.int64], rewards: NDArray[np.float64], actions: NDArray[np.int64]
    ) -> None:
        """Add draws: the next states, the rewards, and how many actions the states offer."""
        distinct, firsts, which = np.unique(states, return_index=True, return_inverse=True)
        for place in np.sort(firsts):
            state = int(states[place])
            if state not in self._numbers:
                self._numbers[state] = len(self.children)
                ended = state == _END
                child = None if ended else _Node(state, self.node.h + 1, int(actions[place]))
                self.children.append(child)
        before, self._count = self._count, self._count + len(states)
        if self._count > len(self._outcomes):
            # Room for half as many again, so that the work stays proportional to the draws.
            room = self._count * 3 // 2
            self._outcomes.resize(room, refcheck=False)
            self.earned.resize(room + 1, refcheck=False)
        numbers = np.array([self._numbers[state] for state in distinct.tolist()], np.int32)
        self._outcomes[before : self._count] = numbers[which]
        self.earned[before + 1 : self._count + 1] = self.earned[before] + np.cumsum(rewards)


class _Choice(NamedTuple):
    """A policy, as far as it is fixed: an action, and the same for outcomes by their numbers."""

    action: int
    after: dict[int, "_Choice"]


# What the search needs next: draws of a pair, how many, and the root's action that they count for; or
# None: nothing, but some work was done.
Work = Generator[tuple[_Pair, int, int] | None, None, None]
_DONE = ()


class _Policy(NamedTuple):
    """A policy of the first `depth` steps with bounds on its value."""

    choice: _Choice
    depth: int
    lower: float
    upper: float


class StOP(Planner):
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
    policies of depth d, and the 2 is for the two sides. (The paper leaves the 2 out.) Policies share
    draws: the i-th visit of any policy to a history and action sees the i-th draw of a common stack, so
    that the trajectories of each single policy are independent.

    With probability at least 1 - delta all bounds hold, so the certificate is valid whenever the search
    ends. It explodes by nature: the number of policies grows doubly exponentially in the depth. On all
    but tiny problems it runs out of memory, and says how many policies the next refinement has.

    Args:
        epsilon: how far from optimal the action may be, in the model's reward units.
        delta: probability with which the guarantee may fail.
        gamma: discount in (0, 1).
        max_policies: most policies to hold.
        chunk: see `Planner`; here in calls.
    """

    name = "stop"
    keeps_checkpoints = False
    rehearses = False
    keeps_tree = False

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        gamma: float,
        max_policies: int = 100_000,
        chunk: int | None = None,
    ) -> None:
        super().__init__(chunk=chunk)
        self.epsilon = checks.positive("epsilon", epsilon)
        self.delta = checks.probability("delta", delta)
        self.gamma = check_gamma_below_one(gamma)
        if self.gamma == 0.0:
            raise ValueError("gamma must lie in (0, 1): for gamma=0 use MDPGapE with horizon=1")
        self.max_policies = checks.integer("max_policies", max_policies, least=1)

    def depth(self, model: Model) -> int:
        """d*, the largest depth that can occur."""
        width = step_width(model.reward_range, model.may_end)
        span = math.log(6.0) + math.log(width) - math.log(self.epsilon) - math.log1p(-self.gamma)
        return max(1, math.ceil(span / -math.log(self.gamma) - 1e-9))

    def trajectories(self, model: Model, depth: int) -> int:
        """m_d, the number of trajectories that evaluate a policy of this depth; at most 2^62."""
        if model.successors is None:
            raise ValueError(
                "StOP needs B, the largest number of successors of a state and action: pass "
                "successors= to the model"
            )
        count, states = most_actions(self, model), float(depth)
        if model.successors > 1:
            if depth * math.log(model.successors) > 700.0:
                return _MOST_DRAWS
            states = float((model.successors**depth - 1) // (model.successors - 1))
        share = math.log(2.0 * self.depth(model)) - math.log(self.delta) + states * math.log(count)
        ends = value_range(model.reward_range, model.may_end, self.gamma, depth)[-1]
        error = tail(model, self.gamma, depth)
        spread = float(ends["node_upper"] - ends["node_lower"]) / error if error > 0.0 else math.inf
        return math.ceil(min(0.5 * share * spread * spread, _MOST_DRAWS))

    def check_query(self, query: Query, limits: Limits) -> None:
        check_endless(query.model)
        self.trajectories(query.model, 1)

    def start(self, query: Query, session: Session) -> "_PolicySearch":
        return _PolicySearch(self, query, session)

    def finish(self, query: Query, search: "_PolicySearch", stopped_by: str, seconds: float) -> Plan:
        snapshot = search.snapshot(seconds)
        assert snapshot.lower is not None and snapshot.upper is not None and snapshot.gap is not None
        search.horizon = search.deepest
        model = query.model
        return bounded_plan(
            self,
            query,
            search,
            snapshot,
            stopped_by,
            guarantee=(
                f"Action {snapshot.action!r} is within {at_most(max(0.0, snapshot.gap))} of optimal "
                f"over an infinite horizon, with probability at least {complement(self.delta)}."
                f"{search.shortage}"
            ),
            assumptions=size_assumptions(model),
            values=np.where(search.evaluated, 0.5 * (snapshot.lower + snapshot.upper), np.nan),
            value=0.5 * float(snapshot.lower.max() + snapshot.upper.max()),
        )


class _PolicySearch(StepSearch):
    """The policies by first action, and the draws that they share; an episode is one call."""

    def __init__(self, planner: StOP, query: Query, session: Session) -> None:
        super().__init__(planner, query, session)
        self.target = planner.epsilon
        self.deepest = 0
        self.shortage = ""
        self._planner, self._model = planner, query.model
        # What can follow a trajectory, before discounting: nothing, if its episode has ended.
        low, high = step_range(query.model.reward_range, query.model.may_end)
        self._least, self._most = low / (1.0 - planner.gamma), high / (1.0 - planner.gamma)
        self._draws = Draws(
            request=np.zeros(1, REQUEST),
            problem=self.problem,
            successors=np.zeros(_BLOCK, np.int64),
            rewards=np.zeros(_BLOCK),
            actions=np.zeros(_BLOCK, np.int64),
            calls=self.calls,
            report=self.reports,
        )
        self._lower = np.full(len(query.actions), self._least)
        self._upper = np.full(len(query.actions), self._most)
        self.evaluated = np.zeros(len(query.actions), np.bool_)  # by at least one policy
        # For every first action a heap of policies, the largest upper bound first.
        self._policies: list[list[tuple[float, int, _Policy]]] = [[] for _ in query.actions]
        self._ages = count()
        self.root = _Node(self.root_state, 0, len(query.actions))
        self._work = self._search()
        self._pair: _Pair | None = None

    def kernel_state(self) -> Draws:
        return self._draws

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands; the action with the smallest bound on its loss is recommended."""
        top = int(np.argmax(self._upper))
        rivals = np.full(len(self.actions), self._upper[top])
        rivals[top] = np.delete(self._upper, top).max(initial=-np.inf)
        best = best_estimate(self._lower - rivals, self.order)
        return self.standing(best, seconds, self._lower.copy(), self._upper.copy())

    def advance(self, episodes: int, calls: int) -> int:
        """Draw what the search asks for: at most `episodes` calls, until `calls` in all."""
        last = int(self.report["calls"]) + episodes
        began = time.perf_counter()
        while True:
            if self._pair is not None:
                status = super().advance(last - int(self.report["calls"]), calls)
                if status != RULE:
                    return status
                if not self._deliver():
                    return BROKEN
            try:
                asked = next(self._work, _DONE)
            except OutOfTimeError:
                return ABORTED
            except MemoryError as error:
                self.shortage = f" It stopped because {error}."
                return FULL
            if asked == _DONE:
                return RULE
            if asked is not None:
                self._ask(*asked)
            elif time.perf_counter() - began > _GLANCE_SECONDS:
                return CHUNK_DONE

    def _ask(self, pair: _Pair, draws: int, first: int) -> None:
        self._pair = pair
        wanted = min(draws, _BLOCK)
        self._draws.request[0] = (pair.node.state, pair.action, pair.node.h, first, wanted, 0)

    def _deliver(self) -> bool:
        """Hand the draws to the pair; False if it has more successors than promised."""
        pair = self._pair
        assert pair is not None
        draws, done = self._draws, int(self._draws.request[0]["done"])
        pair.append(draws.successors[:done], draws.rewards[:done], draws.actions[:done])
        self._pair = None
        if len(pair.children) <= self.successors:
            return True
        report = self.reports[0]
        report["promise"] = TOO_MANY_SUCCESSORS
        report["state"], report["action"], report["h"] = pair.node.state, pair.action, pair.node.h
        return False

    def _search(self) -> Work:
        """StOP itself; yields what must be drawn, or None to check the clock."""
        if len(self.actions) == 1:
            return
        for action in self.order:
            start = _Policy(_Choice(int(action), {}), 0, self._lower[action], self._upper[action])
            yield from self._refine(start)
        while True:
            tops = [heap[0][2] for heap in self._policies]
            ranking = sorted(self.order, key=lambda action: -tops[action].upper)
            best, second = tops[ranking[0]], tops[ranking[1]]
            self._upper[:] = [policy.upper for policy in tops]
            if self._lower[best.choice.action] + self._planner.epsilon >= second.upper:
                return
            shallower = best if best.depth <= second.depth else second
            heappop(self._policies[shallower.choice.action])
            yield from self._refine(shallower)

    def _refine(self, policy: _Policy) -> Work:
        """Replace a policy by its children, one step deeper."""
        planner, root, depth = self._planner, self.root, policy.depth + 1
        draws = planner.trajectories(self._model, depth)
        self._check_number(draws, policy)
        yield from self._draw(root, draws, depth, policy.choice, policy.choice.action)
        self._check_number(draws, policy)
        self.deepest = max(self.deepest, depth)
        error = tail(self._model, planner.gamma, depth)
        discount = planner.gamma**depth
        first = policy.choice.action
        children = self._children(root, draws, depth, policy.choice)
        for made, (total, choice) in enumerate(children):
            self._look_at_clock()
            if made % _GLANCE_POLICIES == 0:
                yield None
            value = total / draws
            child = _Policy(
                choice,
                depth,
                max(policy.lower, value - error + discount * self._least),
                min(policy.upper, value + error + discount * self._most),
            )
            heappush(self._policies[first], (-child.upper, next(self._ages), child))
            self._lower[first] = max(self._lower[first], child.lower)
        self.evaluated[first] = True

    def _look_at_clock(self) -> None:
        """Leave a long computation at the deadline; the search cannot go on after that."""
        deadline = self.memory.deadline
        if deadline is not None and time.perf_counter() > deadline:
            raise OutOfTimeError

    def _options(self, node: _Node, choice: _Choice | None) -> list[_Pair]:
        """The actions that a policy may take: the one fixed, or any."""
        return node.pairs if choice is None else [node.pairs[choice.action]]

    def _draw(self, node: _Node, draws: int, steps: int, choice: _Choice | None, first: int) -> Work:
        """Draw all that the policies below a node need for these visits and steps."""
        for pair in self._options(node, choice):
            while len(pair) < draws:
                yield pair, draws - len(pair), first
            if steps > 1:
                for i, child, visits in pair.visits(draws):
                    yield from self._draw(child, visits, steps - 1, _after(choice, i), first)

    def _number(self, node: _Node, draws: int, steps: int, choice: _Choice | None) -> int:
        """How many policies there are below a node, as far as its draws are known."""
        self._look_at_clock()
        if steps == 1:
            return len(self._options(node, choice))
        return sum(
            math.prod(
                self._number(child, visits, steps - 1, _after(choice, i))
                for i, child, visits in pair.visits(draws)
            )
            for pair in self._options(node, choice)
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
        self, node: _Node, draws: int, steps: int, choice: _Choice | None
    ) -> Iterator[tuple[float, _Choice]]:
        """All policies below a node that go on from `choice`, with what they earn in all visits."""
        gamma = self._planner.gamma
        for pair in self._options(node, choice):
            earned = float(pair.earned[draws])
            if steps == 1:
                yield earned, _Choice(pair.action, {})
                continue
            seen = pair.visits(draws)
            below = [
                list(self._children(child, visits, steps - 1, _after(choice, i)))
                for i, child, visits in seen
            ]
            for combination in product(*below):
                self._look_at_clock()
                total = earned + gamma * sum(part for part, _ in combination)
                parts = (part for _, part in combination)
                follow = {i: part for (i, _, _), part in zip(seen, parts, strict=True)}
                yield total, _Choice(pair.action, follow)


def _after(choice: _Choice | None, outcome: int) -> _Choice | None:
    """What a policy has fixed after an outcome."""
    return None if choice is None else choice.after.get(outcome)
