"""The pictures: that they show the numbers of the search, on any planner's tree, in a real browser."""

import json
import math
import os
import pickle
import shutil
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import entropy
from typer.testing import CliRunner

import pacplan
from pacplan import exact, views
from pacplan.cli import app
from pacplan.core.words import at_least, at_most
from pacplan.views.outline import outline
from pacplan.views.style import short
from test_conformance import NAMES, make, problem

matplotlib.use("Agg")
WITH_TREE = [name for name in NAMES if pacplan.planners[name].keeps_tree]
LOW, HIGH = -1.0, 3.0


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


class Recorder:
    """A simulator whose states are their own histories, so that it can count what a search saw."""

    def __init__(self):
        self.rewards = defaultdict(list)
        self.successors = defaultdict(lambda: defaultdict(int))

    def actions(self, state):
        return ["left", "right", "wait"][: 2 + len(state) // 2 % 2]

    def step(self, state, action, rng):
        to = (*state, action, int(rng.random() < 0.3))
        reward = LOW + (HIGH - LOW) * float(rng.random() < (0.2 if action == "left" else 0.7))
        self.rewards[state, action].append(reward)
        self.successors[state, action][to] += 1
        return to, reward, False

    def model(self, **options):
        return pacplan.Simulator(
            self.step, actions=self.actions, successors=2, reward_range=(LOW, HIGH), **options
        )


def pairs_of(tree):
    """Every pair of a tree with the nodes from the root to its own, by plain recursion."""
    waiting = [(0,)]
    while waiting:
        path = waiting.pop()
        for pair in tree.tried(path[-1]):
            yield path, pair
            waiting.extend((*path, outcome.node) for outcome in tree.outcomes(pair))


def kl_interval(mean, radius):
    """All q with kl(mean, q) <= radius, by bisection on SciPy's entropy."""

    def excess(q):
        return entropy([mean, 1 - mean], [q, 1 - q]) - radius

    tiny = 1e-12
    low = brentq(excess, tiny, mean) if mean > 0 and excess(tiny) > 0 else 0.0
    high = brentq(excess, mean, 1 - tiny) if mean < 1 and excess(1 - tiny) > 0 else 1.0
    return low, high


# What the tree tells of a pair.


@pytest.mark.parametrize("max_actions", [None, 3])
def test_the_evidence_of_mdp_gape_is_what_the_model_did(max_actions):
    seen = Recorder()
    planner = pacplan.MDPGapE(epsilon=0.1, delta=0.1, gamma=0.9, horizon=3)
    plan = planner.plan(seen.model(max_actions=max_actions), (), seed=0, budget=3000)
    checked = 0
    for path, pair in pairs_of(plan.tree):
        state, action = plan.tree.state(path[-1]), plan.tree.action(path[-1], pair)
        rewards = seen.rewards[state, action]
        n = len(rewards)
        assert plan.tree.pairs[pair]["n"] == n
        outcomes = {outcome.state: outcome.count for outcome in plan.tree.outcomes(pair)}
        assert outcomes == ({} if len(path) == 3 else seen.successors[state, action])
        # The thresholds of the paper's Lemma 2, and their form where K is not declared.
        size = math.log(3 / 0.1) + 3 * math.log(2 * 3)
        if max_actions is None:
            ways = [len(seen.actions(plan.tree.state(node))) for node in path]
            size = math.log(3 * 3 / 0.1) + math.log(math.prod(ways) * 2 ** (len(path) - 1))
        mean = (np.mean(rewards) - LOW) / (HIGH - LOW)
        low, high = kl_interval(mean, (size + math.log(math.e * (1 + n))) / n)
        known = plan.tree.evidence(pair, path)
        assert known.reward == pytest.approx(np.mean(rewards))
        expected = LOW + (HIGH - LOW) * low, LOW + (HIGH - LOW) * high
        assert known.reward_interval == pytest.approx(expected, abs=1e-6)
        if len(path) == 3:  # After the last step nothing is earned: the reward is the value.
            assert (known.lower, known.upper) == pytest.approx(expected, abs=1e-6)
        checked += 1
    assert checked > 50
    roots = {plan.tree.action(0, pair): plan.tree.evidence(pair, (0,)) for pair in plan.tree.tried(0)}
    assert [roots[a].lower for a in plan.actions] == plan.lower.tolist()
    assert [roots[a].upper for a in plan.actions] == plan.upper.tolist()


@pytest.mark.parametrize("rewards", ["known", "deterministic"])
def test_rewards_that_are_told_have_no_interval(rewards):
    model = pacplan.envs.garnet(states=20, actions=3, seed=1)
    truth = exact.discounted(model, gamma=0.0)
    planner = pacplan.MDPGapE(epsilon=0.1, delta=0.1, gamma=0.7, horizon=3, rewards=rewards)
    tree = planner.plan(model, 0, seed=0, budget=300).tree
    for path, pair in pairs_of(tree):
        known = tree.evidence(pair, path)
        expected = truth[tree.state(path[-1]), tree.action(path[-1], pair)]
        assert known.reward == pytest.approx(expected)
        assert known.reward_interval == (known.reward, known.reward)


@pytest.mark.parametrize("name", ["bracket", "trailblazer", "olop", "kl-olop"])
def test_mean_rewards_of_other_planners(name):
    seen = Recorder()
    model = pacplan.Simulator(
        seen.step, actions=["left", "right"], successors=2, reward_range=(LOW, HIGH)
    )
    options = {} if name == "trailblazer" else {"gamma": 0.7, "horizon": 3}
    plan = make(name, **options).plan(model, (), seed=0, budget=600)
    # A sequence of actions earned what all states that it led to paid.
    by_sequence = defaultdict(list)
    for (state, action), rewards in seen.rewards.items():
        by_sequence[(*state[::2], action)] += rewards
    checked = 0
    for path, pair in pairs_of(plan.tree):
        if not plan.tree.open_loop:
            action = plan.tree.action(path[-1], pair)
            rewards = seen.rewards.get((plan.tree.state(path[-1]), action), [])
            known = plan.tree.evidence(pair, path)
            assert known.reward == (pytest.approx(np.mean(rewards)) if rewards else None)
            checked += len(rewards)
    if plan.tree.open_loop:
        waiting = [((0,), ())]
        while waiting:
            path, before = waiting.pop()
            for pair in plan.tree.tried(path[-1]):
                sequence = (*before, plan.tree.action(path[-1], pair))
                known = plan.tree.evidence(pair, path)
                assert known.reward == pytest.approx(np.mean(by_sequence[sequence]))
                assert known.upper >= known.reward + 0.7 * LOW / 0.3
                checked += len(by_sequence[sequence])
                waiting += [((*path, below.node), sequence) for below in plan.tree.outcomes(pair)]
    assert checked == 600


def test_the_evidence_of_op_mdp_holds_the_truth():
    model = pacplan.envs.garnet(states=20, actions=3, seed=1)
    truth = exact.discounted(model, gamma=0.7)
    tree = make("op-mdp").plan(model, 0, budget=900).tree
    checked = 0
    for path, pair in pairs_of(tree):
        known = tree.evidence(pair, path)
        value = truth[tree.state(path[-1]), tree.action(path[-1], pair)]
        assert known.lower - 1e-9 <= value <= known.upper + 1e-9
        checked += 1
    assert checked == 900


@pytest.mark.parametrize("name", WITH_TREE)
def test_the_root_tells_what_the_plan_tells(name):
    plan = make(name).plan(problem(name), 0, seed=3, budget=2000)
    copy = pickle.loads(pickle.dumps(plan))
    for pair in plan.tree.tried(0):
        known = plan.tree.evidence(pair, (0,))
        assert copy.tree.evidence(pair, (0,)) == known
        i = plan.actions.index(plan.tree.action(0, pair))
        assert (known.lower is None) == (plan.lower is None)
        if plan.lower is not None:
            assert (known.lower, known.upper) == pytest.approx((plan.lower[i], plan.upper[i]))
        if known.value is not None:
            assert known.value == pytest.approx(plan.values[i])


def test_a_plan_outlives_a_model_that_cannot_be_pickled():
    model = pacplan.Simulator(lambda s, a, rng: (s + 1, 0.5, False), actions=["a", "b"], successors=1)
    plan = make("uct").plan(model, 0, seed=0, budget=100)
    tree = pickle.loads(pickle.dumps(plan)).tree
    assert {tree.action(0, pair) for pair in tree.tried(0)} == {"a", "b"}


def test_actions_of_masked_tables_go_by_their_own_numbers():
    offered = np.array([[False, True, True], [True, False, True]])
    model = pacplan.TabularMDP(np.full((2, 3, 2), 0.5), np.full((2, 3), 0.5), available=offered)
    tree = make("uct").plan(model, 0, seed=0, budget=200).tree
    for path, pair in pairs_of(tree):
        assert offered[tree.state(path[-1]), tree.action(path[-1], pair)]


# What of a tree is shown.


def all_visits(tree):
    """Visits of all boxes by plain recursion, zeros included; the root first."""

    def of_node(node):
        below = [of_pair(pair) for pair in tree.tried(node)]
        own = max(int(tree.nodes[node]["count"]), sum(x[0] for x in below))
        own_box = [] if tree.open_loop and node > 0 else [own]
        return own, [*own_box, *(x for _, boxes in below for x in boxes)]

    def of_pair(pair):
        below = [of_node(outcome.node) for outcome in tree.outcomes(pair)]
        own = max(int(tree.pairs[pair]["n"]), sum(x[0] for x in below))
        return own, [own, *(x for _, boxes in below for x in boxes)]

    return of_node(0)[1]


@pytest.mark.parametrize("name", WITH_TREE)
def test_the_most_visited_boxes_are_shown(name):
    tree = make(name).plan(problem(name), 0, seed=3, budget=2000).tree
    expected = sorted(all_visits(tree), reverse=True)
    visited = [visits for visits in expected if visits > 0]
    for most in (1, 30, 10**6):
        shown = outline(tree, most)
        assert sorted((box.visits for box in shown.boxes), reverse=True) == visited[:most]
        assert (shown.total, shown.unvisited) == (len(visited), len(expected) - len(visited))
        names, widths = {""}, {}
        for box in shown.boxes:
            assert box.parent in names, "parents come before children"
            names.add(box.name)
            widths[box.parent] = widths.get(box.parent, 0) + box.visits
        assert len(names) == len(shown.boxes) + 1
        for box in shown.boxes:
            assert widths.get(box.name, 0) <= box.visits, "boxes fit into those above them"
    assert sum(shown.below.values()) == len(visited) - 1


def test_a_large_tree_is_cut_to_a_page(tmp_path):
    model = pacplan.envs.garnet(states=1000, actions=10, successors=10, seed=0)
    planner = pacplan.UCT(gamma=0.7, horizon=12, exploration="ucb1")
    plan = planner.plan(model, 0, seed=0, budget=700_000)
    assert len(plan.tree) + len(plan.tree.pairs) > 1_000_000
    page = views.explore(plan, tmp_path / "tree.html")
    assert page.stat().st_size < 10e6
    shown = outline(plan.tree, 5000)
    text = page.read_text("utf-8")
    assert f"5,000 of {shown.total:,} boxes" in text
    assert f"down to {shown.boxes[-1].visits:,} visits" in text


# The page in a browser.


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="the page's tests need Selenium")
    from selenium.common.exceptions import WebDriverException

    programs = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    chrome = next(filter(None, programs), None)
    driver = shutil.which("chromedriver")
    if chrome is None or driver is None:
        pytest.skip("the page's tests need chromium and chromedriver (Debian: chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chrome
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--window-size=1300,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        running = webdriver.Chrome(options, webdriver.ChromeService(driver))
    except WebDriverException as error:
        pytest.skip(f"chromium is here but does not start: {error.msg}")
    yield running
    running.quit()


class Page:
    """A page of the explorer, open in a browser."""

    def __init__(self, browser, path):
        self.browser = browser
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(path.as_uri())
        self.wait(lambda: self.slices())

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, 60).until(lambda _: condition())

    def find(self, selector):
        return self.browser.find_elements("css selector", selector)

    def slices(self):
        """The boxes that have a label now, by label."""
        script = """
            return Array.from(document.querySelectorAll('g.trace.icicle g.slice'))
                .map(box => [box.textContent, box]).filter(pair => pair[0])
        """
        return dict(self.browser.execute_script(script))

    def hover(self, label):
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).move_to_element(self.slices()[label]).perform()
        self.wait(lambda: self.find(".hoverlayer .hovertext"))
        return [e.text for e in self.find(".hoverlayer .hovertext tspan.line")]

    def root(self):
        """Identity of the box at the top."""
        return self.browser.execute_script(
            "return document.querySelector('.js-plotly-plot')._fullData[0].level"
        )

    def requests(self):
        messages = [json.loads(e["message"])["message"] for e in self.browser.get_log("performance")]
        asked = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        urls = [request["request"]["url"] for request in asked]
        return [url for url in urls if not url.startswith("data:")]


