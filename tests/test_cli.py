"""The command: what it prints, where, and with which exit code."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pacplan
from pacplan.cli import app
from pacplan.core.words import at_least, at_most

COMMAND = Path(sys.executable).with_name("pacplan")
FAST = ("--epsilon", "1", "--delta", "0.1", "--gamma", "0.7", "--seed", "0")

MODELS = '''
import time
from pathlib import Path

import numpy as np
import pacplan

table = pacplan.TabularMDP(np.full((3, 2, 3), 1 / 3), np.full((3, 2), 0.5), terminal=[2])


def stay(state, action, rng):
    return state, 0.5, False


simulator = pacplan.Simulator(stay, actions=2, successors=1, initial="here")


def make(successors=1, initial=None, word=None):
    """A model that says where it was asked to plan from, through the names of its actions."""
    def actions(state):
        return [f"{type(state).__name__} {state}", f"word {word!r}"]
    return pacplan.Simulator(stay, actions=actions, successors=successors, initial=initial)


def odd_names():
    names = ["[red]", "[/up]", "[bold]x", "two words"]
    return pacplan.Simulator(stay, actions=lambda state: names, successors=1, initial=0)


def tuples():
    names = [(0, 1), (1, 0)]
    return pacplan.Simulator(stay, actions=lambda state: names, successors=1, initial=0)


def too_rich(state, action, rng):
    return state, 2.0, False


broken = pacplan.Simulator(too_rich, actions=2, successors=1, initial="vault")


def raising(kind="ZeroDivisionError"):
    import builtins

    def step(state, action, rng):
        raise getattr(builtins, kind)("own words")

    return pacplan.Simulator(step, actions=2, successors=1, initial=0)


def broken_factory():
    raise RuntimeError("no model today")


def slow_step(state, action, rng):
    Path("started").touch()
    time.sleep(0.01)
    return state, 0.5, False


slow = pacplan.Simulator(slow_step, actions=2, successors=1, initial=0)


def slow_factory():
    Path("started").touch()
    time.sleep(3600)


def slow_third(seed=0):
    """A table for two problems; the third takes long to make."""
    if seed == 2:
        slow_factory()
    return pacplan.envs.garnet(states=20, seed=seed)


def called():
    Path("called").touch()
    return table


def pressing(last=200):
    """A simulator during whose call of that number Ctrl-C is pressed, the first time that it is run."""
    import os
    import signal

    calls = []

    def step(state, action, rng):
        calls.append(state)
        if len(calls) == last and not Path("pressed").exists():
            Path("pressed").touch()
            os.kill(os.getpid(), signal.SIGINT)
        return state, 0.5, False

    return pacplan.Simulator(step, actions=2, successors=1, initial=0)


bounds = (lambda state, h: 0.0, lambda state, h: 5.0)
flat = (lambda n: 1.0, lambda n: 1.0)


number = 3


def nothing():
    return None
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with a user's module in it, under a name that no other test has imported."""
    name = "user_" + re.sub(r"\W", "_", tmp_path.name)
    (tmp_path / f"{name}.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules.pop(name, None)


class Outcome:
    """What a run left behind; the note that kernels are being compiled is no part of it."""

    def __init__(self, code, stdout, stderr):
        self.code = code
        self.stdout = stdout
        self.stderr = "".join(
            line for line in stderr.splitlines(keepends=True) if "pacplan: compiling" not in line
        )

    @property
    def words(self):
        """The output with line breaks and runs of blanks made one blank."""
        return " ".join(self.stdout.split())


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def run_process(*arguments, cwd=None):
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=600
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def assert_refused(outcome, code, *words):
    """Nothing on stdout, one line on stderr that has the words, and this exit code."""
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert outcome.stderr.startswith("pacplan: ")
    for word in words:
        assert word in outcome.stderr
    assert outcome.code == code


# What is printed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("runner", [run, run_process])
def test_garnet(runner):
    outcome = runner("plan", "garnet", *FAST)
    plan = pacplan.MDPGapE(epsilon=1, delta=0.1, gamma=0.7).plan(pacplan.envs.garnet(), seed=0)
    assert outcome.code == 0
    lines = outcome.stdout.splitlines()
    assert lines[0].split() == ["action", "lower", "interval", "upper", "estimate", "calls"]
    for action, line in zip(plan.actions, lines[1:6], strict=True):
        cells = line.split()
        assert (cells[0] == ">") == (action == plan.action)
        if cells[0] == ">":
            cells = cells[1:]
        assert cells[0] == str(action)
        assert cells[1] == at_least(plan.lower[action])
        assert cells[3:] == [
            at_most(plan.upper[action]),
            f"{plan.values[action]:.4g}",
            f"{plan.calls[action]:,}",
        ]
    assert f"Action {plan.action}, gap {at_most(plan.gap)}" in outcome.words
    assert plan.guarantee in outcome.words
    for assumption in plan.assumptions:
        assert assumption in outcome.words
    assert f"Stopped by its own rule after {plan.samples:,} calls" in outcome.words


@pytest.mark.parametrize("runner", [run, run_process])
def test_json(runner):
    outcome = runner("plan", "garnet", *FAST, "--json")
    assert outcome.code == 0
    assert outcome.stderr == ""
    record = json.loads(outcome.stdout)
    assert set(record) == {f.name for f in fields(pacplan.Plan)} - {"tree"}
    plan = pacplan.MDPGapE(epsilon=1, delta=0.1, gamma=0.7).plan(pacplan.envs.garnet(), seed=0)
    expected = plan.to_dict()
    for name in ("seconds", "memory"):  # These depend on what was planned before.
        expected[name] = record[name]
    assert record == expected
    assert record["certified"] is True and record["stopped_by"] == "certified"


def test_quiet_shows_no_progress():
    outcome = run("plan", "garnet", *FAST, "--quiet")
    assert outcome.code == 0
    assert outcome.stderr == ""
    assert (
        run("plan", "garnet", *FAST, "-q").words.split("Stopped")[0]
        == outcome.words.split("Stopped")[0]
    )


def test_progress_stays_off_stdout():
    shown, quiet = run("plan", "garnet", *FAST), run("plan", "garnet", *FAST, "--quiet")
    cut = "episodes, "
    assert shown.words.split(cut)[0] == quiet.words.split(cut)[0]


def test_python_m():
    done = subprocess.run(
        [sys.executable, "-m", "pacplan", "plan", "garnet", *FAST, "--json"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["certified"] is True


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"]], ids=" ".join)
def test_help(arguments, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    outcome = run(*arguments)
    assert outcome.code == 0
    assert "plan" in outcome.stdout


def test_help_names_options_and_exit_codes(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = run("plan", "--help").words
    options = """epsilon delta gamma horizon thresholds goal state seed budget time-limit memory-limit
        checkpoint every resume set option json quiet html"""
    for option in re.findall(r"\S+", options):
        assert f"--{option}" in text
    assert "module:name" in text
    assert "Exit codes" in text
    for code in ("0", "1", "2", "3", "130"):
        assert re.search(rf"\b{code}\b", text.split("Exit codes")[1].split("Arguments")[0])


# The user's own models --------------------------------------------------------------------------------


def test_attribute_that_is_a_model(folder):
    record = json.loads(run("plan", f"{folder}:table", *FAST, "--json").stdout)
    assert record["actions"] == [0, 1]
    outcome = run("plan", f"{folder}:simulator", *FAST)
    assert outcome.code == 0
    assert "Action" in outcome.stdout


def test_attribute_that_is_a_function(folder):
    outcome = run(
        "plan", f"{folder}:make", *FAST, "--set", "initial=4", "--set", "word=hello", "--json"
    )
    assert outcome.code == 0
    assert json.loads(outcome.stdout)["actions"] == ["int 4", "word 'hello'"]


def test_own_model_from_the_console_script(folder, tmp_path):
    outcome = run_process("plan", f"{folder}:make", *FAST, "--state", "(1, 2)", cwd=tmp_path)
    assert outcome.code == 0
    assert "tuple (1, 2)" in outcome.stdout


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("3", "int 3"),
        ("-3", "int -3"),
        ("(1, 2)", "tuple (1, 2)"),
        ("1.5", "float 1.5"),
        ("'3'", "str 3"),
        ("here", "str here"),
        ("two words", "str two words"),
        ("1 +", "str 1 +"),
        ("False", "bool False"),
        ("frozenset", "str frozenset"),
    ],
)
def test_states(folder, text, named):
    outcome = run("plan", f"{folder}:make", *FAST, f"--state={text}", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.stdout)["actions"][0] == named


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("word=3", "3"),
        ("word=x", "'x'"),
        ("word=(1, 'a')", "(1, 'a')"),
        ("word=a=b", "'a=b'"),
        ("word=", "''"),
    ],
)
def test_settings(folder, text, value):
    outcome = run("plan", f"{folder}:make", *FAST, "--set", "initial=0", "--set", text, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.stdout)["actions"][1] == f"word {value}"


def test_settings_of_a_known_problem():
    outcome = run("plan", "garnet", *FAST, "--set", "states=20", "--set", "actions=3", "--json")
    assert json.loads(outcome.stdout)["actions"] == [0, 1, 2]


@pytest.mark.parametrize("extra", [(), ("--quiet",)], ids=["progress", "quiet"])
def test_names_that_look_like_markup(folder, extra):
    outcome = run("plan", f"{folder}:odd_names", *FAST, "--budget", "500", *extra)
    assert outcome.code in (0, 3)
    for name in ("[red]", "[/up]", "[bold]x", "two words"):
        assert name in outcome.stdout


def test_actions_that_json_has_no_type_for(folder):
    record = json.loads(run("plan", f"{folder}:tuples", *FAST, "--json").stdout)
    assert record["actions"] == ["(0, 1)", "(1, 0)"]
    assert record["action"] in record["actions"]
    assert "(0, 1)" in run("plan", f"{folder}:tuples", *FAST).stdout


# Exit codes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit", [("--budget", "100"), ("--epsilon", "0.001", "--time-limit", "0.05")], ids=" ".join
)
def test_a_limit_that_comes_first(limit):
    outcome = run("plan", "garnet", *FAST, *limit)
    assert outcome.code == 3
    assert "Action" in outcome.stdout and "probability at least 0.9" in outcome.words
    outcome = run("plan", "garnet", *FAST, *limit, "--json")
    assert outcome.code == 3
    record = json.loads(outcome.stdout)
    assert record["stopped_by"] == ("budget" if "--budget" in limit else "deadline")
    assert record["certified"] is False
    if "--budget" in limit:
        assert record["samples"] == 100


