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
print(json.dumps([done.title for done in compilations]))
"""
# First everything that `warm` compiles, then plans by all planners in Python and jitted simulators.
EVERYTHING = """
import json
from inspect import signature

import numba

import pacplan
from pacplan import warming
from pacplan.compiled import cache, tiered
from pacplan.registry import planner_of

asked = {}
place_of = cache.place_of

def noted(kernel, kinds):
    place = place_of(kernel, kinds)
    asked[place] = cache.title(kernel.py_func, kinds)
    return place

cache.place_of = noted

def step(state, action, rng):
    after = 2 * state + 1 + action
    return after if after < 15 else 0, 0.5 * action, False

def move(state, action, rng):
    after = 2 * state + 1 + action
    return after, 0.5 if after >= 7 else 0.0, after >= 7

tiered.waiting().__enter__()
for name in pacplan.planners:
    warming.compile_kernels(name)
pacplan.plan(pacplan.envs.garnet(), epsilon=0.5, delta=0.1, gamma=0.3, seed=0)
warmed = dict(asked)
for name, planner in pacplan.planners.items():
    if name in ("op-mdp", "value-iteration"):
        continue
    takes = signature(planner).parameters
    known = {"value_bounds": (0.0, 4.0)} if "value_bounds" in takes else {}
    known |= {"policy": lambda state: 1, "value": lambda state: 0.5} if "policy" in takes else {}
    budget = {} if name == "sparse-sampling" else {"budget": 40}
    for function in (step, numba.njit(step)) if not planner.two_player else (move, numba.njit(move)):
        model = pacplan.Simulator(function, actions=2, successors=1, two_player=planner.two_player)
        for more in ({}, known):
            planner_of(name, warming._settings(name) | more).plan(model, 0, seed=0, **budget)
for function in (step, numba.njit(step)):
    model = pacplan.Simulator(function, actions=2)
    pacplan.plan(model, 0, epsilon=0.5, delta=0.1, gamma=0.3, seed=0)
others = [title for place, title in asked.items() if place not in warmed]
print(json.dumps([sorted(warmed.values()), others]))
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


def test_one_kernel_serves_models_of_every_kind_and_there_are_few(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", EVERYTHING], capture_output=True, text=True, timeout=900, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    warmed, others = json.loads(done.stdout)
    assert others == []
    assert len(warmed) <= 30, warmed


def test_wrong_usage(tmp_path):
    assert "'nobody'" in run("warm", "--planner", "nobody").stderr
    refused = run("warm", "--planner", "uct", "--workers", "0")
    assert refused.code == 2 and "--workers must be at least 1" in refused.stderr
    (tmp_path / "file").touch()
    done = in_folder(tmp_path / "file", COMMAND, "warm", "--planner", "stop", "--workers", "1", "-q")
    assert done.returncode == 1 and done.stdout == ""
    assert "each process compiles its own" in done.stderr
