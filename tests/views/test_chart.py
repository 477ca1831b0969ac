"""The map of a chart on a plan's page."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import pacplan
from browser import Page, browser  # noqa: F401  (a fixture)
from pacplan.policy import NONE, Charted, Policy
from pacplan.views.chart import chart


def policy(chances, states=None, actions=None, horizon=None, gamma=0.9):
    """A policy that takes a pair of its own in every state."""
    pairs, count = chances.shape
    states = tuple(range(count)) if states is None else tuple(states)
    chosen = np.tile(np.arange(pairs), (horizon or 1, 1))
    charted = states, horizon, chosen
    bounds = np.tile(np.arange(count, dtype=float), (horizon or 1, 1))
    return Policy(
        *charted,
        tuple(actions or ["go"] * pairs),
        value=-1.0,
        given="",
        lower=Charted(*charted, bounds),
        upper=Charted(*charted, bounds + 1.0),
        calls=np.arange(1, pairs + 1),
        spent=np.arange(1, pairs + 1) * 3,
        transitions=csr_array(chances),
        gamma=gamma,
    )


def ring(count):
    return np.roll(np.eye(count), 1, axis=1)


def titles(drawn):
    return [state["title"] for state in drawn.states]


def centres(drawn):
    return np.array([(state["x"], state["y"]) for state in drawn.states])


def test_every_state_is_told_of():
    drawn = chart(policy(ring(5), actions="abcde"), None)
    assert drawn.left_out == 0 and len(drawn.arrows) == 5
    assert sorted(titles(drawn))[2] == (
        "State 2: action c. Worth at most 3, the policy earns at least 2. 9 calls, 3 of them of c."
    )


def test_neighbours_lie_side_by_side():
    # A grid of four by six, whose states all lead to their neighbours.
    at = [(x, y) for x in range(6) for y in range(4)]
    near = np.array([[abs(a - c) + abs(b - d) == 1 for c, d in at] for a, b in at], float)
    drawn = chart(policy(near / near.sum(1, keepdims=True), states=at), None)
    names = [eval(re.match(r"State (.*?):", title)[1]) for title in titles(drawn)]
    places = dict(zip(names, centres(drawn), strict=True))
    apart = {(a, b): np.linalg.norm(places[a] - places[b]) for a in at for b in at if a != b}
    neighbours = [d for (a, b), d in apart.items() if near[at.index(a), at.index(b)]]
    assert max(neighbours) < 3.0 * min(apart.values())
    assert max(neighbours) < 0.5 * max(apart.values())


@pytest.mark.parametrize("count", [1, 2, 3, 60])
def test_states_keep_apart_and_inside(count):
    drawn = chart(policy(np.full((count, count), 1.0 / count)), None)
    places = centres(drawn)
    assert len(places) == count
    assert (places > 20.0).all() and (places < (drawn.width - 20, drawn.height - 20)).all()
    apart = np.linalg.norm(places[:, None] - places, axis=2) + 1e3 * np.eye(count)
    assert apart.min() > 30.0
    assert chart(policy(np.full((count, count), 1.0 / count)), None) == drawn


def test_those_visited_most_are_drawn():
    # From each state on to the next one: the earlier it comes, the less it is discounted.
    chances = np.zeros((200, 200))
    chances[np.arange(200), np.minimum(np.arange(200) + 1, 199)] = 1.0
    drawn = chart(policy(chances), None)
    assert drawn.left_out == 140
    assert {int(re.match(r"State (\d+)", title)[1]) for title in titles(drawn)} == set(range(60))
    few = chart(policy(chances), 7)
    assert few.left_out == 193 and len(titles(few)) == 7 and titles(few)[0].startswith("State 0:")


def test_states_that_the_policy_leaves_out_are_not_drawn():
    whole = policy(ring(6))
    chosen = np.where(np.arange(6) == 4, NONE, whole.chosen)
    drawn = chart(replace(whole, chosen=chosen), None)
    assert drawn.left_out == 0 and len(titles(drawn)) == 5
    assert not any("State 4" in title for title in titles(drawn))


def test_with_a_horizon_actions_are_told_by_step():
    whole = policy(ring(3), actions=["wait", "go", "stay"], horizon=4)
    chosen = whole.chosen.copy()
    chosen[2:, 0] = 1  # From step 2 on the first state is left as the second one is.
    told = titles(chart(replace(whole, chosen=chosen), None))
    assert told[0].startswith("State 0: action wait from step 0 on; go from step 2 on.")


# On the page.


def shop(state, order, rng):
    have = min(state + order, 20)
    return have - min(have, rng.poisson(4)), 5.0 * (have - state) - 0.3 * have - 3.0 * order, False


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    model = pacplan.Simulator(shop, actions=[0, 4, 8], reward_range=(-30, 100))
    plan = pacplan.Atlas(epsilon=40, delta=0.1, gamma=0.8).plan(model, 3, seed=0)
    assert plan.certified and plan.tree is None
    return plan, plan.to_html(tmp_path_factory.mktemp("chart") / "plan.html")


def test_the_map_stands_where_the_tree_would(page):
    plan, path = page
    text = path.read_text("utf-8")
    sections = re.findall(r'<section id="(\w+)"', text)
    assert sections[-1] == "chart" and "tree" not in sections and "episodes" not in text
    assert len(re.findall("<title>State", text)) == len(plan.policy) == 21
    stopped = pacplan.Atlas(epsilon=40, delta=0.1, gamma=0.8).plan(
        pacplan.envs.riverswim(), 1, seed=0, budget=20
    )
    assert stopped.policy is None
    assert "keeps no search tree" in stopped.to_html(path.with_name("stopped.html")).read_text("utf-8")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_can_be_read(page, browser, width, dark):  # noqa: F811
    shown = Page(browser, page[1], width, dark)
    assert not shown.problems() and shown.requests() == [page[1].as_uri()]
    assert not shown.overflowing()
    assert min(ratio for ratio, _ in shown.contrasts()) >= 4.5
    # Letters are no smaller than this on the screen, whatever the drawing is scaled to.
    heights = shown.run(
        "[...document.querySelectorAll('.chart text')].map(e => e.getBoundingClientRect().height / 2)"
    )
    assert len(heights) == 21 and min(heights) > 8.0
