"""The problems of benchmarks/play.py, with their best play where it can be computed."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from scipy.stats import norm

import pacplan
from pacplan import envs, exact


@dataclass
class Task:
    """A problem that is played for so many steps.

    Attributes:
        model: what planners get.
        values: optimal action values of what a world shows; None if they are not known.
        start: draws the first state, of worlds that are walks in the model.
        env: the environment that is played, in others.
        best: a return that is hard to beat, where there are no values.
        table, jitted: the table, or the jitted step: what planners in Numba need.
        again: episodes are short, so they are played one after the other.
    """

    model: Any
    gamma: float
    steps: int
    values: Callable[[Any], Any] | None = None
    start: Callable[[Any], Any] | None = None
    env: Any = None
    best: float | None = None
    table: Any = None
    jitted: Any = None
    again: bool = False

    @property
    def slow(self) -> bool:
        """Whether steps are Python's."""
        return self.table is None and self.jitted is None

    def world(self, episode: int) -> "Walk | Stage":
        """A world that begins in the same way for all players."""
        return Walk(self, episode) if self.env is None else Stage(self, episode)


def luck(episode: int, step: int) -> np.random.Generator:
    """What the world draws from at a step, whoever plays."""
    return np.random.default_rng((episode, step))


class Walk:
    """A walk through a model."""

    def __init__(self, task: Task, episode: int) -> None:
        self.model, self.state = task.model, task.start(luck(episode, 0))

    @property
    def shown(self) -> tuple[Any, ...]:
        """What `Agent.act` takes, and what a player sees."""
        return (self.state,)

    def actions(self) -> tuple[Any, ...]:
        """What can be done now."""
        return self.model.actions(self.state)

    def step(self, action: Any, rng: Any) -> tuple[float, bool]:
        """Act; returns the reward and whether it is over."""
        self.state, reward, over = self.model.step(self.state, action, rng)
        return reward, over

    def branch(self, rng: Any) -> Callable[[Any], tuple[Any, float, bool]]:
        """A copy of the world to try actions in: each leads to (what is seen, reward, over)."""
        state = self.state

        def play(action):
            nonlocal state
            state, reward, over = self.model.step(state, action, rng)
            return state, reward, over

        return play


class Stage:
    """An environment of Gymnasium, or one with its interface."""

    def __init__(self, task: Task, episode: int) -> None:
        self.env, self.model, self.again, self.episode = task.env, task.model, task.again, episode
        self.observation, _ = self.env.reset(seed=episode)
        self.listed = None

    @property
    def shown(self) -> tuple[Any, ...]:
        """What `Agent.act` takes, and what a player sees."""
        return self.env, self.observation

    def actions(self) -> tuple[Any, ...]:
        """What can be done, always the same."""
        self.listed = self.listed or self.model.actions(self.model.state_of(self.env))
        return self.listed

    def step(self, action: Any, rng: Any) -> tuple[float, bool]:
        """Act; returns the reward and whether it is over."""
        let_draw(self.env, rng)
        self.observation, reward, terminated, truncated, _ = self.env.step(action)
        over = terminated or truncated
        if over and self.again:
            self.observation, _ = self.env.reset(seed=int(rng.integers(2**31)))
        return float(reward), over and not self.again

    def branch(self, rng: Any) -> Callable[[Any], tuple[Any, float, bool]]:
        """A copy of the world to try actions in: each leads to (what is seen, reward, over)."""
        twin = copy.deepcopy(self.env)
        let_draw(twin, rng)

        def play(action):
            observation, reward, terminated, truncated, _ = twin.step(action)
            return seen(observation), float(reward), terminated or truncated

        return play


def let_draw(env: Any, rng: Any) -> None:
    """Let an environment draw from a generator."""
    base = env.unwrapped
    if hasattr(base, "sampler"):  # pyRDDLGym's
        base.sampler.rng = rng
    else:
        base.np_random = rng


def seen(observation: Any) -> Any:
    """An observation as a key of a dictionary."""
    if isinstance(observation, dict):
        return tuple(seen(value) for value in observation.values())
    return observation.tobytes() if isinstance(observation, np.ndarray) else observation


# Tables.


def tabular(model: Any, gamma: float, start: int | None = None, steps: int = 30) -> Task:
    """A table."""
    q, first = exact.discounted(model, gamma=gamma), model.initial_state() if start is None else start
    return Task(model, gamma, steps, q.__getitem__, lambda rng: first, table=model)