def test_limits_that_come_too_late():
    outcome = run("plan", "garnet", *FAST, "--budget", "1000000", "--time-limit", "60", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.stdout)["stopped_by"] == "certified"


def test_own_rule_without_a_proof():
    outcome = run("plan", "garnet", *FAST, "--thresholds", "paper", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.stdout)["stopped_by"] == "rule"


def test_fixed_budget():
    outcome = run("plan", "garnet", *FAST, "--thresholds", "budget", "--budget", "2000")
    assert outcome.code in (0, 3)
    assert "nothing is proven" in outcome.words


def test_goal_value():
    outcome = run("plan", "garnet", *FAST, "--goal", "value")
    assert outcome.code == 0
    assert "The optimal value of the" in outcome.words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], ["'nope'", "garnet", "module:name"]),
        (["Garnet"], ["'Garnet'", "garnet"]),
        (["no_such_module:x"], ["no_such_module"]),
        ([":x"], ["':x'", "module"]),
        (["garnet", "--set", "states"], ["--set", "NAME=VALUE", "'states'"]),
        (["garnet", "--set", "=5"], ["--set", "'=5'"]),
        (["garnet", "--set", "colour=5"], ["colour"]),
        (["garnet", "--set", "states=x"], ["states", "'x'"]),
        (["garnet", "--set", "states=0"], ["states", "0"]),
        (["garnet", "--set", "noise=loud"], ["noise", "'loud'"]),
        (["garnet", "--epsilon", "nan"], ["epsilon", "nan"]),
        (["garnet", "--epsilon=-1"], ["epsilon", "-1"]),
        (["garnet", "--delta", "1"], ["delta", "1"]),
        (["garnet", "--gamma", "1.5"], ["gamma", "1.5"]),
        (["garnet", "--gamma", "1"], ["gamma", "horizon"]),
        (["garnet", "--horizon", "0"], ["horizon", "0"]),
        (["garnet", "--thresholds", "loose"], ["thresholds", "'loose'", "'lemma'"]),
        (["garnet", "--thresholds", "budget"], ["thresholds", "budget"]),
        (["garnet", "--goal", "fame"], ["goal", "'fame'", "'action'"]),
        (["garnet", "--epsilon", "0"], ["epsilon=0", "budget"]),
        (["garnet", "--budget", "0"], ["budget", "0"]),
        (["garnet", "--budget=-5"], ["budget", "-5"]),
        (["garnet", "--time-limit", "0"], ["time_limit", "0"]),
        (["garnet", "--time-limit", "nan"], ["time_limit", "nan"]),
        (["garnet", "--seed=-1"], ["seed", "-1"]),
        (["garnet", "--state", "200"], ["state", "200", "0..199"]),
        (["garnet", "--state", "abc"], ["state", "'abc'"]),
        (["garnet", "--state", "1.0"], ["state", "1.0"]),
    ],
    ids=" ".join,
)
def test_wrong_usage(arguments, words):
    assert_refused(run("plan", *arguments), 2, *words)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("nowhere", [], ["nowhere"]),
        ("", [], ["cannot load", "''"]),
        ("number", [], ["model", "int"]),
        ("nothing", [], ["model", "NoneType"]),
        ("table", ["--set", "states=3"], ["--set", "not callable"]),
        ("table", ["--state", "2"], ["state 2", "terminal"]),
        ("table", ["--state", "3"], ["state", "3", "0..2"]),
        ("make", [], ["state"]),
        ("make", ["--set", "colour=1"], ["colour"]),
        ("make", ["--set", "successors=0", "--state", "0"], ["successors", "0"]),
        ("make", ["--state", "[1]"], ["hashable", "[1]"]),
        # Written like literals, but no value can be made of them.
        ("make", ["--state", "{[1]}"], ["{[1]}"]),
        ("make", ["--set", "initial={[1]}"], ["{[1]}"]),
    ],
)
def test_wrong_usage_with_own_models(folder, name, arguments, words):
    assert_refused(run("plan", f"{folder}:{name}", *FAST, *arguments), 2, *words)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["plan"],
        ["plan", "garnet", "--epsilon", "x"],
        ["plan", "garnet", "--budget", "1.5"],
        ["plan", "garnet", "--nope"],
        ["fly"],
    ],
    ids=" ".join,
)
def test_wrong_usage_that_the_parser_sees(arguments):
    outcome = run(*arguments)
    assert outcome.code == 2
    assert "Usage" in outcome.stdout + outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_broken_promise(folder):
    outcome = run("plan", f"{folder}:broken", *FAST)
    assert_refused(outcome, 1, "'vault'", "action", "2.0", "reward_range=(0.0, 1.0)")


