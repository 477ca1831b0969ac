"""Sweeps that are killed or interrupted, or fill the disk, and go on."""

import os
import signal
import subprocess
import time

import psutil
import pytest

from command_line import run as command
from pacplan.experiments import read, read_sweep, run
from sweeps import COMMAND, count_lines, started_by, timeless

pytestmark = pytest.mark.processes

SWEEP = """
seeds = 60
budgets = [2000, 20000]
[[problems]]
name = "garnet"
[[planners]]
name = "uct"
gamma = 0.7
[[planners]]
name = "mdp-gape"
gamma = 0.7
epsilon = 0.0
thresholds = "sharp"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with a sweep of 240 runs in it."""
    (tmp_path / "my.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(folder, workers=2):
    return subprocess.Popen(
        [COMMAND, "sweep", "my.toml", "--workers", str(workers)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def stop(process, folder, lines, end):
    """End it when so many lines are written; returns the processes it had started."""
    while count_lines(folder / "my") < lines:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    children = started_by(process.pid)
    end()
    return children


def test_killed_at_any_moment_it_goes_on_where_it_was(folder):
    written = b""
    for lines in (2, 90):
        process = start(folder)
        children = stop(process, folder, lines, process.kill)
        process.communicate()
        assert not psutil.wait_procs(children, timeout=300)[1]
        content = (folder / "my" / "runs.jsonl").read_bytes()
        assert content.startswith(written)
        written = content[: content.rfind(b"\n") + 1]
    assert lines <= written.count(b"\n") < 241
    output, errors = (process := start(folder)).communicate(timeout=600)
    assert process.returncode == 0, errors
    assert "240 runs" in output
    assert (folder / "my" / "runs.jsonl").read_bytes().startswith(written)
    records = read(folder / "my")
    assert len(records) == len({record.seed for record in records}) == 240
    assert timeless(records) == timeless(run(read_sweep(folder / "my.toml"), workers=1))


@pytest.mark.parametrize(("lines", "workers"), [(0, 2), (40, 1)])
def test_interrupted_it_ends_cleanly_and_says_how_to_go_on(folder, lines, workers):
    process = start(folder, workers)
    while workers > 1 and len(started_by(process.pid)) < workers:
        assert process.poll() is None, process.stderr.read()
    # Ctrl-C goes to all processes of a terminal, here while they are starting and later.
    children = stop(process, folder, lines, lambda: os.killpg(process.pid, signal.SIGINT))
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert output == ""
    assert "Traceback" not in errors
    assert "the same command continues" in errors
    assert not psutil.wait_procs(children, timeout=300)[1]
    assert lines <= count_lines(folder / "my") < 241


@pytest.mark.parametrize(("workers", "most"), [(1, 700), (2, 8000)])
def test_a_full_disk_ends_it_with_a_word_and_it_goes_on_later(folder, workers, most):
    """No file may grow beyond so many bytes, which fails as on a full disk: in the midst of a line."""
    resource = pytest.importorskip("resource")
    process = subprocess.run(
        [COMMAND, "sweep", "my.toml", "--workers", str(workers), "--quiet"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert process.returncode == 1
    assert process.stdout == ""
    assert "Traceback" not in process.stderr
    last = process.stderr.splitlines()[-1]
    assert last.startswith("pacplan: cannot write my") and "File too large" in last
    assert "the same command continues" in last
    content = (folder / "my" / "runs.jsonl").read_bytes()
    content = content[: content.rfind(b"\n") + 1]
    assert command("sweep", "my.toml", "--workers", 1, "--quiet").code == 0
    assert (folder / "my" / "runs.jsonl").read_bytes().startswith(content)
    assert len(read(folder / "my")) == 240
