"""Planners of each kind plan the same, to the bit, with the oldest and the newest NumPy and Numba.

`python3 dev.py versions` makes an environment with the oldest, and runs this in it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Bounds from both sides, means, open loop, recursion: to compile the first takes as long as the rest.
NAMES = ["bracket", "mdp-gape", "uct", "kl-olop", "trailblazer"]

PLANS = """
import json, sys
import numba, numpy
from every_planner import answer, make, problem

answers = {
    name: [
        json.dumps(answer(make(name, gamma=gamma).plan(problem(name), 0, seed=4, budget=budget)))
        for gamma in (0.3, 0.7, 0.77, 0.9) for budget in (400, 997)
    ]
    for name in sys.argv[1:]
}
print(json.dumps([[numba.__version__, numpy.__version__], answers]))
"""


def told(python):
    """The versions that a Python has, and the plans that it makes, in two processes."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    processes = [
        subprocess.Popen([python, "-c", PLANS, *names], env=environment, stdout=subprocess.PIPE)
        for names in (NAMES[:1], NAMES[1:])
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert not any(process.returncode for process in processes)
    (versions, first), (_, rest) = map(json.loads, outputs)
    return versions, first | rest


@pytest.mark.versions
@pytest.mark.skipif("PACPLAN_NEWEST" not in os.environ, reason="python3 dev.py versions runs it")
def test_plans_are_the_same_with_all_versions():
    older, oldest_plans = told(sys.executable)
    newer, newest_plans = told(os.environ["PACPLAN_NEWEST"])
    assert older != newer
    assert list(oldest_plans) == NAMES
    assert oldest_plans == newest_plans
