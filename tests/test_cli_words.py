"""Errors and advice speak of the command's options, not of Python's arguments."""

import ast
import re
from inspect import signature
from pathlib import Path

import pytest

import pacplan
from command_line import PYTHON_ARGUMENTS, run
from pacplan.cli.spelling import problem_words, spelled, translated
from pacplan.core import checks

SETTINGS = sorted({name for cls in pacplan.planners.values() for name in signature(cls).parameters})
LIMITS = ["state", "seed", "budget", "time_limit", "memory_limit", "checkpoint", "every"]
# Where messages come from that reach the command; what makes a problem speaks of --set.
ROOT = Path(pacplan.__file__).parent
SOURCES = [
    *ROOT.glob("algorithms/**/*.py"),
    *ROOT.glob("engine/*.py"),
    *ROOT.glob("bounds/*.py"),
    *(ROOT / "models" / f"{name}.py" for name in ("protocol", "simulator", "knowledge")),
    *(ROOT / f"{name}.py" for name in ("planning", "registry", "look", "comparison")),
]


def wording(node):
    """The text of a message, with "7" for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(wording(part) if isinstance(part, ast.Constant) else "7" for part in node.values)
    if isinstance(node, ast.BinOp):
        return wording(node.left) + wording(node.right)
    if isinstance(node, ast.IfExp):
        return f"{wording(node.body)}\n{wording(node.orelse)}"
    return "7"


def messages():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                place = f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
                yield pytest.param(wording(node.exc.args[0]), id=place)


def test_the_messages_are_found():
    found = [message.values[0] for message in messages()]
    assert len(found) > 120 and sum("=" in text for text in found) > 40


@pytest.mark.parametrize("message", list(messages()))
def test_no_message_has_arguments_of_python(message):
    told = translated(message)
    assert not PYTHON_ARGUMENTS.findall(told)
    assert not re.findall(r"\bplan\(\.\.\.|\bpacplan\.plan\b|\btime_limit\b|\bmemory_limit\b", told)


def test_every_setting_and_limit_is_spelled():
    about = run("plan", "--help").stdout
    for name in [*SETTINGS, *LIMITS]:
        option, _, rest = spelled(name).partition(" ")
        assert f"{option} " in about
        assert option == f"--{name.replace('_', '-')}" or (option, rest) == ("--option", f"{name}=")


@pytest.mark.parametrize("name", [*SETTINGS, *LIMITS])
def test_checks_of_a_value_name_the_option(name):
    def told(check, *arguments, **limits):
        with pytest.raises((TypeError, ValueError)) as caught:
            check(name, *arguments, **limits)
        return translated(str(caught.value))

    option = spelled(name).removesuffix("=")
    for words in (
        told(checks.real, "x"),
        told(checks.real, float("inf")),
        told(checks.integer, 1.5, least=0),
        told(checks.integer, 0, least=1),
        told(checks.choice, "x", ("a", "b")),
        told(checks.probability, 1.0),
        told(checks.positive, 0.0),
        told(checks.interval, (1, 0), "return"),
    ):
        assert words.startswith(f"{option} must ")


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("pass budget= or time_limit=", "pass --budget or --time-limit"),
        ("it plans within a budget: plan(..., budget=n)", "it plans within a budget: --budget n"),
        ('goal="value" is for H steps', "--goal value is for H steps"),
        ("checkpoint='a b': no such folder", "--checkpoint 'a b': no such folder"),
        ("epsilon='5%': per cent", "--epsilon 5%: per cent"),
        ("horizon=5 with gamma=0.7, or 5.", "--horizon 5 with --gamma 0.7, or 5."),
        ("value_range=(0.0, -5) contradicts", "--value-range 0.0 -5 contradicts"),
        ("value_range=... (why)", "--value-range LOW HIGH (why)"),
        ("horizon=...", "--horizon N"),
        ("value_bounds=...", "--option value_bounds=module:name"),
        ("max_policies=3: raise max_policies", "--option max_policies=3: raise --option max_policies"),
        ("it takes epsilon=, merge=, width=", "it takes --epsilon, --merge, --option width="),
        ("use UGapEMCTS", "use --planner ugape-mcts"),
        ("one such as MDPGapE", "one such as --planner mdp-gape"),
        ("for pacplan.plan, which chooses", "for --planner auto, which chooses"),
        # A planner, and what only looks like an argument.
        ("written for Bracket(epsilon=1.0, value_range=(0, 1))",) * 2,
        ("pass successors= to the model",) * 2,
        ("--option merge=depth",) * 2,
        ("Bracket plans for one player",) * 2,
        ("a state must offer the same, and the horizon must be known",) * 2,
        ("a budget of 5 calls, a rule, a state, a goal or every one",) * 2,
    ],
)
def test_translations(python, command):
    assert translated(python) == command


def test_a_problem_speaks_of_its_settings():
    words = "states must be at least 1, got 0; reward_density is a number, and actions are many"
    assert problem_words(words, {"states": 0, "reward_density": 1}) == (
        "--set states must be at least 1, got 0; --set reward_density is a number, and actions are many"
    )
    assert problem_words(words, {}) == words
