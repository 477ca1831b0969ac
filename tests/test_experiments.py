"""Sweeps: what they run, that they survive being killed, and the paper's experiments as sweeps."""

import contextlib
import csv
import html
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from typer.testing import CliRunner

import pacplan
from conftest import short
from pacplan import exact
from pacplan.bounds.thresholds import NAMED
from pacplan.cli import app
from pacplan.experiments import (
    PlannerSpec,
    ProblemSpec,
    Record,
    Reproduction,
    Sweep,
    claims,
    dask_cluster,
    groups,
    paper,
    process_pool,
    read,
    read_sweep,
    run,
)
from pacplan.experiments import records as files

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
    assert all(record.seconds is None or record.seconds > 0.0 for record in records)
    return sorted((replace(record, seconds=None) for record in records), key=lambda r: r.seed)


# What is run ------------------------------------------------------------------------------------------


def test_rows_say_what_the_planner_did():
    sweep = Sweep([UCT, GAPE], [SMALL], budgets=[50, 200], seeds=[3, 8], seed=5)
    records = run(sweep, workers=1)
    assert len(records) == 8
    planners = {"uct": pacplan.UCT(gamma=0.7)}
    planners["mdp-gape"] = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, thresholds="sharp")
    for record in records:
        model = pacplan.envs.garnet(states=20, seed=record.problem_seed)
        planner = planners[record.planner]
        plan = planner.plan(model, seed=record.seed, budget=record.budget)
        values = exact.discounted(model, gamma=0.7)[0]
        told = json.loads(record.settings)
        assert told == {"planner": record.planner, "settings": planner.settings}
        assert record.problem == "garnet(states=20)"
        assert (record.action, record.samples) == (str(plan.action), plan.samples)
        assert (record.horizon, record.episodes) == (plan.horizon, plan.episodes)
        assert (record.gap, record.certified) == (plan.gap, plan.certified)
        assert record.regret == values.max() - values[plan.action]
        assert (record.stopped_by, record.error) == (plan.stopped_by, "")
    assert {(r.problem_seed, r.planner, r.budget) for r in records} == {
        (seed, name, budget) for seed in (3, 8) for name in planners for budget in (50, 200)
    }


def test_without_discount_regret_is_that_of_the_steps_planned():
    planner = PlannerSpec("uct", {"gamma": 1.0, "horizon": 3})
    (record,) = run(Sweep([planner], [SMALL], budgets=[40]), workers=1)
    model = pacplan.envs.garnet(states=20, seed=0)
    values = exact.finite_horizon(model, gamma=1.0, horizon=3)[0, 0]
    assert record.regret == values.max() - values[int(record.action)]


def test_seeds_follow_from_the_run_alone():
    budgets = [50, 100]
    one = {r.seed: r for r in Sweep([UCT, GAPE], [SMALL], budgets, seeds=3).runs()}
    other = {r.seed: r for r in Sweep([GAPE], [SMALL], budgets[::-1], seeds=[2, 7, 0]).runs()}
    shared = one.keys() & other.keys()
    assert len(shared) == 4
    for seed in shared:
        assert one[seed].problem_seed == other[seed].problem_seed in (0, 2)
        assert one[seed].budget == other[seed].budget
        assert one[seed].planner == other[seed].planner == GAPE
    assert not one.keys() & {
        r.seed for r in Sweep([UCT, GAPE], [SMALL], budgets, seeds=3, seed=1).runs()
    }


def test_planners_and_problems_as_objects():
    sweep = Sweep([PlannerSpec(pacplan.UCT(gamma=0.7))], [ProblemSpec(slow)], budgets=[30], seeds=2)
    records = run(sweep, workers=1)
    assert [record.problem for record in records] == ["test_experiments:slow"] * 2
    assert all(record.regret is not None for record in records)


def test_a_problem_without_tables_has_no_regret():
    def still(state, action, rng):
        return state, 0.5, False

    def model(seed):
        return pacplan.Simulator(still, actions=2, successors=1, initial=0)

    (record,) = run(Sweep([UCT], [ProblemSpec(model, label="still")], budgets=[30]), workers=1)
    assert record.regret is None and record.samples == 30


