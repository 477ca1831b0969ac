"""Families of small problems on which a planner that promises too much is likely to be caught."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.random import Generator

from pacplan import exact
from pacplan.envs import game_tree
from pacplan.models.simulator import Simulator
from pacplan.models.tabular import TabularMDP
from pacplan.testing.problems import Case, Family, Hidden, choose, tabular_case
from pacplan.testing.recurring import RECURRING

# For planners with large constants.
_AMPLE = 50_000
# A delta with which no failure is to be expected, so that a bound that is often wrong is noticed.
_STRICT = 1e-3


def _arms(means: Sequence[float]) -> TabularMDP:
    """One state whose actions pay 1 or 0 and lead back to it."""
    stay = np.zeros((1, len(means), 1), np.int64)
    return TabularMDP(np.ones(stay.shape), [list(means)], stay, None, "bernoulli")


def _successors(rng: Generator, shape: tuple[int, ...], states: int, count: int) -> Any:
    """`count` different successors for every state and action."""
    return rng.permuted(np.broadcast_to(np.arange(states), (*shape, states)), axis=-1)[..., :count]


def _sizes(rng: Generator) -> tuple[int, int, int, int]:
    """Numbers of states, actions and successors, and a horizon, for a search of a few hundred calls."""
    horizon = choose(rng, (1, 2, 2, 3, 4))
    successors = choose(rng, (1, 2, 3, 8) if horizon < 3 else (1, 2))
    actions = choose(rng, (1, 2, 3, 4) if horizon < 3 else (2, 3))
    return max(3, successors + 1), actions, successors, horizon


def _random(
    rng: Generator, states: int, actions: int, successors: int, noise: Any = None, **others: Any
) -> TabularMDP:
    """Random transitions and rewards, of which some are 0 or 1."""
    p = rng.dirichlet(np.full(successors, choose(rng, (0.3, 1.0, 3.0))), size=(states, actions))
    rewards = rng.random((states, actions))
    if rng.random() < 0.3:
        rewards = np.round(rewards)
    low, high = others.get("reward_range", (0.0, 1.0))
    to = _successors(rng, (states, actions), states, successors)
    noise = noise or choose(rng, ("none", "bernoulli"))
    return TabularMDP(p, low + (high - low) * rewards, to, noise=noise, **others)


def _accuracy(rng: Generator, horizon: int, gamma: float = 1.0) -> float:
    """An epsilon that a few hundred calls can reach."""
    return float(np.sum(gamma ** np.arange(horizon)) * rng.uniform(0.1, 0.3))


def _tied(rng: Generator, delta: float) -> Case:
    epsilon = rng.uniform(0.1, 0.25)
    # A loss of epsilon is allowed; a slightly larger one is not.
    gap = epsilon * choose(rng, (1.0, 1.0 + 1e-6, 1.01, 1.1))
    best = rng.uniform(gap, 1.0)
    means = [best, best - gap, *rng.uniform(0.0, best - gap, choose(rng, (0, 1)))]
    return tabular_case(_arms([means[i] for i in rng.permutation(len(means))]), delta, epsilon)


def _identical(rng: Generator, delta: float) -> Case:
    actions, horizon, successors = (choose(rng, sizes) for sizes in ((2, 3, 5), (1, 2), (1, 2)))
    p = np.broadcast_to(rng.dirichlet(np.ones(successors)), (2, actions, successors))
    to = np.broadcast_to(np.arange(successors), (2, actions, successors))
    rewards = np.repeat(rng.random((2, 1)), actions, axis=1)
    table = TabularMDP(p, rewards, to, noise=choose(rng, ("none", "bernoulli")))
    return tabular_case(table, delta, _accuracy(rng, horizon), horizon)


def _anytime(rng: Generator, delta: float) -> Case:
    low, high = choose(rng, ((0.01, 0.15), (0.3, 0.7), (0.85, 0.99)))
    means = rng.uniform(low, high, choose(rng, (2, 3, 4)))
    return tabular_case(_arms(means.tolist()), delta, 0.0, budget=300)


def _misled(rng: Generator, delta: float, low: float, high: float) -> Case:
    """One action whose first reward alone can be a large deviation."""
    arm = _arms([rng.uniform(low, high)])
    return tabular_case(arm, delta, 0.0, budget=10, watched=True, settings={"goal": "value"})


def _deep(rng: Generator, delta: float) -> Case:
    """The second step pays, rarely, and nothing is left to choose in it: bounds are nearly tight."""
    better = rng.uniform(0.05, 0.15)
    after = np.array([better, rng.uniform(0.4, 1.0) * better])
    to = np.array([[[1], [2]], [[1], [1]], [[2], [2]]])
    rewards = np.zeros((3, 2))
    rewards[1:] = rng.permutation(after)[:, np.newaxis]
    available = np.array([[True, True], [True, False], [True, False]])
    table = TabularMDP(np.ones((3, 2, 1)), rewards, to, noise="bernoulli", available=available)
    return tabular_case(table, delta, 0.0, 2, budget=500)


def _rare(rng: Generator, delta: float) -> Case:
    """A lottery, or a risk: one call in a thousand leads to the state that decides."""
    rate, lottery = 1e-3, rng.random() < 0.5
    # State 1 pays 1, state 2 pays 0; the first action of the root leads to the rarer of them.
    sure = rate * rng.uniform(0.0, 2.0)
    to = np.full((3, 2, 2), 2)
    to[0, 0] = (1, 2) if lottery else (2, 1)
    p = np.zeros((3, 2, 2))
    p[..., 1] = 1.0
    p[0, 0] = rate, 1.0 - rate
    rewards = np.zeros((3, 2))
    rewards[1] = 1.0
    rewards[0, 1] = sure if lottery else 1.0 - sure
    return tabular_case(
        TabularMDP(p, rewards, to), delta, 0.4 * rate, 2, budget=choose(rng, (500, 2500))
    )


def _joint(rng: Generator, delta: float) -> Case:
    """The reward reveals the successor, and a high one is paid on the way to a bad state."""
    horizon, successors = choose(rng, (2, 3)), choose(rng, (2, 3))
    states, actions = successors + 1, choose(rng, (2, 3))
    worth = np.sort(rng.random(states))
    to = _successors(rng, (states, actions), states, successors)
    p = rng.dirichlet(np.ones(successors), size=to.shape[:2])
    with_it = worth[to] if rng.random() < 0.5 else 1.0 - worth[to]
    table = TabularMDP(p, 0.5 * (with_it + worth[:, None, None]), to)
    return tabular_case(table, delta, _accuracy(rng, horizon), horizon)


def _ending(rng: Generator, delta: float) -> Case:
    """If every step costs something, an end is a gain; otherwise it is a loss."""
    horizon, gamma = choose(rng, (1, 2, 3, 4)), choose(rng, (1.0, 0.9))
    low, high = choose(rng, ((-1.0, 0.0), (-1.0, 1.0), (-2.0, -0.5), (0.5, 1.0)))
    table = _random(rng, 3, 2, 2, terminal=[2], reward_range=(low, high))
    width = max(high, 0.0) - min(low, 0.0)
    return tabular_case(table, delta, width * _accuracy(rng, horizon, gamma), horizon, gamma=gamma)


def _mixed(rng: Generator, delta: float) -> Case:
    states, actions, successors, horizon = _sizes(rng)
    gamma = choose(rng, (1.0, 0.9, 0.5))
    available = rng.random((states, actions)) < 0.8
    available[:, 0] = True
    table = _random(rng, states, actions, successors, available=available)
    return tabular_case(table, delta, _accuracy(rng, horizon, gamma), horizon, gamma=gamma)


def _telling(
    rng: Generator, delta: float, choices: Sequence[tuple[str, str]], budget: int = 1500
) -> Case:
    """What is said of rewards and of transitions is one of the choices, and true."""
    states, actions, successors, horizon = _sizes(rng)
    rewards, transitions = choose(rng, choices)
    if transitions == "unknown":  # So that something is left to chance.
        horizon, successors = max(horizon, 2), max(successors, 2)
    else:
        successors = 1
    noise = "none" if rewards == "deterministic" else "bernoulli"
    table = _random(rng, states, actions, successors, noise)
    settings = {"rewards": rewards, "transitions": transitions}
    return tabular_case(
        table, delta, _accuracy(rng, horizon), horizon, settings=settings, budget=budget
    )


def _bounded(rng: Generator, delta: float) -> Case:
    """Value bounds with no slack, or with some."""
    horizon = choose(rng, (2, 3))
    table = _random(rng, 3, 2, 2)
    values = np.zeros((horizon + 1, 3))
    values[:-1] = exact.finite_horizon(table, gamma=1.0, horizon=horizon).max(-1)
    slack = choose(rng, (0.0, 0.05, 0.5))
    bounds = (lambda s, h: float(values[h, s] - slack)), (lambda s, h: float(values[h, s] + slack))
    epsilon = _accuracy(rng, horizon)
    return tabular_case(table, delta, epsilon, horizon, budget=300, settings={"value_bounds": bounds})


def _endless(rng: Generator, delta: float) -> Case:
    gamma = choose(rng, (0.2, 0.4, 0.6))
    horizon = 2 if gamma < 0.5 else 4
    table = _random(rng, 3, 2, 2, terminal=[2] if rng.random() < 0.5 else None)
    # Above the tail, which is subtracted from it.
    epsilon = gamma**horizon / (1.0 - gamma) + _accuracy(rng, horizon, gamma)
    return tabular_case(table, delta, epsilon, horizon, gamma=gamma, settings={"target": "infinite"})


def _valued(rng: Generator, delta: float) -> Case:
    horizon = choose(rng, (1, 2))
    table = _random(rng, 3, choose(rng, (1, 2, 3)), choose(rng, (1, 2)))
    return tabular_case(
        table, delta, 0.5 * _accuracy(rng, horizon), horizon, settings={"goal": "value"}
    )


def _stopped(rng: Generator, delta: float) -> Case:
    horizon = choose(rng, (1, 2))
    table = _random(rng, 3, choose(rng, (2, 3)), choose(rng, (1, 2)), noise="bernoulli")
    epsilon, budget = choose(rng, (0.0, _accuracy(rng, horizon))), choose(rng, (30, 100, 300))
    return tabular_case(table, delta, epsilon, horizon, budget=budget, watched=True)


def _changing(rng: Generator, delta: float) -> Case:
    """What a state and action do depends on the step."""
    horizon = choose(rng, (2, 3))
    shape = (horizon, 3, 2)
    to = _successors(rng, shape, 3, 2)
    table = TabularMDP(rng.dirichlet(np.ones(2), size=shape), rng.random(shape), to, noise="bernoulli")
    return tabular_case(table, delta, _accuracy(rng, horizon), horizon)


def _in_python(rng: Generator, delta: float) -> Case:
    table = _random(rng, 3, 2, 2, terminal=[2])
    model = Simulator(table.step, actions=2, successors=2, reward_range=table.reward_range, initial=0)
    horizon = choose(rng, (1, 2))
    return tabular_case(table, delta, _accuracy(rng, horizon), horizon, budget=200, model=model)


def _untold(rng: Generator, delta: float) -> Case:
    """Like "mixed" and "rare", for planners that must find out how many successors there are."""
    case = (_rare if rng.random() < 0.3 else _mixed)(rng, delta)
    return replace(case, model=Hidden(case.model))


def _single(rng: Generator, delta: float, *, ends: bool) -> Case:
    """Every state and action has one successor; it may pay one of two rewards, or end in two ways.

    At the root of many actions these are the last two, of which a look sees little.
    """
    states, actions = 3, choose(rng, (2, 6))
    likely = rng.choice((0.01, 0.5, 0.99), (states, actions))
    likely[0, : actions - 2] = 1.0
    high = rng.uniform(0.5, 1.0, (states, actions))
    rewards = np.stack([high, high * rng.uniform(0.0, 0.5, high.shape)], axis=-1)
    to = np.repeat(rng.integers(0, states, (states, actions, 1)), 2, axis=-1)
    if ends:
        to[likely < 1.0] = states, states + 1
    p, rewards, to = (
        np.pad(array, ((0, 2), (0, 0), (0, 0)))
        for array in (np.stack([likely, 1.0 - likely], axis=-1), rewards, to)
    )
    table = TabularMDP(p, rewards, to, [states, states + 1])
    assert table.successors == 1
    epsilon = choose(rng, (0.2, rng.uniform(0.5, 0.8)))
    return tabular_case(table, delta, epsilon, 2, gamma=0.2, budget=_AMPLE)


def _promised(rng: Generator, delta: float) -> Case:
    case = _single(rng, delta, ends=rng.random() < 0.5)
    return replace(case, model=Hidden(case.model, 1))


# Places of the lottery, and by how much the best of them are likelier after action 1.
_PLACES, _LEAN = 2**40, 1.0


@numba.njit  # type: ignore[untyped-decorator]
def _lottery(place: int, action: int, rng: Any) -> tuple[int, float, bool]:
    """Action 0 pays 1 every other time, action 1 the more often the better the place is.

    Places are never seen twice. After action 1 they are better: u to the power 1 / (1 + lean).
    """
    chance = place / _PLACES if action == 1 else 0.5
    paid = rng.random() < chance
    u = rng.random() ** (1.0 / (1.0 + _LEAN) if action == 1 else 1.0)
    return int(u * (_PLACES - 1)), 1.0 if paid else 0.0, False


def _mean_best(fixed: float, rest: float, lean: float) -> float:
    """The mean of max(fixed, rest + u), if u in [0, 1] has the density (1 + lean) u^lean."""
    turn = min(max(fixed - rest, 0.0), 1.0)
    below = turn ** (1.0 + lean)
    above = (1.0 + lean) / (2.0 + lean) * (1.0 - turn ** (2.0 + lean))
    return float(fixed * below + rest * (1.0 - below) + above)


def _continuous(rng: Generator, delta: float) -> Case:
    """Every successor is new. The start is near the place where both actions are worth the same."""
    horizon, gamma = choose(rng, (1, 2, 3)), choose(rng, (0.5, 0.9, 1.0))
    after = [0.0, 0.0]
    for _ in range(horizon - 1):
        fixed, rest = 0.5 + gamma * after[0], gamma * after[1]
        after = [_mean_best(fixed, rest, lean) for lean in (0.0, _LEAN)]
    tie = 0.5 + gamma * (after[0] - after[1])
    start = int(min(max(tie + rng.normal(0.0, 0.1), 0.0), 1.0) * (_PLACES - 1))
    values = np.array([0.5 + gamma * after[0], start / _PLACES + gamma * after[1]])
    model = Simulator(_lottery, actions=2, may_end=False, initial=start)
    epsilon, budget = choose(rng, (0.0, 0.1, 0.3)), choose(rng, (100, 400, 1500))
    watched = choose(rng, (False, True))
    return Case(model, start, values, epsilon, delta, gamma, horizon, budget=budget, watched=watched)


def _coarse(rng: Generator, delta: float) -> Case:
    """Small discounts and rough accuracies, which planners with large constants can afford."""
    table = _random(rng, 3, 2, 2)
    return tabular_case(table, delta, rng.uniform(0.5, 0.8), 2, gamma=0.2, budget=_AMPLE)


def _certain(rng: Generator, delta: float) -> Case:
    """Nothing is random: bounds may never fail."""
    gamma = choose(rng, (0.3, 0.7, 0.9))
    table = _random(rng, 4, choose(rng, (2, 3)), 1, noise="none", terminal=[3])
    horizon, budget = choose(rng, (2, 4)), choose(rng, (5, 40, 200))
    return tabular_case(table, delta, 0.0, horizon, gamma=gamma, budget=budget)


def _game(rng: Generator, delta: float) -> Case:
    """Random payoffs after one to three moves."""
    tree = [_position(rng, 1) for _ in range(choose(rng, (2, 3)))]
    values = np.array([_minimax(after, maximises=False) for after in tree])
    model = game_tree(tree, noise=choose(rng, ("none", "bernoulli", "bernoulli")))
    epsilon, budget = rng.uniform(0.1, 0.4), choose(rng, (100, 1500))
    watched = choose(rng, (False, True))
    return Case(model, 0, values, epsilon, delta, 1.0, 1000, budget=budget, watched=watched)


def _position(rng: Generator, depth: int) -> Any:
    if depth == 3 or rng.random() < 0.3:
        return float(choose(rng, (rng.random(), rng.uniform(0.0, 0.1), rng.uniform(0.9, 1.0))))
    return [_position(rng, depth + 1) for _ in range(choose(rng, (1, 2, 3)))]


def _minimax(node: Any, *, maximises: bool) -> float:
    if isinstance(node, float):
        return node
    worths = [_minimax(after, maximises=not maximises) for after in node]
    return max(worths) if maximises else min(worths)


_EITHER = (("deterministic", "unknown"), ("unknown", "deterministic"))
_TOLD = partial(_telling, choices=[("deterministic", "deterministic")], budget=400)
_LUCKY, _UNLUCKY = partial(_misled, low=0.37, high=0.4), partial(_misled, low=0.6, high=0.63)
_ALL = (
    Family("ties", "actions differ by epsilon, or a little more", 0.3, _tied, {"one step"}),
    Family("identical", "all actions are the same", 0.3, _identical),
    Family("anytime", "epsilon is 0, a budget ends it", 0.2, _anytime, {"one step"}, weight=4.0),
    Family("strict", "the same, with a small delta", 0.02, _anytime, {"one step"}, weight=4.0),
    Family("deep", "the same, with two steps", 0.2, _deep, weight=2.0),
    Family("lucky", "a first reward too good", 0.9, _LUCKY, {"one step"}, weight=4.0),
    Family("unlucky", "a first reward too bad", 0.9, _UNLUCKY, {"one step"}, weight=4.0),
    Family("rare", "successors of probability 0.001 decide", 0.3, _rare),
    Family("joint", "the reward is tied to the successor", 0.3, _joint),
    Family("ends", "episodes end, rewards may be negative", 0.3, _ending),
    Family("mixed", "1 to 4 steps, 1 to 8 successors, 1 to 4 actions", 0.1, _mixed),
    Family("declared", "rewards or transitions are told", 0.3, partial(_telling, choices=_EITHER)),
    Family("told", "rewards and transitions are told", 0.3, _TOLD, {"told"}),
    Family("bounded", "value bounds without slack", 0.3, _bounded, weight=0.5),
    Family("endless", "the target is the infinite horizon", 0.3, _endless),
    Family("value", "the goal is the value", 0.3, _valued),
    Family("stopped", "callbacks stop at the worst moment", 0.5, _stopped),
    Family("changing", "laws depend on the step", 0.3, _changing, {"changing"}),
    Family("python", "a Python simulator", 0.3, _in_python, weight=0.3),
    Family("untold", "the number of successors is not known", 0.3, _untold, {"untold"}),
    Family("continuous", "a jitted simulator, all successors new", 0.3, _continuous, {"untold"}),
    Family("coarse", "small discounts, rough accuracies", 0.5, _coarse, weight=0.5),
    Family("strict-coarse", "the same, with a small delta", _STRICT, _coarse, weight=0.5),
    Family("lotteries", "one successor, and random rewards", _STRICT, partial(_single, ends=False)),
    Family("exits", "one successor, and random ends", _STRICT, partial(_single, ends=True)),
    Family("promised", "the same, and no table shows it", _STRICT, _promised),
    Family("certain", "nothing is random", 0.5, _certain, weight=0.5),
    Family("games", "two players", 0.5, _game, {"game"}, weight=2.0),
    Family("strict-games", "the same, with a small delta", _STRICT, _game, {"game"}),
    *RECURRING,
)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""All families by name."""
