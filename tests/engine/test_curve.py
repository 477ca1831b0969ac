"""The curve of a search is what callbacks see."""

import numpy as np
import pytest

import pacplan
from every_planner import make, problem


@pytest.mark.parametrize("name", ["mdp-gape", "bracket", "canopy", "ugape-mcts", "opd"])
def test_points_are_what_callbacks_see(name):
    planner, searches, seen = make(name), [], {}
    finish = planner.finish

    def keep(query, search, *rest):
        searches.append(search)
        return finish(query, search, *rest)

    planner.finish = keep
    planner.plan(
        problem(name), 0, seed=1, budget=2000, callback=lambda at: seen.update({at.samples: at})
    )
    calls, gaps, lower, upper = searches[0].curve()
    shared = [i for i, number in enumerate(calls.tolist()) if number in seen]
    assert len(shared) >= 2
    for i in shared:
        at = seen[calls[i]]
        assert gaps[i] == at.gap
        assert np.array_equal(lower[i], at.lower) and np.array_equal(upper[i], at.upper)


def test_points_come_after_half_as_many_episodes_again():
    model = pacplan.envs.garnet(seed=0)
    plan = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, horizon=5).plan(model, seed=0, budget=900)
    assert plan.curve.samples.tolist() == [160, 240, 360, 540, 810, 900]  # five calls an episode
