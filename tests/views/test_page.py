"""The page of a plan: what it says, in a real browser, and from the command."""

import json
import re

import numpy as np
import pytest
from markupsafe import escape

import pacplan
from browser import Page, browser  # noqa: F401  (a fixture)
from command_line import run
from every_planner import NAMES, make, problem
from pacplan.core.words import at_least, at_most
from pacplan.views.evidence import Intervals
from pacplan.views.explorer import explorer
from trees import Recorder

GARNET = pacplan.envs.garnet(seed=0)
SECTIONS = ["values", "closing", "again", "why", "tree"]


def line_walk(state, action, rng):
    move = 1 if action == "right" else -1
    place = min(max(state + (-move if rng.random() < 0.1 else move), 0), 9)
    return place, float(place == 9), False


def walk(epsilon=0.5, **options):
    model = pacplan.Simulator(line_walk, actions=["left", "right"], reward_range=(0, 1))
    planner = pacplan.Bracket(epsilon=epsilon, delta=0.1, gamma=0.7)
    return planner.plan(model, 7, seed=0, **options)


def data(plan):
    return json.loads(explorer(plan.tree, Intervals(plan))[0])


# What it says.


def test_certified_or_not_comes_first(tmp_path):
    certified = walk()
    cut = walk(epsilon=0.01, budget=300)
    guess = make("uct").plan(problem("uct"), 0, seed=0, budget=400)
    unproven = make("mdp-gape", epsilon=1.0, thresholds="paper").plan(problem("mdp-gape"), 0, seed=0)
    assert certified.certified and unproven.stopped_by == "rule"
    for plan, words in (
        (certified, "own rule ended the search, and it is proven"),
        (cut, "The search was stopped before"),
        (guess, "no bounds"),
        (unproven, "with these settings it is not proven"),
    ):
        text = plan.to_html(tmp_path / "plan.html").read_text("utf-8")
        body = re.sub(r"<[^>]*>", "", text.partition("<main>")[2])
        assert body.lstrip().startswith("Certified" if plan.certified else "Not certified")
        assert ("Certified</p>" in text) == plan.certified
        assert words in body.partition("What the actions")[0]
        assert all(str(escape(told)) in text for told in (plan.guarantee, *plan.assumptions))


@pytest.mark.parametrize("name", NAMES)
def test_every_planner_has_a_page(name, tmp_path):
    plan = make(name).plan(problem(name), 0, seed=1, budget=2000)
    page = plan.to_html(tmp_path / "plan.html")
    text = page.read_text("utf-8")
    assert page.stat().st_size < 500_000
    found = re.findall(r'<section id="(\w+)"', text)
    last = "tree" if plan.policy is None else "chart"
    sections = [name for name in SECTIONS[:-1] if name != "closing" or plan.lower is not None]
    assert found == [*sections, last]
    assert ("keeps no search tree" in text) == (plan.tree is None and plan.policy is None)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_the_challenger_is_named(tmp_path):
    plan = make("mdp-gape").plan(problem("mdp-gape"), 0, seed=0, budget=4000)
    rival = plan.actions[Intervals(plan).rival]
    model = pacplan.Simulator(line_walk, actions=["right"])
    for one, words in (
        (plan, f"of action {plan.action} is action {rival}: of all others it has the largest upper"),
        (make("uct").plan(problem("uct"), 0, seed=0, budget=400), "prove nothing"),
        (pacplan.UCT(gamma=0.5, horizon=3).plan(model, 0, budget=20), "There is no other action."),
    ):
        assert words in one.to_html(tmp_path / "plan.html").read_text("utf-8")


def test_the_code_on_the_page_makes_the_plan_again(tmp_path):
    # Its seed was drawn.
    plan = pacplan.plan(GARNET, 3, epsilon=0.5, delta=0.1, gamma=0.7, sample=True)
    text = plan.to_html(tmp_path / "plan.html").read_text("utf-8")
    code = plan.origin.code(plan.planner)
    assert str(escape(code)) in text
    for name, version in plan.origin.versions.items():
        assert f"{name} {version}" in text
    place = {}
    exec(re.sub(r"model = .*", "model = pacplan.envs.garnet(seed=0)", f"import pacplan\n{code}"), place)
    assert place["plan"].lower.tolist() == plan.lower.tolist()
    assert place["plan"].samples == plan.samples


