"""A sailboat in shifting winds: the benchmark of the UCT and BRUE papers."""

import math

import numpy as np

from pacplan.core import checks
from pacplan.models.tabular import TabularMDP

# The eight directions, clockwise from north, as steps (east, north).
DIRECTIONS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
_STEPS = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))
# Minutes of a straight leg by the angle to the wind in eighths of a turn: away, down, cross, up.
_MINUTES = (1.0, 2.0, 3.0, 4.0)
_INTO_THE_WIND = 4
# Minutes lost by changing from the port to the starboard tack, or back.
_DELAY = 3.0
NEUTRAL, PORT, STARBOARD = range(3)
# Probabilities of the next wind, given the wind.
_WIND = np.array(
    [
        [0.4, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3],
        [0.4, 0.3, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.4, 0.3, 0.3, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.4, 0.3, 0.3, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.4, 0.2, 0.4, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.3, 0.3, 0.4, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.3, 0.4],
        [0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.3],
    ]
)


def sailing(
    size: int = 5,
    *,
    start: tuple[int, int] = (0, 0),
    goal: tuple[int, int] | None = None,
    wind: str = "N",
) -> TabularMDP:
    """Sail across a lake as fast as possible while the wind turns.

    The lake is a square grid of size x size points (x, y), x counted to the east and y to the north.
    A leg leads to one of the eight neighbours that lie in the lake, except straight into the wind.
    It takes 1, 2, 3 or 4 minutes as it is sailed away from the wind, with the wind from behind at an
    angle, across it or up against it at an angle, times the square root of 2 if it is diagonal, and
    3 more if it changes the tack (the side on which the wind comes in) from port to starboard or
    back. After each leg the wind stays or turns by an eighth. A leg pays minus its minutes, so
    reward_range is (-8.66, -1).

    The minutes and the matrix of winds are those of Vanderbei's program ("Sailing strategies", 1996);
    the diagonals, those of Kocsis and Szepesvári ("Bandit based Monte-Carlo planning", ECML 2006) and
    of Feldman and Domshlak ("Simple regret optimization in online planning for Markov decision
    processes", JAIR 2014; sizes 5, 10, 20 and 40, a horizon of 4 x size, no discount), who draw their
    starts at random.

    States are ((x size + y) 3 + tack) 8 + wind, with tack 0 (none), 1 (port) or 2 (starboard), and
    the wind, given by where it blows to, and the actions numbered N, NE, E, SE, S, SW, W, NW.

    Args:
        size: points along a side of the lake, at least 2.
        start: point that the default initial state lies in, with no tack.
        goal: point to reach, which ends the episode; the corner in the north-east by default.
        wind: where the wind blows to in the default initial state.
    """
    n = checks.integer("size", size, least=2, most=200)
    start_x, start_y = _point("start", start, n)
    goal_x, goal_y = _point("goal", (n - 1, n - 1) if goal is None else goal, n)
    blows = DIRECTIONS.index(checks.choice("wind", wind, DIRECTIONS))
    states = n * n * 24
    state = np.arange(states)
    x, y, tack, old = state // 24 // n, state // 24 % n, state // 8 % 3, state % 8
    winds = np.argsort(_WIND == 0.0, axis=-1, kind="stable")[:, :3]
    probabilities = np.empty((states, 8, 3))
    successors = np.zeros((states, 8, 3), np.int64)
    rewards = np.zeros((states, 8))
    available = np.zeros((states, 8), np.bool_)
    probabilities[:] = np.take_along_axis(_WIND, winds, -1)[old, np.newaxis]
    for leg, (east, north) in enumerate(_STEPS):
        # Eighths of a turn, clockwise, from the heading to where the wind blows: up to a half, it
        # comes from the left.
        turn = (old - leg) % 8
        new_tack = np.select([turn % 4 == 0, turn < 4], [NEUTRAL, PORT], STARBOARD)
        changed = (tack != NEUTRAL) & (new_tack != NEUTRAL) & (tack != new_tack)
        angle = np.minimum(turn, 8 - turn)
        length = math.hypot(east, north)
        minutes = length * np.array([*_MINUTES, 0.0])[angle] + _DELAY * changed
        to_x, to_y = x + east, y + north
        inside = (to_x >= 0) & (to_x < n) & (to_y >= 0) & (to_y < n)
        available[:, leg] = inside & (angle != _INTO_THE_WIND)
        rewards[:, leg] = -minutes
        base = ((to_x * n + to_y) * 3 + new_tack) * 8
        successors[:, leg] = np.where(inside[:, np.newaxis], base[:, np.newaxis] + winds[old], 0)
    return TabularMDP(
        probabilities,
        np.where(available, rewards, -1.0),
        successors=successors,
        terminal=(x == goal_x) & (y == goal_y),
        available=available,
        reward_range=(-(_MINUTES[-1] * math.sqrt(2.0) + _DELAY), -_MINUTES[0]),
        initial=((start_x * n + start_y) * 3 + NEUTRAL) * 8 + blows,
    )


def _point(name: str, point: tuple[int, int], size: int) -> tuple[int, int]:
    x, y = (checks.integer(f"a coordinate of {name}", z, least=0, most=size - 1) for z in point)
    return x, y
