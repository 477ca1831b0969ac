"""`pacplan warm`: what it compiles is there for every later process, and it is not much."""

import json
import os
import re
import subprocess
import sys

import pytest

import pacplan
from command_line import COMMAND, run
from pacplan import warming
from pacplan.warming import Job, jobs

pytestmark = pytest.mark.processes

PLANS = """
import json, sys
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
# Everything that can be compiled: first what is for tables, then what is for any other model besides.
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
for job in warming.jobs():
    warming.run(job)
pacplan.plan(pacplan.envs.garnet(), epsilon=0.5, delta=0.1, gamma=0.3, seed=0)
of_tables = dict(asked)
for name, planner in pacplan.planners.items():
    if name in ("op-mdp", "value-iteration"):
        continue
    takes = signature(planner).parameters
    told = {"value_bounds": (0.0, 4.0)} if "value_bounds" in takes else {}
    told |= {"policy": lambda state: 1, "value": lambda state: 0.5} if "policy" in takes else {}
    budget = {} if name == "sparse-sampling" else {"budget": 40}
    for function in (step, numba.njit(step)) if not planner.two_player else (move, numba.njit(move)):
        model = pacplan.Simulator(function, actions=2, successors=1, two_player=planner.two_player)
        for job in warming.jobs([name]):
            merge = {} if job.merge is None else {"merge": job.merge}
            for more in ({}, told):
                settings = warming._small(name) | merge | more
                planner_of(name, settings).plan(model, 0, seed=0, **budget)
for function in (step, numba.njit(step)):
    model = pacplan.Simulator(function, actions=2)
    pacplan.plan(model, 0, epsilon=0.5, delta=0.1, gamma=0.3, seed=0)
others = [title for place, title in asked.items() if place not in of_tables]
print(json.dumps([sorted(of_tables.values()), others]))
"""


def in_folder(folder, command, *arguments):
    done = subprocess.run(
        [command, *arguments],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_after_warming_nothing_is_compiled(tmp_path):
    # Of all planners, this one's kernels take the least time to compile.
    warm = (tmp_path, COMMAND, "warm", "--planner", "stop")
    told, messages = in_folder(*warm)
    assert re.fullmatch(rf"Compiled 1 kernel in \d+ s, kept in {tmp_path}\S*\n", told)
    assert "compiling stop" in messages
    titles, _ = in_folder(tmp_path, sys.executable, "-c", PLANS)
    assert json.loads(titles) == []
    alone = (*warm, "--workers", "1")
    told, messages = in_folder(*alone)
    assert told.startswith("Nothing to compile: everything was there already")
    assert "compiling" not in messages
    # What is lost is compiled again, and nothing else.
    lost = next((tmp_path / "pacplan").glob("*work-*.kernel"))
    lost.unlink()
    told, _ = in_folder(*alone)
    assert told.startswith("Compiled 1 kernel in")
    assert lost.exists()


def test_one_kernel_serves_models_of_every_kind_and_there_are_few(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", EVERYTHING], capture_output=True, text=True, timeout=900, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    of_tables, others = json.loads(done.stdout)
    assert others == []
    assert len(of_tables) <= 30, of_tables


def test_jobs():
    assert {job.planner for job in jobs()} == set(pacplan.planners)
    assert jobs(["uct", "bracket"]) == [Job("uct"), Job("bracket", "tree"), Job("bracket", "depth")]


def test_merging_equal_states_in_either_way_is_one_kernel():
    warming.run(Job("bracket", "depth"))
    assert warming.run(Job("bracket", "stationary")) == []


def test_wrong_usage():
    refused = run("warm", "--planner", "nobody")
    assert refused.code == 2 and "there is no planner 'nobody'" in refused.stderr
    refused = run("warm", "--planner", "uct", "--workers", "0")
    assert refused.code == 2 and "--workers must be at least 1" in refused.stderr


def test_kernels_that_cannot_be_kept(tmp_path):
    place = tmp_path / "file"
    place.touch()
    done = subprocess.run(
        [COMMAND, "warm", "--planner", "stop", "--workers", "1", "--quiet"],
        env=os.environ | {"NUMBA_CACHE_DIR": str(place)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert "could not be kept, so each process compiles them for itself" in done.stderr
