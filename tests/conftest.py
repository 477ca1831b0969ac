import contextlib
import gc
import math
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import psutil
import pytest

import pacplan
from pacplan.compiled import tiered
from pacplan.compiled.cache import compilations
from pacplan.engine.driver import ctrl_c

# The kernels of Bracket take longest to compile. One process does so while the others are busy with
# what has no need of them.
LARGEST, WITHOUT = "test_bracket.py", ("bounds", "compiled", "core", "experiments", "theory")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Order the files of tests for processes that share a cold cache of kernels."""
    items.sort(key=lambda item: (item.path.name != LARGEST, item.path.parent.name not in WITHOUT))


def interpreted(script, folder):
    """What a script prints where nothing is compiled. It may import from the tests."""
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def in_chunks(planner, episodes):
    """The planner, returning to Python after so many episodes; None: as it likes."""
    planner.chunk = episodes
    return planner


def short(value):
    """A name for a test's parameter: the same in every process, so without addresses."""
    return re.sub(r" at 0x\w+", "", repr(value))[:60]


@pytest.fixture(autouse=True, scope="session")
def compiled():
    """Tests wait for kernels, so that they test what later plans run; some say that they do not."""
    with tiered.waiting():
        yield


@pytest.fixture
def cold(monkeypatch):
    """Nothing is waited for, as in a user's program."""
    monkeypatch.setattr(tiered, "_waits", False)


@pytest.fixture(autouse=True)
def interruptible():
    """What a test does with Ctrl-C does not last: commands ignore it, plans remember it."""
    before, ctrl_c.absorbed = signal.getsignal(signal.SIGINT), False
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_finish():
    """Let the garbage collector pass over the tests themselves."""
    gc.freeze()


@pytest.fixture(autouse=True)
def lasting():
    """What the compiler keeps of a kernel is millions of objects: the garbage collector looks once."""
    before = len(compilations)
    yield
    if len(compilations) > before:
        gc.collect()
        gc.freeze()


def children():
    """Processes that were started from here, without Python's own tracker of resources."""
    found = []
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "resource_tracker" not in " ".join(process.cmdline()):
                found.append(process)
    return found


@pytest.fixture
def nothing_left():
    """No thread and no process outlives a test."""
    threads, processes = set(threading.enumerate()), children()
    yield
    for thread in threading.enumerate():
        if thread not in threads and thread.name.startswith("pacplan"):
            thread.join(timeout=60)  # It was told to end.
            assert not thread.is_alive()
    assert not psutil.wait_procs([c for c in children() if c not in processes], timeout=60)[1]


class Clock:
    """A clock that stands still unless it is told to go on."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock that plans go by, for tests that must not depend on how busy the machine is."""
    fake = Clock()
    for module in ("algorithms.common.base", "models.sessions", "engine.driver"):
        monkeypatch.setattr(f"pacplan.{module}.time", fake)
    return fake


# Every radius is log 2, and bounds can be worked by hand.
HALF = pacplan.bounds.Thresholds(
    lambda n: n * math.log(2.0), lambda n: n * math.log(2.0), proven=False, name="half"
)


@pytest.fixture
def two_steps():
    """Root 0: action 0 pays nothing and leads to state 1, where nothing pays; action 1 pays 1 and
    leads to state 2, where everything does. Two actions everywhere; state 3 is never reached."""
    successors = np.array([[1, 2], [1, 1], [2, 2], [3, 3]])[..., np.newaxis]
    rewards = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    return pacplan.TabularMDP(np.ones((4, 2, 1)), rewards, successors=successors)


def random_small(rng, *, states=4, actions=2, successors=2, noise="bernoulli"):
    """A small random MDP with random supports of up to `successors` states."""
    p = rng.dirichlet(np.ones(successors), size=(states, actions))
    to = rng.permuted(np.broadcast_to(np.arange(states), (states, actions, states)), axis=-1)
    return pacplan.TabularMDP(
        p, rng.random((states, actions)), successors=to[..., :successors], noise=noise
    )
