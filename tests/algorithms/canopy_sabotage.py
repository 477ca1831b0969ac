"""Trees of a sabotaged Canopy, in a process and with a cache of its own: prints their scores.

A score is -inf if the search itself refuses them.

    python canopy_sabotage.py honest|clipped|stopped|leaking

Below the root there is one action, so that honest trees are worth the action on average. Most states
pay 1, one of them half the time: a lucky draw of it lifts a tree above the largest value.
"""

import sys

import numpy as np

import pacplan
from canopy_trees import scores, tree_means
from pacplan import exact
from pacplan.algorithms.canopy import growth
from pacplan.algorithms.canopy.learning import learn, locate
from pacplan.compiled.jit import inlined

_close, _take_in, _expand = growth._close, growth._take_in, growth._expand
_state_guess = growth.state_guess


@inlined
def _clipped(search):
    """J is cut at the largest value."""
    at = search.task[0].at
    frame = search.frames[at]
    frame.best = min(frame.best, search.levels[at].span)
    return _close(search)


@inlined
def _stopped(search, h, successor, x, v, ended):
    """A node draws no more once its draws look bad."""
    _take_in(search, h, successor, x, v, ended)
    frame, level = search.frames[h], search.levels[h]
    if frame.turn == 0 and frame.rounds < level.width:
        stats = search.action_stats[frame.stats]
        if stats.m < level.value * frame.rounds:
            stats.m *= level.width / frame.rounds
            frame.rounds = level.width


@inlined
def _leaking(search, model, ties):
    """v learns J before J - v is taken."""
    h = search.task[0].at
    frame, level, after = search.frames[h], search.levels[h], search.levels[h + 1]
    if frame.child < level.kept:
        drawn = search.draws[frame.draws + frame.turn * level.kept + frame.child]
        number = search.task[0].number
        slot = search.shared[growth._place(search.shared, number, h + 1, drawn.state)]
        if slot.tree == number:
            locate(search, model, h + 1, drawn.state)
            learn(search, -1, slot.value / after.span)
            guess = _state_guess(search, model, h + 1, drawn.state)
            drawn.v = min(max(guess, after.low), after.high)
    return _expand(search, model, ties)


def lucky_path():
    """Two actions at the root that do the same, one everywhere else."""
    transitions = np.zeros((6, 2, 6))
    transitions[:, :, 1:] = [0.225, 0.225, 0.225, 0.225, 0.1]
    available = np.ones((6, 2), bool)
    available[1:, 1] = False
    rewards = np.repeat([[0.5], [1.0], [1.0], [1.0], [1.0], [0.5]], 2, axis=1)
    return pacplan.TabularMDP(transitions, rewards, available=available, noise="bernoulli")


if __name__ == "__main__":
    sabotage = sys.argv[1]
    if sabotage == "clipped":
        growth._close = _clipped
    elif sabotage == "stopped":
        growth._take_in = _stopped
    elif sabotage == "leaking":
        growth._expand = _leaking
    model = lucky_path()
    q = exact.finite_horizon(model, gamma=1.0, horizon=4)[0, 0]
    shape = {"widths": [3, 8, 6, 4], "kept": [1, 1, 1, 1]}
    # While little was learnt, v has much to learn from a single tree.
    for trees, searches in ((5, 1000), (1200, 100)):
        try:
            means = tree_means(model, trees, searches, **shape, gamma=1.0, horizon=4)
        except ValueError as error:
            # A tree was worth more than an honest one can be, and the search has noticed.
            if "worth more than its bound" not in str(error):
                raise
            print(-np.inf)
        else:
            print(*scores(means, q))
