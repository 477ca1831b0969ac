"""Problems whose states recur: how many calls a certificate takes.

    python3 dev.py python benchmarks/recurring.py                       ten plans for each number
    python3 dev.py python benchmarks/recurring.py --only shop,clinic --plans 3

"told": the planner knows which states there are (`states=`, or a table). A cell has the median number
of calls; how many plans were certified, if not all; how many were wrong by exact values, if any; and
the median time. The problems below the line were not looked at while constants were chosen, but
for two: the first calls of each pair, and when the search for margins stops.
"""

import argparse
import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan
from pacplan import envs
from pacplan.testing.problems import Hidden

DELTA = 0.1
# Of each state and action: (probability, successor or None at an end, reward).
Laws = dict[Hashable, list[list[tuple[float, Hashable, float]]]]


class Listed:
    """A problem given by its laws."""

    def __init__(self, laws: Laws, root: Hashable, reward_range: tuple[float, float]) -> None:
        self._laws, self._states, self._rewards = laws, list(laws), reward_range
        self._number = {state: i for i, state in enumerate(self._states)} | {None: -1}
        self.root = self._number[root]
        self._shape = len(laws), len(laws[root])

    def exact(self) -> Any:
        """The problem with everything known."""
        return pacplan.Outcomes(
            lambda state, action: [
                (p, self._number[after], reward, after is None)
                for p, after, reward in self._laws[self._states[state]][action]
            ],
            actions=self._shape[1],
            reward_range=self._rewards,
        )

    def sampled(self, told: bool) -> Any:
        """The same as a jitted simulator."""
        rows = [row for actions in self._laws.values() for row in actions]
        shape = len(rows), max(map(len, rows))
        until, to, pays = np.ones(shape), np.full(shape, -1), np.zeros(shape)
        for i, row in enumerate(rows):
            until[i, : len(row) - 1] = np.cumsum([p for p, _, _ in row])[:-1]
            to[i, : len(row)] = [self._number[after] for _, after, _ in row]
            pays[i, : len(row)] = [reward for _, _, reward in row]
        actions = self._shape[1]

        @numba.njit
        def step(state, action, rng):
            u, k, row = rng.random(), 0, state * actions + action
            while u >= until[row, k]:
                k += 1
            return to[row, k], pays[row, k], to[row, k] < 0

        return pacplan.Simulator(
            step,
            actions=actions,
            reward_range=self._rewards,
            may_end=any(after is None for row in rows for _, after, _ in row),
            states=range(self._shape[0]) if told else None,
        )


@dataclass(frozen=True)
class Tabled:
    """A problem of ours that is a table."""

    table: Any
    root: int

    def exact(self) -> Any:
        """The problem with everything known."""
        return self.table

    def sampled(self, told: bool) -> Any:
        """The same, which the planner may or may not see to be a table."""
        return self.table if told else Hidden(self.table)


@dataclass(frozen=True)
class Case:
    """What is asked of a problem."""

    make: Callable[[], Any]
    gamma: float
    accuracies: tuple[float, ...]
    settings: dict[str, Any] = field(default_factory=dict)


def poisson(mean: float, most: int) -> list[float]:
    """Probabilities of 0, 1, ..., and of `most` or more."""
    p = [math.exp(-mean) * mean**k / math.factorial(k) for k in range(most)]
    return [*p, 1.0 - sum(p)]


def shop() -> Listed:
    """Room for 20, Poisson demand; sales pay 5, orders cost 2, keeping costs .3."""

    def row(stock: int, order: int) -> list[tuple[float, Hashable, float]]:
        have = min(stock + order, 20)
        return [
            (p, have - sold, 5.0 * sold - 2.0 * order - 0.3 * have)
            for sold, p in enumerate(poisson(4.0, have))
        ]

    return Listed({s: [row(s, o) for o in (0, 2, 4, 6, 8, 10)] for s in range(21)}, 3, (-26.0, 100.0))


def coffee() -> Listed:
    """Room for 40 bags over 30 days; a bag sold pays 8, one ordered costs 4, keeping costs .2."""

    def row(stock: int, order: int) -> list[tuple[float, Hashable, float]]:
        have = min(stock + order, 40)
        return [
            (p, have - sold, 8.0 * sold - 4.0 * order - 0.2 * have)
            for sold, p in enumerate(poisson(6.0, have))
        ]

    return Listed({s: [row(s, o) for o in (0, 5, 10, 15, 20)] for s in range(41)}, 10, (-88.0, 320.0))