def test_what_cannot_be_told_apart_needs_a_label():
    thresholds = (lambda n: 1.0, lambda n: 1.0)
    own = PlannerSpec("mdp-gape", {"gamma": 0.7, "horizon": 3, "thresholds": thresholds})
    with pytest.raises(ValueError, match="label"):
        Sweep([own], [SMALL], budgets=[30]).runs()
    labelled = replace(own, label="flat")
    (record,) = run(Sweep([labelled], [SMALL], budgets=[30]), workers=1)
    assert record.planner == json.loads(record.settings)["label"] == "flat"
    with pytest.raises(ValueError, match="label"):
        Sweep([UCT], [ProblemSpec(lambda seed: None)], budgets=[30]).runs()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"planners": []}, "planners"),
        ({"problems": []}, "problems"),
        ({"budgets": []}, "budgets"),
        ({"budgets": [0]}, "budgets"),
        ({"budgets": [10, 10]}, "twice"),
        ({"planners": [UCT, UCT]}, "twice"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"seed": -1}, "seed"),
        ({"planners": [PlannerSpec("nonsense")]}, "nonsense"),
        ({"planners": [PlannerSpec("uct", {"colour": 1})]}, "colour"),
        ({"problems": [ProblemSpec("nowhere")]}, "nowhere"),
        ({"problems": [ProblemSpec("garnet", {"states": 0})]}, "states"),
        ({"planners": [PlannerSpec(pacplan.UCT(gamma=0.7), {"gamma": 0.7})]}, "settings"),
        ({"problems": [ProblemSpec(slow, {"states": 3})]}, "settings"),
    ],
    ids=short,
)
def test_wrong_sweeps_are_refused_before_anything_runs(change, word, tmp_path):
    given = {"planners": [UCT], "problems": [SMALL], "budgets": [10], "seeds": 2} | change
    with pytest.raises((ValueError, TypeError), match=word):
        run(Sweep(**given), tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_a_run_that_raises_is_a_row_and_the_others_go_on(tmp_path):
    planners = [PlannerSpec("opd", {"gamma": 0.7}), UCT]
    sweep = Sweep(planners, [ProblemSpec(picky)], budgets=[30], seeds=4)
    records = run(sweep, tmp_path, workers=1)
    for record in records:
        if record.problem_seed % 2:
            assert record.error == f"ArithmeticError: seed {record.problem_seed} is odd"
        elif record.planner == "opd":
            assert record.error.startswith("ValueError: OPD plans where")
        else:
            assert record.error == "" and record.samples == 30
    assert timeless(read(tmp_path / "runs.csv")) == timeless(records)
    summary = {group.planner: group for group in groups(records)}
    assert (summary["opd"].runs, summary["opd"].failed, summary["opd"].regret) == (4, 4, None)
    assert (summary["uct"].runs, summary["uct"].failed) == (4, 2)


# Who computes -----------------------------------------------------------------------------------------


def test_any_number_of_workers_gives_the_same_rows(tmp_path):
    sweep = Sweep([UCT, GAPE], [SMALL], budgets=[20, 500], seeds=15)
    alone = run(sweep, tmp_path / "one", workers=1)
    pool = run(sweep, tmp_path / "two", workers=2)
    assert timeless(alone) == timeless(pool)
    assert [record.seed for record in alone] == [r.seed for r in sweep.runs()]
    for name in ("one", "two"):
        assert timeless(read(tmp_path / name / "runs.csv")) == timeless(alone)
    with ThreadPoolExecutor(2) as threads:
        assert timeless(run(sweep, executor=threads, workers=2)) == timeless(alone)


def test_workers_end_with_their_context():
    def leave():
        with process_pool(2) as pool:
            futures = [pool.submit(time.sleep, 60) for _ in range(4)]
            while not any(future.running() for future in futures):
                time.sleep(0.01)
            children.extend(started_by(os.getpid()))
            raise ZeroDivisionError

    before = started_by(os.getpid())
    children = []
    with pytest.raises(ZeroDivisionError):
        leave()
    assert not psutil.wait_procs([child for child in children if child not in before], timeout=300)[1]


def started_by(pid):
    """The children of a process, without Python's own tracker of resources: that ends last."""
    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "resource_tracker" not in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_a_worker_that_dies_is_explained(tmp_path):
    sweep = Sweep([UCT], [ProblemSpec(deadly)], budgets=[20], seeds=3)
    with pytest.raises(RuntimeError, match="run the same again"):
        run(sweep, tmp_path, workers=2)


def test_what_cannot_be_sent_is_refused():
    sweep = Sweep([UCT], [ProblemSpec(lambda seed: slow(seed), label="own")], budgets=[20], seeds=3)
    with pytest.raises(TypeError, match="workers=1"):
        run(sweep, workers=2)
    assert len(run(sweep, workers=1)) == 3


def test_dask_cluster_loses_a_worker_and_no_run(tmp_path):
    distributed = pytest.importorskip("distributed")
    sweep = Sweep([UCT, GAPE], [ProblemSpec(slow)], budgets=[20, 500], seeds=30)
    lines_at_kill = []

    def kill_one(pids):
        while not (tmp_path / "runs.csv").exists() or count_lines(tmp_path) < 15:
            time.sleep(0.01)
        lines_at_kill.append(count_lines(tmp_path))
        os.kill(pids[0], signal.SIGKILL)

    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        with distributed.Client(cluster) as client:
            before = sorted(client.run(os.getpid).values())
        assert len(before) == 3 and os.getpid() not in before
        killer = threading.Thread(target=kill_one, args=(before,))
        killer.start()
        with dask_cluster(cluster.scheduler_address) as (executor, at_once):
            assert at_once == 3
            records = run(sweep, tmp_path, executor=executor, workers=at_once)
        killer.join()
        assert not psutil.pid_exists(before[0])
    assert lines_at_kill[0] < len(records) == 120
    written = read(tmp_path / "runs.csv")
    assert len(written) == 120 and len({record.seed for record in written}) == 120
    assert timeless(written) == timeless(run(sweep, workers=1))


# Being killed, and going on ---------------------------------------------------------------------------

SWEEP = """
seeds = 60
budgets = [50, 2000]
[[problems]]
name = "{module}:problem"
[[planners]]
name = "uct"
gamma = 0.7
[[planners]]
name = "mdp-gape"
gamma = 0.7
epsilon = 0.0
thresholds = "sharp"
"""
PROBLEM = """
import time
import pacplan

def problem(seed):
    time.sleep(0.01)
    return pacplan.envs.garnet(states=20, seed=seed)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with a sweep of 240 runs in it, on a problem of the user's own."""
    module = "sweep_" + re.sub(r"\W", "_", tmp_path.name)
    (tmp_path / f"{module}.py").write_text(PROBLEM)
    (tmp_path / "my.toml").write_text(SWEEP.format(module=module))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop(module, None)


def count_lines(folder):
    path = folder / "runs.csv"
    return path.read_bytes().count(b"\n") if path.exists() else 0


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
        _, alive = psutil.wait_procs(children, timeout=300)
        assert not alive
        content = (folder / "my" / "runs.csv").read_bytes()
        assert content.startswith(written)
        written = content[: content.rfind(b"\n") + 1]
    assert lines <= written.count(b"\n") < 241
    process = start(folder)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert "240 runs" in output
    assert (folder / "my" / "runs.csv").read_bytes().startswith(written)
    records = read(folder / "my" / "runs.csv")
    assert len(records) == len({record.seed for record in records}) == 240
    assert timeless(records) == timeless(run(read_sweep(folder / "my.toml"), workers=1))


@pytest.mark.parametrize(("lines", "workers"), [(0, 2), (40, 2), (40, 1)])
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


def test_interrupted_again_and_again_it_still_ends_cleanly(folder):
    process = start(folder)
    children = stop(process, folder, 10, lambda: None)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    process.communicate()
    assert process.returncode == 130
    assert not psutil.wait_procs(children, timeout=300)[1]
    assert len(read(folder / "my" / "runs.csv")) >= 9


def test_interrupted_reproduction_goes_on_where_it_was(tmp_path):
    arguments = ["figure2", "--mdps", "40", "--planners", "uct", "--workers", "1", "--out", "out"]
    process = subprocess.Popen(
        [COMMAND, "reproduce", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while count_lines(tmp_path / "out") < 5:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert output == "" and "Traceback" not in errors
    assert "the same command continues from out" in errors
    assert 4 <= len(read(tmp_path / "out" / "runs.csv")) < 360
    assert not (tmp_path / "out" / "report.html").exists()


# Files that cannot be written, or were not written by us ----------------------------------------------


@pytest.mark.parametrize(
    ("workers", "most"), [(1, 700), (2, 700), (1, 3000), (2, 3001), (1, 3002), (2, 3050)]
)
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
    content = (folder / "my" / "runs.csv").read_bytes()
    assert content == b"" or content.endswith(b"\n")
    if most > 1000:
        assert most - 400 < len(content) <= most
        assert len(read(folder / "my" / "runs.csv")) > 5
    assert command("sweep", "my.toml", "--workers", 1, "--quiet").exit_code == 0
    assert (folder / "my" / "runs.csv").read_bytes().startswith(content)
    assert len(read(folder / "my" / "runs.csv")) == 240


def a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        (
            "sweep.json",
            lambda path: path.write_bytes(path.read_bytes()[:50]),
            "damaged, it is not JSON",
        ),
        ("sweep.json", lambda path: path.write_bytes(b""), "damaged, it is not JSON"),
        ("sweep.json", lambda path: path.write_bytes(b"\xff\xfe\x00junk\x80" * 9), "damaged"),
        ("sweep.json", lambda path: path.write_bytes(b"[" * 100_000), "damaged"),
        ("sweep.json", lambda path: path.write_text("[1, 2]"), "does not describe a sweep"),
        ("sweep.json", lambda path: path.write_text("null"), "does not describe a sweep"),
        ("sweep.json", lambda path: path.write_text('{"seed": []}'), "seed was [], now is 0"),
        ("sweep.json", lambda path: path.unlink(), "no sweep.json"),
        ("sweep.json", a_folder, "is a folder"),
        ("runs.csv", lambda path: path.write_bytes(b"\xff\x00\x80\n\x81" * 99), "columns of a sweep"),
        ("runs.csv", lambda path: path.write_bytes(b"\xff\x00 junk"), "columns of a sweep"),
        ("runs.csv", lambda path: path.write_text("own,table\n1,2\n"), "columns of a sweep"),
        ("runs.csv", lambda path: path.write_text("one line of one's own"), "columns of a sweep"),
        ("runs.csv", lambda path: path.write_text("\n" + path.read_text()), "columns of a sweep"),
        (
            "runs.csv",
            lambda path: path.write_text(path.read_text() + '"open\n'),
            "line 4 is damaged: b'\"open'; delete that line",
        ),
        (
            "runs.csv",
            lambda path: path.write_bytes(path.read_bytes() + b"\x00\xff\n"),
            "line 4 is damaged",
        ),
        (
            "runs.csv",
            lambda path: path.write_text(path.read_text().replace("False", "perhaps")),
            "line 2 is damaged",
        ),
        (
            "runs.csv",
            lambda path: path.write_text(path.read_text() + "x" * 200_000 + "\n"),
            "line 4 is damaged",
        ),
        ("runs.csv", a_folder, "Is a directory; choose another place"),
    ],
)
@pytest.mark.parametrize("what", ["sweep", "reproduce"])
def test_odd_files_are_refused_as_they_are(tmp_path, name, damage, words, what):
    (tmp_path / "my.toml").write_text(
        'seeds = 2\nbudgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "uct"\n'
    )
    wanted = {
        "sweep": ["sweep", tmp_path / "my.toml"],
        "reproduce": ["reproduce", "figure2", "--quick", "--mdps", 2, "--planners", "uct"],
    }[what]
    wanted += ["--workers", 1, "--quiet", "--out", tmp_path / "my"]
    if what == "reproduce" and "line 4" in words:
        pytest.skip("the rows are those of any sweep")
    assert command(*wanted).exit_code == 0
    path = tmp_path / "my" / name
    damage(path)
    before = path.read_bytes() if path.is_file() else None
    result = command(*wanted)
    assert result.exit_code == 2
    assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert str(tmp_path / "my") in result.stderr
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize("what", ["sweep", "reproduce"])
@pytest.mark.parametrize("out", ["file", "file/below", "sealed/my"])
def test_folders_that_cannot_be_written_to(tmp_path, what, out):
    (tmp_path / "file").touch()
    (tmp_path / "sealed").mkdir()
    (tmp_path / "sealed").chmod(0o500)
    if "sealed" in out and os.access(tmp_path / "sealed", os.W_OK):
        pytest.skip("nothing is sealed for this user")
    (tmp_path / "my.toml").write_text(
        'budgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "uct"\n'
    )
    wanted = ["sweep", tmp_path / "my.toml"] if what == "sweep" else ["reproduce", "all", "--quick"]
    result = command(*wanted, "--workers", 1, "--out", tmp_path / out)
    assert result.exit_code == 2
    assert "choose another place" in result.stderr and len(result.stderr.splitlines()) == 1


def test_reports_that_cannot_be_written_are_noticed_before_the_runs(tmp_path, monkeypatch):
    (tmp_path / "report.html").mkdir()
    wanted = ["reproduce", "figure2", "--quick", "--workers", 1, "--out", tmp_path]
    result = command(*wanted)
    assert result.exit_code == 2 and "report.html is a folder" in result.stderr
    (tmp_path / "report.html").rmdir()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = command(*wanted)
    assert result.exit_code == 2 and "pip install pacplan[viz]" in result.stderr
    assert not (tmp_path / "runs.csv").exists()


def test_a_summary_that_cannot_be_written(tmp_path):
    (tmp_path / "my" / "summary.csv").mkdir(parents=True)
    (tmp_path / "my.toml").write_text(
        'budgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "uct"\n'
    )
    result = command("sweep", tmp_path / "my.toml", "--workers", 1, "--quiet")
    assert result.exit_code == 1
    assert "summary.csv: Is a directory" in result.stderr and len(result.stderr.splitlines()) == 1
    assert len(read(tmp_path / "my" / "runs.csv")) == 1


# Code of the user's -----------------------------------------------------------------------------------

WATCHED = """
from pathlib import Path
import pacplan

Path("imported").touch()
number = 3
model = pacplan.envs.garnet(states=20)
bounds = (lambda state, h: 0.0, lambda state, h: 5.0)


def make(states=20, seed=0):
    Path("called").touch()
    return pacplan.envs.garnet(states=states, seed=seed)


def strict(states):
    return make(states)


def nothing():
    return None


def unlucky(seed):
    raise OSError(2, "no data today")
"""
GOOD = '[[problems]]\nname = "{m}:make"\n[[planners]]\nname = "uct"\n'


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """The name of a module of the user's, which notes that it was imported, and called."""
    module = "watched_" + re.sub(r"\W", "_", tmp_path.name)
    (tmp_path / f"{module}.py").write_text(WATCHED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield module
    sys.modules.pop(module, None)


@pytest.mark.parametrize(
    ("text", "word", "imported"),
    [
        (GOOD + '[[planners]]\nname = "nonsense"', "nonsense", False),
        (GOOD + '[[planners]]\nname = "uct"\ncolour = 1', "colour", False),
        (GOOD + '[[planners]]\nname = "brue"\ngamma = 7', "gamma", False),
        (GOOD + '[[planners]]\nname = "uct"', "twice", True),
        (GOOD + '[[problems]]\nname = "nowhere"', "nowhere", False),
        (GOOD + '[[problems]]\nname = "garnet"\ncolour = 1', "colour", False),
        ("budgets = [0]\n" + GOOD, "budgets", False),
        ("budgets = 5\n" + GOOD, "budgets must be a list, got 5", False),
        ("seeds = 1.5\n" + GOOD, "seeds must be a list, got 1.5", False),
        (GOOD + 'label = "two\\nlines"', "label", False),
        (GOOD + "label = 3", "label", False),
        (GOOD + "budgets = []", "budgets", False),
        (GOOD + '[[problems]]\nname = "{m}:make"\ncolour = 1', "it takes (states=20, seed=0)", True),
        (GOOD + '[[problems]]\nname = "{m}:strict"', "missing a required argument: 'states'", True),
        (GOOD + '[[problems]]\nname = "{m}:number"', "neither a model nor a function", True),
        (GOOD + '[[problems]]\nname = "{m}:model"\nstates = 3', "not callable", True),
        (GOOD + '[[problems]]\nname = "{m}:nowhere"', "nowhere", True),
        (GOOD + '[[problems]]\nname = "gym:Nowhere-v1"', "Nowhere-v1", True),
        (GOOD + '[[planners]]\nname = "bracket"\nvalue_bounds = "{m}:number"', "value_bounds", True),
    ],
)
def test_all_entries_are_checked_before_any_code_is_called(watched, text, word, imported):
    Path("my.toml").write_text(text.replace("{m}", watched))
    result = command("sweep", "my.toml", "--workers", 1)
    assert result.exit_code == 2
    assert word in result.stderr and len(result.stderr.splitlines()) == 1
    assert not Path("called").exists()
    if not imported:
        assert not Path("imported").exists()


def test_what_the_users_code_makes_and_raises(watched):
    for name, code, word in (("nothing", 2, "NoneType"), ("unlucky", 1, "no data today")):
        Path("my.toml").write_text(GOOD.replace("{m}:make", f"{watched}:{name}"))
        done = subprocess.run(
            [COMMAND, "sweep", "my.toml", "--workers", "1"], capture_output=True, text=True
        )
        assert done.returncode == code
        assert word in done.stderr
        assert ("raised when the problem" in done.stderr) == (code == 1)
        assert not Path("my").exists()


def test_functions_of_the_users_as_settings(watched):
    planner = (
        '[[planners]]\nname = "bracket"\nlabel = "told"\nvalue_bounds = "{m}:bounds"\nepsilon = 0.0'
    )
    text = 'budgets = [50]\n[[problems]]\nname = "{m}:make"\n' + planner
    Path("my.toml").write_text(text.replace("{m}", watched))
    result = command("sweep", "my.toml", "--workers", 1, "--quiet")
    assert result.exit_code == 0, result.stderr
    assert [record.samples for record in read(Path("my/runs.csv"))] == [50]


def test_help_says_that_sweeps_are_code():
    text = " ".join(command("sweep", "--help").stdout.split())
    assert "is code, like a script" in text and "Run only those you trust" in text


def test_actions_of_several_lines_stay_in_their_row(tmp_path):
    def model(seed):
        names = ["up\nand away", "down"]
        return pacplan.Simulator(
            lambda s, a, rng: (s, 1.0 if "up" in a else 0.0, False),
            actions=lambda state: names,
            successors=1,
            initial=0,
        )

    sweep = Sweep([UCT], [ProblemSpec(model, label="names")], budgets=[30])
    (record,) = run(sweep, tmp_path, workers=1)
    assert record.action == repr("up\nand away")
    assert (tmp_path / "runs.csv").read_bytes().count(b"\n") == 2
    assert read(tmp_path / "runs.csv") == [record]


@pytest.mark.parametrize("cut", [1, 40, 200, 10_000])
def test_a_half_written_line_is_noticed_and_done_again(tmp_path, cut, caplog):
    sweep = Sweep([UCT, GAPE], [SMALL], budgets=[20], seeds=20)
    whole = timeless(run(sweep, tmp_path, workers=1))
    path = tmp_path / "runs.csv"
    content = path.read_bytes()
    path.write_bytes(content[: max(3, len(content) - cut)])
    assert timeless(run(sweep, tmp_path, workers=1)) == whole
    assert "half a line" in caplog.text
    assert timeless(read(path)) == whole


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    sweep = Sweep([UCT], [SMALL], budgets=[20], seeds=4)
    run(sweep, tmp_path, workers=1)
    lines = (tmp_path / "runs.csv").read_text().splitlines(keepends=True)
    lines[2] = "uct,nonsense\n"
    (tmp_path / "runs.csv").write_text("".join(lines))
    with pytest.raises(ValueError, match=r"line 3 is damaged"):
        run(sweep, tmp_path, workers=1)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"seed": 1}, "seed was 0, now is 1"),
        ({"seeds": 3}, "seeds was"),
        ({"budgets": [21]}, "planners was"),
        ({"planners": [GAPE]}, "mdp-gape"),
        ({"problems": [ProblemSpec("garnet", {"states": 21})]}, "states=21"),
    ],
    ids=str,
)
def test_another_sweep_in_the_same_folder_is_refused(tmp_path, change, word):
    given = {"planners": [UCT], "problems": [SMALL], "budgets": [20], "seeds": 2}
    run(Sweep(**given), tmp_path, workers=1)
    before = (tmp_path / "runs.csv").read_bytes()
    with pytest.raises(ValueError, match=re.escape(word)) as refusal:
        run(Sweep(**(given | change)), tmp_path, workers=1)
    assert "another folder" in str(refusal.value)
    assert (tmp_path / "runs.csv").read_bytes() == before