def test_a_person_walks_the_tree(browser, tmp_path):
    seen = Recorder()
    planner = pacplan.MDPGapE(epsilon=0.1, delta=0.1, gamma=0.9, horizon=3)
    plan = planner.plan(seen.model(), (), seed=0, budget=3000)
    page = Page(browser, views.explore(plan, tmp_path / "tree.html"))
    assert plan.guarantee in browser.find_element("tag name", "body").text
    taken = f"action {plan.action}, taken"
    numbers = "\n".join(page.hover(taken))
    rewards = seen.rewards[(), plan.action]
    assert f"n = {len(rewards):,} visits" in numbers
    assert f"reward {np.mean(rewards):.4g} on average, bounds " in numbers
    at = plan.actions.index(plan.action)
    assert f"bounds {at_least(plan.lower[at])} and {at_most(plan.upper[at])}" in numbers
    for state, times in seen.successors[(), plan.action].items():
        assert f"state {state}" in numbers
        assert f"{times / len(rewards):.3f} ({times:,} times)" in numbers
    before = page.root()
    page.slices()[taken].click()
    page.wait(lambda: page.root() != before)
    assert page.root().startswith("a")
    # A click on the strip above leads back.
    page.wait(lambda: page.find("g.pathbar"))[0].click()
    page.wait(lambda: page.root() in ("s0", before))
    assert browser.get_log("browser") == []
    assert page.requests() == [(tmp_path / "tree.html").as_uri()]


