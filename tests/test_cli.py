"""The command: what it prints, where, and with which exit code."""

import json
import re
from dataclasses import fields
from inspect import signature

import pytest

import pacplan
from command_line import FAST, assert_refused, folder_of_models, run, run_process
from pacplan.cli.options import in_options
from pacplan.core.words import at_least, at_most

folder = pytest.fixture(folder_of_models)
GAPE = ("--planner", "mdp-gape")


# What is printed --------------------------------------------------------------------------------------


ASKED = {"epsilon": 1, "delta": 0.1, "gamma": 0.7}


@pytest.mark.parametrize(("runner", "planner"), [(run_process, "auto"), (run, "mdp-gape")])
def test_garnet(runner, planner):
    outcome = runner("plan", "garnet", *FAST, "--planner", planner)
    plan = pacplan.plan(pacplan.envs.garnet(), sample=True, seed=0, **ASKED)
    if planner == "mdp-gape":
        plan = pacplan.MDPGapE(**ASKED).plan(pacplan.envs.garnet(), seed=0)
    assert outcome.code == 0
    lines = outcome.stdout.splitlines()
    warning = [plan.warning, ""] if plan.warning else []
    assert lines[: 1 + len(warning)] == [f"Certified: action {plan.action}", *warning]
    table = lines[1 + len(warning) :]
    assert table[0].split() == ["action", "lower", "interval", "upper", "estimate", "calls"]
    for row, line in zip(plan.rows, table[1:6], strict=True):
        taken = [">"] * (row.action == plan.action)
        first, last = [*taken, str(row.action), at_least(row.lower)], f"{row.value:.4g} {row.calls:,}"
        cells = line.split()
        assert cells[: len(first)] == first
        assert cells[len(first) + 1 :] == [at_most(row.upper), *last.split()]
    for words in (*plan.assumptions, f"Stopped after {plan.samples:,} calls", *plan.sentences[:3]):
        assert words in outcome.words
    assert "Settings: gamma 0.7, horizon 6, epsilon 1, delta 0.1." in lines


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["uct", "--budget", "100"], "UCT gives no guarantee"),
        (["mdp-gape", "--epsilon", "1", "--thresholds", "paper"], "within"),
        (["mdp-gape", "--budget", "100"], "within"),
        (
            ["trailblazer", "--epsilon", "1", "--gamma", "0.2"],
            "The optimal value of the state is within",
        ),
    ],
    ids=["no guarantee", "not proven", "stopped before", "of the value alone"],
)
def test_certified_is_said_of_what_is_proven_and_nothing_else(arguments, words):
    outcome = run("plan", "garnet", "--seed", "0", "--quiet", "--planner", *arguments)
    assert re.match(r"Not certified: action \d\n", outcome.stdout) and words in outcome.stdout


def test_json():
    outcome = run("plan", "garnet", *FAST, "--json")
    assert outcome.code == 0
    assert outcome.stderr == ""
    record = json.loads(outcome.stdout)
    assert set(record) == {f.name for f in fields(pacplan.Plan)} - {"tree", "curve"} | {"safest"}
    assert [record[name] for name in ("gamma", "horizon", "epsilon", "delta")] == [0.7, 6, 1.0, 0.1]
    expected = pacplan.plan(pacplan.envs.garnet(), sample=True, seed=0, **ASKED).to_dict()
    for name in ("seconds", "memory"):  # These depend on what was planned before.
        expected[name] = record[name]
    assert record == json.loads(json.dumps(expected))
    assert record["certified"] is True and record["stopped_by"] == "certified"


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
        assert_refused(
            refused,
            2,
            f"'{problem}' has no default discount",
            "pass --gamma",
            "--gamma 1 --horizon too",
        )
    assert run("plan", f"{folder}:table", "--epsilon", "1", "--gamma", "0.5").code == 0
    assert run("plan", f"{folder}:game", "--epsilon", "1").code == 0  # Games of two have none.


@pytest.mark.parametrize(
    ("runner", "arguments", "names"),
    [
        (run, ["--set", "initial=4", "--set", "word=hello"], ["int 4", "word 'hello'"]),
        (run_process, ["--state", "(1, 2)"], ["tuple (1, 2)", "word None"]),
        (run, ["--state=-3", "--set", "word=a=b"], ["int -3", "word 'a=b'"]),
        (run, ["--state", "two words", "--set", "word="], ["str two words", "word ''"]),
    ],
)
def test_attribute_that_is_a_function(folder, tmp_path, runner, arguments, names):
    where = {"cwd": tmp_path} if runner is run_process else {}
    outcome = runner("plan", f"{folder}:make", *FAST, *arguments, "--json", **where)
    assert outcome.code == 0
    assert json.loads(outcome.stdout)["actions"] == names


def test_names_that_look_like_markup(folder):
    outcome = run("plan", f"{folder}:odd_names", *FAST, "--budget", "500")
    for name in ("[red]", "[/up]", "two words"):
        assert name in outcome.stdout
    record = json.loads(run("plan", f"{folder}:odd_names", *FAST, "--json").stdout)
    assert record["actions"] == ["[red]", "[/up]", "two words", "(0, 1)"]


