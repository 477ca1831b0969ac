"""`pacplan warm`: what it compiles is there for every later process."""

import json
import os
import re
import subprocess
import sys

import pytest

import pacplan
from command_line import COMMAND, run
from pacplan import warming
from pacplan.warming import KINDS, Job, jobs

PLANS = """
import json, sys
import numba
import pacplan
from pacplan.compiled.announcements import compilations

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
    planner.plan(model, state, budget=2000)
print(json.dumps([done.title for done in compilations if done.is_kernel]))
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
    assert re.fullmatch(rf"Compiled \d+ kernels in \d+ s, kept in {tmp_path}\S*\n", told)
    for kind in KINDS:
        shown = kind if kind == "Python" else kind.lower()
        assert re.search(rf"compiling stop for a {shown} model took \d+\.\d s", messages)
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


def test_everything_is_compiled_in_every_way():
    found = jobs()
    assert {job.planner for job in found} == {"bounds", *pacplan.planners}
    for name in pacplan.planners:
        kinds = {job.kind for job in found if job.planner == name}
        assert kinds == set(KINDS[:1] if name in ("op-mdp", "value-iteration") else KINDS)
    bracket = [dict(job.settings) for job in found if job[:2] == ("bracket", "Python")]
    assert [(each["merge"], "value_bounds" in each) for each in bracket] == [
        ("tree", False),
        ("tree", True),
        ("depth", False),
        ("depth", True),
    ]
    assert jobs(["uct"]) == [Job("uct", kind) for kind in KINDS]


def told_gape(job):
    """Whether it has kernels of its own to compile, of which no other test has need."""
    return job.planner == "mdp-gape" and "value_bounds" in dict(job.settings)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(job, marks=[pytest.mark.statistical] * told_gape(job))
        for job in jobs()
        if job.kind == "tabular"
    ],
    ids=str,
)
def test_jobs_run_and_merging_equal_states_is_one_kernel(job):
    warming.run(job)
    settings = dict(job.settings)
    if settings.get("merge") == "depth" and job.planner != "mdp-gape":
        stationary = job._replace(settings=tuple((settings | {"merge": "stationary"}).items()))
        assert warming.run(stationary).compiled == ()


def test_wrong_usage():
    refused = run("warm", "--planner", "nobody")
    assert refused.code == 2 and "there is no planner 'nobody'" in refused.stderr
    refused = run("warm", "--planner", "uct", "--workers", "0")
    assert refused.code == 2 and "--workers must be at least 1" in refused.stderr


def test_kernels_that_cannot_be_kept(tmp_path):
    place = tmp_path / "file"
    place.touch()
    done = subprocess.run(
        [COMMAND, "warm", "--planner", "uct", "--workers", "1", "--quiet"],
        env=os.environ | {"NUMBA_CACHE_DIR": str(place)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert "could not be kept, so each process compiles them for itself" in done.stderr
