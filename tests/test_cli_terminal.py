"""The command on terminals and in pipes, and its help."""

import json
import subprocess
import sys
from io import StringIO

import pytest

import pacplan
from command_line import FAST, run_process
from pacplan.cli import catalogue
from pacplan.views import terminal


def test_paragraphs_are_lines_in_a_pipe():
    done = run_process("plan", "garnet", *FAST, "--quiet", "--epsilon", "0.01", "--budget", "300")
    assert done.code == 3 and "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert lines[0].startswith("Not certified: action ") and max(map(len, lines)) > 100


@pytest.mark.parametrize("width", [60, 80, 140])
def test_names_and_bars_give_way_where_a_terminal_is_narrow(width):
    actions = ["x" * 90, "short"]
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=actions, successors=1)
    plan = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.5).plan(model, 0, seed=0)
    out = terminal.console(StringIO())
    out.width = width
    out.print(terminal.intervals(plan, out))
    lines = out.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) < width + 1 and "x…" in lines[1]
    assert any("━" in line for line in lines) and "x" * 90 in str(plan) + repr(plan.actions)


def test_help_has_every_planner_and_problem():
    assert list(catalogue.PLANNERS) == list(pacplan.planners)
    assert list(catalogue.PROBLEMS) == list(pacplan.envs.__all__)
    lines = run_process("--help").stdout.splitlines()
    for name, words in (catalogue.PLANNERS | catalogue.PROBLEMS).items():
        assert any(line.split() == [name, *words.split()] for line in lines)
    for command in ("compare", "reproduce", "sweep", "verify", "warm"):
        assert "Exit codes" in run_process(command, "--help").stdout


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
    assert "--version" not in arguments or done.stdout == f"pacplan {pacplan.__version__}\n"
    found = set(json.loads(done.stderr.splitlines()[-1]))
    assert not found & {"numba", "numpy", "rich", "llvmlite"}