def test_names_cannot_break_the_page(browser, tmp_path):
    names = ["<b>x</b>", "</script><h1>y", "%{label}", "$z$", "&amp;"]
    attack = "<script>document.title = 'broken'</script>"

    def step(state, action, rng):
        return attack, 0.5, False

    model = pacplan.Simulator(step, actions=names, successors=1)
    plan = pacplan.UCT(gamma=0.5, horizon=2).plan(model, attack, seed=0, budget=400)
    page = Page(browser, views.explore(plan, tmp_path / "tree.html"))
    labels = set(page.slices())
    assert {f"action {name}" for name in names} <= {label.removesuffix(", taken") for label in labels}
    assert f"state {short(attack, 20)}" in labels
    assert page.hover("action <b>x</b>")[:2] == ["action <b>x</b>", f"in state {attack}"]
    assert browser.title == "Search tree, pacplan"
    assert len(page.find("h1")) == 1
    assert browser.get_log("browser") == []


def test_the_largest_page_opens(browser, tmp_path):
    plan = pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.7).plan(
        pacplan.envs.garnet(seed=0, noise="bernoulli"), 0, seed=0
    )
    page = Page(browser, views.explore(plan, tmp_path / "tree.html"))
    assert len(page.find("g.trace.icicle g.slice")) == 5000
    assert "5,000 of" in browser.find_element("tag name", "body").text
    assert browser.get_log("browser") == []


