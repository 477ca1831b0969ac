"""Sweeps in TOML, and the code of the user's in them."""

import csv
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import run as command
from pacplan.experiments import PlannerSpec, Sweep, groups, read, read_sweep
from sweeps import COMMAND, SMALL, UCT

WATCHED = """
from pathlib import Path
import pacplan

number = 3
bounds = (lambda state, h: 0.0, lambda state, h: 5.0)


def make(states=20, seed=0):
    Path("called").touch()
    return pacplan.envs.garnet(states=states, seed=seed)


def unlucky(seed):
    raise OSError(2, "no data today")
"""
GOOD = '[[problems]]\nname = "{m}:make"\n[[planners]]\nname = "uct"\ngamma = 0.7\n'


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
    ("text", "word"),
    [
        (GOOD + '[[planners]]\nname = "nonsense"', "nonsense"),
        ('[[problems]]\nname = "garnet"\ncolour = 1\n' + GOOD, "colour"),
        ("seeds = 1.5\n" + GOOD, "seeds must be a list, got 1.5"),
        (GOOD + '[[planners]]\nname = "uct"\ngamma = 0.7', "twice"),
        (GOOD + '[[planners]]\nname = "brue"', "has no default discount"),
        (GOOD + '[[problems]]\nname = "{m}:make"\ncolour = 1', "it takes (states=20, seed=0)"),
        (GOOD + '[[problems]]\nname = "{m}:number"', "neither a model nor a function"),
        (GOOD + '[[planners]]\nname = "bracket"\nvalue_bounds = "{m}:number"', "value_bounds"),
        # These are not TOML of a sweep.
        ("seeds =", "not TOML"),
        ("colour = 1", "'colour'"),
        ("planners = 3", "[[planners]]"),
        ("[[planners]]\ngamma = 0.7", "name"),
        ('[[planners]]\nname = "uct"\ngamma = 0.7', "problems"),
    ],
)
def test_all_entries_are_checked_before_any_code_is_called(watched, text, word):
    Path("my.toml").write_text(text.replace("{m}", watched))
    result = command("sweep", "my.toml", "--workers", 1)
    assert result.code == 2
    assert word in result.stderr and len(result.stderr.splitlines()) == 1
    assert not Path("called").exists() and not Path("my").exists()


def test_what_the_users_code_raises(watched):
    Path("my.toml").write_text(GOOD.replace("{m}:make", f"{watched}:unlucky"))
    done = subprocess.run(
        [COMMAND, "sweep", "my.toml", "--workers", "1"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "no data today" in done.stderr and "raised when the problem" in done.stderr
    assert not Path("my").exists()


def test_functions_of_the_users_as_settings(watched):
    planner = (
        'name = "bracket"\nlabel = "told"\nvalue_bounds = "{m}:bounds"\nepsilon = 0.0\ngamma = 0.7'
    )
    text = 'budgets = [50]\n[[problems]]\nname = "{m}:make"\n[[planners]]\n' + planner
    Path("my.toml").write_text(text.replace("{m}", watched))
    result = command("sweep", "my.toml", "--workers", 1, "--quiet")
    assert result.code == 0, result.stderr
    assert [record.samples for record in read("my")] == [50]


def test_toml_says_the_same_as_python(tmp_path):
    (tmp_path / "my.toml").write_text(
        'seed = 4\nseeds = [1, 5]\nbudgets = [30]\n[[problems]]\nname = "garnet"\nstates = 20\n'
        '[[planners]]\nname = "uct"\ngamma = 0.7\nlabel = "U"\nbudgets = [10, 20]\n'
        '[[planners]]\nname = "brue"\ngamma = 0.7\n'
    )
    planners = [replace(UCT, label="U", budgets=[10, 20]), PlannerSpec("brue", {"gamma": 0.7})]
    assert read_sweep(tmp_path / "my.toml") == Sweep(planners, [SMALL], [30], [1, 5], 4)
    result = command("sweep", tmp_path / "my.toml", "--workers", 1, "--quiet")
    assert result.code == 0
    assert len(read(tmp_path / "my")) == 6
    with open(tmp_path / "my" / "summary.csv") as file:
        summary = list(csv.DictReader(file))
    assert [(row["planner"], row["budget"], row["runs"]) for row in summary] == [
        ("U", "10", "2"),
        ("U", "20", "2"),
        ("brue", "30", "2"),
    ]
    for row, group in zip(summary, groups(read(tmp_path / "my")), strict=True):
        mean = sum(plan.regret for plan in group.plans) / 2
        assert float(row["regret_value"]) == group.regret.value == pytest.approx(mean)


SHORT = 'budgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "opd"\ngamma = 0.7\n'


def test_failed_runs_show_in_the_exit_code_and_progress_on_the_error_stream(tmp_path):
    (tmp_path / "my.toml").write_text(SHORT)
    result = command("sweep", tmp_path / "my.toml", "--workers", 1)
    assert result.code == 1
    assert "1 of 1 runs failed" in result.stderr and "one successor" in result.stderr
    assert "1/1 runs" in result.stderr and "left" in result.stderr
    assert "left" not in result.stdout


def test_no_scheduler_at_the_address(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "my.toml").write_text(SHORT)
    result = command("sweep", tmp_path / "my.toml", "--dask", "nonsense://x")
    assert result.code == 2 and "nonsense://x" in result.stderr
