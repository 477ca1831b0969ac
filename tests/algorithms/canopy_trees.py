"""Canopy's trees one by one: their values, with shapes that a test chooses."""

import numpy as np

import pacplan
from pacplan.compiled.streams import streams
from pacplan.engine.query import Query


def searching(model, seed=0, **settings):
    """A search that has planted its root and made no call yet."""
    planner = pacplan.Canopy(**({"epsilon": 1e-3, "delta": 0.1} | settings))
    root = np.random.SeedSequence(seed)
    state = model.initial_state()
    rng, ties = streams(root, 2)
    query = Query(model, state, model.actions(state), None, rng, ties)
    search = planner.start(query, model.open(root))
    search.advance(0, 0)
    return search


def tree_values(model, trees, *, widths=None, kept=None, seed=0, **settings):
    """X and R_0 of trees of one action after the other, rows by action.

    Args:
        model: the problem.
        trees: how many of each action.
        widths: C_h of all of them; None: as the planner decides.
        kept: D_h.
        seed: of the search.
        settings: of the planner.
    """
    search = searching(model, seed, **settings)
    root, fixed = search.root, search._fixed
    if widths is not None:
        root["leaf"], root["due"] = len(widths), 1 << 62
        fixed["widths"][:, : len(widths)], fixed["kept"][:, : len(widths)] = widths, kept
    values = [[] for _ in root]
    while min(map(len, values)) < trees:
        if widths is not None:
            counts = np.array([len(pairs) for pairs in values])
            root["trees"] = counts - counts.min()  # All of them are pilots, in turn.
        before, most = root["trees"].copy(), float(fixed["levels"][0]["most"])
        search.advance(1, 1 << 62)
        for action in np.flatnonzero(root["trees"] > before):
            values[action].append((float(fixed["frames"][0]["best"]), most))
    return np.array([pairs[:trees] for pairs in values])
