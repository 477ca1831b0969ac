"""Every Python block of README and documentation runs, and README shows what the code prints."""

import re
from functools import cache
from inspect import signature
from pathlib import Path

import pytest

import pacplan
import test_conformance as conformance

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    return [code for found, code in BLOCK.findall(page.read_text("utf-8")) if found == language]


def run(page):
    """Run the blocks of a page one after the other, as a reader would; returns what they define."""
    names = {"__name__": page.stem}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)
    return names


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda page: page.name)
def test_python_blocks_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Some write a file.
    run(page)


def test_readme_shows_the_plan_that_it_prints(capsys):
    plan = run(ROOT / "README.md")["plan"]
    shown = blocks(ROOT / "README.md", "text")[0].splitlines()
    printed = str(plan).splitlines()
    assert shown[:-1] == printed[:-1]
    # The last line ends with the seconds it took.
    assert shown[-1].rsplit(",", 1)[0] == printed[-1].rsplit(",", 1)[0]


def test_readme_begins_with_the_two_commands():
    commands = blocks(ROOT / "README.md", "sh")[0].splitlines()
    assert commands[0].startswith("python3 dev.py pacplan plan garnet")
    assert commands[1] == "python3 dev.py test"
    assert commands[1] in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize(
    "check",
    [
        conformance.test_same_seed_same_plan,
        conformance.test_python_and_compiled_models_agree_call_by_call,
        conformance.test_jitted_models,
        conformance.test_budget_is_never_exceeded,
        conformance.test_deadline,
        conformance.test_callback_can_stop,
        conformance.test_interrupt,
        conformance.test_terminal_states_end_the_episode,
        conformance.test_state_dependent_actions,
        conformance.test_pickling,
        conformance.test_a_simulator_that_raises,
        conformance.test_repr_makes_the_planner_again,
        conformance.test_bad_queries,
        conformance.test_planners_without_bounds_claim_nothing,
    ],
)
def test_the_planner_of_the_documentation_conforms(check, monkeypatch, request):
    planner = flat_monte_carlo()
    monkeypatch.setattr(pacplan, planner.__name__, planner, raising=False)
    monkeypatch.setitem(pacplan.planners, "flat", planner)
    monkeypatch.setitem(conformance.SETTINGS, "flat", {"gamma": 0.7, "horizon": 5})
    needs = [name for name in signature(check).parameters if name != "name"]
    check("flat", *map(request.getfixturevalue, needs))


@cache
def flat_monte_carlo():
    planner = run(ROOT / "docs" / "new_planner.md")["FlatMonteCarlo"]
    planner.__module__ = "pacplan"
    return planner
