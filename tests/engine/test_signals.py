"""Signal handlers that raise during a plan: the exception comes through, and the interpreter lives."""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

SCRIPT = """
import random, signal
import numba
import pacplan

class AlarmError(Exception):
    pass

def ring(number, frame):
    raise AlarmError

@numba.njit
def hop(state, action, rng):
    return (state * 3 + action + rng.integers(2)) % 1000, rng.random(), False

table = pacplan.envs.garnet(states=50, seed=1, noise="bernoulli")
models = {
    "table": table,
    "python": pacplan.Simulator(table.step, actions=5, successors=2),
    "jitted": pacplan.Simulator(hop, actions=3, successors=2),
}
planners = pacplan.UCT(gamma=0.7), pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, horizon=4)
planners[0].chunk, planners[1].chunk = 2, 1
runs = [(planner, model) for planner in planners for model in models.values()]
expected = [planner.plan(model, 0, seed=1, budget=2000).samples for planner, model in runs]
when, rung = random.Random(0), 0
signal.signal(signal.SIGALRM, ring)
while rung < RINGS:
    planner, model = runs[rung % len(runs)]
    try:
        # It rings again where Python drops the exception, as in the callback of a weak reference.
        signal.setitimer(signal.ITIMER_REAL, when.uniform(1e-5, 4e-3), 0.2)
        while True:
            planner.plan(model, 0, seed=1, budget=2000)
    except AlarmError:
        signal.setitimer(signal.ITIMER_REAL, 0)
        rung += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert [planner.plan(model, 0, seed=1, budget=2000).samples for planner, model in runs] == expected
print("lived through", rung)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that raise signals")
@pytest.mark.parametrize("rings", [600, pytest.param(20_000, marks=pytest.mark.statistical)])
def test_alarms_that_raise_leave_the_interpreter_alive(rings):
    script = SCRIPT.replace("RINGS", str(rings))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=os.environ
    )
    assert done.stdout == f"lived through {rings}\n", done.stderr[-2000:]