def test_the_same_label_for_another_problem_is_another_sweep(tmp_path):
    garnets = [ProblemSpec("garnet", {"states": states}, label="garnets") for states in (20, 21)]
    with pytest.raises(ValueError, match="given twice"):
        Sweep([UCT], garnets, budgets=[20]).runs()
    run(Sweep([UCT], garnets[:1], budgets=[20]), tmp_path, workers=1)
    with pytest.raises(ValueError, match="another sweep: problems was"):
        run(Sweep([UCT], garnets[1:], budgets=[20]), tmp_path, workers=1)


def test_equal_planners_are_one_however_they_are_given():
    made = PlannerSpec(pacplan.UCT(gamma=0.7, horizon=None, chunk=5), label="another name")
    assert made.key == UCT.key
    with pytest.raises(ValueError, match="given twice"):
        Sweep([UCT, made], [SMALL], budgets=[20]).runs()


def test_rows_that_name_settings_in_words_are_refused_with_what_to_do(tmp_path):
    run(Sweep([UCT], [SMALL], budgets=[20]), tmp_path, workers=1)
    path = tmp_path / "runs.csv"
    old = path.read_text().replace("planner,settings", "planner,parameters", 1)
    path.write_text(old)
    for again in (lambda: read(path), lambda: run(Sweep([UCT], [SMALL], budgets=[20]), tmp_path)):
        with pytest.raises(ValueError, match=r"earlier version .* run the sweep again"):
            again()
    assert path.read_text() == old


