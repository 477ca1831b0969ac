"""Every kernel of Bracket: for each kind of model, with and without advice.

They take longest to compile, and one process does it sooner than two that share them out. So this file
is run first (`conftest.py`), beside files that have no need of them.
"""

import numba
import numpy as np
import pytest

import pacplan
from pacplan import exact

pytestmark = pytest.mark.kernels

STATES, ACTIONS = 10, 3
SETTINGS = {"epsilon": 1.0, "delta": 1e-6, "gamma": 0.7, "horizon": 4}
ADVICE = {"policy": lambda state: 1, "value": lambda state: 0.5}


def step(state, action, rng):
    """A walk on a circle, which pays when it comes to the first state."""
    after = (state + (1 if rng.random() < 0.2 + 0.3 * action else STATES - 1)) % STATES
    return after, 1.0 if after == 0 else 0.0, False


def table():
    """The same, as a table."""
    up = np.broadcast_to(0.2 + 0.3 * np.arange(ACTIONS), (STATES, ACTIONS))
    here = np.arange(STATES)[:, np.newaxis]
    around = np.stack([(here + 1) % STATES, (here - 1) % STATES], axis=-1)
    to = np.broadcast_to(around, (STATES, ACTIONS, 2))
    return pacplan.TabularMDP(np.stack([up, 1.0 - up], axis=-1), 1.0 * (to == 0), successors=to)


def simulator(function):
    return pacplan.Simulator(function, actions=ACTIONS, successors=2, initial=0)


MODELS = {"table": table(), "python": simulator(step), "jitted": simulator(numba.njit(step))}
# No other test has need of these.
ALONE = pytest.param("jitted", ADVICE, marks=pytest.mark.statistical, id="jitted-advised")


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        *(pytest.param(kind, {}, id=kind) for kind in MODELS),
        *(pytest.param(kind, ADVICE, id=f"{kind}-advised") for kind in ("table", "python")),
        ALONE,
    ],
)
def test_plans_are_right(kind, advice):
    plan = pacplan.Bracket(**SETTINGS, **advice).plan(MODELS[kind], 0, seed=0)
    q = exact.finite_horizon(MODELS["table"], gamma=0.7, horizon=4)[0, 0]
    best = int(q.argmax())
    assert plan.certified and q[best] - q[plan.action] <= SETTINGS["epsilon"]
    assert (plan.lower <= q + 1e-9).all() and plan.upper[best] >= q[best] - 1e-9
