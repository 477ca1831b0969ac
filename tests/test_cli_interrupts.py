"""Ctrl-C: what the command leaves behind."""

import json
import os

import pytest

from command_line import COMMAND, folder_of_models, run_process
from interrupting import interrupted

pytestmark = pytest.mark.processes
ENDLESS = ("--epsilon", "0.0001", "--delta", "0.1", "--gamma", "0.7", "--seed", "0")

folder = pytest.fixture(folder_of_models)


def interrupt(*arguments):
    """Run the command, with Ctrl-C once a slow model has begun, which would take hours."""
    return interrupted([COMMAND, *arguments], lambda: os.path.exists("started"))


def test_interrupt_prints_the_plan_so_far(folder):
    outcome = interrupt("plan", f"{folder}:slow", *ENDLESS, "--planner", "bracket")
    assert outcome.code == 130
    assert "Traceback" not in outcome.stderr
    assert "estimate" in outcome.stdout and outcome.stdout.startswith("Not certified: action 0\n")
    assert ": interrupted." in outcome.words


def test_interrupt_before_the_search(folder):
    outcome = interrupt("plan", f"{folder}:slow_factory", *ENDLESS)
    assert (outcome.code, outcome.stdout) == (130, "")
    assert "Traceback" not in outcome.stderr


def test_interrupt_during_the_last_call_of_a_plan(folder, tmp_path):
    command = ["plan", f"{folder}:pressing", "--planner", "uct", "--budget", "200", "--json"]
    outcome = run_process(*command, "--gamma", "0.7", cwd=tmp_path)
    record = json.loads(outcome.stdout)
    assert (record["samples"], record["interrupted"]) == (200, True)
    assert outcome.code == 130
