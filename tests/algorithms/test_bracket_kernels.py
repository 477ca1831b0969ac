"""Every kernel of Bracket: for each kind of model, with and without advice.

They take longest to compile, and one process does it sooner than two that share them out.
"""

import numba
import pytest

import pacplan
from pacplan import exact

pytestmark = pytest.mark.kernels

TABLE = pacplan.envs.garnet(states=10, actions=3, seed=1, noise="bernoulli")


def step(state, action, rng):
    """A walk on a circle, which pays when it comes to the first state."""
    after = (state + (1 if rng.random() < 0.2 + 0.3 * action else 9)) % 10
    return after, 1.0 if after == 0 else 0.0, False


PYTHON = pacplan.Simulator(step, actions=3, successors=2, initial=0)
JITTED = pacplan.Simulator(numba.njit(step), actions=3, successors=2, initial=0)


@pytest.mark.parametrize("advice", [{}, {"policy": lambda state: 1, "value": lambda state: 0.5}])
def test_plans_are_right(advice):
    planner = pacplan.Bracket(epsilon=1.0, delta=1e-6, gamma=0.7, horizon=4, **advice)
    plan, q = planner.plan(TABLE, 0, seed=0), exact.finite_horizon(TABLE, gamma=0.7, horizon=4)[0, 0]
    assert plan.certified and q.max() - q[plan.action] <= 1.0 and (plan.lower <= q + 1e-9).all()
    plans = [planner.plan(model, seed=0) for model in (PYTHON, JITTED)]
    assert all(plan.certified and plan.lower.max() <= plan.upper.max() for plan in plans)