def clinic() -> Listed:
    """Two queues of at most four; waiting urgent cases cost three times as much."""

    def row(urgent: int, normal: int, serve: int) -> list[tuple[float, Hashable, float]]:
        waiting = (urgent, normal)[serve]
        found = []
        for p, done in ((0.8, 1), (0.2, 0)) if serve == 0 else ((0.9, 1), (0.1, 0)):
            left = [urgent, normal]
            left[serve] -= min(done, waiting)
            for q, more in ((0.3, 1), (0.7, 0)):
                for r, other in ((0.4, 1), (0.6, 0)):
                    after = min(left[0] + more, 4), min(left[1] + other, 4)
                    found.append((p * q * r, after, -(3 * left[0] + left[1]) / 16))
        return found

    states = [(u, n) for u in range(5) for n in range(5)]
    return Listed({s: [row(*s, a) for a in range(2)] for s in states}, (3, 3), (-1.0, 0.0))


def queues() -> Listed:
    """Two queues of at most six and one server."""
    arrivals, completions, pay = (0.2, 0.25), (0.6, 0.9), (1.0, 0.5)

    def row(state: tuple[int, int], kind: int) -> list[tuple[float, Hashable, float]]:
        def added(i: int, by: int) -> tuple[int, ...]:
            return tuple(min(n + by * (j == i), 6) for j, n in enumerate(state))

        found: list[tuple[float, Hashable, float]] = [
            (p, added(i, 1), 0.0) for i, p in enumerate(arrivals)
        ]
        rest = 1.0 - sum(arrivals)
        done = rest * completions[kind] * (state[kind] > 0)
        if done > 0.0:
            found.append((done, added(kind, -1), pay[kind]))
        return [*found, (rest - done, state, 0.0)]

    states = [(i, j) for i in range(7) for j in range(7)]
    return Listed({s: [row(s, a) for a in range(2)] for s in states}, (2, 2), (0.0, 1.0))


def published(name: str, rewards: tuple[float, float], **settings: Any) -> Listed:
    """An environment that publishes its table."""
    env = gymnasium.make(name, **settings)
    env.reset(seed=0)
    laws = {
        int(s): [
            [(float(p), None if ended else int(to), float(r)) for p, to, r, ended in row if p > 0.0]
            for row in actions.values()
        ]
        for s, actions in env.unwrapped.P.items()
    }
    return Listed(laws, int(env.unwrapped.s), rewards)


def garnet(states: int, seed: int) -> Tabled:
    return Tabled(envs.garnet(states, 5, 2, seed=seed, noise="bernoulli"), 0)


def ours(table: Any) -> Tabled:
    return Tabled(table, table.initial_state())


def machine() -> Listed:
    """A machine wears by 0 to 2 in a step; it may be run, serviced or replaced, or it breaks down."""
    laws: Laws = {}
    for wear in range(12):
        run = [(p, min(wear + d, 11), 1.0 - 0.05 * wear) for d, p in enumerate((0.5, 0.3, 0.2))]
        service = [(0.7, max(wear - 4, 0), 0.3), (0.3, wear, 0.3)]
        laws[wear] = [run, service, [(1.0, 0, 0.0)]]
    down = [[(0.6, 11, 0.0), (0.4, 0, 0.0)] for _ in range(3)]
    laws[11] = down
    return Listed(laws, 5, (0.0, 1.0))


def admission() -> Listed:
    """Customers of two classes ask to join a line of at most 15: let this one in or not?"""
    laws: Laws = {}
    for line in range(16):
        for kind, pay in enumerate((1.0, 0.4)):
            rows = []
            for admit in (0, 1):
                inside = min(line + admit, 15)
                reward = pay * (inside - line) - 0.03 * inside
                row: list[tuple[float, Hashable, float]] = []
                for done, p in enumerate((0.4, 0.35, 0.25)):
                    for after, q in enumerate((0.4, 0.6)):
                        row.append((p * q, (max(inside - done, 0), after), reward))
                rows.append(row)
            laws[line, kind] = rows
    return Listed(laws, (6, 1), (-0.45, 1.0))


def epidemic() -> Listed:
    """Up to 20 are ill; keeping shops shut costs, and halves what spreads."""

    def binomial(n: int, p: float) -> list[float]:
        return [math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(n + 1)]

    laws: Laws = {}
    for ill in range(21):
        rows = []
        for shut in (0.0, 0.5, 1.0):
            reward = -0.7 * ill / 20 - 0.3 * shut
            row: dict[int, float] = {}
            spread = min(0.35 * (1.0 - 0.6 * shut) * ill / 20 + 0.01, 1.0)
            for new, p in enumerate(binomial(20 - ill, spread)):
                for well, q in enumerate(binomial(ill, 0.3)):
                    after = ill + new - well
                    row[after] = row.get(after, 0.0) + p * q
            rows.append([(p, after, reward) for after, p in row.items() if p > 1e-12])
        laws[ill] = [[(p / sum(o[0] for o in r), a, x) for p, a, x in r] for r in rows]
    return Listed(laws, 4, (-1.0, 0.0))