def published(name: str, steps: int = 30, **settings: Any) -> Task:
    """The table of an environment, played from its own first states."""
    import gymnasium

    env = gymnasium.make(name, **settings)
    env.reset(seed=0)
    task = tabular(pacplan.from_gymnasium(env), 0.99, steps=steps)
    law = env.unwrapped.initial_state_distrib
    task.start = lambda rng: int(rng.choice(len(law), p=law))
    return task


def chain() -> Task:
    """Twelve steps that cost a little, and then one that pays."""
    places, on, stop = 13, 1, 0
    p, r = np.zeros((places, 2, places)), np.zeros((places, 2))
    p[:, stop, 0] = 1.0
    for s in range(places):
        p[s, on, (s + 1) % places], r[s, on] = 1.0, -0.1
    r[-1, on] = 10.0
    return tabular(pacplan.TabularMDP(p, r, reward_range=(-0.1, 10)), 0.95, 0)


PLACES, ORDERS, DEMAND = 20, (0, 2, 4, 6, 8, 10), 4.0


def stock_after(stock: int, order: int, demand: int) -> tuple[int, float]:
    """A day of a shop: what is left, and what was earned."""
    have = min(stock + order, PLACES)
    sold = min(have, demand)
    return have - sold, 5.0 * sold - 2.0 * order - 0.3 * have


def inventory(told: bool) -> Task:
    """A shop with twenty places, as a table or as a Python function."""
    law = [math.exp(-DEMAND) * DEMAND**k / math.factorial(k) for k in range(60)]
    p = np.zeros((PLACES + 1, len(ORDERS), PLACES + 1))
    r = np.zeros(p.shape[:2])
    for s, a in np.ndindex(*r.shape):
        for demand, chance in enumerate(law):
            after, earned = stock_after(s, ORDERS[a], demand)
            p[s, a, after] += chance
            r[s, a] += chance * earned
    table = tabular(pacplan.TabularMDP(p, r, reward_range=(-26, 100)), 0.95, 3)

    def step(stock, action, rng):
        return *stock_after(stock, ORDERS[action], int(rng.poisson(DEMAND))), False

    model = pacplan.Simulator(step, actions=len(ORDERS), reward_range=(-26, 100))
    return table if told else Task(model, 0.95, 25, table.values, table.start)


# Jitted simulators whose state is a row of bits, drawn one by one.


def bits(n: int, actions: int, cost: float, chance: Any, start: int, steps: int = 30) -> Task:
    """A network: a bit pays 1 if it is on, an action but 0 costs; `chance(state, action, bit)`."""
    gamma = 0.95

    @numba.njit
    def step(state, action, rng):
        after, reward = 0, -cost if action > 0 else 0.0
        for i in range(n):
            reward += (state >> i) & 1
            if rng.random() < chance(state, action, i):
                after |= 1 << i
        return after, reward, False

    @numba.njit
    def sweep(q, policy, greedy):
        """Renew the values, of all actions or of those of a policy."""
        values, work = np.empty(len(q)), np.empty(len(q))
        for s in range(len(q)):
            values[s] = q[s].max()
        for s in range(len(q)):
            for a in range(actions):
                if not greedy and a != policy[s]:
                    continue
                work[:] = values
                paid = -cost if a > 0 else 0.0
                for i in range(n - 1, -1, -1):
                    p = chance(s, a, i)
                    paid += (s >> i) & 1
                    for k in range(1 << i):
                        work[k] = (1.0 - p) * work[k] + p * work[k + (1 << i)]
                q[s, a] = paid + gamma * work[0]
            policy[s] = np.argmax(q[s])

    q, policy = np.zeros((2**n, actions)), np.zeros(2**n, np.int64)
    change = 1.0
    while change > 1e-5:
        before = q.max(1)
        sweep(q, policy, True)
        change = np.abs(q.max(1) - before).max()
        best = np.arange(2**n), policy.copy()
        for _ in range(20):
            values = q[best].copy()
            q[:] = -np.inf
            q[best] = values
            sweep(q, policy, False)
    sweep(q, policy, True)
    model = pacplan.Simulator(step, actions=actions, reward_range=(-cost, n), may_end=False)
    return Task(model, gamma, steps, q.__getitem__, lambda rng: start, jitted=step)


