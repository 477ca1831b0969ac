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
    leading: list[tuple[int, int, int]] = []  # state, move, next state
    paying: list[tuple[int, int, float]] = []  # state, move, mean payoff
    for state, (position, path) in enumerate(positions):
        _check_position(position, path)
        for move, after in enumerate(position):
            if _is_position(after):
                leading.append((state, move, len(positions)))
                positions.append((after, (*path, move)))
            else:
                paying.append((state, move, _mean(after, (*path, move))))
    end = len(positions)
    most = max(len(position) for position, _ in positions)
    successors = np.full((end + 1, most, 1), end)
    rewards = np.zeros((end + 1, most))
    available = np.zeros((end + 1, most), bool)
    for state, move, after in leading:
        successors[state, move] = after
        available[state, move] = True
    for state, move, payoff in paying:
        rewards[state, move] = payoff
        available[state, move] = True
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


def _check_position(position: Any, path: tuple[int, ...]) -> None:
    if not _is_position(position):
        raise TypeError(f"a game tree is a list of lists and numbers, got {position!r}")
    if len(position) == 0:
        raise ValueError(
            f"the position after the moves {path} has no move; give its mean payoff instead"
        )


def _mean(leaf: Any, path: tuple[int, ...]) -> float:
    mean = checks.real(f"the mean payoff after the moves {path}", leaf)
    if not 0.0 <= mean <= 1.0:
        raise ValueError(f"the mean payoff after the moves {path} must lie in [0, 1], got {mean}")
    return mean
