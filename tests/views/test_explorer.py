"""The page: in a real browser, and from the command."""

import json
import os
import shutil
import sys

import numpy as np
import pytest

import pacplan
from command_line import run
from pacplan import views
from pacplan.core.words import at_least, at_most
from pacplan.views.style import short
from trees import Recorder


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


# The command.


def command(*arguments):
    return run("plan", "garnet", "--seed", "0", *arguments)


@pytest.mark.parametrize("name", ["mdp-gape", "kl-olop"])
def test_the_command_writes_the_page(name, tmp_path):
    page = tmp_path / "out.html"
    result = command("--planner", name, "--budget", 2000, "--json", "--html", page)
    assert result.code == (3 if name == "mdp-gape" else 0)
    assert json.loads(result.stdout)["samples"] <= 2000
    assert "The search tree of" in page.read_text("utf-8")


def test_the_command_refuses_before_it_plans(tmp_path, monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("it planned")

    monkeypatch.setattr(pacplan.algorithms.common.base.Planner, "plan", never)
    for planner, path, message in (
        ("stop", tmp_path / "x.html", "keeps no search tree"),
        ("uct", tmp_path, "is a folder"),
        ("uct", tmp_path / "no" / "x.html", "no folder"),
    ):
        result = command("--planner", planner, "--budget", 100, "--html", path)
        assert result.code == 2
        assert message in result.output
    if hasattr(os, "getuid") and os.getuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        assert "permission" in command("--html", locked / "x.html").output
    monkeypatch.setitem(sys.modules, "plotly", None)
    result = command("--html", tmp_path / "x.html")
    assert result.code == 2
    assert "pip install pacplan[viz]" in result.output