def sysadmin(links: list[list[int]]) -> Task:
    """Computers that fail more often if their neighbours are down; one can be started again."""
    n = len(links)
    near = np.zeros((n, n))
    for i, others in enumerate(links):
        near[i, others] = 1.0

    @numba.njit
    def chance(state, action, i):
        up, count = 1.0, 1.0
        for j in range(n):
            count += near[i, j]
            up += near[i, j] * ((state >> j) & 1)
        if action == i + 1:
            return 1.0
        return 0.45 + 0.5 * up / count if (state >> i) & 1 else 0.04 * up / count

    return bits(n, n + 1, 0.75, chance, 2**n - 1)


def ring(n: int) -> Task:
    """A ring of computers."""
    return sysadmin([[(i - 1) % n, (i + 1) % n] for i in range(n)])


def tree(n: int) -> Task:
    """A binary tree of computers."""
    return sysadmin([[j for j in range(n) if (j - 1) // 2 == i or (i - 1) // 2 == j] for i in range(n)])


def life(n: int = 3) -> Task:
    """Conway's game with noise; one cell can be set."""

    @numba.njit
    def chance(state, action, i):
        count = 0
        for x in range(max(i // n - 1, 0), min(i // n + 2, n)):
            for y in range(max(i % n - 1, 0), min(i % n + 2, n)):
                count += (state >> (x * n + y)) & 1
        alive = (state >> i) & 1
        count -= alive
        on = (alive == 1 and count == 2) or count == 3 or action == i + 1
        return 0.95 if on else 0.05

    return bits(n * n, n * n + 1, 0.5, chance, 0b010101010)


# Continuous states on a line.


def line_values(gamma, low, high, ends, moves, noise, reward):
    """Optimal action values on a line, from a fine grid; `reward(from, to)`."""
    edges = np.linspace(low, high, 1001)
    places = (edges[1:] + edges[:-1]) / 2
    cuts = np.r_[-np.inf, edges[1:-1], high if ends else np.inf]
    laws = [np.diff(norm.cdf(cuts, places[:, None] + move, noise), axis=1) for move in moves]
    paid = reward(places[:, None], places)
    over = [1.0 - law.sum(1) for law in laws]
    earned = [
        (law * paid).sum(1) + end * reward(places, high) for law, end in zip(laws, over, strict=True)
    ]
    values = np.zeros(len(places))
    for _ in range(math.ceil(math.log(1e-6) / math.log(gamma))):
        q = np.array([now + gamma * law @ values for now, law in zip(earned, laws, strict=True)])
        values = q.max(0)
    return lambda x: np.array([np.interp(x, places, row) for row in q])


def control() -> Task:
    """Stay near 0 in spite of noise."""

    def step(x, push, rng):
        return x + (-1.0, 0.0, 1.0)[push] + 0.5 * rng.normal(), math.exp(-x * x), False

    values = line_values(0.9, -12, 12, False, (-1, 0, 1), 0.5, lambda x, to: np.exp(-x * x) + 0 * to)
    model = pacplan.Simulator(step, actions=3, reward_range=(0, 1))
    return Task(model, 0.9, 20, values, lambda rng: 3.3)


def corridor() -> Task:
    """Stay near the end, which must not be reached."""

    def step(x, forward, rng):
        x = float(min(max(x + (0.5 if forward else -0.5) + 0.1 * rng.normal(), 0.0), 5.0))
        return x, float(x > 4.5), x >= 5.0

    def reward(x, to):
        return (to > 4.5) + 0 * x

    values = line_values(0.95, 0, 5, True, (-0.5, 0.5), 0.1, reward)
    model = pacplan.Simulator(step, actions=2, reward_range=(0, 1))
    return Task(model, 0.95, 25, values, lambda rng: 2.0)


# Environments of Gymnasium and its like.


def environment(
    name: str, gamma: float, steps: int, reward_range: tuple[float, float], best: float | None = None
) -> Task:
    """An environment."""
    import gymnasium

    if name.startswith("MiniGrid"):
        import minigrid  # noqa: F401
    env, own = (gymnasium.make(name, disable_env_checker=True).unwrapped for _ in range(2))
    own.reset(seed=0)
    model = pacplan.from_gymnasium(own, reward_range=reward_range)
    return Task(model, gamma, steps, env=env, best=best)


def rddl(name: str, instance: str, reward_range: tuple[float, float], steps: int) -> Task:
    """An environment of pyRDDLGym."""
    import pyRDDLGym

    env, own = (pyRDDLGym.make(name, instance) for _ in range(2))
    own.reset(seed=0)
    return Task(pacplan.from_gymnasium(own, reward_range=reward_range), 0.95, steps, env=env)


def blackjack() -> Task:
    """Twenty decisions at Blackjack, for a player who does not know the dealer's second card."""
    import gymnasium

    class Redrawn(gymnasium.Wrapper):
        """The dealer's second card is drawn before each step, and forgotten."""

        def reset(self, **options):
            shown = self.env.reset(**options)
            self.unwrapped.dealer[1] = 0
            return shown

        def step(self, action):
            base = self.unwrapped
            base.dealer[1] = min(int(base.np_random.integers(1, 14)), 10)
            outcome = self.env.step(action)
            base.dealer[1] = 0
            return outcome

    env, own = (Redrawn(gymnasium.make("Blackjack-v1").unwrapped) for _ in range(2))
    own.reset(seed=0)
    model = pacplan.from_gymnasium(own, reward_range=(-1, 1))
    q = blackjack_values(0.99)
    return Task(model, 0.99, 20, lambda shown: q(*map(int, shown)), env=env, again=True)


def blackjack_values(gamma: float) -> Callable[[int, int, int], Any]:
    """Optimal values of sticking and hitting: of the player's sum, the dealer's card, a usable ace."""
    from functools import cache

    cards = [(card, (4 if card == 10 else 1) / 13) for card in range(1, 11)]

    def total(low, ace):  # Aces count 1, and one of them 11 if that is not too much.
        return low + 10 if ace and low + 10 <= 21 else low

    @cache
    def dealer(low, ace):
        if total(low, ace) > 16:
            return {total(low, ace): 1.0}
        law = {}
        for card, p in cards:
            for end, chance in dealer(low + card, ace or card == 1).items():
                law[end] = law.get(end, 0.0) + p * chance
        return law

    @cache
    def q(points, shown, ace):
        stick = hit = 0.0
        for card, p in cards:
            for end, chance in dealer(shown + card, shown == 1 or card == 1).items():
                stick += p * chance * (1.0 if end > 21 else np.sign(points - end))
            low = points - 10 * ace + card
            has = bool(ace) or card == 1
            now = total(low, has)
            hit += p * (-1.0 if now > 21 else gamma * q(now, shown, int(now != low)).max())
        return np.array([stick, hit])

    return q


TUNING: dict[str, Callable[[], Task]] = {
    "chain": chain,
    "riverswim 6": lambda: tabular(envs.riverswim(), 0.95),
    "riverswim 12": lambda: tabular(envs.riverswim(12), 0.98),
    "gridworld": lambda: tabular(envs.gridworld(), 0.95),
    "inventory": lambda: inventory(True),
    "sailing 5": lambda: tabular(envs.sailing(5), 0.95),
    "sailing 10": lambda: tabular(envs.sailing(10), 0.98),
    "garnet .7": lambda: tabular(envs.garnet(seed=1), 0.7, 0, 10),
    "garnet .99": lambda: tabular(envs.garnet(seed=2), 0.99, 0),
    "FrozenLake 4x4": lambda: published("FrozenLake-v1", map_name="4x4"),
    "FrozenLake 8x8": lambda: published("FrozenLake-v1", map_name="8x8"),
    "Taxi": lambda: published("Taxi-v4", 25),
    "CliffWalking": lambda: published("CliffWalking-v1", 25),
    "SysAdmin ring": lambda: ring(10),
    "Life 3x3": life,
    "inventory, Python": lambda: inventory(False),
    "control": control,
    "corridor": corridor,
    "CartPole": lambda: environment("CartPole-v1", 0.99, 100, (0, 1), 100.0),
    "MiniGrid Empty": lambda: environment(
        "MiniGrid-Empty-8x8-v0", 0.95, 40, (0, 1), 1 - 0.9 * 11 / 256
    ),
}
HELD_OUT: dict[str, Callable[[], Task]] = {
    "garnet .99, 11": lambda: tabular(envs.garnet(seed=11), 0.99, 0),
    "garnet .99, 12": lambda: tabular(envs.garnet(400, 4, 5, 0.2, seed=12), 0.99, 0),
    "SysAdmin tree": lambda: tree(12),
    "Blackjack": blackjack,
    "MiniGrid DoorKey": lambda: environment("MiniGrid-DoorKey-5x5-v0", 0.95, 40, (0, 1), 0.96),
    "MiniGrid LavaGap": lambda: environment("MiniGrid-LavaGapS5-v0", 0.95, 30, (0, 1), 0.94),
    "MountainCar": lambda: environment("MountainCar-v0", 0.99, 120, (-1, 0)),
    "Navigation (RDDL)": lambda: rddl("Navigation_MDP_ippc2011", "1", (-1, 0), 20),
}
