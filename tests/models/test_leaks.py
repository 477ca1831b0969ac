"""Plans leave no memory behind, whatever becomes of them."""

import gc
import tracemalloc

import pytest

from faulty import FAITHFUL, NO_LUCK, OwnError, P, R, jitted
from pacplan import Simulator, TabularMDP
from refusals import PLANNER, no_session_stays_open

_sessions = pytest.fixture(autouse=True)(no_session_stays_open)


def raising_step(state, action, rng):
    if rng.random() < 0.01:
        raise OwnError("leak", 0)
    return state, 0.5, False


SMALL = {"successors": 2, "initial": 0}
LEAKS = {
    "nothing wrong": Simulator(lambda s, a, rng: (s, 0.5, False), actions=2, **SMALL),
    "table": TabularMDP(P, R),
    "step raises": Simulator(raising_step, actions=2, **SMALL),
    "reward": Simulator(lambda s, a, rng: (s, 2.0, False), actions=2, **SMALL),
    "unhashable": Simulator(lambda s, a, rng: ([s], 0.5, False), actions=2, **SMALL),
    "jitted": jitted(initial=FAITHFUL),
    "jitted raises": jitted(initial=NO_LUCK),
}


PLANS = 50


@pytest.mark.parametrize("model", LEAKS.values(), ids=LEAKS.keys())
def test_nothing_leaks(model):
    def plan():
        try:
            PLANNER.plan(model, seed=0, budget=300)
        except Exception:
            return

    plan()  # Compile.
    tracemalloc.start()
    try:
        for _ in range(PLANS):  # Fill what is cached on purpose.
            plan()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(PLANS):
            plan()
        gc.collect()
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # Bytes a plan: a generator takes 2700, a search tree more.
    assert growth / PLANS < 2000
