"""Problems of one state."""

import numpy as np

import pacplan


def bandit(*means, noise="none", **options):
    """One state, which ends after one step."""
    k = len(means)
    successors = np.zeros((1, k, 1), int)
    return pacplan.TabularMDP(
        np.ones((1, k, 1)), [list(means)], successors=successors, noise=noise, **options
    )


def pairs_of_root(plan):
    return {int(plan.tree.pairs[i]["action"]): plan.tree.pairs[i] for i in plan.tree.tried(0)}
