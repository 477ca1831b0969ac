"""A maze with slippery floors, drawn as text."""

from collections.abc import Sequence

import numpy as np

from pacplan.core import checks
from pacplan.models.tabular import TabularMDP

_FREE, _WALL, _GOAL, _PIT, _START = ".#GXS"
# The four moves, clockwise from up, as steps (row, column).
_STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
_FOUR_BY_THREE = ("...G", ".#.X", "S...")


def gridworld(
    drawing: str | Sequence[str] = _FOUR_BY_THREE,
    *,
    slip: float = 0.2,
    step: float = -0.04,
    goal: float = 1.0,
    pit: float = -1.0,
) -> TabularMDP:
    """Walk through a maze whose floor is slippery.

    A move goes where it was meant to with probability 1 - slip, and to the left or to the right of
    that with probability slip / 2 each. A move into a wall or out of the drawing leaves you in
    place. By default it is the 4x3 world of Russell and Norvig ("Artificial intelligence: a modern
    approach", chapter on making complex decisions).

        pacplan.envs.gridworld(["S..#G",
                                "..X..",
                                "....."], slip=0.1)

    States are row x width + column, counted from the upper left; actions 0 up, 1 right, 2 down,
    3 left. Every move pays `step`, and on top of it `goal` or `pit` if it enters one of these, which
    ends the episode; reward_range spans what the drawing can pay, and 0.

    Args:
        drawing: rows of equal length, as a list or as one text of several lines: '.' free, '#' wall,
            'G' goal, 'X' pit, 'S' the start, which is the default initial state.
        slip: probability of slipping, in [0, 1].
        step: reward of every move.
        goal: reward for entering a goal.
        pit: reward for entering a pit.
    """
    cells = _cells(drawing)
    slips = checks.within_one("slip", slip)
    each_move, at_goal, in_pit = (
        checks.real(name, value) for name, value in (("step", step), ("goal", goal), ("pit", pit))
    )
    height, width = cells.shape
    state = np.arange(cells.size).reshape(height, width)
    row, column = np.indices(cells.shape)
    reached = []
    for down, right in _STEPS:
        to = np.clip(row + down, 0, height - 1), np.clip(column + right, 0, width - 1)
        reached.append(np.where(cells[to] == _WALL, state, state[to]).ravel())
    moves = np.stack(reached, axis=-1)
    successors = np.stack([np.roll(moves, turn, axis=-1) for turn in (0, 1, -1)], axis=-1)
    probabilities = np.broadcast_to([1.0 - slips, slips / 2.0, slips / 2.0], successors.shape)
    kinds = cells.ravel()
    pays = each_move + np.select([kinds == _GOAL, kinds == _PIT], [at_goal, in_pit], 0.0)
    possible = [0.0, *pays[kinds != _WALL]]
    starts = np.flatnonzero(kinds == _START)
    return TabularMDP(
        probabilities,
        pays[successors],
        successors=successors,
        terminal=np.isin(kinds, [_GOAL, _PIT, _WALL]),
        reward_range=(float(min(possible)), float(max(possible))),
        initial=int(starts[0]) if len(starts) else int(np.flatnonzero(kinds == _FREE)[0]),
    )


def _cells(drawing: str | Sequence[str]) -> np.ndarray[tuple[int, int], np.dtype[np.str_]]:
    rows = drawing.split() if isinstance(drawing, str) else list(drawing)
    if not rows or not all(isinstance(row, str) and row for row in rows):
        raise TypeError(f"drawing must be a list of strings, one for each row, got {drawing!r}")
    if len(set(map(len, rows))) > 1:
        raise ValueError(f"the rows of the drawing must have the same length, got {rows}")
    cells = np.array([list(row) for row in rows])
    if unknown := set(cells.flat) - {_FREE, _WALL, _GOAL, _PIT, _START}:
        raise ValueError(
            f"the drawing has {sorted(map(str, unknown))}; use '.' free, '#' wall, 'G' goal, 'X' pit, "
            "'S' start"
        )
    if (cells == _START).sum() > 1 or not np.isin(cells, [_FREE, _START]).any():
        raise ValueError("draw at least one place to be in, '.' or 'S', and at most one start 'S'")
    return cells