# The other pictures.


def test_intervals():
    plan = make("mdp-gape").plan(problem("mdp-gape"), 0, seed=0, budget=4000)
    axes = plan.plot()
    lines, points = axes.collections
    assert [line[:, 0].tolist() for line in lines.get_segments()] == list(
        map(list, zip(plan.lower, plan.upper, strict=True))
    )
    assert points.get_offsets()[:, 0].tolist() == plan.values.tolist()
    best = plan.actions.index(plan.action)
    marks = sorted(line.get_xdata()[0] for line in axes.lines)
    assert marks[1] - marks[0] == pytest.approx(abs(plan.gap))
    assert plan.lower[best] in marks
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2"]


def test_intervals_without_bounds_go_into_the_axes_given():
    import matplotlib.pyplot as plt

    figure, given = plt.subplots()
    plan = make("uct").plan(problem("uct"), 0, seed=0, budget=400)
    assert plan.plot(ax=given) is given
    assert plt.get_fignums() == [figure.number]
    assert given.collections[-1].get_offsets()[:, 0].tolist() == plan.values.tolist()
    assert "no bounds" in given.get_title()


def test_odd_and_many_actions_can_be_drawn():
    names = [r"$\nonsense{$", "two\nlines", "x" * 200, *range(97)]
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=names, successors=1)
    plan = make("mdp-gape").plan(model, 0, seed=0, budget=2000)
    axes = plan.plot()
    axes.figure.canvas.draw()
    assert len(axes.get_yticks()) <= 40
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))