def test_of_many_actions_the_strongest_are_listed(tmp_path):
    model = pacplan.Simulator(
        lambda s, a, rng: (s, float(rng.random() < a / 200), False), actions=200, successors=1
    )
    plan = make("mdp-gape", horizon=2).plan(model, 0, seed=0, budget=9000)
    known = Intervals(plan)
    shown = [int(row["name"]) for row in known.rows]
    assert known.best in shown and known.rival in shown and len(shown) == 16
    hidden = [i for i in range(200) if i not in shown]
    text = plan.to_html(tmp_path / "plan.html").read_text("utf-8")
    assert "184 other actions are not listed; their upper bounds are at most " in text
    assert plan.upper[hidden].max() <= min(plan.upper[i] for i in shown if i != known.best)


# The tree.


def test_the_tree_on_the_page_is_the_tree():
    seen = Recorder()
    planner = pacplan.MDPGapE(epsilon=0.1, delta=0.1, gamma=0.9, horizon=3)
    plan = planner.plan(seen.model(), (), seed=0, budget=3000)
    found = data(plan)
    places, actions, names = found["places"], found["actions"], found["names"]
    assert names[places[0][0]] == "()"
    waiting, walked = [((), 0)], 0
    while waiting:
        state, number = waiting.pop()
        for action in places[number][-1]:
            name, n, reward, _, _, _, lower, upper, successors, count = actions[action]
            rewards = seen.rewards[state, names[name]]
            assert n == len(rewards)
            assert reward == pytest.approx(np.mean(rewards), rel=1e-3)
            assert lower <= upper
            assert count == len(successors) <= 2
            for place, to, times in successors:
                below = eval(names[to])
                assert times == seen.successors[state, names[name]][below]
                if place is not None:
                    waiting.append((below, place))
            walked += 1
    assert walked == len(actions) > 50
    taken = actions[found["taken"]]
    at = plan.actions.index(plan.action)
    assert names[taken[0]] == plan.action
    assert (taken[6], taken[7]) == (float(at_least(plan.lower[at])), float(at_most(plan.upper[at])))
    assert found["taken"] in places[0][-1] and found["challenger"] in places[0][-1]


def test_long_names_leave_room_for_the_page(tmp_path):
    def step(state, action, rng):
        return (rng.random(), "ß" * 200), 0.5, False

    model = pacplan.Simulator(step, actions=4)
    plan = pacplan.UCT(gamma=0.7, horizon=4).plan(model, (0.0, "ß"), seed=0, budget=60_000)
    page = plan.to_html(tmp_path / "plan.html")
    assert 500_000 < page.stat().st_size < 1_500_000
    text = page.read_text("utf-8")
    shown, tried = re.search(r"([\d,]+) of ([\d,]+) actions are here", text).groups()
    assert int(shown.replace(",", "")) < 4000 and tried == f"{plan.tree.made:,}"
    # The places that are not here were visited no more often than those that are.
    found = data(plan)
    left_out = [times for action in found["actions"] for place, _, times in action[8] if place is None]
    assert max(left_out) <= min(place[1] for place in found["places"])


# In a browser.