def test_another_release_in_the_same_folder_is_refused(tmp_path, monkeypatch):
    sweep = Sweep([UCT], [SMALL], budgets=[20])
    run(sweep, tmp_path, workers=1)
    monkeypatch.setattr(files, "__version__", "99")
    with pytest.raises(ValueError, match="pacplan was"):
        run(sweep, tmp_path, workers=1)


def test_another_state_of_the_code_is_another_sweep_unless_nothing_was_run(tmp_path, monkeypatch):
    sweep = Sweep([UCT], [SMALL], budgets=[20])
    run(sweep, tmp_path, workers=1)
    before = (tmp_path / "sweep.json").read_text()
    monkeypatch.setattr(files, "source_digest", lambda: "0" * 64)
    with pytest.raises(ValueError, match="pacplan was"):
        run(sweep, tmp_path, workers=1)
    assert (tmp_path / "sweep.json").read_text() == before
    (tmp_path / "runs.csv").unlink()
    run(sweep, tmp_path, workers=1)
    assert (tmp_path / "sweep.json").read_text() != before


def test_two_at_once_in_one_folder_are_refused(tmp_path):
    pytest.importorskip("fcntl")
    sweep = Sweep([UCT], [SMALL], budgets=[20])
    with files.store(sweep, tmp_path), pytest.raises(ValueError, match="another process"):
        run(sweep, tmp_path, workers=1)


