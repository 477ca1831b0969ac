"""Checkpoints: the same result after any interruption, whole files at any moment, refusals."""

import hashlib
import os
import random
import signal
import time
from copy import copy

import numpy as np
import pytest

import pacplan
from conftest import in_chunks
from every_planner import FIXED_COST, NAMES, make, problem
from pacplan.engine.checkpoint import Checkpoints
from pacplan.engine.driver import ctrl_c

MODEL = pacplan.envs.garnet(states=50, seed=1, noise="bernoulli")
GAPE = pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.7, thresholds="paper")
PLANNER = in_chunks(copy(GAPE), 5)


def evidence(plan):
    """A plan without its times, but with its whole tree and curve."""
    record = plan.to_dict()
    for name in ("seconds", "memory", "interrupted", "origin"):
        del record[name]
    tree = plan.tree
    trees = [] if tree is None else [tree.nodes.tobytes(), tree.pairs.tobytes()]
    if plan.curve is not None:
        trees += [plan.curve.samples.tobytes(), plan.curve.lower.tobytes(), plan.curve.upper.tobytes()]
    return record, [hashlib.sha256(part).hexdigest() for part in trees]


def press_after(samples):
    """A callback that presses Ctrl-C once so many calls were made."""

    def callback(snapshot):
        if snapshot.samples >= samples:
            signal.raise_signal(signal.SIGINT)

    return callback


def interrupted_and_resumed(planner, model, state, path, samples, budget=None):
    """The plan of a search that was interrupted, resumed, interrupted again and resumed to its end."""
    first = planner.plan(
        model, state, seed=3, budget=budget, checkpoint=path, callback=press_after(samples)
    )
    assert first.stopped_by == "interrupt" and first.interrupted
    ctrl_c.absorbed = False
    second = planner.resume(path, model, callback=press_after(2 * samples))
    assert second.stopped_by == "interrupt" and second.samples > first.samples
    ctrl_c.absorbed = False
    return planner.resume(path, model)


WRITING = [(name, {}) for name in NAMES if pacplan.planners[name].keeps_checkpoints]
MODES = [{"merge": "depth"}, {"goal": "value"}, {"value_bounds": (lambda s, h: 0.0, lambda s, h: 3.0)}]


@pytest.mark.parametrize(("name", "mode"), [*WRITING, *(("mdp-gape", mode) for mode in MODES)])
def test_every_planner_goes_on_to_the_same_result(name, mode, tmp_path):
    settings = {"width": 6, "horizon": 3} if name in FIXED_COST else {}
    planner, model = make(name, **settings, **mode), problem(name)
    whole = planner.plan(model, 0, seed=3, budget=3000)
    again = interrupted_and_resumed(planner, model, 0, tmp_path / "saved", 100, budget=3000)
    assert evidence(again) == evidence(whole)


def walk(state, action, rng):
    """Sums of uneven steps: states that no table knows, and as objects of a kind of one's own."""
    place = state.place + (rng.integers(3) if action == "far" else rng.random() < 0.5)
    return Place(int(place)), float(rng.random() < 0.1 * (place % 7)), place > 40


class Place:
    def __init__(self, place):
        self.place = place

    def __eq__(self, other):
        return self.place == other.place

    def __hash__(self):
        return hash(self.place)


def test_python_simulators_reach_their_states_again(tmp_path):
    model = pacplan.Simulator(
        walk, actions=lambda s: ["near", "far"][: 1 + (s.place != 3)], successors=4, initial=Place(0)
    )
    planner = in_chunks(pacplan.Bracket(epsilon=0.0, delta=0.1, gamma=0.8, horizon=6), 7)
    whole = planner.plan(model, seed=3, budget=3000)
    again = interrupted_and_resumed(planner, model, None, tmp_path / "saved", 600, budget=3000)
    assert evidence(again) == evidence(whole)


def test_checkpoints_come_every_so_many_seconds(tmp_path, clock, monkeypatch):
    written = []
    monkeypatch.setattr(Checkpoints, "_write", lambda *_: written.append(clock.now))

    def step(state, action, rng):
        clock.now += 1.0
        return MODEL.step(state, action, rng)

    model = pacplan.Simulator(step, actions=5, successors=2)
    planner = in_chunks(pacplan.UCT(gamma=0.7, horizon=5), 1)
    planner.plan(model, 0, seed=0, budget=1000, checkpoint=tmp_path / "saved", every=60.0)
    assert written[0] == 0.0
    assert len(written) == 1 + 1000 // 60
    assert np.diff(written).min() >= 60.0
    assert np.diff(written).max() <= 65.0