@pytest.mark.parametrize("kind", ["ZeroDivisionError", "ValueError", "TypeError", "KeyError"])
def test_simulator_that_raises(folder, tmp_path, kind):
    # The message alone may say nothing ("'x'" for a KeyError), so the class is named as well.
    outcome = run_process("plan", f"{folder}:raising", *FAST, "--set", f"kind={kind}", cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.stdout == ""
    assert kind in outcome.stderr
    assert "own words" in outcome.stderr


def test_factory_that_raises(folder, tmp_path):
    outcome = run_process("plan", f"{folder}:broken_factory", *FAST, cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.stdout == ""
    assert "RuntimeError" in outcome.stderr and "no model today" in outcome.stderr


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = (", ["SyntaxError"]),
        ("raise RuntimeError('at import')", ["RuntimeError", "at import"]),
        ("import a_module_that_is_missing", ["a_module_that_is_missing"]),
    ],
)
def test_module_that_cannot_be_imported(tmp_path, monkeypatch, source, words):
    name = "user_" + re.sub(r"\W", "_", tmp_path.name)
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    outcome = run("plan", f"{name}:x")
    assert outcome.code in (1, 2)
    assert_refused(outcome, outcome.code, name, *words)


# Ctrl-C -----------------------------------------------------------------------------------------------


def interrupted(*arguments):
    """Start the command, send Ctrl-C once a slow model has begun, and say how it ended.

    Without it, the slow models would keep it busy for hours.
    """
    process = subprocess.Popen(
        [COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs tests in the background makes them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not os.path.exists("started"):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=600)
    finally:
        process.kill()
        process.wait()
    return Outcome(process.returncode, stdout, stderr)


@pytest.mark.parametrize("extra", [(), ("--quiet",)], ids=["progress", "quiet"])
def test_interrupt_prints_the_plan_so_far(folder, extra):
    outcome = interrupted("plan", f"{folder}:slow", *FAST, *extra)
    assert outcome.code == 130
    assert "Traceback" not in outcome.stderr
    assert "estimate" in outcome.stdout and "Action" in outcome.stdout
    assert "Stopped by an interrupt" in outcome.words


def test_interrupt_with_json(folder):
    outcome = interrupted("plan", f"{folder}:slow", *FAST, "--json")
    assert outcome.code == 130
    record = json.loads(outcome.stdout)
    assert record["stopped_by"] == "interrupt"
    assert record["certified"] is False
    assert record["interrupted"] is True


def test_interrupt_before_the_search(folder):
    outcome = interrupted("plan", f"{folder}:slow_factory", *FAST)
    assert outcome.code == 130
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals between processes")
def test_interrupt_during_the_last_call_of_a_plan(folder, tmp_path):
    command = ["plan", f"{folder}:pressing", "--planner", "uct", "--budget", "200", "--json"]
    outcome = run_process(*command, cwd=tmp_path)
    record = json.loads(outcome.stdout)
    assert (record["samples"], record["interrupted"]) == (200, True)
    assert outcome.code == 130


def test_interrupted_comparison_shows_what_is_done(folder):
    command = ["compare", f"{folder}:slow_third", "--planners", "uct,brue", "--budget", "50"]
    outcome = interrupted(*command, "--runs", "9")
    assert outcome.code == 130
    assert "2 problems, 50 calls each" in outcome.stdout
    for name in ("uct", "brue"):
        assert name in outcome.stdout
    assert outcome.stderr == "pacplan: stopped after 2 of 9 problems\n"


def test_interrupted_before_any_problem_is_compared(folder):
    outcome = interrupted("compare", f"{folder}:slow_factory", "--planners", "uct")
    assert outcome.code == 130
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr


AGENT = """
import os, signal, sys
import pacplan

presses = int(sys.argv[1])
table = pacplan.envs.garnet(states=20, seed=0)

def step(state, action, rng):
    global presses
    if presses:
        presses -= 1
        os.kill(os.getpid(), signal.SIGINT)
    return table.step(state, action, rng)

model = pacplan.Simulator(step, actions=5, successors=2, initial=0)
agent = pacplan.Agent(pacplan.UCT(gamma=0.7), model, budget=100, seed=0)
try:
    for _ in range(3):
        agent.act(0)
finally:
    print([decision.plan.interrupted for decision in agent.history])
"""


@pytest.mark.parametrize(
    ("presses", "decisions", "code"), [(1, [True, False, False], 0), (2, [True], -signal.SIGINT)]
)
def test_interrupted_agents_follow_the_rule_of_plans(presses, decisions, code):
    """One press ends a decision; a second one during the next decision leaves the loop."""
    done = subprocess.run(
        [sys.executable, "-c", AGENT, str(presses)],
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert done.stdout == f"{decisions}\n"
    assert done.returncode == code


# Settings of planners ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("planner", "arguments", "expected"),
    [
        ("sparse-sampling", ["--option", "width=3", "--horizon", "2"], "horizon=2, width=3"),
        ("sparse-sampling", ["--option", "width=3", "--option", "horizon=2"], "horizon=2, width=3"),
        ("sparse-sampling", ["--epsilon", "4", "--horizon", "1"], "epsilon=4.0, delta=0.1"),
        ("sparse-sampling", ["--option", "epsilon=4", "--horizon", "1"], "epsilon=4.0, delta=0.1"),
        ("mdp-gape", ["--option", "value_bounds={m}:bounds", "--epsilon", "4"], "value_bounds="),
        ("mdp-gape", ["--option", "thresholds={m}:flat", "--epsilon", "4"], "thresholds="),
        ("mdp-gape", ["--thresholds", "{m}:flat", "--epsilon", "4"], "thresholds="),
        ("bracket", ["--option", "goal=value", "--option", "epsilon=4"], "goal='value'"),
        ("smooth-cruiser", ["--option", "temperature=0.1"], "temperature=0.1"),
        ("uct", ["--option", "chunk=7"], "chunk=7"),
    ],
)
def test_every_setting_of_a_planner(folder, planner, arguments, expected):
    arguments = [argument.format(m=folder) for argument in arguments]
    command = ["plan", f"{folder}:table", "--planner", planner, "--budget", "200", "--json"]
    outcome = run(*command, *arguments)
    assert outcome.code in (0, 3), outcome.stderr
    assert expected in json.loads(outcome.stdout)["planner"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "1", "--option", "epsilon=1"], ["epsilon", "twice"]),
        (["--option", "merge=depth", "--option", "merge=tree"], ["--option merge=", "twice"]),
        (["--set", "states=20", "--set", "states=30"], ["--set states=", "twice"]),
        (["--option", "merge"], ["--option takes NAME=VALUE"]),
        (["--option", "colour=red"], ["takes no colour", "value_bounds"]),
        (["--option", "epsilon=None"], ["epsilon", "None"]),
        (["--planner", "sparse-sampling", "--option", "width=3"], ["width needs a horizon"]),
        (
            ["--planner", "sparse-sampling", "--option", "width=3", "--epsilon", "1"],
            ["width", "epsilon", "not both"],
        ),
        (["--memory-limit", "much"], ["--memory-limit", "500M", "'much'"]),
        (["--memory-limit=-5"], ["--memory-limit", "'-5'"]),
        (["--memory-limit", "0"], ["memory_limit", "0"]),
        (["--resume"], ["--checkpoint"]),
        (["--every", "5"], ["--checkpoint"]),
        (["--checkpoint", "no/such/file"], ["no/such/file", "no such folder"]),
        (["--checkpoint", "."], ["'.'", "is a folder"]),
        (["--checkpoint", "file", "--every", "0"], ["every", "0"]),
        (["--checkpoint", "no-such-file", "--resume"], ["no-such-file", "No such file"]),
    ],
    ids=" ".join,
)
def test_wrong_settings(folder, arguments, words):
    assert_refused(run("plan", "garnet", *arguments), 2, *words)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--thresholds", "sharp"], 0),
        (["--option", "thresholds=sharp"], 0),
        (["--thresholds", "lemma"], 3),
        (["--option", "thresholds=lemma"], 3),
        (["--option", "epsilon=0.0", "--option", "thresholds=lemma"], 0),
        (["--planner", "sparse-sampling", "--option", "width=2", "--option", "horizon=1"], 0),
        (["--planner", "sparse-sampling", "--option", "width=2", "--horizon", "1"], 0),
        (["--planner", "uct"], 0),
    ],
)
def test_the_exit_code_follows_from_the_planner_however_it_was_given(arguments, code):
    assert run("plan", "garnet", "--seed", "0", "--budget", "200", "-q", *arguments).code == code