def test_a_foreign_file_is_left_alone(tmp_path):
    (tmp_path / "runs.csv").write_text("my,own,table\n")
    with pytest.raises(ValueError, match="choose another folder"):
        run(Sweep([UCT], [SMALL], budgets=[20]), tmp_path, workers=1)
    assert (tmp_path / "runs.csv").read_text() == "my,own,table\n"


def test_rows_are_the_same_when_read_back(tmp_path):
    sweep = Sweep([UCT], [SMALL], budgets=[20])
    odd = Record('a, "b"', "p\u2026", "x", 1, None, 7, regret=0.1 + 0.2, gap=-math.pi, error="e, 'f'")
    with files.store(sweep, tmp_path) as rows:
        assert rows.add(odd)
        assert not rows.add(odd)
    assert read(tmp_path / "runs.csv") == [odd]


# TOML and the commands --------------------------------------------------------------------------------


def command(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_toml_says_the_same_as_python(tmp_path):
    (tmp_path / "my.toml").write_text(
        'seed = 4\nseeds = [1, 5]\nbudgets = [30]\n[[problems]]\nname = "garnet"\nstates = 20\n'
        '[[planners]]\nname = "uct"\ngamma = 0.7\nlabel = "U"\nbudgets = [10, 20]\n'
        '[[planners]]\nname = "brue"\ngamma = 0.7\n'
    )
    planners = [replace(UCT, label="U", budgets=[10, 20]), PlannerSpec("brue", {"gamma": 0.7})]
    assert read_sweep(tmp_path / "my.toml") == Sweep(planners, [SMALL], [30], [1, 5], 4)
    result = command("sweep", tmp_path / "my.toml", "--workers", 1, "--quiet")
    assert result.exit_code == 0
    assert len(read(tmp_path / "my" / "runs.csv")) == 6
    with open(tmp_path / "my" / "summary.csv") as file:
        summary = list(csv.DictReader(file))
    assert [(row["planner"], row["budget"], row["runs"]) for row in summary] == [
        ("U", "10", "2"),
        ("U", "20", "2"),
        ("brue", "30", "2"),
    ]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("seeds =", "not TOML"),
        ("colour = 1", "'colour'"),
        ("seeds = 2", "planners"),
        ("planners = 3", "[[planners]]"),
        ("[[planners]]\ngamma = 0.7", "name"),
        ('[[planners]]\nname = "uct"\ngamma = 0.7', "problems"),
        ('[[planners]]\nname = "uct"\ngamma = 7\n[[problems]]\nname = "garnet"', "gamma"),
    ],
)
def test_wrong_toml(tmp_path, text, word):
    (tmp_path / "my.toml").write_text(text)
    result = command("sweep", tmp_path / "my.toml")
    assert result.exit_code == 2
    assert word in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "my").exists()


