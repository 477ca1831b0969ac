"""The command: what it prints, where, and with which exit code."""

import json
import re
import subprocess
import sys
from dataclasses import fields

import pytest

import pacplan
from command_line import (
    FAST,
    assert_refused,
    folder_of_models,
    run,
    run_process,
)
from pacplan.core.words import at_least, at_most

folder = pytest.fixture(folder_of_models)
GAPE = ("--planner", "mdp-gape")


# What is printed --------------------------------------------------------------------------------------


ASKED = {"epsilon": 1, "delta": 0.1, "gamma": 0.7}


@pytest.mark.parametrize(
    ("runner", "planner"), [(run, "auto"), (run_process, "auto"), (run, "mdp-gape")]
)
def test_garnet(runner, planner):
    outcome = runner("plan", "garnet", *FAST, "--planner", planner)
    plan = pacplan.plan(pacplan.envs.garnet(), sample=True, seed=0, **ASKED)
    if planner == "mdp-gape":
        plan = pacplan.MDPGapE(**ASKED).plan(pacplan.envs.garnet(), seed=0)
    assert outcome.code == 0
    lines = outcome.stdout.splitlines()
    assert lines[0] == (
        f"Certified: action {plan.action}, worth at least {at_least(plan.lower[plan.action])} "
        f"(estimate {plan.values[plan.action]:.4g}), after {plan.samples:,} calls"
    )
    assert lines[1].endswith("with probability at least 0.9.") and plan.guarantee.startswith(lines[1])
    assert lines[2] == plan.warning
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["action", "lower", "interval", "upper", "estimate", "calls"]
    for action, line in zip(plan.actions, table[1:6], strict=True):
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
    assert plan.guarantee.removeprefix(lines[1]).strip() in outcome.stdout
    for assumption in plan.assumptions:
        assert assumption in outcome.words
    assert f"Stopped by its own rule after {plan.samples:,} calls" in outcome.words
    assert "Asked with gamma 0.7, horizon 6, epsilon 1, delta 0.1." in lines
    assert plan.found in lines


@pytest.mark.parametrize(
    ("arguments", "headline"),
    [
        (
            ["uct", "--budget", "100"],
            r"Not certified: action \d, worth \S+ by estimate, after 100 calls",
        ),
        (
            ["mdp-gape", "--epsilon", "1", "--thresholds", "paper"],
            r"Not certified: action \d, worth \S+ by estimate, after \S+ calls",
        ),
        (
            ["mdp-gape", "--budget", "100"],
            r"Not certified: action \d, worth at least \S+ \(estimate \S+\), after 100 calls",
        ),
        (
            ["trailblazer", "--epsilon", "1", "--gamma", "0.2"],
            r"Not certified: action \d, worth \S+ by estimate, after \S+ calls",
        ),
    ],
    ids=["no guarantee", "not proven", "stopped before", "of the value alone"],
)
def test_certified_is_said_of_what_is_proven_and_nothing_else(arguments, headline):
    outcome = run("plan", "garnet", "--seed", "0", "--quiet", "--planner", *arguments)
    lines = outcome.stdout.splitlines()
    assert re.fullmatch(headline, lines[0])
    sure = {"uct": "UCT gives no guarantee", "trailblazer": "The optimal value of the state is within"}
    assert sure.get(arguments[0], "within") in lines[1]


@pytest.mark.parametrize("runner", [run, run_process])
def test_json(runner):
    outcome = runner("plan", "garnet", *FAST, "--json")
    assert outcome.code == 0
    assert outcome.stderr == ""
    record = json.loads(outcome.stdout)
    assert set(record) == {f.name for f in fields(pacplan.Plan)} - {"tree", "curve"} | {"safest"}
    assert [record[name] for name in ("gamma", "horizon", "epsilon", "delta")] == [0.7, 6, 1.0, 0.1]
    expected = pacplan.plan(pacplan.envs.garnet(), sample=True, seed=0, **ASKED).to_dict()
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


def test_help_names_options_and_exit_codes():
    text = run("plan", "--help").words
    options = """epsilon delta gamma horizon thresholds goal merge rewards transitions
        value-range state seed budget time-limit memory-limit checkpoint every resume set option json
        quiet html"""
    for option in re.findall(r"\S+", options):
        assert f"--{option}" in text
    assert "module:name" in text
    assert "Exit codes" in text
    for code in ("0", "1", "2", "3", "130"):
        assert re.search(rf"\b{code}\b", text.split("Exit codes")[1].split("positional")[0])


# The user's own models --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [("plan",), ("plan", "--planner", "uct", "--budget", "9"), ("compare", "--planners", "uct")],
    ids=" ".join,
)
def test_the_discount_of_ones_own_problem_must_be_said(folder, command):
    name, *options = command
    for problem in (f"{folder}:table", "gym:FrozenLake-v1"):
        refused = run(name, problem, *options)
        assert_refused(refused, 2, f"discount of '{problem}'", "pass --gamma", "--gamma 1 a horizon")
    assert run("plan", f"{folder}:table", "--epsilon", "1", "--gamma", "0.5").code == 0
    assert run("plan", f"{folder}:game", "--epsilon", "1").code == 0  # Games of two have none.


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
    assert outcome.stdout.startswith("Not certified: action ")
    assert "probability at least 0.9" in outcome.stdout.splitlines()[1]
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
    command = ["plan", "garnet", *FAST, *GAPE]
    outcome = run(*command, "--thresholds", "paper", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.stdout)["stopped_by"] == "rule"


