"""Planners outside the package: stable names, registration, room, and checks that find faults."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

import pacplan
from command_line import run
from pacplan import extending
from pacplan.testing import PLANNER_CHECKS, ConformanceError, check_planner


class Search(NamedTuple):
    tree: Any
    problem: Any
    path: Any
    calls: Any
    report: Any


@extending.select.register(Search)
def select(search, at, h, ties):
    """Makes the pairs of all actions at once."""
    node = search.tree.nodes[at]
    while node.tried < node.actions:
        extending.add_pair(search.tree, at, node.tried)
    return node.first


class Greedy(pacplan.UCT):
    name = "greedy"

    def start(self, query, session):
        return extending.MeanSearch(Search, query, session, gamma=0.7, horizon=20)


# Every step leads to a new state, so that every step adds pairs.
def new_state(state, action, rng):
    return rng.integers(2**40).item(), 0.5, False


ENDLESS = pacplan.Simulator(new_state, actions=9, successors=None)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Small plans do not pay for a kernel."""
    monkeypatch.setattr("pacplan.engine.search.ready", lambda *_, **__: False)


def test_more_pairs_than_there_is_room_for_are_refused():
    with pytest.raises(RuntimeError, match=r"planner adds more .* one pair and one node per step"):
        Greedy(gamma=0.7).plan(ENDLESS, 0, seed=0, budget=50_000)


@pytest.fixture
def known(monkeypatch):
    """The planners that are known, which are the same again afterwards."""
    before = dict(pacplan.planners)
    yield pacplan.planners
    pacplan.planners.clear()
    pacplan.planners.update(before)


def test_registration(known):
    assert pacplan.register(Greedy) is Greedy
    assert known["greedy"] is Greedy
    pacplan.register(Greedy)
    with pytest.raises(ValueError, match=r"'greedy' is taken by test_extending\.Greedy"):
        pacplan.register(type("Modest", (Greedy,), {}))
    again = type("Greedy", (pacplan.UCT,), {"name": "greedy", "__module__": Greedy.__module__})
    pacplan.register(again)
    assert known["greedy"] is again


@pytest.mark.parametrize("wrong", ["uct", int, Greedy(gamma=0.7)])
def test_what_is_no_planner_is_not_registered(wrong):
    with pytest.raises(TypeError, match=r"pacplan\.extending\.Planner"):
        pacplan.register(wrong)


OWN = """
import pacplan

class Shallow(pacplan.UCT):
    name = "shallow"

    def __init__(self, *, gamma):
        super().__init__(gamma=gamma, horizon=2)

thing = 3
"""


def test_the_command_plans_and_compares_with_a_planner_of_ones_own(tmp_path, monkeypatch, known):
    (tmp_path / "own_planner.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    done = run("plan", "garnet", "--planner", "own_planner:Shallow", "--budget", "100", "-q")
    assert done.code == 0, done.output
    assert "Shallow gives no guarantee" in done.output
    done = run("compare", "garnet", "--planners", "own_planner:Shallow,uct", "--runs", "2")
    assert done.code == 0, done.output
    assert "shallow" in done.output
    for name, words in (
        ("own_planner:thing", "pacplan.extending.Planner"),
        ("own_planner:Nobody", "cannot load"),
        ("nobody", "module:class"),
    ):
        done = run("plan", "garnet", "--planner", name, "--budget", "100")
        assert done.code == 2
        assert words in done.output


class Learns(pacplan.UCT):
    """Remembers its last plan."""

    def finish(self, *args):
        self.exploration += 0.1
        return super().finish(*args)


class Miscounts(pacplan.UCT):
    def finish(self, *args):
        plan = super().finish(*args)
        return replace(plan, samples=plan.samples - 1)


class Fickle(pacplan.UCT):
    def plan(self, model, state=None, *, seed=None, **options):
        return super().plan(model, state, **options)


class Particular(pacplan.UCT):
    """Looks less far ahead in models without tables."""

    def plan(self, model, state=None, **options):
        tables = isinstance(model, pacplan.TabularMDP)
        planner = pacplan.UCT(gamma=self.gamma, horizon=5 if tables else 2)
        return planner.plan(model, state, **options)


@pytest.mark.parametrize(
    ("planner", "checks"),
    [
        (Learns, ["settings", "same seed"]),
        (Miscounts, ["budget"]),
        (Fickle, ["same seed"]),
        (Particular, ["python model"]),
    ],
)
def test_what_is_wrong_with_a_planner_is_found(planner, checks):
    with pytest.raises(ConformanceError) as caught:
        check_planner(planner(gamma=0.7, horizon=5), only=[*checks, "ends"])
    for check in checks:
        assert f"- {check}: " in str(caught.value)
    assert "- ends: " not in str(caught.value)


def test_wrong_arguments_of_check_planner():
    with pytest.raises(TypeError, match="with its settings"):
        check_planner(pacplan.UCT)
    with pytest.raises(ValueError, match="only"):
        check_planner(pacplan.UCT(gamma=0.7), only=["everything"])
    assert len(set(PLANNER_CHECKS)) == len(PLANNER_CHECKS)