def test_a_missing_file():
    result = command("sweep", "nowhere.toml")
    assert result.exit_code == 2 and "nowhere.toml" in result.stderr


def test_failed_runs_show_in_the_exit_code(tmp_path):
    (tmp_path / "my.toml").write_text(
        'budgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "opd"\ngamma = 0.7\n'
    )
    result = command("sweep", tmp_path / "my.toml", "--workers", 1, "--quiet")
    assert result.exit_code == 1
    assert "1 of 1 runs failed" in result.stderr and "one successor" in result.stderr


def test_progress_goes_to_the_error_stream(tmp_path):
    (tmp_path / "my.toml").write_text(
        'budgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "uct"\ngamma = 0.7\n'
    )
    result = command("sweep", tmp_path / "my.toml", "--workers", 1)
    assert "1/1 runs" in result.stderr and "left" in result.stderr
    assert "left" not in result.stdout


def test_no_scheduler_at_the_address(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "my.toml").write_text(
        'budgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "uct"\ngamma = 0.7\n'
    )
    result = command("sweep", tmp_path / "my.toml", "--dask", "nonsense://x")
    assert result.exit_code == 2 and "nonsense://x" in result.stderr


# The paper --------------------------------------------------------------------------------------------


def test_the_papers_numbers_are_at_hand():
    table = paper.paper_table()
    assert {e: line.horizon for e, line in table.items()} == {1.0: 6, 0.5: 8, 0.2: 10}
    assert table[0.2].max_n == 2.3e6
    curves = paper.paper_curves()
    assert set(curves) == {"mdp-gape", "kl-olop", "brue", "uct"}
    for curve in curves.values():
        assert list(curve) == [10, 31, 100, 316, 1000, 3162, 10000, 31623, 100000]
        assert all(point.low <= point.value <= point.high for point in curve.values())
    assert curves["mdp-gape"][100000].value == 1.41e-4


