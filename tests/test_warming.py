"""`pacplan warm`: later processes find all kernels, and there are few."""

import json
import os
import re
import subprocess
import sys

import pytest

from command_line import COMMAND, run

pytestmark = pytest.mark.processes

PLANS = """
import json
import numba
import pacplan
from pacplan.compiled.cache import compilations
from pacplan.compiled.tiered import waiting

def walk(state, action, rng):
    place = min(max(state + (1 if action == 1 else -1), 0), 9)
    return place, 1.0 if rng.random() < 0.5 else 0.0, False

def extend(state, action, rng):
    return (*state, action), 0.5, False

planner = pacplan.StOP(epsilon=0.5, delta=0.1, gamma=0.3)
gridworld = pacplan.envs.gridworld()
for model, state in (
    (pacplan.envs.garnet(), 0),
    (gridworld, gridworld.initial_state()),
    (pacplan.Simulator(walk, actions=2, successors=1), 3),
    (pacplan.Simulator(extend, actions=["a", "b"], successors=1), ()),
    (pacplan.Simulator(numba.njit(walk), actions=2, successors=1), 3),
):
    with waiting():
        planner.plan(model, state, budget=2000)
print(json.dumps([title for title, _ in compilations]))
"""


def in_folder(folder, command, *arguments):
    return subprocess.run(
        [command, *arguments],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_after_warming_nothing_is_compiled(tmp_path):
    # Of all planners, this one's kernels take the least time to compile.
    first = in_folder(tmp_path, COMMAND, "warm", "--planner", "stop")
    assert re.fullmatch(
        rf"Compiled 1 kernel in \d+ s. All kernels are in {tmp_path}\S*\n", first.stdout
    )
    assert json.loads(in_folder(tmp_path, sys.executable, "-c", PLANS).stdout) == []
    alone = (tmp_path, COMMAND, "warm", "--planner", "stop", "--workers", "1")
    assert in_folder(*alone).stdout.startswith("Compiled 0 kernels")
    # A lost kernel is compiled again, and nothing else.
    lost = next((tmp_path / "pacplan").glob("*.kernel"))
    lost.unlink()
    assert in_folder(*alone).stdout.startswith("Compiled 1 kernel in") and lost.exists()


def test_wrong_usage(tmp_path):
    assert "'nobody'" in run("warm", "--planner", "nobody").stderr
    refused = run("warm", "--planner", "uct", "--workers", "0")
    assert refused.code == 2 and "--workers must be at least 1" in refused.stderr
    (tmp_path / "file").touch()
    done = in_folder(tmp_path / "file", COMMAND, "warm", "--planner", "stop", "--workers", "1", "-q")
    assert done.returncode == 1 and done.stdout == ""
    assert "each process compiles its own" in done.stderr
