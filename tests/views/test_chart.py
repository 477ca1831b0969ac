"""The map of a policy on a plan's page."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array

import pacplan
from browser import Page, browser  # noqa: F401  (a fixture)
from pacplan.policy import NONE, Charted, Policy
from pacplan.views.chart import chart


def policy(chances):
    """A policy that takes a pair of its own in every state; the first states are called most."""
    count = len(chances)
    charted = tuple(range(count)), None, np.arange(count)[np.newaxis].copy()
    bounds = np.arange(count, dtype=float)[np.newaxis]
    return Policy(
        *charted,
        ("go",) * count,
        value=-1.0,
        given="",
        lower=Charted(*charted, bounds),
        upper=Charted(*charted, bounds + 1.0),
        calls=np.arange(count, 0, -1),
        spent=np.arange(count, 0, -1) * 3,
        transitions=csr_array(chances),
    )


def centres(drawn):
    return np.array([(state["x"], state["y"]) for state in drawn["states"]])


def test_every_state_is_told_of():
    drawn = chart(policy(np.roll(np.eye(5), 1, axis=1)))
    assert drawn["left_out"] == 0 and len(drawn["arrows"]) == 5
    third = drawn["states"][2]
    assert (third["state"], third["action"], third["worth"], third["calls"]) == (
        "2",
        "go",
        (2, 3),
        (9, 3),
    )
    assert drawn["states"][0]["outer"] > drawn["states"][4]["outer"]


@pytest.mark.parametrize("count", [1, 2, 3, 60, 200])
def test_states_keep_apart_and_inside_and_those_called_most_are_drawn(count):
    drawn = chart(policy(np.full((count, count), 1.0 / count)))
    places = centres(drawn)
    assert len(places) == min(count, 60) and drawn["left_out"] == count - len(places)
    assert [int(state["state"]) for state in drawn["states"]] == [*range(len(places))]
    assert (places > 20.0).all() and (places < (drawn["width"] - 20, drawn["height"] - 20)).all()
    apart = np.linalg.norm(places[:, None] - places, axis=2) + 1e3 * np.eye(len(places))
    assert apart.min() > 30.0


def test_neighbours_lie_side_by_side():
    # A grid of four by six, whose states all lead to their neighbours.
    at = np.array([(x, y) for x in range(6) for y in range(4)])
    near = np.abs(at[:, None] - at).sum(2) == 1
    places = centres(chart(policy(near / near.sum(1, keepdims=True))))
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    assert apart[near].max() < min(3.0 * apart[apart > 0].min(), 0.5 * apart.max())


def shop(state, order, rng):
    have = min(state + order, 20)
    return have - min(have, rng.poisson(4)), 5.0 * (have - state) - 0.3 * have - 3.0 * order, False


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    model = pacplan.Simulator(shop, actions=[0, 4, 8], reward_range=(-30, 100))
    asked = {"epsilon": 40, "delta": 0.1, "gamma": 0.8}
    plan = pacplan.Atlas(**asked).plan(model, 3, seed=0)
    path = plan.to_html(tmp_path_factory.mktemp("chart") / "plan.html")
    text = path.read_text("utf-8")
    assert len(re.findall("<title>State", text)) == len(plan.policy) == 21
    assert re.findall(r'<section id="(\w+)"', text)[-1] == "chart"
    stepwise = pacplan.Atlas(horizon=3, **asked).plan(model, 3, seed=0)
    text = stepwise.to_html(path.with_name("steps.html")).read_text("utf-8")
    assert "State 3 after 0 steps: action" in text and "after 1 steps: action" in text
    assert (stepwise.policy.chosen == NONE).any()
    return path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_can_be_read(page, browser, width, dark):  # noqa: F811
    shown = Page(browser, page, width, dark)
    assert not shown.problems() and shown.requests() == [page.as_uri()]
    assert not shown.overflowing()
    assert min(ratio for ratio, _ in shown.contrasts()) >= 4.5
    # Letters are no smaller than this on the screen, whatever the drawing is scaled to.
    heights = shown.run(
        "[...document.querySelectorAll('.chart text')].map(e => e.getBoundingClientRect().height / 2)"
    )
    assert len(heights) == 21 and min(heights) > 8.0
