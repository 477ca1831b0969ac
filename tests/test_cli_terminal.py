"""The command on terminals and in pipes: lines that fit, and lines that are left alone."""

import json
import subprocess
import sys
from functools import cache

import pytest

import pacplan
import terminal
from command_line import FAST, folder_of_models, run_process
from pacplan.cli import catalogue
from terminal import plain, without_compilations

folder = pytest.fixture(folder_of_models)


def on_terminal(*arguments, **environment):
    code, shown = terminal.on_terminal(*arguments, **environment)
    return code, without_compilations(shown)


CERTIFIED = ("plan", "garnet", *FAST, "--quiet")
NOT_CERTIFIED = (*CERTIFIED, "--epsilon", "0.01", "--budget", "300")


@cache
def piped(*command):
    """What a command prints where there is no terminal."""
    return run_process(*command).stdout


def table_of(text):
    """The lines of the table in what is printed."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[-2:] == ["estimate", "calls"])
    return lines[start : lines.index("", start)]


@pytest.mark.parametrize("columns", [40, 140])
@pytest.mark.parametrize(
    ("command", "code", "verdict"),
    [(CERTIFIED, 0, "Certified: action "), (NOT_CERTIFIED, 3, "Not certified: action ")],
    ids=["certified", "not certified"],
)
def test_lines_fit_the_terminal(columns, command, code, verdict):
    ended, shown = on_terminal(columns, *command)
    assert ended == code
    assert shown.startswith(f"\x1b[1m{verdict}"), "what matters comes first, in bold"
    lines = plain(shown).splitlines()
    # The numbers of a table cannot be wrapped; at 40 columns they need some more.
    assert all(len(line) < columns for line in lines if line not in table_of(plain(shown)))
    assert max(map(len, table_of(plain(shown)))) < max(columns, 60)
    assert any(len(line) > 0.7 * columns for line in lines), "the width is used"
    # In a pipe, no line is broken.
    words = [line for line in piped(*command).splitlines() if line not in table_of(piped(*command))]
    assert "\x1b" not in piped(*command) and max(map(len, words)) > 100


def test_long_names_of_actions_give_way(folder):
    """A name is cut where there is no room for it, and only there."""
    command = ("plan", f"{folder}:make", "--state", repr("x" * 90), *FAST, "--quiet")
    code, shown = on_terminal(80, *command)
    assert code == 0
    rows = table_of(plain(shown))
    assert max(map(len, rows)) < 80 and any("xxx…" in row for row in rows)
    assert "x" * 90 in run_process(*command).stdout


def test_help_has_every_planner_and_problem():
    assert list(catalogue.PLANNERS) == list(pacplan.planners)
    assert list(catalogue.PROBLEMS) == list(pacplan.envs.__all__)
    lines = piped("--help").splitlines()
    for name, words in (catalogue.PLANNERS | catalogue.PROBLEMS).items():
        assert any(line.split() == [name, *words.split()] for line in lines)
    for command in ("compare", "reproduce", "sweep", "verify", "warm"):
        assert "Exit codes" in piped(command, "--help")


def test_version():
    outcome = run_process("--version")
    assert (outcome.code, outcome.stdout) == (0, f"pacplan {pacplan.__version__}\n")


IMPORTED = """
import json, sys
from pacplan.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--version"], ["plan", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments], capture_output=True, text=True, check=True
    )
    found = set(json.loads(done.stderr.splitlines()[-1]))
    assert not found & {"numba", "numpy", "rich", "llvmlite"}