@pytest.mark.parametrize("name", ["mdp-gape", "uct"])
def test_a_single_action_and_actions_never_tried_can_be_drawn(name):
    def step(state, action, rng):
        return state, 0.5, False

    for actions, budget in ((1, 50), (8, 5)):
        trace = views.Trace()
        model = pacplan.Simulator(step, actions=actions, successors=1)
        plan = make(name).plan(model, 0, seed=0, budget=budget, callback=trace)
        plan.plot().figure.canvas.draw()
        if plan.lower is None:
            continue
        if plan.samples > 0:
            views.convergence(trace).figure.canvas.draw()
        else:
            assert actions == 1
            with pytest.raises(ValueError, match="before its first call"):
                views.convergence(trace)


def test_convergence_draws_the_bounds_up_to_the_stop():
    trace = views.Trace()
    plan = make("mdp-gape").plan(problem("mdp-gape"), 0, seed=0, budget=4000, callback=trace)
    assert np.array_equal(trace.lower[-1], plan.lower)
    assert np.array_equal(trace.upper[-1], plan.upper)
    axes = views.convergence(trace)
    drawn = [tuple(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) == len(trace)]
    expected = [*map(tuple, trace.lower.T), *map(tuple, trace.upper.T)]
    assert sorted(drawn) == sorted(expected)
    assert all(list(line.get_xdata()) == trace.samples.tolist() for line in axes.lines[:-1])
    assert list(axes.lines[-1].get_xdata()) == [4000, 4000]
    assert f"{plan.samples:,} calls" in axes.get_title()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[0] == f"{plan.action}, taken"


@pytest.mark.parametrize(
    "limits", [{"budget": 1234}, {"time_limit": 0.1}, {"budget": 10**9, "time_limit": 0.1}]
)
def test_a_trace_ends_where_the_search_ends(limits, clock):
    trace = views.Trace()

    def watch(snapshot):
        clock.now += 0.001
        trace(snapshot)

    for _ in range(2):  # It starts over with the next search.
        # Chunks of one episode end between two calls of the callback.
        planner = make("mdp-gape", chunk=1)
        plan = planner.plan(problem("mdp-gape"), 0, seed=0, callback=watch, **limits)
        assert trace.snapshots[-1].samples == plan.samples
        assert trace.snapshots[0].episodes == 1
        assert (np.diff(trace.samples) > 0).all()


