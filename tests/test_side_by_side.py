"""Calls of one plan made side by side: the plan is that of one call at a time."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import pacplan
import side_by_side as models
from deciding import content
from every_planner import NAMES, SAMPLING, make
from interrupting import interrupted_script
from pacplan.parallel.session import SpeculativeSession
from side_by_side import MODEL, Shuffled, over

UCT = pacplan.UCT(gamma=0.7)
NOISY = over(models.noisy_step, successors=None, initial=0.0)
GAME = over(models.game_step, successors=1, initial=(), two_player=True)
ONE_AT_A_TIME = [name for name in NAMES if not pacplan.planners[name].parallel_calls]


def said(plan):
    """All of a plan that must not depend on who made its calls."""
    return content(replace(plan, calls_made=0, origin=replace(plan.origin, model="")))


@pytest.fixture
def rounds(monkeypatch):
    """Whenever a search has to wait, an executor makes some of the calls; returns how often it did."""
    done = []

    def wait(self, timeout):
        Shuffled.latest.work()
        self._note_news()
        done.append(True)

    monkeypatch.setattr(SpeculativeSession, "wait", wait)
    return done


@pytest.mark.usefixtures("rounds")
@pytest.mark.parametrize("name", [name for name in SAMPLING if name not in ONE_AT_A_TIME])
def test_every_planner_finds_the_plan_of_one_call_at_a_time(name):
    fixed = over(models.fixed_step, successors=1)
    model = {"opd": fixed, "canopy": NOISY, "ugape-mcts": GAME}.get(name, MODEL)
    alone = make(name).plan(model, seed=3, workers=1, budget=400)
    assert alone.calls_made == alone.samples > 0
    for rng in (None, np.random.default_rng(1), np.random.default_rng(2)):
        plan = make(name).plan(model, seed=3, workers=6, executor=Shuffled(rng), budget=400)
        assert said(plan) == said(alone)
        assert plan.calls_made >= plan.samples


def outcome(model, seed, **crew):
    try:
        return said(UCT.plan(model, seed=seed, budget=60, **crew))
    except ArithmeticError as error:
        return str(error), [note for note in error.__notes__ if "process" not in note]


def test_errors_are_those_of_one_call_at_a_time():
    """Calls that fail because of their outcome: the search meets them, or was never to meet them."""
    model = over(models.failing_when_good)
    seeds = range(12)
    alone = [outcome(model, seed, workers=1) for seed in seeds]
    with ThreadPoolExecutor(6) as threads:
        assert [outcome(model, seed, workers=6, executor=threads) for seed in seeds] == alone
    assert [outcome(model, seed, workers=2) for seed in seeds[:2]] == alone[:2]
    failed = [isinstance(found[0], str) for found in alone]
    assert any(failed) and not all(failed)
    assert "raised by the model in state" in next(found for found in alone if len(found) == 2)[1][0]


@pytest.mark.processes
def test_a_call_that_takes_its_process_down_ends_the_plan():
    """It may have died of its outcome, so no other draw may take its place."""
    with pytest.raises(RuntimeError, match="terminated") as caught:
        UCT.plan(over(models.crashing_when_good), seed=1, workers=2, budget=2000)
    assert any("raised by the model in state" in note for note in caught.value.__notes__)


@pytest.mark.processes
def test_a_dask_client_makes_the_calls_also_those_that_took_a_worker_down(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    alone = UCT.plan(MODEL, seed=1, workers=1, budget=200)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        plan = UCT.plan(over(models.crashing_twice), seed=1, executor=client, budget=200)
        assert said(replace(plan, assumptions=alone.assumptions)) == said(alone)
        assert any("from rng alone" in text for text in plan.assumptions)
        assert {path.name for path in tmp_path.glob("crash*")} == {"crash0", "crash1"}
        with pytest.raises(distributed.scheduler.KilledWorker):
            UCT.plan(over(models.crashing_when_good), seed=1, executor=client, budget=2000)


@pytest.mark.parametrize("workers", [1, 4])
def test_limits(workers):
    with ThreadPoolExecutor(workers) as threads:
        crew = {"workers": workers, "executor": threads}
        plan = UCT.plan(MODEL, seed=1, budget=101, **crew)
        assert plan.stopped_by == "budget" and plan.samples == 101
        seen = []
        plan = UCT.plan(
            MODEL, seed=1, callback=lambda found: seen.append(found) or len(seen) == 3, **crew
        )
        assert plan.stopped_by == "callback" and plan.episodes == 3
        slow = over(models.slow_when_good)
        plan = UCT.plan(slow, seed=1, time_limit=0.3, **crew)
        assert plan.stopped_by == "deadline"
        assert plan.calls_made <= plan.samples + 3 * 4 * workers * plan.horizon


@pytest.mark.processes
@pytest.mark.usefixtures("nothing_left")
def test_a_deadline_does_not_wait_for_calls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    plan = UCT.plan(over(models.endless_step), seed=1, workers=2, time_limit=8.0)
    assert plan.stopped_by == "deadline" and plan.samples == 0
    assert time.monotonic() - began < 25.0


SCRIPT = """
import pacplan
from side_by_side import endless_step, over

