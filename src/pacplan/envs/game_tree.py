"""Small two-player games, for planners of games."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from pacplan.core import checks
from pacplan.models.tabular import TabularMDP


def game_tree(tree: Sequence[Any], *, noise: Literal["none", "bernoulli"] = "bernoulli") -> TabularMDP:
    """A game between MAX, who moves first, and MIN, given by the mean payoffs of its leaves.

    A position is a list with an entry for every move, a leaf the mean payoff to MAX of the move that
    leads to it. The players move in turn, so `[[.6, .2], .3]` lets MAX end the game for .3, or leave
    the choice between .6 and .2 to MIN.

    Args:
        tree: nested lists of numbers in [0, 1]. Lists may differ in length and depth.
        noise: "bernoulli": a leaf pays 0 or 1 with its mean; "none": its mean.

    Returns:
        A model with `two_player=True`. State 0 is the root.
    """
    # Positions and the moves that led there, in the order of their states; it grows as it is read.
    positions: list[tuple[Sequence[Any], tuple[int, ...]]] = [(tree, ())]
    moves: list[tuple[int, int, int, float]] = []  # state, move, next state or -1, mean payoff
    for state, (position, path) in enumerate(positions):
        if not _is_position(position):
            raise TypeError(f"a game tree is a list of lists and numbers, got {position!r}")
        if len(position) == 0:
            raise ValueError(
                f"the position after the moves {path} has no move; give its mean payoff instead"
            )
        for move, after in enumerate(position):
            if _is_position(after):
                moves.append((state, move, len(positions), 0.0))
                positions.append((after, (*path, move)))
            else:
                name = f"the mean payoff after the moves {(*path, move)}"
                moves.append((state, move, -1, checks.within_one(name, after)))
    end = len(positions)
    most = max(len(position) for position, _ in positions)
    successors, rewards = np.full((end + 1, most, 1), end), np.zeros((end + 1, most))
    available = np.zeros((end + 1, most), bool)
    for state, move, after, payoff in moves:
        available[state, move], rewards[state, move] = True, payoff
        successors[state, move] = end if after < 0 else after
    return TabularMDP(
        np.ones((end + 1, most, 1)),
        rewards,
        successors=successors,
        terminal=[end],
        noise=noise,
        available=available,
        two_player=True,
    )


def _is_position(node: Any) -> bool:
    return isinstance(node, Sequence | np.ndarray) and not isinstance(node, str | bytes)
