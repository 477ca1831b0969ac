"""Small sweeps, and the commands that run them."""

import contextlib
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil

import pacplan
from pacplan.experiments import PlannerSpec, ProblemSpec

COMMAND = Path(sys.executable).with_name("pacplan")
SMALL = ProblemSpec("garnet", {"states": 20})
UCT = PlannerSpec("uct", {"gamma": 0.7})
GAPE = PlannerSpec("mdp-gape", {"gamma": 0.7, "epsilon": 0.0, "thresholds": "sharp"})


def slow(seed):
    """A problem that takes some time to draw."""
    time.sleep(0.03)
    return pacplan.envs.garnet(states=20, seed=seed)


def picky(seed):
    """A problem that cannot be drawn from odd seeds."""
    if seed % 2:
        raise ArithmeticError(f"seed {seed}\nis odd")
    return pacplan.envs.garnet(states=20, seed=seed)


def deadly(seed):
    """A problem that ends the process it is drawn in, unless that is the first one."""
    if seed:
        os._exit(3)
    return pacplan.envs.garnet(states=20, seed=seed)


def timeless(records):
    """Rows in a fixed order, less the time they took: what must not depend on who computed them."""
    assert all(record.seconds > 0.0 or record.error for record in records)
    return sorted((replace(record, seconds=0.0) for record in records), key=lambda r: r.seed)


def started_by(pid):
    """The children of a process, without Python's own tracker of resources: that ends last."""
    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "resource_tracker" not in " ".join(child.cmdline()):
                found.append(child)
    return found


def count_lines(folder):
    path = folder / "runs.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0
