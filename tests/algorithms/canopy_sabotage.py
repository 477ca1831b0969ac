"""Trees of a sabotaged Canopy, in a process and with a cache of its own: prints their scores.

python canopy_sabotage.py honest|clipped|stopped|leaking
"""

import sys

from canopy_trees import scores, tree_means
from pacplan import exact
from pacplan.algorithms.canopy import growth, units
from pacplan.algorithms.canopy.learning import learn
from pacplan.compiled.jit import inlined
from test_canopy import path_model

_close, _take_in, _draw_in_node = growth._close, growth._take_in, growth.draw_in_node


@inlined
def _clipped(search):
    """J is cut at the largest value."""
    unit = search.unit[0]
    frame = search.frames[unit.at]
    frame.best = min(frame.best, search.levels[unit.at].span)
    return _close(search)


@inlined
def _stopped(search, h, successor, x, v, ended):
    """A node draws no more once its draws look bad."""
    _take_in(search, h, successor, x, v, ended)
    frame, level = search.frames[h], search.levels[h]
    if frame.turn == 0 and frame.rounds < level.width:
        mark = search.marks[frame.marks]
        if mark.m < level.value * frame.rounds:
            mark.m *= level.width / frame.rounds
            frame.rounds = level.width


@inlined
def _leaking(search, model, rng):
    """A draw changes what v says of the next one."""
    status = _draw_in_node(search, model, rng)
    learn(search, -1, 0.0)
    return status


if __name__ == "__main__":
    if sys.argv[1] == "clipped":
        growth._close = _clipped
    elif sys.argv[1] == "stopped":
        growth._take_in = _stopped
    elif sys.argv[1] == "leaking":
        units.draw_in_node = _leaking
    model = path_model()
    q = exact.finite_horizon(model, gamma=1.0, horizon=4)[0, 0]
    shape = {"widths": [3, 8, 6, 4], "kept": [1, 1, 1, 1]}
    print(*scores(tree_means(model, 200, 100, **shape, gamma=1.0, horizon=4), q))
