"""Searches that do not play episodes from the root: they can be stopped at every call."""

import numpy as np
import pytest

import pacplan
from pacplan.engine.calls import ABORTED, CHUNK_DONE, RULE, SPENT
from pacplan.engine.query import Query

NOISY = pacplan.envs.garnet(states=20, actions=3, seed=2, noise="bernoulli")
FIXED = pacplan.envs.garnet(states=20, actions=3, successors=1, seed=2)
PLANNERS = [
    (pacplan.SparseSampling(gamma=0.9, horizon=4, width=3), NOISY),
    (pacplan.TrailBlazer(epsilon=0.5, delta=0.1, gamma=0.3), NOISY),
    (pacplan.SmoothCruiser(epsilon=0.05, delta=0.1, gamma=0.3, temperature=2.0), NOISY),
    (pacplan.OPD(gamma=0.9), FIXED),
    (pacplan.OPD(gamma=0.95, epsilon=0.2, merge="depth"), FIXED),
    (pacplan.OPMDP(gamma=0.9), NOISY),
]


def search_of(planner, model):
    root = np.random.SeedSequence(0)
    search = planner.start(Query(model, 0, root), model.open(root))
    if planner.name == "smooth-cruiser":
        # So few draws of every action that the gradient is sampled too.
        search._constant = 0.01
    return search


@pytest.mark.parametrize(("planner", "model"), PLANNERS, ids=lambda each: getattr(each, "name", ""))
def test_a_search_goes_on_from_any_call(planner, model):
    """Halted, and short of budget, before every call, it is the search that was left alone."""
    last = 5_000
    steady, stopped = search_of(planner, model), search_of(planner, model)
    while (end := steady.advance(10**6, last)) == CHUNK_DONE:
        pass
    seen = set()
    for calls in range(last + 1):
        stopped.halt()
        seen.add(stopped.advance(10**6, calls))
        stopped.report["halt"] = stopped.report["refused"] = 0
        while (status := stopped.advance(10**6, calls)) == CHUNK_DONE:
            pass
        seen.add(status)
    assert {ABORTED, SPENT} <= seen <= {ABORTED, SPENT, RULE}
    assert status == end and stopped.report == steady.report
    arrays = stopped.state_arrays()
    for name, array in steady.state_arrays().items():
        np.testing.assert_array_equal(arrays[name], array, name)