# Exit codes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "stop", "code"),
    [
        (["--budget", "1000000", "--time-limit", "60"], "certified", 0),
        ([*GAPE, "--thresholds", "paper"], "rule", 0),
        (["--option", "epsilon=0.001", "--time-limit", "0.05"], "deadline", 3),
        ([*GAPE, "--thresholds", "sharp", "--budget", "200"], "budget", 0),
        ([*GAPE, "--option", "thresholds=lemma", "--budget", "200"], "budget", 3),
        (["--option", "epsilon=0.0", "--budget", "200"], "budget", 0),
        (["--planner", "uct", "--budget", "200"], "budget", 0),
    ],
)
def test_the_exit_code_follows_from_the_planner_however_it_was_given(arguments, stop, code):
    asked = ("--delta", "0.1", "--gamma", "0.7", "--seed", "0")
    asked += () if any("epsilon=" in text for text in arguments) else ("--epsilon", "0.5")
    asked = ("--gamma", "0.7") if "uct" in arguments else asked
    outcome = run("plan", "garnet", *asked, *arguments, "--json")
    assert outcome.code == code
    assert json.loads(outcome.stdout)["stopped_by"] == stop


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], ["'nope'", "garnet", "module:name"]),
        ([":x"], ["':x'", "module"]),
        (["garnet", "--set", "states"], ["--set", "NAME=VALUE", "'states'"]),
        (["garnet", "--epsilon", "x"], ["epsilon", "'x'", "5%"]),
        (["garnet", *GAPE, "--epsilon", "5%"], ["--epsilon '5%'", "--planner auto"]),
        (["garnet", *GAPE, "--thresholds", "loose"], ["thresholds", "'loose'", "'lemma'"]),
        (
            ["garnet", "--thresholds", "paper"],
            ["takes no --thresholds", "mdp-gape would", "--option value_bounds="],
        ),
        (["garnet", "--epsilon", "0"], ["--epsilon 0 may", "--budget or --time-limit"]),
        (["garnet", "--time-limit", "0"], ["--time-limit must", "0"]),
        (["garnet", "--state", "200"], ["state", "200", "0..199"]),
    ],
    ids=" ".join,
)
def test_wrong_usage(arguments, words):
    assert_refused(run("plan", *arguments), 2, *words)


OWN = [
    (["{m}:"], ["cannot load", "''"]),
    (["{m}:number"], ["model", "int"]),
    (["{m}:table", "--set", "states=3"], ["--set", "not callable"]),
    (["{m}:table", "--state", "2"], ["state 2", "terminal"]),
    (["{m}:make", "--state", "[1]"], ["hashable", "[1]"]),
    (["{m}:stay"], ["Simulator(step, actions=...)"]),
    (["{m}:environment"], ["from_gymnasium(env)"]),
]


@pytest.mark.parametrize(("arguments", "words"), OWN, ids=str)
def test_wrong_usage_with_own_models(folder, arguments, words):
    arguments = [argument.format(m=folder) for argument in arguments]
    assert_refused(run("plan", *arguments, *FAST), 2, *words)


def test_wrong_usage_that_the_parser_sees():
    for arguments, words in (
        (["plan"], ["PROBLEM"]),
        (["plan", "garnet", "--delta", "x"], ["--delta", "'x'"]),
        (["plan", "garnet", "--nope"], ["unrecognized arguments: --nope"]),
        (["plna"], ["COMMAND: invalid choice: 'plna'", "plan", "warm"]),
    ):
        assert_refused(run(*arguments), 2, "--help", *words)


def test_broken_promise(folder):
    outcome = run("plan", f"{folder}:broken", *FAST)
    assert_refused(outcome, 1, "'vault'", "action", "2.0", "reward_range=(0.0, 1.0)")


def test_what_the_users_own_code_raises_passes(folder):
    with pytest.raises(ZeroDivisionError, match="own words"):
        run("plan", f"{folder}:raising", *FAST)
    outcome = run_process("plan", f"{folder}:broken_factory", *FAST)
    assert (outcome.code, outcome.stdout) == (1, "")
    assert "RuntimeError" in outcome.stderr and "no model today" in outcome.stderr


# Words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("pass budget= or time_limit=", "pass --budget or --time-limit"),
        ("it plans within a budget: plan(..., budget=n)", "it plans within a budget: --budget n"),
        ('goal="value" is for H steps', '--goal "value" is for H steps'),
        ("value_bounds=... (why)", "--option value_bounds=... (why)"),
        ("it takes epsilon=, merge=, width=", "it takes --epsilon, --merge, --option width="),
        ("for pacplan.plan, which chooses", "for --planner auto, which chooses"),
        ("time_limit must be positive", "--time-limit must be positive"),
        # A planner, and what only looks like an argument.
        ("written for Bracket(epsilon=1.0, value_range=(0, 1))",) * 2,
        ("pass successors= to the model",) * 2,
        ("a state must offer the same, and the horizon must be known",) * 2,
    ],
)
def test_messages_name_options(python, command):
    assert in_options(python) == command


def test_every_setting_and_limit_has_an_option():
    about = run("plan", "--help").stdout
    for cls in pacplan.planners.values():
        for name in signature(cls).parameters:
            told = in_options(f"{name}=1")
            assert told == f"--option {name}=1" or f"{told.split()[0]} " in about