def test_a_trace_holds_one_search_however_short_the_one_before_was():
    trace = views.Trace()
    planner = make("mdp-gape")
    planner.plan(problem("mdp-gape"), 0, seed=0, budget=1, callback=trace)
    assert set(trace.samples) == {1}
    plan = planner.plan(problem("mdp-gape"), 0, seed=0, budget=400, callback=trace)
    assert trace.samples[0] > 1 and trace.samples[-1] == plan.samples
    # Another state has other actions.
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=3, successors=1)
    planner.plan(model, 0, seed=0, budget=1, callback=trace)
    assert {snapshot.actions for snapshot in trace.snapshots} == {(0, 1, 2)}


def test_searches_at_the_same_time_need_a_trace_each():
    trace = views.Trace()
    planner = make("mdp-gape")

    def step(state, action, rng):
        planner.plan(problem("mdp-gape"), 0, seed=0, budget=50, callback=trace)
        return state, 0.5, False

    model = pacplan.Simulator(step, actions=2, successors=1)
    with pytest.raises(ValueError, match="each needs its own"):
        planner.plan(model, 0, seed=0, budget=20, callback=trace)


def test_what_cannot_be_drawn_is_refused(tmp_path, monkeypatch):
    trace = views.Trace()
    with pytest.raises(ValueError, match="callback=trace"):
        views.convergence(trace)
    plan = make("uct").plan(problem("uct"), 0, seed=0, budget=400, callback=trace)
    with pytest.raises(ValueError, match="no bounds"):
        views.convergence(trace)
    for path, message in ((tmp_path, "is a folder"), (tmp_path / "no" / "x.html", "no folder")):
        with pytest.raises(ValueError, match=message):
            views.explore(plan, path)
    with pytest.raises(ValueError, match="most"):
        views.explore(plan, tmp_path / "x.html", most=0)
    treeless = make("sparse-sampling").plan(problem("sparse-sampling"), 0, seed=0)
    with pytest.raises(ValueError, match="keeps none"):
        views.explore(treeless, tmp_path / "x.html")
    for name in ("plotly", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"plotly: pip install pacplan\[viz\]"):
        views.explore(plan, tmp_path / "x.html")
    with pytest.raises(ImportError, match=r"matplotlib: pip install pacplan\[viz\]"):
        plan.plot()
    assert list(tmp_path.iterdir()) == []


def test_planning_needs_no_pictures():
    code = "import sys, pacplan; print([m for m in ('matplotlib', 'plotly') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


# The command.


def command(*arguments):
    return CliRunner().invoke(app, ["plan", "garnet", "--seed", "0", *map(str, arguments)])


@pytest.mark.parametrize("name", ["mdp-gape", "kl-olop"])
def test_the_command_writes_the_page(name, tmp_path):
    page = tmp_path / "out.html"
    result = command("--planner", name, "--budget", 2000, "--json", "--html", page)
    assert result.exit_code == (3 if name == "mdp-gape" else 0)
    assert json.loads(result.stdout)["samples"] <= 2000
    assert "The search tree of" in page.read_text("utf-8")


def test_the_command_refuses_before_it_plans(tmp_path, monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("it planned")

    monkeypatch.setattr(pacplan.algorithms.common.base.Planner, "plan", never)
    for planner, path, message in (
        ("opd", tmp_path / "x.html", "keeps no search tree"),
        ("uct", tmp_path, "is a folder"),
        ("uct", tmp_path / "no" / "x.html", "no folder"),
    ):
        result = command("--planner", planner, "--budget", 100, "--html", path)
        assert result.exit_code == 2
        assert message in result.output
    if hasattr(os, "getuid") and os.getuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        assert "permission" in command("--html", locked / "x.html").output
    monkeypatch.setitem(sys.modules, "plotly", None)
    result = command("--html", tmp_path / "x.html")
    assert result.exit_code == 2
    assert "pip install pacplan[viz]" in result.output