def test_what_is_run_for_the_paper():
    whole = Reproduction()
    assert len(whole.sweep().runs()) == 200 * (2 * 5 + 6 * 9)
    bounds = [spec.build().thresholds for spec in whole.budgeted() if spec.planner == "mdp-gape"]
    assert bounds == ["sharp", "budget"]  # Ours, and the paper's text.
    assert len(Reproduction("table4").sweep().runs()) == 2 * 600
    planners = [spec.build() for _, spec in Reproduction("table4").certifying()]
    assert sorted(planner.horizon for planner in planners) == [6, 6, 8, 8, 10, 10]
    gape = [planner for planner in planners if planner.name == "mdp-gape"]
    assert len(gape) == 3 and all(planner.thresholds == "paper" for planner in gape)
    both = Reproduction("figure2", thresholds=("budget", "lemma"), planners=("mdp-gape", "olop"))
    assert [spec.name for spec in both.budgeted()] == ["mdp-gape", "olop"]
    assert both.budgeted()[0].build().thresholds == "budget"
    assert both.command.endswith("--thresholds budget,lemma --planners mdp-gape,olop")


@pytest.mark.parametrize("name", [n for n in NAMED if n not in ("lemma", "paper")])
def test_thresholds_for_a_budget(name):
    planner = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, thresholds=name)
    with pytest.raises(ValueError, match="budget"):
        planner.plan(pacplan.envs.garnet(states=20), seed=0, time_limit=1.0)
    plan = planner.plan(pacplan.envs.garnet(states=20), seed=0, budget=1000)
    rivals = np.delete(plan.upper, plan.action)
    assert plan.gap == rivals.max() - plan.lower[plan.action]
    assert not plan.certified and "heuristic" in plan.guarantee