if __name__ == "__main__":
    plan = pacplan.UCT(gamma=0.7).plan(over(endless_step), workers=2, budget=100)
    print(plan.stopped_by, plan.interrupted, plan.samples)
"""


PLAIN = """
from dataclasses import dataclass
import pacplan

print("ran")

@dataclass(frozen=True)
class Place:
    number: int

def step(state, action, rng):
    assert type(state) is Place
    number = (state.number + move(rng, action)) % 10
    return Place(number), float(number == 0), False

def moves(least):
    return lambda rng, action: 1 if rng.random() < least + 0.3 * action else 9

move = moves(0.2)
model = pacplan.Simulator(step, actions=3, initial=Place(0))
uct = pacplan.UCT(gamma=0.7)
one, two = (uct.plan(model, seed=0, budget=60, workers=workers) for workers in (1, 2))
assert (one.values == two.values).all()
places = [Place(1), Place(2)]
one, two = (uct.plan_many(model, places, seeds=0, budget=60, workers=workers) for workers in (1, 2))
assert [plan.values.tolist() for plan in one] == [plan.values.tolist() for plan in two]
"""


@pytest.mark.processes
def test_a_plain_script_just_works_and_runs_once(tmp_path):
    """Its functions and classes are defined in `__main__`, as those of a notebook are."""
    done = subprocess.run(
        [sys.executable, "-"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        input=PLAIN,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


@pytest.mark.processes
def test_ctrl_c(tmp_path):
    # Patience is less than a call takes.
    ended = interrupted_script(SCRIPT, folder=tmp_path, begun=["begun"], patience=25)
    assert ended.stdout.strip() == "interrupt True 0", ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("planner", "model", "arguments", "error", "message"),
    [
        (UCT, MODEL, {"workers": 0}, ValueError, "workers"),
        (UCT, MODEL, {"workers": 2.5}, TypeError, "workers"),
        (UCT, MODEL, {"executor": 3}, TypeError, "Executor"),
        (UCT, MODEL, {"workers": 2, "checkpoint": "file"}, ValueError, "no checkpoints"),
        (UCT, models.GARNET, {"workers": 2}, ValueError, "compiled"),
        (make("atlas"), MODEL, {"workers": 2}, ValueError, "one call at a time"),
        (
            UCT,
            over(partial(models.step, threading.Lock())),
            {"workers": 2},
            TypeError,
            "connections and open files",
        ),
    ],
)
def test_refusals(planner, model, arguments, error, message):
    with pytest.raises(error, match=message):
        planner.plan(model, seed=0, budget=50, **arguments)