def test_a_person_walks_the_tree(browser, tmp_path):  # noqa: F811
    seen = Recorder()
    planner = pacplan.MDPGapE(epsilon=0.1, delta=0.1, gamma=0.9, horizon=3)
    plan = planner.plan(seen.model(), (), seed=0, budget=3000)
    page = Page(browser, plan.to_html(tmp_path / "plan.html"))
    assert plan.guarantee in page.text()
    at = plan.actions.index(plan.action)
    row = page.named("#explorer .act", "taken")
    assert f"{at_least(plan.lower[at])} to {at_most(plan.upper[at])}" in row.text
    row.find_element("tag name", "summary").click()
    rewards = seen.rewards[(), plan.action]
    # What was folded is filled in when it opens, a moment after the click.
    page.wait(lambda: f"{len(rewards):,} visits; reward {np.mean(rewards):.4g} on average" in row.text)
    for state, times in seen.successors[(), plan.action].items():
        assert f"state {state}" in row.text
        assert f"{times / len(rewards):.3f} ({times:,})" in row.text
    state = max(seen.successors[(), plan.action].items(), key=lambda item: item[1])[0]
    page.named("#explorer .led button", f"state {state}").click()
    assert page.text("#explorer h3") == f"State {state}"
    assert len(page.find("#explorer .act")) == len(seen.actions(state))
    page.named("#explorer .crumbs button", "start").click()
    assert page.text("#explorer h3") == "State ()"
    # The map leads there as well.
    cell = page.run(
        "[...document.querySelectorAll('.map svg')].find(e => e.textContent.startsWith(arguments[0]))",
        f"state {state}",
    )
    cell.click()
    assert page.text("#explorer h3") == f"State {state}"
    assert page.problems() == []
    assert page.requests() == [(tmp_path / "plan.html").as_uri()]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_can_be_read(browser, tmp_path, width, dark):  # noqa: F811
    plan = walk(epsilon=0.01, budget=300)
    written = plan.to_html(tmp_path / "plan.html", command="pacplan " * 40)
    page = Page(browser, written, width, dark)
    page.find("#explorer summary")[0].click()
    page.wait(lambda: page.find("#explorer .led button"))
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.overflowing() == []
    found = page.contrasts()
    assert len(found) > 40
    assert min(found)[0] >= 4.5, min(found)
    paper = page.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper))) < 150) == dark
    assert page.problems() == []


def test_names_cannot_break_the_page(browser, tmp_path):  # noqa: F811
    names = ["<b>x</b>", "</script><h1>y", "<!--", "&amp;", "\u2028", '" onmouseover="z']
    attack = "<script>document.title = 'broken'</script>"

    def step(state, action, rng):
        return attack, 0.5, False

    model = pacplan.Simulator(step, actions=names, successors=1)
    plan = pacplan.UCT(gamma=0.5, horizon=2).plan(model, attack, seed=0, budget=400)
    written = plan.to_html(tmp_path / "plan.html", command="echo </pre><h1>")
    page = Page(browser, written)
    labels = [row.text for row in page.find("#explorer summary")]
    for name in names:
        assert any(name.strip() in label for label in labels)
    assert browser.title.endswith(": not certified")
    assert len(page.find("h1")) == 1
    assert page.find("b, [onmouseover], [onload]") == []
    assert page.requests() == [written.as_uri()]
    assert page.problems() == []


# The command.


def command(*arguments):
    return run("plan", "garnet", *arguments)


@pytest.mark.parametrize("seed", [[], ["--seed", "5"]])
def test_the_command_writes_the_page(seed, tmp_path):
    page = tmp_path / "out.html"
    typed = ["--planner", "mdp-gape", "--budget", 2000, "--json", "--set", "states=50", *seed]
    result = command(*typed, "--html", page)
    assert result.code == 3
    record = json.loads(result.stdout)
    again = seed or ["--seed", record["origin"]["seed"]]  # It was drawn.
    assert json.loads(command(*typed, *again).stdout)["values"] == record["values"]
    words = f"pacplan plan garnet {' '.join(map(str, typed))} --html {page}"
    words += "" if seed else f" --seed {again[1]}"
    assert f"<code>{words}</code>" in page.read_text("utf-8")


def test_the_command_refuses_before_it_plans(tmp_path, monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("it planned")

    monkeypatch.setattr(pacplan.algorithms.common.base.Planner, "plan", never)
    for path, message in ((tmp_path, "is a folder"), (tmp_path / "no" / "x.html", "no folder")):
        result = command("--planner", "uct", "--budget", 100, "--html", path)
        assert result.code == 2
        assert message in result.output