def test_a_disk_that_fills_up_costs_no_plan(tmp_path, monkeypatch, caplog):
    path = tmp_path / "saved"
    write, full = Checkpoints._write, OSError(28, "No space left on device")

    def fails_later(self, search, seconds):
        if seconds > 0.0:
            raise full
        write(self, search, seconds)

    monkeypatch.setattr(Checkpoints, "_write", fails_later)
    plan = PLANNER.plan(MODEL, 0, seed=3, checkpoint=path, every=1e-9)
    assert "No space left" in caplog.text and "goes on" in caplog.text
    assert evidence(plan) == evidence(PLANNER.plan(MODEL, 0, seed=3))
    # The one made at the start is still there, and good.
    assert evidence(PLANNER.resume(path, MODEL)) == evidence(plan)
    monkeypatch.setattr(Checkpoints, "_write", lambda *_: (_ for _ in ()).throw(full))
    with pytest.raises(OSError, match="No space left"):
        PLANNER.plan(MODEL, 0, seed=3, checkpoint=path)


def kill_and_resume(path, kills, seed):
    """Plan in children that are killed at any moment; returns how often, and the plan's evidence."""
    when, killed = random.Random(seed), 0
    outcome = path.with_suffix(".outcome")
    while True:
        child = os.fork()
        if child == 0:  # pragma: no cover
            os.setpgrp()
            try:
                if path.exists():
                    plan = PLANNER.resume(path, MODEL, every=1e-9)
                else:
                    plan = PLANNER.plan(MODEL, 0, seed=3, checkpoint=path, every=1e-9)
                outcome.write_text(repr(evidence(plan)))
            finally:
                os._exit(0 if outcome.exists() else 1)
        if killed < kills:
            time.sleep(when.uniform(0.0, 0.05))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
            continue
        assert os.WEXITSTATUS(status) == 0
        return killed, outcome.read_text()


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "kills", [8, pytest.param(100, marks=pytest.mark.statistical)], ids=["few", "hundred"]
)
def test_killed_at_any_moment_it_goes_on(tmp_path, kills):
    expected = repr(evidence(PLANNER.plan(MODEL, 0, seed=3)))
    killed = 0
    round_ = 0
    while killed < kills:
        path = tmp_path / f"saved{round_}"
        more, found = kill_and_resume(path, kills - killed, round_)
        assert found == expected
        killed += more
        round_ += 1
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".saved")]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "saved"
    plan = PLANNER.plan(MODEL, 0, seed=3, checkpoint=path, callback=press_after(500))
    assert plan.interrupted
    ctrl_c.absorbed = False
    return path


def test_damage_is_found(saved):
    content = saved.read_bytes()
    places = [0, len(content) - 1, *random.Random(0).sample(range(len(content)), 30)]
    damaged = [content[:i] + bytes([content[i] ^ 1 << (i % 8)]) + content[i + 1 :] for i in places]
    for bad in [*damaged, *(content[:n] for n in (0, 1, 20, len(content) // 2, len(content) - 1))]:
        saved.write_bytes(bad)
        with pytest.raises(ValueError, match="damaged"):
            PLANNER.resume(saved, MODEL)


def test_what_differs_is_refused(saved):
    other = pacplan.MDPGapE(epsilon=0.4, delta=0.1, gamma=0.7, thresholds="paper")
    with pytest.raises(ValueError, match="another planner"):
        other.resume(saved, MODEL)
    with pytest.raises(ValueError, match="another planner"):
        pacplan.UCT(gamma=0.7).resume(saved, MODEL)
    with pytest.raises(ValueError, match="another model"):
        PLANNER.resume(saved, pacplan.envs.garnet(states=50, seed=2, noise="bernoulli"))
    with pytest.raises(OSError, match="nowhere"):
        PLANNER.resume(saved.parent / "nowhere", MODEL)
    # How often Python looks up changes nothing, so it may differ.
    assert evidence(GAPE.resume(saved, MODEL))[1] == evidence(PLANNER.plan(MODEL, 0, seed=3))[1]


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        PLANNER.plan(MODEL, 0, checkpoint=tmp_path / "missing" / "saved")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="a folder or a device"):
        PLANNER.plan(MODEL, 0, checkpoint=tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(ValueError, match="every must be positive"):
        PLANNER.plan(MODEL, 0, checkpoint=tmp_path / "saved", every=0)
    with pytest.raises(ValueError, match="writes no checkpoints"):
        pacplan.StOP(epsilon=1.0, delta=0.1, gamma=0.3).plan(MODEL, 0, checkpoint=tmp_path / "saved")
