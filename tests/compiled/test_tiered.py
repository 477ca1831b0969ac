"""No plan waits for its kernel: another process compiles it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from kernel_files import VALUE, folder_of_kernels, kernels, start
from pacplan.compiled import tiered

folder = pytest.fixture(folder_of_kernels)
pytestmark = pytest.mark.processes
ARGUMENTS = (10,)


@pytest.fixture
def run(folder, cold, monkeypatch):
    """A kernel that was never compiled, and nothing else that this process knows of kernels."""
    for name in ("module", "ingredient"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(tiered, "_needed", {})
    monkeypatch.setattr(tiered, "_started", {})
    import module

    return module.run


def compiled(kernel):
    """Whether a kernel has been compiled here, and not loaded."""
    return bool(kernel.stats.cache_misses)


def wait_for(happened):
    end = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_another_process_compiles(run, folder):
    assert not tiered.ready(run, ARGUMENTS)
    assert tiered.run(run, 10, *ARGUMENTS) == VALUE
    assert not run.overloads, "that was interpreted"
    wait_for(lambda: tiered.ready(run, ARGUMENTS))
    assert not compiled(run) and run(*ARGUMENTS) == VALUE
    # The claim goes after the kernel has come.
    wait_for(lambda: len(kernels(folder)) == 1)
    (place,) = kernels(folder)
    assert place.name.startswith("module.run-") and place.suffix == ".kernel"


def test_many_records_wait_for_the_kernel(run):
    assert tiered.run(run, 10**6, *ARGUMENTS) == VALUE
    assert run.overloads


def test_of_all_that_need_a_kernel_one_compiles_it(run, monkeypatch):
    started = []
    begin = tiered._start
    monkeypatch.setattr(tiered, "_start", lambda *told: started.append(told) or begin(*told))
    threads = [threading.Thread(target=tiered.ready, args=(run, ARGUMENTS)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Another process knows nothing of what this one has started.
    monkeypatch.setattr(tiered, "_started", {})
    for _ in range(3):
        tiered.ready(run, ARGUMENTS)
    assert len(started) == 1
    wait_for(lambda: tiered.ready(run, ARGUMENTS))
    assert not compiled(run)


@contextmanager
def a_compiler_that(does, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(tiered, "_COMPILER", does)
        yield
    for waiter in tiered._started.values():
        waiter.join()


def test_if_the_compiler_is_killed_the_kernel_is_compiled_here(run, monkeypatch):
    with a_compiler_that("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", monkeypatch):
        assert not tiered.ready(run, ARGUMENTS)
    assert tiered.ready(run, ARGUMENTS) and compiled(run)


def test_if_it_cannot_keep_the_kernel_it_is_compiled_here(run, folder, monkeypatch):
    with a_compiler_that("pass", monkeypatch):
        assert not tiered.ready(run, ARGUMENTS)
        for path in (folder / "cache" / "pacplan").iterdir():
            path.unlink()
        (folder / "cache" / "pacplan").rmdir()
        (folder / "cache" / "pacplan").write_text("not a folder")
    assert tiered.ready(run, ARGUMENTS) and compiled(run)


def test_an_old_claim_is_void(run):
    place = tiered.place_of(run, tuple(map(tiered.numba.typeof, ARGUMENTS)))
    claim = place.with_suffix(tiered.UNFINISHED)
    claim.touch()
    assert not tiered.ready(run, ARGUMENTS) and not tiered._started
    os.utime(claim, (time.time() - 3600.0,) * 2)
    assert not tiered.ready(run, ARGUMENTS) and tiered._started


PLAN = """
import os, signal, sys
import pacplan
model = pacplan.envs.garnet(states=20, seed=0)
planner = pacplan.BRUE(gamma=0.5, horizon=3)
plans = [planner.plan(model, 0, seed=seed, budget=200) for seed in range(2)]
print([plan.values.tolist() for plan in plans])
sys.stdout.flush()
if sys.argv[1:] == ["ctrl-c"]:
    os.killpg(0, signal.SIGINT)
"""


@pytest.mark.parametrize("end", ["by itself", "ctrl-c"])
def test_the_compiler_outlives_the_program(tmp_path, end):
    def plan():
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", PLAN, end],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )

    cold = plan()
    (line,) = (text for text in cold.stderr.splitlines() if "pacplan:" in text)
    assert re.fullmatch("pacplan: compiling .* in another .*", line)
    files = tmp_path / "pacplan"
    wait_for(lambda: [path.suffix for path in files.iterdir()] == [".kernel"])
    warm = plan()
    assert warm.stdout == cold.stdout != ""
    assert "pacplan:" not in warm.stderr
    assert cold.returncode == (0 if end == "by itself" else -signal.SIGINT)


CHANGE = """
import pacplan
from pacplan.engine.episodes import play
model = pacplan.envs.garnet(states=20, seed=0)
planner = pacplan.UCT(gamma=0.7, horizon=5)
plan = planner.plan(model, 0, seed=0, callback=lambda snapshot: bool(play.overloads))
assert plan.stopped_by == "callback" and not play.stats.cache_misses
again = planner.plan(model, 0, seed=0, budget=plan.samples)
assert (plan.tree.pairs == again.tree.pairs).all() and (plan.tree.nodes == again.tree.nodes).all()
"""


def test_a_long_plan_changes_over(folder):
    script = folder / "script.py"
    script.write_text(CHANGE)
    with start(folder, script) as process:
        _, messages = process.communicate()
    assert process.returncode == 0, messages
