"""The curve of a search is what callbacks see, whoever notes its points."""

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
    curve = searches[0].curve()
    shared = [i for i, calls in enumerate(curve.calls.tolist()) if calls in seen]
    assert len(shared) >= 2
    for i in shared:
        at = seen[curve.calls[i]]
        assert curve.gaps[i] == pytest.approx(at.gap, rel=1e-12)
        assert np.array_equal(curve.lower[i], at.lower) and np.array_equal(curve.upper[i], at.upper)
        assert curve.halves[i] == 0.5 * (at.upper.max() - at.lower.max())


def test_points_come_after_half_as_many_episodes_again():
    model = pacplan.envs.garnet(seed=0)
    plan = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, horizon=5).plan(model, seed=0, budget=900)
    assert plan.curve.samples.tolist() == [160, 240, 360, 540, 810, 900]  # five calls an episode