def as_written(value):
    """A number as the report writes it."""
    digits, _, power = f"{value:.1e}".partition("e")
    return "0" if value == 0.0 else f"{digits}e{int(power)}"


def test_planners_that_do_not_end():
    found = {each.planner: each for each in claims.attempts(Reproduction("table4", quick=True))}
    assert set(found) == {"sparse-sampling", "smooth-cruiser", "trailblazer", "stop"}
    refused, smooth, trail, stop = found.values()
    assert (refused.stopped_by, refused.calls) == ("refused", 0)
    # K C (1 + BK + ... + (BK)^5) with C = ceil(2 log(2 N / delta) E^2), N = K (1 + ... + (BK)^5).
    pairs = 5 * 111_111
    sums = sum(0.7**h * sum(0.7**i for i in range(6 - h)) for h in range(6))
    assert refused.predicted == pairs * math.ceil(2 * math.log(2 * pairs / 0.1) * sums**2)
    assert (smooth.stopped_by, smooth.calls) == (trail.stopped_by, trail.calls) == ("budget", 10_000)
    assert smooth.predicted > 1e20 and trail.predicted is None and trail.memory > 0
    assert stop.stopped_by == "memory" and "policies" in stop.words and stop.memory is None


def test_table_2_on_the_papers_mdps():
    lines = claims.table_2_lines(Reproduction("table4", mdps=3))
    calls = {each.line.formula: each.calls for each in lines}
    for epsilon, n in ((1.0, 7.776e9), (0.5, 1.31072e13), (0.2, 2.5e16)):
        assert calls["H^5 (BK)^H / ε^2"][epsilon] == pytest.approx((n, n))
    assert calls["ε^-4"][0.2] == pytest.approx((625, 625))


def test_report_of_everything(tmp_path):
    out = tmp_path / "all"
    arguments = ["reproduce", "all", "--quick", "--mdps", "3", "--workers", "1", "--out", out]
    result = command(*arguments, "--planners", "mdp-gape,uct,olop", "--quiet")
    assert result.exit_code == 0
    for stem in ("figure1", "figure2"):
        assert (out / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"{stem}.svg").read_text()
    page = (out / "report.html").read_text()
    text = (out / "index.md").read_text()
    assert page.count("data:image/svg+xml") == 2
    rows = list(csv.DictReader((out / "runs.csv").read_text().splitlines()))
    at_half = [row for row in rows if json.loads(row["settings"])["settings"].get("epsilon") == 0.5]
    median = np.median([int(row["samples"]) for row in at_half])
    largest = max(int(row["samples"]) for row in at_half)
    regrets = [float(r["regret"]) for r in rows if r["planner"] == "uct" and r["budget"] == "10"]
    assert np.mean(regrets) > 0.0
    for written in (page, text):
        assert "pacplan reproduce all --mdps 3 --seed 0 --planners mdp-gape,uct,olop --quick" in written
        assert f"pacplan {pacplan.__version__}" in written
        for number in ("6,300", "55,000", f"{median:,.0f}", f"{largest:,}", "1.3e13"):
            assert number in written
        assert as_written(np.mean(regrets)) in written
        # What the names of curves and columns stand for.
        for words in (
            "mdp-gape (sharp) has bounds that we tuned",
            "mdp-gape (budget) has the bounds of the paper",
            "curves of UCT and BRUE show other rules",
            "The textbook's √2",
            "those of its MDP-GapE in every row",
            "action and successor by itself",
        ):
            assert words in html.unescape(written)
        assert "Corollary 2" in written and "without constants" in written
    curves = [line for line in text.splitlines() if line.startswith("| mdp-gape (budget) | 100 |")]
    of_text = [float(r["regret"]) for r in rows if '"budget"' in r["settings"] and r["budget"] == "100"]
    assert len(of_text) == 3 and len(curves) == 1
    assert f"| {as_written(np.mean(of_text))} (" in curves[0]
    svg = (out / "figure2.svg").read_text()
    assert "mdp-gape, ours, tuned bounds" in svg and "mdp-gape, ours, the text's bounds" in svg
    assert json.loads((out / "sweep.json").read_text())["seeds"] == [0, 1, 2]
    again = command(*arguments, "--planners", "mdp-gape,uct,olop", "--quiet")
    assert again.exit_code == 0 and (out / "index.md").read_text() == text
    refused = command(*arguments, "--quiet")
    assert refused.exit_code == 2 and "another folder" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["table5"], "table5"),
        (["table4", "--planners", "uct"], "mdp-gape"),
        (["table4", "--planners", ","], "planner"),
        (["figure2", "--planners", "nonsense"], "nonsense"),
        (["figure2", "--thresholds", "loose"], "loose"),
        (["all", "--mdps", "0"], "mdps"),
        (["all", "--workers", "0"], "workers"),
    ],
    ids=str,
)
def test_wrong_reproductions(arguments, word, tmp_path):
    result = command("reproduce", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert word in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
