"""The curve of a search: how the bounds of the root's actions have closed in, at a few points.

Points come after so many episodes, the same in every run. Kernels that play episodes write them
themselves (`pacplan.engine.episodes.record`), as returning to Python for each would take as long as a
dozen episodes; other searches are asked for them by the driver.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.compiled.jit import inlined

FIRST_MARK = 32
"""Episodes at the first point; each further one comes after half as many episodes again."""
# By then more episodes were played than are ever counted.
_MOST_POINTS = 48


class Points(NamedTuple):
    """Points, in the order of time."""

    calls: NDArray[np.float64]
    gaps: NDArray[np.float64]  # how much worse than the best the recommended action can be
    lower: NDArray[np.float64]  # bounds of the root's actions, a row for each point
    upper: NDArray[np.float64]

    @property
    def halves(self) -> NDArray[np.float64]:
        """Half the width of the interval of the state's value."""
        return np.asarray(0.5 * (self.upper.max(1) - self.lower.max(1)))

    def scaled(self, low: float, width: float) -> "Points":
        """The same if 0 stands for `low`, and 1 for `width` more than that."""
        return Points(self.calls, width * self.gaps, low + width * self.lower, low + width * self.upper)


def new_points(actions: int) -> NDArray[np.float64]:
    """Room for all points of a search; none is there yet."""
    return np.zeros((_MOST_POINTS, 2 + 2 * actions))


def points_of(points: NDArray[np.float64], count: int) -> Points:
    """The first `count` points, in the units in which they were written."""
    noted, actions = points[:count], (points.shape[1] - 2) // 2
    return Points(noted[:, 0], noted[:, 1], noted[:, 2 : 2 + actions], noted[:, 2 + actions :])


@inlined
def add_point(search: Any, gap: float) -> None:
    """Note how a search stands whose tuple has `points`, and in `root` the bounds of the actions."""
    root, report = search.root, search.report[0]
    point = search.points[report.points]
    point[0] = report.calls
    point[1] = gap
    for action in range(root.size):
        point[2 + action] = root[action].lower
        point[2 + root.size + action] = root[action].upper
    report.points += 1