def test_fixed_budget():
    command = ["plan", "garnet", *FAST, *GAPE]
    outcome = run(*command, "--thresholds", "budget", "--budget", "2000")
    assert outcome.code in (0, 3)
    assert "nothing is proven" in outcome.words


def test_per_cent():
    """0.1 of the most that rewards in [0, 1] add up to, 1 / (1 - 0.7)."""
    record = json.loads(run("plan", "garnet", *FAST, "--epsilon", "10%", "--json").stdout)
    plan = pacplan.plan(pacplan.envs.garnet(), sample=True, seed=0, **ASKED | {"epsilon": "10%"})
    assert record["planner"] == plan.planner and "10%" in record["guarantee"]
    assert record["lower"] == plan.lower.tolist()


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
        (["garnet", "--epsilon", "x"], ["epsilon", "'x'", "5%"]),
        (["garnet", "--epsilon", "(1"], ["epsilon", "'(1'", "5%"]),
        (["garnet", "--epsilon", "None"], ["epsilon", "'None'", "5%"]),
        (["garnet", "--epsilon", "200%"], ["epsilon", "'200%'"]),
        (["garnet", *GAPE, "--epsilon", "x"], ["epsilon", "'x'"]),
        (["garnet", *GAPE, "--epsilon", "5%"], ["--epsilon 5%", "--planner auto"]),
        (["garnet", "--delta", "1"], ["delta", "1"]),
        (["garnet", "--gamma", "1.5"], ["gamma", "1.5"]),
        (["garnet", "--gamma", "1"], ["gamma", "horizon"]),
        (["garnet", "--horizon", "0"], ["horizon", "0"]),
        (["garnet", *GAPE, "--thresholds", "loose"], ["thresholds", "'loose'", "'lemma'"]),
        (["garnet", *GAPE, "--thresholds", "budget"], ["thresholds", "budget"]),
        (
            ["garnet", "--thresholds", "paper"],
            ["takes no --thresholds", "mdp-gape would", "--option value_bounds="],
        ),
        (["garnet", "--goal", "fame"], ["goal", "'fame'", "'action'"]),
        (["garnet", "--epsilon", "0"], ["--epsilon 0 may", "--budget or --time-limit"]),
        (["garnet", "--budget", "0"], ["budget", "0"]),
        (["garnet", "--budget=-5"], ["budget", "-5"]),
        (["garnet", "--time-limit", "0"], ["--time-limit must", "0"]),
        (["garnet", "--time-limit", "nan"], ["--time-limit must", "nan"]),
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
        ["plan"],
        ["plan", "garnet", "--delta", "x"],
        ["plan", "garnet", "--budget", "1.5"],
        ["plan", "garnet", "--nope"],
        ["fly"],
    ],
    ids=" ".join,
)
def test_wrong_usage_that_the_parser_sees(arguments):
    assert_refused(run(*arguments), 2, "--help")


def test_a_command_that_there_is_not():
    assert_refused(run("plna"), 2, "pacplan: there is no command 'plna' (choose from", "plan", "warm")


def test_no_command_shows_the_help():
    outcome = run()
    assert outcome.code == 2
    assert outcome.stdout == "" and outcome.stderr == run("--help").stdout


def test_broken_promise(folder):
    outcome = run("plan", f"{folder}:broken", *FAST)
    assert_refused(outcome, 1, "'vault'", "action", "2.0", "reward_range=(0.0, 1.0)")


@pytest.mark.parametrize(
    ("kind", "runner"),
    [
        ("ZeroDivisionError", run),
        ("ValueError", run),
        ("TypeError", run),
        ("KeyError", run),
        ("KeyError", run_process),
    ],
)
def test_simulator_that_raises(folder, kind, runner):
    # The message alone may say nothing ("'x'" for a KeyError), so the class is named as well.
    outcome = runner("plan", f"{folder}:raising", *FAST, "--set", f"kind={kind}")
    assert outcome.code == 1
    assert outcome.stdout == ""
    assert kind in outcome.stderr
    assert "own words" in outcome.stderr


def test_factory_that_raises(folder):
    outcome = run_process("plan", f"{folder}:broken_factory", *FAST)
    assert outcome.code == 1
    assert outcome.stdout == ""
    assert "RuntimeError" in outcome.stderr and "no model today" in outcome.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [("stay", "Simulator(step, actions=...)"), ("environment", "from_gymnasium(env)")],
)
def test_what_is_no_model_is_said_with_what_makes_one_of_it(folder, name, words):
    outcome = run("plan", f"{folder}:{name}", *FAST)
    assert_refused(outcome, outcome.code, words)


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
