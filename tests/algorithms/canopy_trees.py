"""Canopy's trees one by one: their values, with shapes that a test chooses."""

import numpy as np

import pacplan
from pacplan.algorithms.canopy.constants import PILOTS
from pacplan.engine.query import Query


def searching(model, seed=0, **settings):
    """A search that has planted its root and made no call yet."""
    planner = pacplan.Canopy(**({"epsilon": 1e-3, "delta": 0.1} | settings))
    root = np.random.SeedSequence(seed)
    state = model.initial_state()
    search = planner.start(Query(model, state, root), model.open(root))
    search.advance(0, 0)
    return search


def tree_means(model, trees, searches, *, widths, kept, **settings):
    """Means of X over trees of a shape, by search and action.

    Args:
        model: the problem.
        trees: of each action, in each search.
        searches: how many.
        widths: C_h of all trees.
        kept: D_h.
        settings: of the planner.
    """
    means = []
    for seed in range(searches):
        search = searching(model, seed, **settings)
        root = search.root
        root["leaf"], root["due"] = len(widths), 1 << 62
        search.arrays["shapes"][:, :, : len(widths)] = widths, kept
        root["trees"] = PILOTS - trees  # All of them are pilots, which come first, in turn.
        while root["trees"].min() < PILOTS:
            search.advance(200, 1 << 62)
        means.append(root["centre"].copy())
    return np.array(means)


def scores(means, values):
    """By how many standard errors the mean of X lies above Q, by action."""
    errors = means.std(0, ddof=1) / len(means) ** 0.5
    return (means.mean(0) - values) / errors