@pytest.mark.parametrize("planner", ["mdp-gape", "uct"])
@pytest.mark.parametrize("limit", ["1M", "1048576", "1024 KiB", "0.001g"])
def test_memory_limit(planner, limit):
    command = ["plan", "garnet", "--planner", planner, "--seed", "0", "--budget", "10000000", "--json"]
    outcome = run(*command, "--memory-limit", limit)
    record = json.loads(outcome.stdout)
    assert record["stopped_by"] == "memory" and record["memory"] <= 1.1 * 2**20
    assert outcome.code == 3


def test_resuming_from_the_command(folder, tmp_path):
    model = f"{folder}:pressing"
    command = ["plan", model, "--set", "last=50", "--planner", "uct", "--json", "--checkpoint", "saved"]
    command += ["--every", "1e-9"]
    wanted = ["--seed", "3", "--budget", "120"]
    first = run_process(*command, *wanted, cwd=tmp_path)
    assert first.code == 130
    assert first.stderr == "pacplan: stopped; --resume goes on from saved\n"
    for extra, words in (
        (["--seed", "4"], ["--seed 4", "has seed 3"]),
        (["--budget", "60"], ["--budget 60", "has budget 120"]),
        (["--state", "1"], ["--state 1", "has state 0"]),
        (["--option", "exploration=1.0"], ["another planner"]),
    ):
        assert_refused(run_process(*command, *extra, "--resume", cwd=tmp_path), 2, *words)
    saved = (tmp_path / "saved").read_bytes()
    records = []
    # With all that the checkpoint knows already, without it, and from the beginning.
    for extra in ([*wanted, "--state", "0", "--resume"], ["--resume"], wanted):
        (tmp_path / "saved").write_bytes(saved)
        done = run_process(*command, *extra, cwd=tmp_path)
        assert done.code == 0, done.stderr
        record = json.loads(done.stdout)
        del record["seconds"], record["memory"]
        records.append(record)
    assert records[0] == records[1] == records[2]
    assert records[0]["samples"] == 120


def test_help_names_every_planner():
    shown = CliRunner().invoke(app, ["plan", "--help"], env={"COLUMNS": "200"}).stdout
    for name in pacplan.planners:
        assert re.search(rf"\b{name}\b", shown), name
