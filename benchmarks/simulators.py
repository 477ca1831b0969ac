"""`pacplan.plan` in simulators as users write them, with no option but what the question says.

    python3 dev.py python benchmarks/simulators.py             5 plans each, some minutes
    python3 dev.py python benchmarks/simulators.py --plans 1   a first look

delta is 0.1 throughout. Kernels are compiled before the clock starts.
"""

import argparse
import math

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan


def shop(stock, order, rng):
    """Sell at 5 what was bought at 2; room for 20, which costs .3 a piece; demand is Poisson."""
    offered = min(stock + order, 20)
    sold = min(offered, int(rng.poisson(4.0)))
    return offered - sold, 5.0 * sold - 2.0 * order - 0.3 * offered, False


def hall(x, action, rng):
    """Half a metre forth or back, with Gaussian noise; the far end pays, and the wall ends it."""
    x += (0.5 if action == 1 else -0.5) + 0.1 * rng.normal()
    x = float(np.clip(x, 0.0, 5.0))
    return x, 1.0 if x > 4.5 else 0.0, x == 5.0


def clinic(queues, first, rng):
    """Two queues of at most four patients, of whom urgent ones cost three times as much."""
    urgent, others = queues
    if first == "urgent":
        urgent -= urgent > 0 and rng.random() < 0.8
    else:
        others -= others > 0 and rng.random() < 0.9
    cost = (3 * urgent + others) / 16
    urgent += urgent < 4 and rng.random() < 0.3
    others += others < 4 and rng.random() < 0.4
    return (int(urgent), int(others)), -cost, False


ROWS = [
    *(range(3 * i, 3 * i + 3) for i in range(3)),
    *(range(i, 9, 3) for i in range(3)),
    range(0, 9, 4),
    range(2, 7, 2),
]


def squares(board):
    """The free squares of a board, a string of nine."""
    return [i for i in range(9) if board[i] == " "]


def game(board, square, rng):
    """Noughts and crosses against somebody who plays at random."""

    def marked(mark, at):
        after = f"{board[:at]}{mark}{board[at + 1 :]}"
        return after, any(all(after[i] == mark for i in row) for row in ROWS)

    board, won = marked("x", square)
    if won or not squares(board):
        return board, float(won), True
    board, lost = marked("o", squares(board)[int(rng.integers(len(squares(board))))])
    return board, -float(lost), lost or not squares(board)


def balance(x, action, rng):
    """Keep x near 0 against Gaussian noise."""
    x += action - 1 + 0.5 * rng.normal()
    return x, math.exp(-(x**2)), False


def environment(name, **settings):
    """A Gymnasium environment after its reset, as a model."""
    env = gymnasium.make(name)
    env.reset(seed=0)
    return pacplan.from_gymnasium(env, **settings)


def problems():
    """Name, model, state, and the question."""
    money = pacplan.Simulator(shop, actions=[0, 2, 4, 6, 8, 10], reward_range=(-26, 100))
    yield "shop", money, 3, {"epsilon": 25, "gamma": 0.9}
    question = {"epsilon": 0.5, "gamma": 0.8, "horizon": 5}
    yield "hall", pacplan.Simulator(hall, actions=2), 2.0, question
    costs = pacplan.Simulator(clinic, actions=["urgent", "others"], reward_range=(-1, 0))
    yield "clinic", costs, (3, 3), {"epsilon": 1, "gamma": 0.95}
    question = {"epsilon": 0.2, "gamma": 1, "horizon": 5, "value_range": (-1, 1)}
    board = pacplan.Simulator(game, actions=squares, reward_range=(-1, 1))
    yield "game", board, " " * 9, question
    question = {"epsilon": 0.3, "gamma": 0.9, "horizon": 5}
    yield "balance", pacplan.Simulator(balance, actions=3), 1.3, question
    cart = environment("CartPole-v1", reward_range=(0, 1))
    fixed = {"transitions": "deterministic", "rewards": "deterministic"}
    yield "CartPole", cart, None, {"epsilon": 0.5, "gamma": 0.9, "horizon": 30, **fixed}
    yield "FrozenLake", environment("FrozenLake-v1"), None, {"epsilon": 0.2, "gamma": 0.9}
    yield "Taxi", environment("Taxi-v4"), None, {"epsilon": 1, "gamma": 0.9}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="most of a plan")
    options = parser.parse_args()
    table = Table(title=f"{options.plans} plans of at most {options.seconds:g} s each", box=None)
    for header in ("problem", "planner", "epsilon", "certified", "gap", "calls", "seconds"):
        table.add_column(header, justify="left" if header in ("problem", "planner") else "right")
    for name, model, state, question in problems():
        pacplan.plan(model, state, delta=0.1, seed=0, time_limit=0.5, **question)
        plans = [
            pacplan.plan(model, state, delta=0.1, seed=seed, time_limit=options.seconds, **question)
            for seed in range(1, options.plans + 1)
        ]
        table.add_row(
            name,
            plans[0].planner.partition("(")[0],
            f"{question['epsilon']:g}",
            f"{sum(plan.certified for plan in plans)} of {len(plans)}",
            f"{np.median([plan.gap for plan in plans]):.3g}",
            f"{np.median([plan.samples for plan in plans]):,.0f}",
            f"{np.median([plan.seconds for plan in plans]):.2g}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