LAKE = {"value_range": (0.0, 1.0)}
TUNED = {
    "shop .9": Case(shop, 0.9, (25.0, 5.0)),
    "clinic .95": Case(clinic, 0.95, (1.0, 0.25)),
    "clinic .99": Case(clinic, 0.99, (4.0, 1.0)),
    "riverswim .95": Case(lambda: ours(envs.riverswim()), 0.95, (1.0, 0.3)),
    "gridworld .95": Case(lambda: ours(envs.gridworld()), 0.95, (0.3, 0.1)),
    "inventory .95": Case(lambda: ours(envs.inventory()), 0.95, (10.0, 3.0)),
    "garnet 50 .95": Case(lambda: garnet(50, 1), 0.95, (2.0, 1.0)),
    "lake 4x4 .95": Case(lambda: published("FrozenLake-v1", (0.0, 1.0)), 0.95, (0.1, 0.05), LAKE),
    "lake 4x4 .99": Case(lambda: published("FrozenLake-v1", (0.0, 1.0)), 0.99, (0.1, 0.05), LAKE),
    "lake 8x8 .95": Case(
        lambda: published("FrozenLake-v1", (0.0, 1.0), map_name="8x8"), 0.95, (0.1, 0.05), LAKE
    ),
    "lake 8x8 .99": Case(
        lambda: published("FrozenLake-v1", (0.0, 1.0), map_name="8x8"), 0.99, (0.1, 0.05), LAKE
    ),
    "queues .95": Case(queues, 0.95, (1.0, 0.5)),
    "queues .99": Case(queues, 0.99, (4.0, 1.0)),
}
HELD_OUT = {
    "garnet 50 .99": Case(lambda: garnet(50, 7), 0.99, (10.0, 5.0)),
    "garnet 30 .9": Case(lambda: garnet(30, 11), 0.9, (1.0, 0.5)),
    "machine .9": Case(machine, 0.9, (0.5, 0.2)),
    "machine .99": Case(machine, 0.99, (2.0, 0.5)),
    "admission .95": Case(admission, 0.95, (1.0, 0.3)),
    "admission .99": Case(admission, 0.99, (4.0, 1.0)),
    "epidemic .95": Case(epidemic, 0.95, (0.5, 0.2)),
    "slippery cliff .9": Case(
        lambda: published("CliffWalking-v1", (-100.0, -1.0), is_slippery=True), 0.9, (50.0, 20.0)
    ),
    "sailing .95": Case(lambda: ours(envs.sailing()), 0.95, (20.0, 10.0)),
    "coffee, 30 days": Case(coffee, 1.0, (200.0, 20.0), {"horizon": 30}),
}


def plans(case: Case, epsilon: float, told: bool, options: Any) -> str:
    """What some plans took."""
    problem = case.make()
    horizon = case.settings.get("horizon")
    exact = pacplan.ValueIteration(epsilon=0.0, gamma=case.gamma, horizon=horizon)
    truth = exact.plan(problem.exact(), problem.root).values
    model = problem.sampled(told)
    planner = pacplan.Atlas(epsilon=epsilon, delta=DELTA, gamma=case.gamma, **case.settings)
    planner.plan(model, problem.root, seed=0, budget=1000)  # Compiles.
    calls, seconds, certified, wrong = [], [], 0, 0
    for seed in range(options.plans):
        began = time.perf_counter()
        plan = planner.plan(
            model,
            problem.root,
            seed=options.seed + seed,
            budget=options.budget,
            time_limit=options.seconds,
        )
        seconds.append(time.perf_counter() - began)
        calls.append(plan.samples)
        certified += plan.certified
        outside = (truth < plan.lower - 1e-6) | (truth > plan.upper + 1e-6)
        wrong += outside.any() or truth.max() - truth[plan.action] > plan.gap + 1e-6
    found = f"{np.median(calls):,.0f}"
    if certified < options.plans:
        found += f" ({certified} of {options.plans})"
    if wrong:
        found += f" WRONG {wrong}"
    return f"{found} {np.median(seconds):.1f} s"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1000, help="of the first plan")
    parser.add_argument("--only", default="", help="problems whose names begin so, with commas")
    parser.add_argument("--budget", type=int, default=5_000_000)
    parser.add_argument("--seconds", type=float, default=None, help="most seconds of a plan")
    options = parser.parse_args()
    chosen = tuple(options.only.split(","))
    table = Table(title=f"Median calls of {options.plans} plans, delta {DELTA:g}", box=None)
    for header in ("problem", "epsilon", "told", "not told"):
        table.add_column(header, justify="left" if header == "problem" else "right")
    for part in (TUNED, HELD_OUT):
        for name, case in part.items():
            for epsilon in case.accuracies if name.startswith(chosen) else ():
                cells = [plans(case, epsilon, told, options) for told in (True, False)]
                table.add_row(name, f"{epsilon:g}", *cells)
                print(name, epsilon, *cells, sep=" | ", flush=True)
        table.add_section()
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
